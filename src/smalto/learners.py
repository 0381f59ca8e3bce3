"""Learners: how the dictionary follows from the data."""

from smalto.learning import SGD, Batch, Continuation, Online, Replacement

__all__ = ["SGD", "Batch", "Continuation", "Online", "Replacement"]
