"""Kernels that cut patches out of pictures, and match them."""
