"""The simplex."""

from __future__ import annotations

from typing import Any

from smalto.checks import Array
from smalto.kernels.projecting.elastic_net_ball import RAW
from smalto.projections.by_rows import nonnegative, threshold_rows


def project_simplex(v: Any, radius: float = 1.0, *, n_threads: int | None = None) -> Array:
    """Solve ``argmin_u ½‖u − v‖² subject to u ≥ 0, Σu = radius`` (as Appendix B.1, γ = 0).

    Parameters
    ----------
    v : array_like of shape (m,) or (n, m)
        The point, or points as rows.
    radius : float, default 1
        Sum of the entries of u, >= 0.
    n_threads : int, optional
        Number of threads; all available cores by default.

    Returns
    -------
    ndarray
        The projection, with the shape of v and exact zeros.

    See Also
    --------
    smalto.constraints.Simplex : The set as a constraint on atoms.
    """
    return threshold_rows(v, 1.0, 0.0, nonnegative("radius", radius), RAW, n_threads)
