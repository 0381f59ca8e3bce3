"""Explained variance of components that need not be orthogonal."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from smalto.checks import Array
from smalto.coders.scaling import largest_entry, number_exponent, shifted
from smalto.estimators.centering import centered, row_blocks, rows_of


def score_moments(X: Any, D: Array, mean: Array) -> tuple[Array, float]:
    """Return ``ZᵀZ / n`` for the scores ``Z = (X − mean) Dᵀ``, and the total variance of X.

    The rows of D are scaled to norm 1 first; zero rows stay zero.
    """
    norms = np.linalg.norm(D, axis=1, keepdims=True)
    dtype = D.dtype
    V = np.divide(D, norms, out=np.zeros_like(D), where=norms > 0).T
    moments, total = np.zeros((len(D), len(D))), 0.0
    source = rows_of(X)
    for rows in row_blocks(source):
        block = centered(rows, mean, dtype)
        Z = block @ V
        exponent = number_exponent(largest_entry(Z))
        if exponent:  # squares may not fit into the dtype
            Z = shifted(Z, -exponent)
        moments += 4.0**exponent * (Z.T @ Z).astype(np.float64, copy=False)
        total += float(np.einsum("ij,ij->", block, block, dtype=np.float64))
    return moments / source.n_rows, total / source.n_rows


def adjusted_variances(moments: Array) -> tuple[Array, Array]:
    """Return an order of the components, and the variance each explains beyond those before it.

    The variances are the squared diagonal entries of R in the QR decomposition with pivoting of
    the scores (Zou, Hastie and Tibshirani 2006), from their second moments: the component of
    largest variance comes first, and each further one adds most to those before it. Their sum is
    at most the variance explained by as many principal components.
    """
    unit = 2.0 ** number_exponent(float(np.diagonal(moments).max(initial=0.0)))
    rest = np.array(moments, np.float64) / unit
    k = len(rest)
    order, variances = np.arange(k), np.zeros(k)
    left = np.diagonal(rest).copy()
    negligible = 1e-12 * float(left.max(initial=0.0))
    for j in range(k):
        best = j + int(np.argmax(left[order[j:]]))
        order[[j, best]] = order[[best, j]]
        pivot = order[j]
        if not left[pivot] > negligible:
            order[j:] = np.sort(order[j:])  # the rest adds nothing
            break
        variances[j] = left[pivot]
        rest -= np.outer(rest[:, pivot], rest[pivot]) / rest[pivot, pivot]
        left = np.maximum(np.diagonal(rest), 0.0)
    return order, unit * variances


def principal_components(X: Array, count: int) -> Array | None:
    """Return the first ``count`` principal components of centered rows; None if there are fewer."""
    n, m = X.shape
    size = min(n, m)
    if count > size:
        return None
    X = shifted(X, -number_exponent(largest_entry(X)))  # whose squares fit into the dtype
    moments = X @ X.T if n < m else X.T @ X
    values, vectors = linalg.eigh(moments, subset_by_index=(size - count, size - 1))
    if not values[0] > 100 * np.finfo(X.dtype).eps * values[-1]:
        return None
    components = vectors.T[::-1] if n >= m else (X.T @ vectors / np.sqrt(values)).T[::-1]
    return np.ascontiguousarray(components, X.dtype)
