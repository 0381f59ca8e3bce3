"""Errors that exceed the bound of a coder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Coder
from smalto.coders.certificates import residuals_of
from smalto.coders.coded import Coded
from smalto.coders.codes import Codes
from smalto.coders.parameters import of_rows
from smalto.coders.signals import Signals
from smalto.warn import warn

ROUNDING = {4: 1e-5, 8: 1e-10}  # share of ‖x‖² that rounding in the Gram matrix may add to an error
_SHARE = 0.01  # of eps by which it may be exceeded if it is small
_AT_ONCE = 4096  # rows whose residuals are in memory at a time
_FINEST = {4: 1e-10, 8: 1e-13}  # share of ‖x‖² by which it may always be exceeded


def count_out_of_reach(
    coder: Coder, coded: Coded, dtype: np.dtype[Any], groups: Array | None
) -> int:
    """Return the number of signals (or groups) whose error exceeds the coder's bound."""
    eps = coder.error_bound()
    if eps is None:
        return 0
    missed = exceeds(np.asarray(eps), coded.fit, coded.norms, dtype, groups)
    if coded.short is not None:  # what rounding alone keeps from the bound is counted elsewhere
        missed &= (coded.short if groups is None else coded.short[groups[:-1]]) < 1.0
    return int(np.count_nonzero(missed))


def warn_if_neither_limit(coder: Coder, codes: Codes, signals: Signals, D: Array) -> None:
    """Warn if signals (or groups) have reached neither of the two limits of a pursuit."""
    limits, groups, n = coder.two_limits(), signals.groups, len(signals)
    if limits is None or not n:
        return
    numbers, counts = np.arange(n), np.diff(codes.indptr)
    most, eps = map(np.asarray, limits)
    if groups is None:
        most, eps = (of_rows("limits", limit, numbers, n) for limit in limits)
    else:
        counts = np.maximum.reduceat(counts, groups[:-1])
    few = counts < most
    rows = np.flatnonzero(few if groups is None else np.repeat(few, np.diff(groups)))
    squares, norms, plain = np.zeros(n), np.zeros(n), replace(signals, groups=None)
    for begin in range(0, len(rows), _AT_ONCE):
        some = rows[begin : begin + _AT_ONCE]
        csr = codes.take(some).as_csr(len(D))
        left = residuals_of(plain.take(some), D.astype(np.float64), csr, None)
        squares[some], norms[some] = left.squares, left.norms
    missed = few & exceeds(eps, 0.5 * squares, norms, D.dtype, groups)
    if missed.any():
        total = f"{n} signals" if groups is None else f"{len(counts)} groups"
        message = (
            f"neither max_nonzeros nor eps is reached for {np.count_nonzero(missed)} of {total}: no "
            f"other atom lowers their errors"
        )
        warn(message)


def exceeds(
    eps: Array, fit: Array, norms: Array, dtype: np.dtype[Any], groups: Array | None
) -> Array:
    """Return whether the error of each signal (or group) exceeds eps by more than rounding."""
    if groups is not None and len(fit):
        sizes = np.diff(groups)
        fit, norms = (np.add.reduceat(part, groups[:-1]) / sizes for part in (fit, norms))
    return np.asarray(2.0 * fit - rounding_of_errors(eps, norms, dtype) > eps)


def rounding_of_errors(eps: Array, norms: Array, dtype: np.dtype[Any]) -> Array:
    """Return by how much errors ``‖x − αD‖²`` may exceed eps, for signals of these ``‖x‖²``."""
    size = dtype.itemsize
    return np.asarray(np.minimum(ROUNDING[size] * norms, _SHARE * eps + _FINEST[size] * norms))


def too_small_for_gram(eps: Array, norms: Array, dtype: np.dtype[Any]) -> Array:
    """Return for which signals the Gram matrix, with its rounding, does not tell whether eps is met."""
    return np.asarray(_SHARE * eps < ROUNDING[dtype.itemsize] * norms)


def missed_by_rounding(coded: Coded, exact: Array, eps: Array) -> Coded:
    """Return codes that say which bounds rounding alone makes them miss.

    ``exact`` are the errors ``½‖x − αD‖²`` of the codes before they were rounded.
    """
    dtype = coded.codes.values.dtype
    met = ~exceeds(eps, exact, coded.norms, dtype, None)
    rows = np.flatnonzero(met & exceeds(eps, coded.fit, coded.norms, dtype, None))
    if not rows.size:
        return coded
    short = np.zeros(len(exact)) if coded.short is None else coded.short.copy()
    short[rows] = 1.0 + (2.0 * coded.fit - eps)[rows] / coded.norms[rows]
    return replace(coded, short=short)


def warn_if_out_of_reach(
    coder: Coder, coded: Coded, dtype: np.dtype[Any], groups: Array | None
) -> None:
    """Warn if the error of signals (or groups) exceeds the coder's bound."""
    count = count_out_of_reach(coder, coded, dtype, groups)
    if count:
        total = f"{len(coded.fit)} signals" if groups is None else f"{len(groups) - 1} groups"
        message = (
            f"eps is out of reach for {count} of {total}: their codes are least-squares solutions"
        )
        warn(message)
