"""Coders: the sparse coding problems, and the one door to solving them."""

from smalto.coders.base import Coder
from smalto.coders.encoding import encode
from smalto.coders.lasso import Lasso
from smalto.coders.path import Path, lasso_path

__all__ = ["Coder", "Lasso", "Path", "encode", "lasso_path"]
