"""Online dictionary learning and sparse matrix factorization."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from smalto.coders import duality_gap, encode, lasso_path
from smalto.learning import Model, Result, State, learn

if TYPE_CHECKING:
    from smalto.choosing import consensus, quality, select
    from smalto.estimators import NMF, DictionaryLearning, SparseCCA, SparsePCA
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

_ESTIMATORS = {"NMF", "DictionaryLearning", "SparseCCA", "SparsePCA"}
_CHOOSING = {"consensus", "quality", "select"}
_MODULES = {
    "choosing",
    "datasets",
    "distributed",
    "estimators",
    "image",
    "learners",
    "plot",
    "projections",
    "reporting",
    "sources",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: scikit-learn takes longer to import than everything else together.
    if name in _ESTIMATORS:
        from smalto import estimators

        return getattr(estimators, name)
    if name in _CHOOSING:
        from smalto import choosing

        return getattr(choosing, name)
    if name == "warmup":
        from smalto import warming_up

        return warming_up.warmup
    if name in _MODULES:
        return importlib.import_module(f"smalto.{name}")
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
