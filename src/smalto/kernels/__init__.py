"""Numba kernels: serial, in place, on validated arrays. Nothing here checks its input."""
