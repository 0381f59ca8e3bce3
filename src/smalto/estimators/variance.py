"""How much of the variance of data its components explain, when they are not orthogonal."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from smalto.checks import Array, Rows
from smalto.coders.encoding import ROWS_AT_ONCE


def column_means(X: Rows) -> Array:
    """Means of the columns in float64, block by block: X may be larger than memory."""
    total = np.zeros(X.shape[1])
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        total += column_sums(X[first : first + ROWS_AT_ONCE])
    return np.asarray(total / X.shape[0])


def column_sums(X: Rows) -> Array:
    """Sums of the columns in float64."""
    return np.asarray(X.sum(axis=0, dtype=np.float64)).reshape(-1)


def centred(X: Rows, mean: Array, dtype: np.dtype[Any]) -> Array:
    """Rows minus the mean, dense, in this dtype."""
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return np.asarray(np.subtract(dense, mean.astype(dtype), dtype=dtype))


def score_moments(X: Rows, D: Array, mean: Array) -> tuple[Array, float]:
    """``ZᵀZ / n`` of the scores ``Z = (X − mean) Dᵀ``, and the total variance of X.

    The rows of D are taken as directions, of norm 1 (or 0).
    """
    norms = np.linalg.norm(D, axis=1, keepdims=True)
    dtype = D.dtype
    V = np.divide(D, norms, out=np.zeros_like(D), where=norms > 0).T
    moments, total = np.zeros((len(D), len(D))), 0.0
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        block = centred(X[first : first + ROWS_AT_ONCE], mean, dtype)
        Z = block @ V
        moments += Z.T @ Z
        total += float(np.einsum("ij,ij->", block, block, dtype=np.float64))
    return moments / X.shape[0], total / X.shape[0]


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
    X64 = X.astype(np.float64, copy=False)
    moments = X64 @ X64.T if n < m else X64.T @ X64
    values, vectors = linalg.eigh(moments, subset_by_index=(size - count, size - 1))
    if not values[0] > 1e-10 * values[-1]:
        return None
    components = vectors.T[::-1] if n >= m else (X64.T @ vectors / np.sqrt(values)).T[::-1]
    return np.ascontiguousarray(components, X.dtype)
