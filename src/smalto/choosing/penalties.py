"""The penalties to choose from where nobody has said any."""

from __future__ import annotations

import numpy as np
import scipy

from smalto.checks import Rows
from smalto.choosing.prediction import in_memory, some_rows
from smalto.coders.lasso import Lasso, default_lam
from smalto.estimators.base import Factorization
from smalto.estimators.dictionary_learning import DictionaryLearning

PARTS = (1, 4, 16)  # of the default λ: it suits much noise, the smallest one very little


def leaves_open(template: Factorization) -> bool:
    """Return whether nothing has been said about the penalty of an estimator that needs one.

    Plain NMF has none, and sparse components predict without theirs (`steady_coder`).
    """
    coder = Lasso() if template.coder is None else template.coder
    return (
        isinstance(template, DictionaryLearning)
        and isinstance(coder, Lasso)
        and coder.lam is None
        and coder.mean_nonzeros is None
    )


def usual_lams(X: Rows) -> list[float] | None:
    """Return the default λ of X, a quarter and a sixteenth of it; None if it is 0, or unknown."""
    rows = in_memory(some_rows(X))
    if isinstance(rows, np.ma.MaskedArray):
        rows = rows.compressed()
    elif not scipy.sparse.issparse(rows):
        rows = rows[~np.isnan(rows)]
    lam = default_lam(rows)
    return [lam / part for part in PARTS] if 0.0 < lam < np.inf else None
