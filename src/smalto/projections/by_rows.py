"""What all projections share: argument checks, and rows distributed over threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, check_finite, check_not_masked, check_number, float_dtype
from smalto.kernels.projecting import elastic_net_ball as kernels
from smalto.threads import resolve_threads, run_tasks

_ENTRIES = 1 << 16  # entries per task


def nonnegative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float >= 0."""
    number = check_number(name, value, low=0.0)
    if number == np.inf:
        message = f"{name} must be finite, got {value!r}"
        raise ValueError(message)
    return number


def as_matrix(name: str, values: Any) -> Array:
    """Return a vector or matrix as C-contiguous float rows; finiteness is not checked."""
    check_not_masked(name, values)
    if scipy.sparse.issparse(values):
        message = (
            f"{name} must be a dense array, got a sparse one of shape {values.shape}: give "
            f"{name}.toarray()"
        )
        raise TypeError(message)
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


def solve_rows(
    name: str, values: Any, solve: Callable[[Array, Array], bool], n_threads: int | None
) -> Array:
    """Apply ``solve(rows, out)`` to blocks of rows; it returns False if it met a non-finite entry."""
    rows = as_matrix(name, values)
    out = np.empty_like(rows)
    step = max(1, _ENTRIES // rows.shape[1])
    tasks = -(-rows.shape[0] // step)
    finite = [True] * tasks

    def task(i: int) -> None:
        part = slice(i * step, (i + 1) * step)
        finite[i] = solve(rows[part], out[part])

    run_tasks(task, tasks, resolve_threads(n_threads))
    if not all(finite):
        check_finite(name, rows.reshape(np.shape(values)))
    return out.reshape(np.shape(values))


def threshold_rows(
    v: Any, l1: float, l2: float, bound: float, kind: int, n_threads: int | None
) -> Array:
    """Project rows onto ``l1 ‖u‖₁ + l2 ‖u‖² ≤ bound``, or onto the simplex.

    ``kind`` is RAW (the simplex), ABSOLUTE or POSITIVE, as in the kernel.
    """
    unit = 1.0 / max(l1, l2)
    weights = l1 * unit, l2 * unit, bound * unit

    def solve(rows: Array, out: Array) -> bool:
        if bound == 0.0:
            return write_zeros(rows, out)
        work = np.empty(kernels.work_size(rows.shape[1]), rows.dtype)
        return bool(kernels.project_rows(rows, out, *weights, kind, work))

    return solve_rows("v", v, solve, n_threads)


def write_zeros(rows: Array, out: Array) -> bool:
    """Write zeros to ``out``; return whether all of ``rows`` is finite."""
    out[...] = 0.0
    return bool(np.isfinite(rows).all())
