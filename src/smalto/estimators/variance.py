"""How much of the variance of data its components explain, when they are not orthogonal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg, sparse

from smalto.checks import Array, Rows
from smalto.coders.coding import ROWS_AT_ONCE
from smalto.sources import Source, Stream, as_source


def rows_of(X: Any) -> Source:
    """X as rows that can be read as often as it takes."""
    source = as_source(X)
    if isinstance(source, Stream):
        message = (
            "the samples are read several times, but a stream can be read once: give its batches "
            "to partial_fit"
        )
        raise TypeError(message)
    return source


def _blocks(source: Source) -> Iterator[Rows]:
    """All rows in order, some at a time: there may be more than fit into memory."""
    for first in range(0, source.n_rows, ROWS_AT_ONCE):
        yield source.rows(np.arange(first, min(first + ROWS_AT_ONCE, source.n_rows)))


def column_means(X: Any) -> Array:
    """Means of the columns, in float64."""
    source = rows_of(X)
    total = np.zeros(source.n_features)
    for block in _blocks(source):
        total += column_sums(block)
    return np.asarray(total / source.n_rows)


def column_sums(X: Rows) -> Array:
    """Sums of the columns, in float64."""
    return np.asarray(X.sum(axis=0, dtype=np.float64)).reshape(-1)


def centred(X: Rows, mean: Array, dtype: np.dtype[Any]) -> Array:
    """Rows minus the mean, dense, in this dtype."""
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return np.asarray(np.subtract(dense, mean.astype(dtype), dtype=dtype))


def score_moments(X: Any, D: Array, mean: Array) -> tuple[Array, float]:
    """``ZᵀZ / n`` of the scores ``Z = (X − mean) Dᵀ``, and the total variance of X.

    The rows of D are taken as directions, of norm 1 (or 0).
    """
    norms = np.linalg.norm(D, axis=1, keepdims=True)
    dtype = D.dtype
    V = np.divide(D, norms, out=np.zeros_like(D), where=norms > 0).T
    moments, total = np.zeros((len(D), len(D))), 0.0
    source = rows_of(X)
    for rows in _blocks(source):
        block = centred(rows, mean, dtype)
        Z = block @ V
        moments += Z.T @ Z
        total += float(np.einsum("ij,ij->", block, block, dtype=np.float64))
    return moments / source.n_rows, total / source.n_rows


def adjusted_variances(moments: Array) -> tuple[Array, Array]:
    """An order of the components, and what each explains beyond those before it.

    These are the squared diagonal entries of R in the QR decomposition with pivoting of the
    scores (Zou, Hastie and Tibshirani 2006), from their second moments: the component with the
    largest variance is first, each next one adds the most to those before it. Their sum is
    at most the variance that as many principal components explain.
    """
    rest = np.array(moments, np.float64)
    k = len(rest)
    order, variances = np.arange(k), np.zeros(k)
    left = np.diagonal(rest).copy()
    negligible = 1e-12 * float(left.max(initial=0.0))
    for j in range(k):
        best = j + int(np.argmax(left[order[j:]]))
        order[[j, best]] = order[[best, j]]
        pivot = order[j]
        if not left[pivot] > negligible:
            order[j:] = np.sort(order[j:])  # of those that add nothing
            break
        variances[j] = left[pivot]
        rest -= np.outer(rest[:, pivot], rest[pivot]) / rest[pivot, pivot]
        left = np.maximum(np.diagonal(rest), 0.0)
    return order, variances


def principal_components(X: Array, count: int) -> Array | None:
    """The first principal components (count, m) of centred rows, None if there are not so many."""
    n, m = X.shape
    size = min(n, m)
    if count > size:
        return None
    moments = X @ X.T if n < m else X.T @ X
    values, vectors = linalg.eigh(moments, subset_by_index=(size - count, size - 1))
    if not values[0] > 100 * np.finfo(X.dtype).eps * values[-1]:
        return None
    components = vectors.T[::-1] if n >= m else (X.T @ vectors / np.sqrt(values)).T[::-1]
    return np.ascontiguousarray(components, X.dtype)
