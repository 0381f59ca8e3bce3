"""Powers of two that bring signals and atoms to ordinary sizes before they are coded.

Kernels square what they are given, and search in float32, where squares of 1e-25 vanish. Numbers
times powers of two keep their digits, so a problem with signals of size 1e-100 has the codes of
the problem at size 1, exactly. Ordinary data are left alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows, sum_is_finite
from smalto.coders.codes import Codes
from smalto.coders.products import sparse_matrix
from smalto.coders.signals import Signals
from smalto.kernels.sparse_products import sparse_squares

_ORDINARY = 2.0**50  # squared norms between 1/this and this are left alone
_BEYOND = {4: -64, 8: -512}  # exponents of rows so small, among others, that codes may vanish
_STEP = 16  # exponents are multiples of it, so that few different problems arise


def shifted(values: Rows, exponents: Any) -> Rows:
    """Return ``values · 2^exponents``, exactly; one exponent for all, or one per row."""
    exponents = np.asarray(exponents)
    if scipy.sparse.issparse(values):
        if exponents.ndim:
            exponents = np.repeat(exponents, np.diff(values.indptr))
        data = np.ldexp(values.data, exponents)
        return scipy.sparse.csr_array((data, values.indices, values.indptr), shape=values.shape)
    return np.ldexp(values, exponents[:, None] if exponents.ndim else exponents)


def atom_exponents(D: Array, one_each: bool) -> Array | None:
    """Return the exponents of the powers of two in the atoms; None if no atom is unusual.

    They are the same for all atoms unless ``one_each``.
    """
    norms = np.einsum("ij,ij->i", D, D)
    if not one_each:
        if _are_ordinary(norms.max(initial=0.0)):
            return None
        largest = largest_entry(D)
        return np.full(len(D), _exponents(largest)) if largest else None
    if _of_unusual(D, norms) is None:
        return None
    top = _largest_entries(D)
    return np.where(top > 0, np.rint(np.log2(np.where(top > 0, top, 1.0))), 0).astype(np.int64)


def largest_entry(x: Rows) -> float:
    """Return the largest magnitude."""
    data = x.data if scipy.sparse.issparse(x) else x
    return float(max(data.max(initial=0.0), -data.min(initial=0.0)))


def number_exponent(value: float) -> int:
    """Return the exponent of the power of two in an unusual number, 0 in others."""
    ordinary = value == 0.0 or _ORDINARY**-0.5 <= value <= _ORDINARY**0.5
    return 0 if ordinary else int(_exponents(np.float64(value)))


def signal_exponents(x: Rows, norms: Array, groups: Array | None = None) -> Array | None:
    """Return the exponent of the power of two in each signal; None if no signal is unusual.

    Ordinary signals have exponent 0, signals of a group have that of the largest.
    """
    if groups is not None and len(groups) < 2:
        groups = None
    if len(norms):  # all of them together are the most that a group can have
        most = norms.max() if groups is None else norms.sum()
        if _are_ordinary(norms.min()) and _are_ordinary(most):
            return None
    if groups is None:
        return _of_unusual(x, norms)
    starts = groups[:-1][np.diff(groups) > 0]
    sizes = np.diff(np.append(starts, len(norms)))
    with np.errstate(over="ignore"):
        together = np.add.reduceat(norms, starts)
    if _are_ordinary(together).all():
        return None
    top = np.maximum.reduceat(_largest_entries(x), starts)
    found = np.where(_are_ordinary(together) | (top == 0), 0, _exponents(np.where(top, top, 1.0)))
    return np.repeat(found, sizes) if found.any() else None


def _of_unusual(x: Rows, norms: Array) -> Array | None:
    """Return exponents of rows: the same for all if that will do, else zero for ordinary ones.

    None if all are ordinary.
    """
    rows = np.flatnonzero(~_are_ordinary(norms))
    if not rows.size:
        return None
    top = _largest_entries(x[rows])
    rows, top = rows[top > 0], top[top > 0]
    if not rows.size:
        return None
    one = int(_exponents(top.max()))
    with np.errstate(over="ignore", under="ignore"):
        others = squared_norms(shifted(x, -one))
    if (_are_ordinary(others) | (norms == 0)).all():
        return np.full(len(norms), one)
    found = np.zeros(len(norms), np.int64)
    found[rows] = _exponents(top)
    return found if found.any() else None


def squared_norms(x: Rows) -> Array:
    """Return ``‖x‖²`` of each row; a sparse x lists no entry twice."""
    if scipy.sparse.issparse(x):
        norms = np.empty(x.shape[0])
        sparse_squares(sparse_matrix(x), norms)
        return norms
    return np.asarray(np.einsum("ij,ij->i", x, x))


def squared_norms_of_any_size(x: Rows) -> Array:
    """Return ``‖x‖²`` of each row, in float64 where it may not fit into the dtype of x."""
    with np.errstate(over="ignore", under="ignore"):
        norms = squared_norms(x)
        exponents = signal_exponents(x, norms)
        if exponents is None:
            return norms
        scaled = squared_norms(shifted(x, -exponents)).astype(np.float64)
        return np.asarray(np.ldexp(scaled, 2 * exponents))


def _are_ordinary(norms: Any) -> Any:
    return (norms >= 1.0 / _ORDINARY) & (norms <= _ORDINARY)


def _largest_entries(x: Rows) -> Array:
    """Return the largest magnitude of each row."""
    top = abs(x).max(axis=1, initial=0.0) if not scipy.sparse.issparse(x) else abs(x).max(axis=1)
    return np.asarray(top.toarray() if scipy.sparse.issparse(top) else top, np.float64).ravel()


def _exponents(top: Any) -> Any:
    return (_STEP * np.rint(np.clip(np.log2(top), -1000, 1000) / _STEP)).astype(np.int64)


def scaled_signals(signals: Signals, rows: Array, exponent: int) -> Signals:
    """Return these rows (whole groups of them), divided by ``2^exponent``."""
    part = signals.take(rows)
    return replace(part, X=shifted(part.X, -exponent))


def check_in_range(values: Array) -> None:
    """Raise ValueError if coefficients have overflowed their type."""
    if not sum_is_finite(values) and not np.isfinite(values).all():
        message = f"the codes of X over D overflow {values.dtype}: scale X down or D up"
        raise ValueError(message)


def scaled_codes(codes: Codes, signals: Any, atoms: Array | None) -> Codes:
    """Return codes times ``2^(signals − atoms)``: exponents of signals and of atoms."""
    power = np.repeat(signals, np.diff(codes.indptr)) if np.ndim(signals) else signals
    if atoms is not None:
        power = power - atoms[codes.indices]
    with np.errstate(over="ignore", under="ignore"):
        values = np.ldexp(codes.values, power)
    check_in_range(values[np.isfinite(codes.values)])
    beyond = np.ndim(signals) == 0 and signals <= _BEYOND[values.dtype.itemsize]
    vanished = not np.any(np.abs(values) >= np.finfo(values.dtype).tiny)
    if np.any(codes.values) and vanished and not beyond:
        message = f"the codes of X over D underflow {values.dtype}: scale X up or D down"
        raise ValueError(message)
    return codes._replace(values=values)
