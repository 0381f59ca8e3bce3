"""Online dictionary learning and sparse matrix factorization."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as type checkers read it; importing typing would take time
if TYPE_CHECKING:
    from typing import Any

    from smalto.choosing import consensus, quality, select
    from smalto.coders import duality_gap, encode, lasso_path
    from smalto.estimators import NMF, DictionaryLearning, SparseCCA, SparsePCA
    from smalto.learning import Model, Result, State, learn
    from smalto.warming_up import warmup

__version__ = "0.1.0"
__all__ = [
    "NMF",
    "DictionaryLearning",
    "Model",
    "Result",
    "SparseCCA",
    "SparsePCA",
    "State",
    "consensus",
    "duality_gap",
    "encode",
    "lasso_path",
    "learn",
    "quality",
    "select",
    "warmup",
]

# What is imported on first use, since NumPy, SciPy and Numba take a second: names by their module.
_NAMES = {
    "choosing": ("consensus", "quality", "select"),
    "coders": ("duality_gap", "encode", "lasso_path"),
    "estimators": ("NMF", "DictionaryLearning", "SparseCCA", "SparsePCA"),
    "learning": ("Model", "Result", "State", "learn"),
    "warming_up": ("warmup",),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = {
    *("choosing", "coders", "compat", "constraints", "datasets", "distributed", "estimators"),
    *("image", "learners", "learning", "plot", "projections", "reporting", "sources"),
}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"smalto.{_MODULE_OF[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"smalto.{name}")
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted({"__doc__", "__version__", *__all__, *_MODULES})
