"""Exact regularization paths of the lasso."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from smalto.checks import (
    Array,
    Matrix,
    as_dictionary,
    check_finite,
    check_finite_number,
    check_not_masked,
    check_number,
    check_real,
    check_scale,
)
from smalto.coders.chunks import padded_width
from smalto.coders.parameters import scaled_number
from smalto.coders.scaling import largest_entry, number_exponent, shifted
from smalto.kernels.coding.active_set import make_active_set
from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.coding.lars import (
    DONE,
    MANY_STEPS,
    ROUNDING_64,
    PathProblem,
    lars_path,
    make_path_scratch,
)

_ROUNDING = 1e-12  # of the last kink, relative to the first


@dataclass(frozen=True)
class Path:
    """The solutions of a lasso for every lam, piecewise linear between kinks.

    Attributes
    ----------
    lams : array (p,)
        The values of lam at the kinks, decreasing; above the first, the code is zero.
    codes : csr_array (p, k)
        The code at each kink.

    See Also
    --------
    smalto.lasso_path : Computes it.
    smalto.plot.path_curve : Plots it.
    """

    lams: Array
    codes: Any

    def at(self, lam: float) -> Array:
        """Return the code (k,) at ``lam``; raise ValueError if the path ends above it."""
        lam = check_number("lam", lam, low=0)
        last = float(self.lams[-1])
        if last - _ROUNDING * float(self.lams[0]) <= lam < last:
            lam = last
        if lam < last:
            message = f"the path ends at lam={last:.3g}, got lam={lam:.3g}: give lasso_path a smaller lam_end"
            raise ValueError(message)
        after = int(np.searchsorted(-self.lams, -lam))  # the first kink with lams <= lam
        code = self.codes[[after]].toarray()[0]
        if after == 0 or self.lams[after] == lam:
            return code if self.lams[after] == lam else np.zeros_like(code)
        before = self.codes[[after - 1]].toarray()[0]
        share = (self.lams[after - 1] - lam) / (self.lams[after - 1] - self.lams[after])
        return np.asarray((1.0 - share) * before + share * code)

    @property
    def nonzeros(self) -> Array:
        """Number of nonzeros of the code at each kink."""
        return np.diff(self.codes.indptr)


def lasso_path(
    x: npt.ArrayLike, D: Matrix, *, ridge: float = 0.0, positive: bool = False, lam_end: float = 0.0
) -> Path:
    """Return the solutions of ``min_α ½‖x − αD‖² + lam ‖α‖₁ + ridge/2 ‖α‖²`` for every lam.

    The LARS-Lasso homotopy (Section 3.2 of the paper) with a Cholesky factor, in float64. Atoms
    enter and leave at exact kinks.

    Parameters
    ----------
    x : array (m,)
        A signal.
    D : array (k, m)
        Dictionary: one atom per row.
    ridge : float, default 0
        Weight of the squared norm of the code (elastic net).
    positive : bool, default False
        Require α ≥ 0.
    lam_end : float, default 0
        The smallest lam.

    Returns
    -------
    Path
        The kinks of the path and the codes there.

    See Also
    --------
    smalto.coders.Lasso : The codes for one value of λ.
    smalto.plot.path_curve : A plot of the path.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import lasso_path
    >>> path = lasso_path(np.array([3.0, 1.0]), np.eye(2))
    >>> path.lams
    array([3., 1., 0.])
    >>> path.at(2.0)
    array([1., 0.])
    """
    check_not_masked("x", x)
    x = np.asarray(x)
    if x.ndim != 1:
        message = f"x must be one signal (m,), got shape {x.shape}"
        raise ValueError(message)
    check_real("x", x)
    check_finite("x", x)
    D = as_dictionary(D, len(x), np.dtype(np.float64))
    ridge = check_finite_number("ridge", ridge, low=0)
    lam_end = check_finite_number("lam_end", lam_end, low=0)
    x = x.astype(np.float64)
    check_scale("x", x, x.dtype)
    signal, atom = number_exponent(largest_entry(x)), number_exponent(largest_entry(D))
    if signal or atom:
        path = lasso_path(
            np.ldexp(x, -signal),
            np.ldexp(D, -atom),
            ridge=scaled_number(ridge, 2.0**-atom, 2.0**-atom),
            positive=positive,
            lam_end=scaled_number(lam_end, 2.0**-signal, 2.0**-atom),
        )
        return Path(np.ldexp(path.lams, signal + atom), shifted(path.codes, signal - atom))
    G, width = padded_gram(D, ridge)
    q = np.zeros(width)
    q[: len(D)] = D @ x.astype(np.float64)
    k, scale = len(D), float(np.abs(q).max())
    shaken = q
    for attempt in range(4):
        lams, indptr, indices, values = follow(G, shaken, k, lam_end, positive, k + 1)
        codes = scipy.sparse.csr_array((values, indices, indptr), shape=(len(lams), k))
        if _is_path(lams, codes.toarray(), G.reshape(width, width)[:k, :k], q[:k], scale, positive):
            break
        # Atoms that enter at the same lam can mislead the homotopy: perturb q slightly.
        noise = np.random.default_rng(attempt).standard_normal(k)
        shaken = q.copy()
        shaken[:k] += 10.0 ** (attempt - 11) * scale * noise * (q[:k] != 0)
    codes.sort_indices()
    return Path(lams, codes)


def _is_path(lams: Array, codes: Array, G: Array, q: Array, scale: float, positive: bool) -> bool:
    """Return whether the optimality conditions hold at every kink."""
    c = q - codes @ G
    bound = lams[:, None]
    off = (c if positive else np.abs(c)) - bound
    on = np.abs(c - bound * np.sign(codes))
    tiny = 1e-8 * (scale + np.abs(codes).sum(axis=1, keepdims=True) * np.abs(G).max())
    return bool(np.all(np.where(np.abs(codes) > tiny, on, off) <= tiny))


def padded_gram(D: Array, ridge: float | Array) -> tuple[Array, int]:
    """Return ``D Dᵀ + ridge I`` in float64, flat, and its width with padding; a ridge or one each."""
    k = len(D)
    width = padded_width(k)
    G = np.zeros((width, width))
    G[:k, :k] = D @ D.T
    G[np.arange(k), np.arange(k)] += ridge
    return G.reshape(-1), width


def follow(
    G: Array, q: Array, k: int, lam_end: float, positive: bool, max_nonzeros: int
) -> tuple[Array, Array, Array, Array]:
    """Run the kernel; repeat with more room as long as it runs out of it."""
    width = len(q)
    room, steps = min(64, k), 256
    problem = PathProblem(G, q, 0, k, positive, ROUNDING_64)
    while True:
        kinks = np.empty(steps)
        out = SparseRows(
            np.zeros(steps + 1, np.int64), np.empty(steps * room, np.int32), np.empty(steps * room)
        )
        scratch = make_path_scratch(make_active_set(room), width)
        why, count = lars_path(problem, lam_end, max_nonzeros, scratch, kinks, out)
        if why == DONE:
            end = out.indptr[count]
            return kinks[:count], out.indptr[: count + 1], out.indices[:end], out.values[:end]
        if why == MANY_STEPS:
            message = f"the path has more than {count} kinks: are atoms nearly linearly dependent?"
            raise ArithmeticError(message)
        room, steps = min(2 * room, k), 2 * steps
