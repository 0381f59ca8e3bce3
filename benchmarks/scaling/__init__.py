"""Large data: streams from files, clusters, crashes, and where scaling ends."""
