"""Kernels of the coders."""
