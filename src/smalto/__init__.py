"""Online dictionary learning and sparse matrix factorization."""

from smalto.coders import encode, lasso_path
from smalto.learning import Result, State, learn

__version__ = "0.1.0"
__all__ = ["Result", "State", "encode", "lasso_path", "learn"]
