"""Picture files: what is in them, and writing it back as it was."""
