"""Euclidean projections onto the constraint sets of Section 5.2, and the fused-lasso signal.

Every function takes a vector (m,) or the rows of a matrix (n, m), keeps float32 and float64
(everything else becomes float64), never changes its input, and shares rows out over threads.
The answers are exact: the multiplier of the constraint is solved for in closed form, and
entries that are zero in the solution are zero. A point that lies in the set already comes back
unchanged, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from smalto.checks import Array, check_finite, check_number, float_dtype
from smalto.kernels.projecting import elastic_net_ball as thresholds
from smalto.kernels.projecting import fused_lasso_ball, l2_ball
from smalto.kernels.projecting import fused_lasso_path as paths
from smalto.threads import resolve_threads, run_tasks

__all__ = [
    "FusedLassoPath",
    "elastic_net_main_form",
    "fused_lasso_path",
    "fused_lasso_signal",
    "project_elastic_net_ball",
    "project_fused_lasso_ball",
    "project_l1_ball",
    "project_l2_ball",
    "project_simplex",
]

Method: TypeAlias = Literal["auto", "direct", "merge", "homotopy"]

_TASK = 1 << 16  # entries worth a task of their own
_ROADS = {"merge": paths.MERGE, "homotopy": paths.SPLIT}


def project_l2_ball(
    v: Any, radius: float = 1.0, *, positive: bool = False, n_threads: int | None = None
) -> Array:
    """Solve ``argmin_u ½‖u − v‖²  s.t.  ‖u‖₂ ≤ radius`` (Section 5.2).

    Parameters
    ----------
    v : array_like of shape (m,) or (n, m)
        The point, or points as rows.
    radius : float
        Radius of the ball, >= 0.
    positive : bool
        Add the constraint u >= 0.
    n_threads : int, optional
        Threads for the rows; all available cores if None.

    Returns
    -------
    ndarray
        The projection, of v's shape.
    """
    radius = _number("radius", radius)

    def solve(rows: Array, out: Array) -> bool:
        return bool(l2_ball.project_rows(rows, out, radius, bool(positive)))

    return _on_rows("v", v, solve, n_threads)


def project_l1_ball(
    v: Any, radius: float = 1.0, *, positive: bool = False, n_threads: int | None = None
) -> Array:
    """Solve ``argmin_u ½‖u − v‖²  s.t.  ‖u‖₁ ≤ radius`` (Appendix B.1 with γ = 0).

    Parameters
    ----------
    v : array_like of shape (m,) or (n, m)
        The point, or points as rows.
    radius : float
        Radius of the ball, >= 0.
    positive : bool
        Add the constraint u >= 0.
    n_threads : int, optional
        Threads for the rows; all available cores if None.

    Returns
    -------
    ndarray
        The projection, of v's shape, with zeros where it is zero.
    """
    kind = thresholds.POSITIVE if positive else thresholds.ABSOLUTE
    return _threshold(v, 1.0, 0.0, _number("radius", radius), kind, n_threads)


def project_simplex(v: Any, radius: float = 1.0, *, n_threads: int | None = None) -> Array:
    """Solve ``argmin_u ½‖u − v‖²  s.t.  u ≥ 0, Σu = radius`` (as Appendix B.1, γ = 0).

    Parameters
    ----------
    v : array_like of shape (m,) or (n, m)
        The point, or points as rows.
    radius : float
        What the entries of u sum to, >= 0.
    n_threads : int, optional
        Threads for the rows; all available cores if None.

    Returns
    -------
    ndarray
        The projection, of v's shape, with zeros where it is zero.
    """
    return _threshold(v, 1.0, 0.0, _number("radius", radius), thresholds.RAW, n_threads)


def project_elastic_net_ball(
    v: Any,
    gamma: float,
    *,
    bound: float = 1.0,
    positive: bool = False,
    n_threads: int | None = None,
) -> Array:
    """Solve ``argmin_u ½‖u − v‖²  s.t.  ‖u‖₂² + gamma ‖u‖₁ ≤ bound`` (Section 5.2, App. B.1).

    The cost is linear in m: a vector is read about twice and written once if it is long.

    Parameters
    ----------
    v : array_like of shape (m,) or (n, m)
        The point, or points as rows.
    gamma : float
        Weight of the ℓ1 norm, >= 0; with 0 the set is an ℓ2 ball.
    bound : float
        Right side of the constraint, >= 0; 1 in the paper's main text.
    positive : bool
        Add the constraint u >= 0.
    n_threads : int, optional
        Threads for the rows; all available cores if None.

    Returns
    -------
    ndarray
        The projection, of v's shape, with zeros where it is zero.

    See Also
    --------
    elastic_net_main_form : gamma and bound for the set as the paper's appendix writes it.

    Notes
    -----
    The solution is ``u = soft(v, gamma lam) / (1 + 2 lam)``. Where Algorithm 3 of the paper
    finds the entries that stay non-zero by random pivots, Newton's steps find them here; given
    these, ``lam`` has a closed form.
    """
    gamma, bound = _number("gamma", gamma), _number("bound", bound)
    if gamma == 0.0:
        return project_l2_ball(v, np.sqrt(bound), positive=positive, n_threads=n_threads)
    kind = thresholds.POSITIVE if positive else thresholds.ABSOLUTE
    return _threshold(v, gamma, 1.0, bound, kind, n_threads)


def elastic_net_main_form(gamma: float, tau: float) -> tuple[float, float]:
    """Convert ``{u : ‖u‖₁ + gamma/2 ‖u‖₂² ≤ tau}`` (App. B.1) to the form of Section 5.2.

    Parameters
    ----------
    gamma : float
        Weight of the squared ℓ2 norm in the appendix's form, > 0. With 0 the set is an ℓ1 ball,
        for which there is ``project_l1_ball(v, tau)``.
    tau : float
        Right side of the constraint in the appendix's form, >= 0.

    Returns
    -------
    gamma : float
        Weight of the ℓ1 norm in ``‖u‖₂² + gamma ‖u‖₁ ≤ bound``: 2 / gamma.
    bound : float
        Its right side: 2 tau / gamma.

    Examples
    --------
    >>> elastic_net_main_form(gamma=4.0, tau=2.0)
    (0.5, 1.0)
    """
    gamma, tau = check_number("gamma", gamma, low=0.0, strict=True), _number("tau", tau)
    return 2.0 / gamma, 2.0 * tau / gamma


def project_fused_lasso_ball(
    v: Any,
    gamma1: float,
    gamma2: float,
    *,
    bound: float = 1.0,
    positive: bool = False,
    method: Method = "auto",
    n_threads: int | None = None,
) -> Array:
    """Solve ``argmin_u ½‖u − v‖²  s.t.  ‖u‖₂² + gamma1 ‖u‖₁ + gamma2 FL(u) ≤ bound``.

    ``FL(u) = Σ |u[i] − u[i−1]|`` (Section 5.2, Appendix B.2).

    Parameters
    ----------
    v : array_like of shape (m,) or (n, m)
        The point, or points as rows.
    gamma1 : float
        Weight of the ℓ1 norm, >= 0.
    gamma2 : float
        Weight of the fused-lasso term, >= 0; with 0 the set is an elastic-net ball.
    bound : float
        Right side of the constraint, >= 0; 1 in the paper's main text.
    positive : bool
        Add the constraint u >= 0.
    method : {"auto", "direct", "merge", "homotopy"}
        The road to the one answer. "direct" solves total variation at the penalties that
        Newton's steps ask for, on ever fewer pieces. "merge" follows the path of the penalty
        upwards, O(m log m), "homotopy" downwards as the paper does, O(ms) for s pieces in the
        solution. "auto" is "direct", which was the fastest wherever it was measured.
    n_threads : int, optional
        Threads for the rows; all available cores if None.

    Returns
    -------
    ndarray
        The projection, of v's shape, with zeros where it is zero.

    Notes
    -----
    The appendix's constraint ``γ₁‖u‖₁ + γ₂FL(u) + γ₃/2 ‖u‖₂² ≤ ε`` is this one with
    ``gamma1 = 2γ₁/γ₃``, ``gamma2 = 2γ₂/γ₃`` and ``bound = 2ε/γ₃``.
    """
    gamma1, gamma2 = _number("gamma1", gamma1), _number("gamma2", gamma2)
    bound = _number("bound", bound)
    road = _road(method)
    if gamma2 == 0.0:
        return project_elastic_net_ball(
            v, gamma1, bound=bound, positive=positive, n_threads=n_threads
        )
    unit = 1.0 / max(gamma1, gamma2, 1.0)
    weights = gamma1 * unit, gamma2 * unit, unit, bound * unit, bool(positive)

    def solve(rows: Array, out: Array) -> bool:
        if bound == 0.0:
            return _write_zeros(rows, out)
        if road is None:
            work = _fused_lasso_work(rows.shape[1])
            return bool(fused_lasso_ball.project_rows(rows, out, *weights, work))
        scratch = _path_work(rows.shape[1])
        constraint = paths.ConstraintSet(*weights)
        return bool(paths.project_rows_by_path(rows, out, constraint, road, scratch))

    return _on_rows("v", v, solve, n_threads)


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

    ``FL(u) = Σ |u[i] − u[i−1]|`` (Appendix B.2): the fused-lasso signal approximation, and with
    gamma2 alone total-variation denoising.

    Parameters
    ----------
    b : array_like of shape (m,) or (n, m)
        The signal, or signals as rows.
    gamma1, gamma2, gamma3 : float
        The weights, >= 0.
    positive : bool
        Add the constraint u >= 0.
    method : {"auto", "direct", "merge", "homotopy"}
        The road to the one answer. "direct" is a dynamic programme, O(m); "merge" and "homotopy"
        follow the path of gamma2 upwards and downwards to it. "auto" is "direct".
    n_threads : int, optional
        Threads for the rows; all available cores if None.

    Returns
    -------
    ndarray
        The solution, of b's shape, piecewise constant and with zeros where it is zero.
    """
    gamma1, gamma2 = _number("gamma1", gamma1), _number("gamma2", gamma2)
    weights = gamma1, gamma2, _number("gamma3", gamma3), bool(positive)
    road = _road(method)

    def solve(rows: Array, out: Array) -> bool:
        if road is None:
            work = _fused_lasso_work(rows.shape[1])
            return bool(fused_lasso_ball.signal_rows(rows, out, *weights, work))
        scratch = _path_work(rows.shape[1])
        return bool(paths.signal_rows_by_path(rows, out, *weights, road, scratch))

    return _on_rows("b", b, solve, n_threads)


@dataclass(frozen=True, eq=False)
class FusedLassoPath:
    """``argmin_u ½‖b − u‖² + gamma2 FL(u)`` for every gamma2 >= 0 (Appendix B.2).

    As gamma2 grows, neighbouring pieces of the solution fuse and never part again. The path is
    therefore told in full by the gamma2 at which each jump vanishes; between two such kinks the
    solution is linear in gamma2.

    Attributes
    ----------
    b : ndarray of shape (m,)
        The signal.
    vanishes : ndarray of shape (m - 1,)
        The gamma2 from which on ``u[i + 1] = u[i]``; 0 where b has no jump.
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
        positive : bool
            Add the constraint u >= 0.

        Returns
        -------
        ndarray of shape (m,)
            The solution, in O(m).
        """
        gamma1, gamma2 = _number("gamma1", gamma1), _number("gamma2", gamma2)
        gamma3 = _number("gamma3", gamma3)
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
    method : {"auto", "merge", "homotopy"}
        The road to the one answer. "merge" follows the path upwards from b, O(m log m) for all
        of it. "homotopy" follows it downwards from the constant signal; that is the faster one
        on noise, by three to six times, but quadratic on a slope. "auto" tries "homotopy" and
        takes "merge" as soon as it does too much work.

    Returns
    -------
    FusedLassoPath
        All kinks, and the solution ``at`` any gamma2.
    """
    if method not in ("auto", "merge", "homotopy"):
        message = f"method must be 'auto', 'merge' or 'homotopy', got {method!r}"
        raise ValueError(message)
    signal = _as_rows("b", b)
    if np.ndim(b) != 1:
        message = f"b must be a vector (m,), got shape {np.shape(b)}"
        raise ValueError(message)
    road = _ROADS.get(method, paths.EITHER)
    scratch = _path_work(signal.shape[1])
    vanishes = np.empty(signal.shape[1] - 1)
    if not paths.path(signal[0], road, vanishes, scratch):
        check_finite("b", signal[0])
    return FusedLassoPath(signal[0].copy(), vanishes)


def _number(name: str, value: Any) -> float:
    """``value`` as a finite float >= 0."""
    number = check_number(name, value, low=0.0)
    if number == np.inf:
        message = f"{name} must be finite, got {value!r}"
        raise ValueError(message)
    return number


def _road(method: str) -> int | None:
    """Which way to the fused lasso is meant; None is the direct one."""
    if method in ("auto", "direct"):
        return None
    if method not in _ROADS:
        message = f"method must be 'auto', 'direct', 'merge' or 'homotopy', got {method!r}"
        raise ValueError(message)
    return _ROADS[method]


def _as_rows(name: str, values: Any) -> Array:
    """Vectors as the rows of a matrix such as the kernels are compiled for; values are unread."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        message = f"{name} must hold real numbers, got dtype {array.dtype}"
        raise TypeError(message)
    if array.ndim not in (1, 2):
        message = (
            f"{name} must be a vector (m,) or a matrix of rows (n, m), got shape {array.shape}"
        )
        raise ValueError(message)
    if array.size == 0:
        message = f"{name} must not be empty, got shape {array.shape}"
        raise ValueError(message)
    array = np.require(array, float_dtype(array.dtype), ["C", "A", "W"])
    return array.reshape(-1, array.shape[-1])


def _on_rows(
    name: str, values: Any, solve: Callable[[Array, Array], bool], n_threads: int | None
) -> Array:
    """Let ``solve(rows, out)`` write the result for all rows; it returns whether all were finite."""
    rows = _as_rows(name, values)
    out = np.empty_like(rows)
    step = max(1, _TASK // rows.shape[1])
    tasks = -(-rows.shape[0] // step)
    finite = [True] * tasks

    def task(i: int) -> None:
        part = slice(i * step, (i + 1) * step)
        finite[i] = solve(rows[part], out[part])

    run_tasks(task, tasks, resolve_threads(n_threads))
    if not all(finite):
        check_finite(name, rows.reshape(np.shape(values)))
    return out.reshape(np.shape(values))


def _threshold(v: Any, a: float, b: float, r: float, kind: int, n_threads: int | None) -> Array:
    """Project rows onto ``a‖u‖₁ + b‖u‖² ≤ r``, or the simplex."""
    unit = 1.0 / max(a, b)

    def solve(rows: Array, out: Array) -> bool:
        if r == 0.0:
            return _write_zeros(rows, out)
        work = np.empty(thresholds.work_size(rows.shape[1]), rows.dtype)
        return bool(thresholds.project_rows(rows, out, a * unit, b * unit, r * unit, kind, work))

    return _on_rows("v", v, solve, n_threads)


def _write_zeros(rows: Array, out: Array) -> bool:
    out[...] = 0.0
    return bool(np.isfinite(rows).all())


def _fused_lasso_work(m: int) -> Array:
    """Scratch for the fused-lasso kernels and signals of length m."""
    return np.empty((fused_lasso_ball.WORK_ROWS, m + 1))


def _path_work(m: int) -> paths.PathWork:
    """Scratch for the kernels that follow the whole path, for signals of length m."""
    floats, ints = np.empty((paths.FLOAT_ROWS, m + 1)), np.empty((paths.INT_ROWS, m + 1), np.int64)
    return paths.PathWork(_fused_lasso_work(m), floats, ints)
