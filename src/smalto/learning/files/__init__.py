"""Checkpoints and models as files."""
