"""Duality gaps: bounds on the suboptimality of codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from smalto.checks import Array, Matrix, as_dictionary, check_finite, csr_rows
from smalto.coders.base import Certified, Coder, check_coder, check_takes
from smalto.coders.chunks import Residuals, residuals
from smalto.coders.codes import compressed
from smalto.coders.parameters import of_rows
from smalto.coders.scaling import largest_entry, number_exponent, shifted
from smalto.coders.signals import (
    Missing,
    Signals,
    as_signals,
    blocks,
    in_groups,
    with_penalty_weights,
)
from smalto.coders.unpenalized import (
    Reduced,
    check_unpenalized,
    free_atoms,
    reduced_problems,
    without,
)

_ROWS = 4096  # rows whose dense residuals and correlations are in memory at a time


def duality_gap(
    X: Matrix,
    D: Matrix,
    codes: Matrix,
    coder: Coder,
    *,
    mask: npt.ArrayLike | None = None,
    missing: Missing = None,
    penalty_weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> Array:
    """Return a bound on how far the objective of each code is above the minimum.

    The gap is the difference between the objective ``½‖x − αD‖² + ψ(α)`` and a value of the dual
    problem, which is a lower bound for all codes. Up to rounding it is zero if and only if the code
    is optimal. It is computed in float64 from X, D and the codes alone, so the codes may come from
    any program. It is infinite where a code violates a constraint by more than rounding: a negative
    coefficient with ``positive``, an ℓ1 norm above the radius of `L1Ball`, an error above the bound
    of `ErrorBound` (even if no code can meet it).

    Parameters
    ----------
    X : array or CSR array (n, m)
        Signals.
    D : array (k, m)
        Dictionary: one atom per row.
    codes : array or sparse array (n, k)
        One code per row.
    coder : coder
        A convex problem whose ``lam`` is decided.
    mask, missing, penalty_weights, groups : optional
        As for ``encode``. With groups, each signal gets an equal share of its group's gap.

    Returns
    -------
    array (n,)
        One gap per row, never negative.

    See Also
    --------
    smalto.encode : Returns gaps with its codes if ``return_info=True``.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.coders import Lasso, duality_gap
    >>> X, D = np.array([[3.0, 0.5]]), np.eye(2)
    >>> duality_gap(X, D, np.array([[2.0, 0.0]]), Lasso(lam=1.0))
    array([0.])
    >>> duality_gap(X, D, np.array([[1.0, 0.0]]), Lasso(lam=1.0))
    array([0.53125])
    """
    check_coder(coder)
    if not isinstance(coder, Certified):
        message = f"{type(coder).__name__} is not a convex problem: it has no duality gap"
        raise TypeError(message)
    if coder.undecided:
        message = (
            f"lam must be decided to compute a gap, got {coder}: give lam, or call resolve(X, D)"
        )
        raise ValueError(message)
    signals = as_signals("X", X, mask, missing)
    D = as_dictionary(D, signals.X.shape[1], np.dtype(np.float64))
    codes = csr_rows("codes", codes)
    if codes.shape != (len(signals), len(D)):
        message = f"codes must have shape {(len(signals), len(D))}, got {codes.shape}"
        raise ValueError(message)
    check_finite("codes", codes)
    check_takes(coder, mask=signals.missing, penalty_weights=penalty_weights, groups=groups)
    signals = with_penalty_weights(signals, penalty_weights, len(D))
    check_unpenalized(signals, coder)
    signals, order = in_groups(signals, groups, coder)
    if order is None:
        return gaps(signals, D, codes, coder)
    return gaps(signals, D, codes[order], coder)[np.argsort(order)]


def gaps(signals: Signals, D: Array, codes: Any, coder: Coder) -> Array:
    """Return the gap of each row of codes, for a resolved coder; NaN if it has none."""
    n = len(signals)
    if not isinstance(coder, Certified):
        return np.full(n, np.nan)
    D = D.astype(np.float64)
    signal, atom = number_exponent(largest_entry(signals.X)), number_exponent(largest_entry(D))
    rescaled = coder.rescaled(2.0**-signal, 2.0**-atom) if signal or atom else None
    if rescaled is not None:
        signals = replace(signals, X=shifted(signals.X.astype(np.float64), -signal))
        codes = shifted(scipy.sparse.csr_array(codes, dtype=np.float64), atom - signal)
        unit = 2 * signal if coder.error_bound() is None else signal - atom
        return np.ldexp(gaps(signals, shifted(D, -atom), codes, rescaled), unit)
    out = np.empty(n)
    free = free_atoms(signals, coder)
    nonnegative = bool(coder.positive) and float(D.min(initial=0.0)) >= 0.0
    for rows in blocks(n, _ROWS, signals.groups):
        part, numbers = signals.part(rows), np.arange(n)[rows]
        if free is None:
            left = residuals_of(part, D, codes[rows], numbers)
            if nonnegative:
                left = left._replace(longest=_longest(left.norms, D, part.missing))
            out[rows] = coder.gap(left)
        else:
            out[rows] = _gaps_freely(part, D, codes[rows], coder, numbers)
    if coder.positive:
        out[_has_negative(scipy.sparse.csr_array(codes))] = np.inf
    return out


def _longest(norms: Array, D: Array, missing: Array | None) -> Array:
    """Return the largest values that coefficients of optimal non-negative codes may have.

    Nothing cancels over a non-negative dictionary: ``α_j ‖d_j‖ ≤ ‖αD‖ ≤ ‖x‖``.
    """
    squares = (D * D).sum(axis=1)[None] if missing is None else ~missing @ (D * D).T
    return np.asarray(np.sqrt(norms[:, None] / np.where(squares > 0, squares, np.inf)))


def _gaps_freely(signals: Signals, D: Array, codes: Any, coder: Any, numbers: Array) -> Array:
    """Return the gaps if some atoms are not penalized; see `unpenalized.py`.

    The gap of the problem without these atoms, and what least squares on them would gain.
    """
    _, ridge = coder.eliminated()
    free, out = free_atoms(signals, coder), np.empty(len(signals))
    assert free is not None
    for some in reduced_problems(signals, D, free, ridge, {}):
        out[some.rows] = gaps_of_reduced(some, codes[some.rows], coder, numbers[some.rows])
    return out


def gaps_of_reduced(some: Reduced, codes: Any, coder: Any, numbers: Array | None) -> Array:
    """Return the gaps of signals whose unpenalized atoms are the same."""
    problem, _ = coder.eliminated()
    made, reduced = some.elimination.bounding, some.signals
    if made is not some.elimination:
        reduced = replace(reduced, X=without(some.X, made.basis, reduced.X.dtype))
    A = scipy.sparse.csr_array(codes)
    lost = made.lost(compressed(A), some.X)
    rest = scipy.sparse.csr_array(A.multiply(~made.free[None, :]))
    left = residuals_of(reduced, made.atoms, rest, numbers)
    gap = problem.gap(left)
    if coder.error_bound() is None:
        return np.asarray(gap + lost)
    eps = of_rows("eps", coder.error_bound(), numbers, len(some.rows))
    norms = np.einsum("ij,ij->i", some.X, some.X)
    return np.where(left.squares + 2.0 * lost <= eps + 1e-5 * norms, gap, np.inf)


def _has_negative(codes: Any) -> Array:
    """Return the rows with a negative coefficient."""
    places = np.flatnonzero(codes.data < 0)
    return np.unique(np.searchsorted(codes.indptr, places, side="right") - 1)


def residuals_of(signals: Signals, D: Array, codes: Any, numbers: Array | None) -> Residuals:
    """Return codes and residuals of signals, in float64."""
    X = signals.X.toarray() if scipy.sparse.issparse(signals.X) else signals.X
    left = residuals(X.astype(np.float64), D, codes, signals.missing)
    return left._replace(weights=signals.penalty_weights, groups=signals.groups, numbers=numbers)
