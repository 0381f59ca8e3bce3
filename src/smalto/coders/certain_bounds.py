"""Codes within an ℓ1 ball or an error bound, found slowly and certainly through lassos."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from smalto.checks import Array
from smalto.coders.certain_lasso import certain_lasso, with_signs

_LAST = 1e-13  # λ at which a lasso is least squares, relative to the largest correlation
_USABLE = {4: 1e-7, 8: 1e-11}  # singular values, relative to the largest
_CLOSE = 1e-12  # relative precision of λ where its zeros and signs are not enough


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
    codes: dict[float, Array] = {}

    def code_at(logarithm: float) -> Array:
        if logarithm not in codes:
            lams = top * np.exp(logarithm) * weights
            codes[logarithm] = certain_lasso(x, D, lams, 0.0, positive)
        return codes[logarithm]

    def value(logarithm: float) -> float:
        return excess(code_at(logarithm))

    low = float(np.log(_LAST))
    if value(low) <= 0.0:
        return code_at(low)
    if excess(np.zeros(len(D))) >= 0.0:
        return np.zeros(len(D))
    high = 0.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        code = code_at(middle)
        some = np.flatnonzero(code)
        slopes = weights[some] * np.sign(code[some])
        fitted, falls = with_signs(x, D[some], slopes)
        if np.isfinite(falls).all() and some.size:
            lam = exact(some, fitted, falls, slopes)
            new = fitted - lam * falls
            if 0.0 <= lam <= top and np.all(new * code[some] > 0):
                whole = np.zeros(len(D))
                whole[some] = new
                left = D @ (x - whole @ D)
                steep = (left if positive else np.abs(left)) - lam * weights
                if steep.max(initial=0.0) <= 1e-9 * lam * weights.max() + 1e-14 * top:
                    return whole
        if excess(code) > 0.0:
            low = middle
        else:
            high = middle
        if high - low < _CLOSE:
            break
    return code_at(high if excess(code_at(high)) <= 0.0 else low)


def least_errors(X: Array, D: Array, positive: bool, eps: Array, dtype: np.dtype[Any]) -> Array:
    """Return the squared errors of least squares over D; with α ≥ 0 if ``positive``.

    Directions that take coefficients too large for ``dtype`` are left out. With α ≥ 0, errors above
    eps without the constraint are left as they are.
    """
    _, sizes, V = np.linalg.svd(D, full_matrices=False)
    V = V[sizes > _USABLE[dtype.itemsize] * sizes.max(initial=0.0)]
    left = X - (X @ V.T) @ V
    errors = np.einsum("ij,ij->i", left, left)
    if positive:
        for row in np.flatnonzero(errors <= eps):
            errors[row] = optimize.nnls(D.T, X[row])[1] ** 2
    return np.asarray(errors)


def _length(code: Array, weights: Array) -> float:
    return float(np.abs(code) @ np.where(np.isfinite(weights), weights, 0.0))
