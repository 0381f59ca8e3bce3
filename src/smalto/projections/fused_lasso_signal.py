"""Fused-lasso signal approximation: for given penalties, and for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from smalto.cached import cached_property
from smalto.checks import Array, check_finite
from smalto.kernels.projecting import fused_lasso_ball
from smalto.kernels.projecting import fused_lasso_path as paths
from smalto.projections.by_rows import as_matrix, nonnegative, solve_rows
from smalto.projections.fused_lasso import DIRECTIONS, Method, ball_work, direction_of, path_work


def fused_lasso_signal(
    b: Any,
    gamma1: float,
    gamma2: float,
    gamma3: float = 0.0,
    *,
    positive: bool = False,
    method: Method = "auto",
    n_threads: int | None = None,
) -> Array:
    """Solve ``argmin_u ½‖b − u‖² + gamma1 ‖u‖₁ + gamma2 FL(u) + gamma3/2 ‖u‖₂²``.

    ``FL(u) = Σ |u[i] − u[i−1]|`` (Appendix B.2). With gamma2 alone this is total-variation
    denoising.

    Parameters
    ----------
    b : array_like of shape (m,) or (n, m)
        The signal, or signals as rows.
    gamma1, gamma2, gamma3 : float
        The weights, >= 0.
    positive : bool, default False
        Add the constraint u >= 0.
    method : {"auto", "direct", "merge", "homotopy"}, default "auto"
        The algorithm; the solution is the same. "direct" is a dynamic program, O(m); "merge" and
        "homotopy" follow the path of gamma2 upwards and downwards. "auto" is "direct".
    n_threads : int, optional
        Number of threads; all available cores by default.

    Returns
    -------
    ndarray
        The solution, with the shape of b, piecewise constant and with exact zeros.

    See Also
    --------
    fused_lasso_path : The solutions for every gamma2.
    project_fused_lasso_ball : The projection onto a ball.
    """
    gamma1, gamma2 = nonnegative("gamma1", gamma1), nonnegative("gamma2", gamma2)
    weights = gamma1, gamma2, nonnegative("gamma3", gamma3), bool(positive)
    direction = direction_of(method)

    def solve(rows: Array, out: Array) -> bool:
        if direction is None:
            work = ball_work(rows.shape[1])
            return bool(fused_lasso_ball.signal_rows(rows, out, *weights, work))
        scratch = path_work(rows.shape[1])
        return bool(paths.signal_rows_by_path(rows, out, *weights, direction, scratch))

    return solve_rows("b", b, solve, n_threads)


@dataclass(frozen=True, eq=False)
class FusedLassoPath:
    """``argmin_u ½‖b − u‖² + gamma2 FL(u)`` for every gamma2 >= 0 (Appendix B.2).

    As gamma2 grows, neighboring pieces of the solution merge and never split again. The path is
    therefore determined by the gamma2 at which each jump vanishes; between two such kinks the
    solution is linear in gamma2.

    Attributes
    ----------
    b : ndarray of shape (m,)
        The signal.
    vanishes : ndarray of shape (m - 1,)
        The smallest gamma2 for which ``u[i + 1] = u[i]``; 0 where b has no jump.

    See Also
    --------
    fused_lasso_path : Computes it.
    """

    b: Array
    vanishes: Array

    @cached_property
    def kinks(self) -> Array:
        """The positive values of gamma2 at which jumps vanish, ascending."""
        return np.unique(self.vanishes[self.vanishes > 0.0])

    def at(
        self, gamma2: float, *, gamma1: float = 0.0, gamma3: float = 0.0, positive: bool = False
    ) -> Array:
        """Solve ``argmin_u ½‖b − u‖² + gamma1 ‖u‖₁ + gamma2 FL(u) + gamma3/2 ‖u‖₂²``.

        Parameters
        ----------
        gamma2, gamma1, gamma3 : float
            The weights, >= 0.
        positive : bool, default False
            Add the constraint u >= 0.

        Returns
        -------
        ndarray of shape (m,)
            The solution, in O(m).
        """
        gamma1, gamma2 = nonnegative("gamma1", gamma1), nonnegative("gamma2", gamma2)
        gamma3 = nonnegative("gamma3", gamma3)
        signal = self.b.astype(np.float64)
        jumps = np.flatnonzero(self.vanishes > gamma2)
        begins = np.concatenate(([0], jumps + 1))
        sizes = np.diff(begins, append=signal.size)
        rises = np.concatenate(([0.0], np.sign(signal[jumps + 1] - signal[jumps]), [0.0]))
        heights = (np.add.reduceat(signal, begins) + gamma2 * np.diff(rises)) / sizes
        values = np.maximum(heights - gamma1, 0.0)
        if not positive:
            values -= np.maximum(-heights - gamma1, 0.0)
        return np.repeat(values / (1.0 + gamma3), sizes).astype(self.b.dtype)


def fused_lasso_path(
    b: Any, *, method: Literal["auto", "merge", "homotopy"] = "auto"
) -> FusedLassoPath:
    """Solve ``argmin_u ½‖b − u‖² + gamma2 FL(u)`` for every gamma2 >= 0 (Appendix B.2).

    Parameters
    ----------
    b : array_like of shape (m,)
        The signal.
    method : {"auto", "merge", "homotopy"}, default "auto"
        The algorithm; the solution is the same. "merge" follows the path upwards from b, O(m log m)
        in total. "homotopy" follows it downwards from the constant signal: three to six times
        faster on noise, but quadratic on a slope. "auto" starts with "homotopy" and falls back to
        "merge" when that takes too much work.

    Returns
    -------
    FusedLassoPath
        All kinks; its method ``at`` gives the solution for any gamma2.

    See Also
    --------
    fused_lasso_signal : The solution for one gamma2.
    """
    if method not in ("auto", "merge", "homotopy"):
        message = f"method must be 'auto', 'merge' or 'homotopy', got {method!r}"
        raise ValueError(message)
    signal = as_matrix("b", b)
    if np.ndim(b) != 1:
        message = f"b must be a vector (m,), got shape {np.shape(b)}"
        raise ValueError(message)
    direction = DIRECTIONS.get(method, paths.EITHER)
    vanishes = np.empty(signal.shape[1] - 1)
    if not paths.path(signal[0], direction, vanishes, path_work(signal.shape[1])):
        check_finite("b", signal[0])
    return FusedLassoPath(signal[0].copy(), vanishes)
