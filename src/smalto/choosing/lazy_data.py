"""Dask collections: computed once, unless they are large and learned from on their cluster."""

from __future__ import annotations

import sys
from typing import Any

from smalto.estimators.base import Factorization
from smalto.sources import is_dask

LARGE = 1 << 31  # bytes of an array from which on it stays where it is


def computed(X: Any, template: Factorization | None = None) -> Any:
    """Return a Dask array or data frame as one in memory; anything else as it is.

    A step on a cluster takes as long as a small fit in memory, and a choice has thousands of
    steps. A large array stays lazy if the estimator can learn from it block by block.
    """
    if not is_dask(X):
        return X
    by_blocks = template is not None and template._reads_dask
    if by_blocks and getattr(X, "ndim", 0) == 2 and X.nbytes > LARGE:
        return X
    return X.compute()


def cluster_of(X: Any, client: Any) -> Any:
    """Return the client given; for a Dask collection by default the current one, if there is one."""
    if client is not None or not is_dask(X) or "distributed" not in sys.modules:
        return client
    from smalto import distributed

    return distributed.current_client()
