"""Benchmarks of smalto; run them from the root of the repository."""
