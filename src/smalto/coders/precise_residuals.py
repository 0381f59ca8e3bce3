"""Residuals of codes in float64, and in twice that precision where large coefficients cancel.

A residual ``x − αD`` is known to about ``Σ|α_j|‖d_j‖`` times the rounding of float64. With
coefficients of 1e8 that is more than the gap which a certificate may leave open.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array

_CANCELLING = 1e4  # Σ|α_j|‖d_j‖/‖x‖ up to which the rounding of float64 does no harm
_SPLIT = 2.0**27 + 1.0  # halves the bits of a float64


def precise_residuals(X: Array, D: Array, codes: Any) -> Array:
    """Return ``x − αD`` of each row; ``codes`` is a CSR array, all are float64."""
    left = np.asarray(X - codes @ D)
    sizes = abs(codes) @ np.sqrt(np.einsum("ij,ij->i", D, D))
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    for row in np.flatnonzero(sizes > _CANCELLING * norms):
        used = slice(codes.indptr[row], codes.indptr[row + 1])
        left[row] = _residual(X[row], D[codes.indices[used]], codes.data[used])
    return left


def _residual(x: Array, atoms: Array, code: Array) -> Array:
    """Return ``x − αD`` of one signal, with the rounding errors of all products and sums added up."""
    total, errors = x.copy(), np.zeros_like(x)
    for value, atom in zip(-code, atoms, strict=True):
        product = value * atom
        errors += _product_error(value, atom, product)
        new = total + product
        part = new - total
        errors += (total - (new - part)) + (product - part)  # of the sum
        total = new
    return np.asarray(total + errors)


def _product_error(a: Any, b: Array, product: Array) -> Array:
    """Return ``a b − product`` exactly, by products of halves that have no rounding."""
    a_high, b_high = _high(a), _high(b)
    a_low, b_low = a - a_high, b - b_high
    off = product - a_high * b_high - a_low * b_high - a_high * b_low
    return np.asarray(a_low * b_low - off)


def _high(a: Any) -> Any:
    """Return the upper half of the bits."""
    scaled = _SPLIT * a
    return scaled - (scaled - a)
