"""Kernels of learning: sums of coded samples, the dictionary update, tables of codes."""
