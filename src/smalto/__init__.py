"""Online dictionary learning and sparse matrix factorization."""

from smalto.coders import encode, lasso_path

__version__ = "0.1.0"
__all__ = ["encode", "lasso_path"]
