"""Codes within an ℓ1 ball or an error bound, found slowly and certainly through lassos."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.certain_lasso import (
    USABLE,
    certain_lasso,
    corrected_residuals,
    least_error,
    unit_atoms,
    with_signs,
)
from smalto.coders.work import Work

_LAST = 1e-13  # λ at which a lasso is least squares, relative to the largest correlation
_CLOSE = 1e-12  # relative precision of λ where zeros and signs of its code are not enough
_MOST_LASSOS = 60
_MOST_WORK = 5e9  # multiplications of all of them


def certain_in_ball(x: Array, D: Array, weights: Array, radius: float, positive: bool) -> Array:
    """Return ``argmin ½‖x − αD‖²`` over ``Σ w_j|α_j| ≤ radius``."""

    def excess(code: Array) -> float:
        return _length(code, weights) - radius

    def exact(_: Array, fitted: Array, falls: Array, slopes: Array) -> float:
        return float((slopes @ fitted - radius) / (slopes @ falls))

    code = _search(x, D, weights, positive, excess, exact)
    length = _length(code, weights)
    return code if length <= radius else code * (radius / length)


def certain_to_error(x: Array, D: Array, weights: Array, eps: float, positive: bool) -> Array:
    """Return ``argmin Σ w_j|α_j|`` over ``‖x − αD‖² ≤ eps``; least squares if that is out of reach."""
    aim = eps * (1.0 - 1e-13)

    def excess(code: Array) -> float:
        left = x - code @ D
        return float(aim - left @ left)

    def exact(some: Array, fitted: Array, falls: Array, slopes: Array) -> float:
        left = x - fitted @ D[some]
        return float(np.sqrt(max(aim - left @ left, 0.0) / max(slopes @ falls, 1e-300)))

    if x @ x <= eps:
        return np.zeros(len(D))
    return _search(x, D, weights, positive, excess, exact)


def dual_points(
    x: Array, D: Array, weights: Array, positive: bool, code: Array
) -> Iterator[tuple[Array, float]]:
    """Yield residuals of a code near the optimum, without its rounding, and their steepness.

    That is the largest correlation with an atom, divided by the weight of the atom.
    """
    length = _length(code, weights)
    lam = 0.0
    if length > 0:  # of the lasso with the same optimum
        lam = max(float((code @ D) @ (x - code @ D)) / length, 0.0)
    for left in corrected_residuals(x, D, lam * weights, code):
        c = D @ left if positive else np.abs(D @ left)
        yield left, max(float(np.max(c / weights, initial=0.0)), 0.0)


def _search(
    x: Array,
    D: Array,
    weights: Array,
    positive: bool,
    excess: Callable[[Array], float],
    exact: Callable[[Array, Array, Array, Array], float],
) -> Array:
    """Return the lasso solution of the λ at which ``excess`` of the code, which falls in λ, is 0.

    ``exact`` gives this λ if the code has ``fitted − λ falls`` on some atoms and 0 on the others.
    """
    c = D @ x
    top = float(np.max(np.where(weights > 0, (c if positive else np.abs(c)) / weights, 0.0)))
    if top <= 0.0:
        return np.zeros(len(D))

    work = Work(_MOST_WORK)

    def code_at(lam: float) -> Array:
        return certain_lasso(x, D, lam * weights, 0.0, positive, work)

    low, high = _LAST * top, top  # the excess is above zero at the first, and not at the second
    best = code_at(low)
    if excess(best) <= 0.0:
        return best
    best, lam = np.zeros(len(D)), np.sqrt(low * high)
    for _ in range(_MOST_LASSOS):
        code = code_at(lam)
        if work.left < 0:
            break
        if excess(code) > 0.0:
            low = lam
        else:
            high, best = lam, code
        some = np.flatnonzero(code)
        slopes = weights[some] * np.sign(code[some])
        fitted, falls = with_signs(x, D[some], slopes)
        wanted = exact(some, fitted, falls, slopes) if np.isfinite(falls).all() else np.nan
        new = np.zeros(len(D))
        new[some] = fitted - wanted * falls
        if low <= wanted <= high and np.all(new[some] * code[some] > 0):
            c = D @ next(corrected_residuals(x, D, wanted * weights, new), x)
            steep = (c if positive else np.abs(c)) - wanted * weights
            if np.all(steep <= 1e-7 * wanted * weights + 1e-15 * top):
                return new
        if high <= low * (1.0 + _CLOSE):
            break
        inside = low < wanted < high
        lam = wanted if inside and wanted != lam else np.sqrt(low * high)
    return best


def least_in_span(x: Array, D: Array, radius: float) -> float:
    """Return a lower bound of ``½‖x − αD‖²`` over ``‖α‖₁ ≤ radius``, from least squares.

    Directions that only rounding gives to the atoms are left out; all that the radius allows them
    is subtracted.
    """
    _, sizes, V = np.linalg.svd(unit_atoms(D), full_matrices=False)
    usable = sizes > USABLE[8] * sizes.max(initial=0.0)
    left = x - (V[usable] @ x) @ V[usable]
    reach = radius * float(np.linalg.norm(D, axis=1).max()) * sizes[~usable].max(initial=0.0)
    return float(0.5 * left @ left - np.linalg.norm(x) * reach)


def usable_span(D: Array, dtype: np.dtype[Any]) -> Array:
    """Return an orthonormal basis of the directions that more than rounding gives to the atoms."""
    _, sizes, V = np.linalg.svd(unit_atoms(D), full_matrices=False)
    return np.asarray(V[sizes > USABLE[dtype.itemsize] * sizes.max(initial=0.0)])


def least_errors(
    X: Array, D: Array, V: Array, positive: bool, eps: Array, dtype: np.dtype[Any]
) -> Array:
    """Return the squared errors of least squares over D, as `least_error` does.

    V is `usable_span` of D. With α ≥ 0, errors above eps without the constraint are left as they are.
    """
    left = X - (X @ V.T) @ V
    errors = np.einsum("ij,ij->i", left, left)
    if positive:
        for row in np.flatnonzero(errors <= eps):
            errors[row] = least_error(X[row], D, True, dtype)
    return np.asarray(errors)


def _length(code: Array, weights: Array) -> float:
    return float(np.abs(code) @ np.where(np.isfinite(weights), weights, 0.0))
