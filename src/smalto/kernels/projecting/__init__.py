"""Kernels of the projections onto constraint sets."""
