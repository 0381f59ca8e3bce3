"""Large data: streams from files, clusters, crashes, and limits of scaling."""
