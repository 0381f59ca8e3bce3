"""Learners: how the past is kept, and how the dictionary follows from it."""
