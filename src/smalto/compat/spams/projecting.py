"""SPAMS's projections, and its normalization of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.compat.spams.columns import columns, dense, n_threads, refuse, required, signals
from smalto.projections import (
    fused_lasso_signal,
    project_elastic_net_ball,
    project_fused_lasso_ball,
    project_l1_ball,
    project_l2_ball,
)


def normalize(A: Any) -> Array:
    """Return A with columns of norm 1, in Fortran order; columns of zeros stay as they are."""
    rows = dense(signals("A", A))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return columns(rows / np.where(norms > 0, norms, 1), rows.dtype)


def sparseProject(
    U: Any,
    thrs: float = 1.0,
    mode: int = 1,
    lambda1: float = 0.0,
    lambda2: float = 0.0,
    lambda3: float = 0.0,
    pos: Any = 0,
    numThreads: int = -1,
) -> Array:
    """Project the columns of U, exactly.

    Parameters
    ----------
    U : array (m, n)
        Vectors, as columns.
    thrs : float, default 1
        The bound.
    mode : int, default 1
        1: ``‖u‖₁ ≤ thrs``; 2: ``‖u‖² + lambda1‖u‖₁ ≤ thrs``;
        3: ``‖u‖₁ + lambda1/2 ‖u‖² ≤ thrs``; 4: ``min_v ½‖u − v‖² + lambda1‖v‖₁`` with
        ``‖v‖² ≤ thrs``; 5: ``min_v ½‖u − v‖² + lambda1‖v‖₁ + lambda2 FL(v) + lambda3/2 ‖v‖²``;
        6: ``lambda1‖u‖₁ + lambda2 FL(u) + lambda3/2 ‖u‖² ≤ thrs``, where
        ``FL(u) = Σ|u_(i+1) − u_i|``. In mode 6 SPAMS's own result is outside of the set.
    lambda1, lambda2, lambda3 : float, default 0
        Weights, as above.
    pos : bool, default False
        Require u ≥ 0 (SPAMS ignores this in modes 5 and 6).
    numThreads : int, default -1
        Number of threads, -1 for every core.

    Returns
    -------
    array (m, n)
        The projections, in Fortran order.
    """
    rows, threads = dense(signals("U", U)), n_threads(numThreads)
    thrs, lambda1 = required("thrs", thrs), required("lambda1", lambda1)
    lambda2, lambda3 = required("lambda2", lambda2), required("lambda3", lambda3)
    options: dict[str, Any] = {"positive": bool(pos), "n_threads": threads}
    if mode == 1 or (mode == 3 and lambda1 == 0.0):
        found = project_l1_ball(rows, thrs, **options)
    elif mode == 2:
        found = project_elastic_net_ball(rows, lambda1, bound=thrs, **options)
    elif mode == 3:
        bound = 2.0 * thrs / lambda1
        found = project_elastic_net_ball(rows, 2.0 / lambda1, bound=bound, **options)
    elif mode == 4:
        found = project_l2_ball(soft(rows, lambda1, bool(pos)), np.sqrt(thrs), n_threads=threads)
    elif mode == 5:
        found = fused_lasso_signal(rows, lambda1, lambda2, lambda3, **options)
    elif mode == 6:
        found = _project_fused(rows, lambda1, lambda2, lambda3, thrs, options)
    else:
        message = f"mode must be an integer from 1 to 6, got {mode!r}"
        raise ValueError(message)
    return columns(found)


def _project_fused(
    rows: Array, lambda1: float, lambda2: float, lambda3: float, thrs: float, options: Any
) -> Array:
    if lambda3 == 0.0 and lambda2 == 0.0 < lambda1:
        return project_l1_ball(rows, thrs / lambda1, **options)
    if lambda3 == 0.0:
        refuse("mode=6 with lambda3=0", "give lambda3 > 0, however small")
    scale = 2.0 / lambda3
    return project_fused_lasso_ball(
        rows, scale * lambda1, scale * lambda2, bound=scale * thrs, **options
    )


def soft(rows: Array, by: float, pos: bool) -> Array:
    """Shrink each entry; the proximal operator of the ℓ1 norm."""
    if pos:
        return np.maximum(rows - by, 0.0).astype(rows.dtype)
    return (np.sign(rows) * np.maximum(np.abs(rows) - by, 0.0)).astype(rows.dtype)
