"""The elastic-net ball."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array, check_number
from smalto.kernels.projecting.elastic_net_ball import ABSOLUTE, POSITIVE
from smalto.projections.by_rows import nonnegative, threshold_rows
from smalto.projections.l2 import project_l2_ball


def project_elastic_net_ball(
    v: Any,
    gamma: float,
    *,
    bound: float = 1.0,
    positive: bool = False,
    n_threads: int | None = None,
) -> Array:
    """Solve ``argmin_u ½‖u − v‖² subject to ‖u‖₂² + gamma ‖u‖₁ ≤ bound`` (Section 5.2).

    The cost is linear in m: a long vector is read about twice and written once.

    Parameters
    ----------
    v : array_like of shape (m,) or (n, m)
        The point, or points as rows.
    gamma : float
        Weight of the ℓ1 norm, >= 0; with 0 the set is an ℓ2 ball.
    bound : float, default 1
        Right-hand side of the constraint, >= 0; 1 in the paper's main text.
    positive : bool, default False
        Add the constraint u >= 0.
    n_threads : int, optional
        Number of threads; all available cores by default.

    Returns
    -------
    ndarray
        The projection, with the shape of v and exact zeros.

    See Also
    --------
    elastic_net_main_form : gamma and bound for the set as written in the paper's appendix.

    Notes
    -----
    The solution is ``u = soft(v, gamma lam) / (1 + 2 lam)``. Algorithm 3 of the paper finds its
    nonzero entries by random pivots; here Newton steps find them. Given these, ``lam`` has a
    closed form.
    """
    gamma, bound = nonnegative("gamma", gamma), nonnegative("bound", bound)
    if gamma == 0.0:
        return project_l2_ball(v, np.sqrt(bound), positive=positive, n_threads=n_threads)
    kind = POSITIVE if positive else ABSOLUTE
    return threshold_rows(v, gamma, 1.0, bound, kind, n_threads)


def elastic_net_main_form(gamma: float, tau: float) -> tuple[float, float]:
    """Convert ``{u : ‖u‖₁ + gamma/2 ‖u‖₂² ≤ tau}`` (Appendix B.1) to the form of Section 5.2.

    Parameters
    ----------
    gamma : float
        Weight of the squared ℓ2 norm in the appendix's form, > 0. With 0 the set is an ℓ1 ball:
        use ``project_l1_ball(v, tau)``.
    tau : float
        Right-hand side of the constraint in the appendix's form, >= 0.

    Returns
    -------
    gamma : float
        Weight of the ℓ1 norm in ``‖u‖₂² + gamma ‖u‖₁ ≤ bound``: 2 / gamma.
    bound : float
        Its right-hand side: 2 tau / gamma.

    See Also
    --------
    project_elastic_net_ball : The projection in the form of Section 5.2.

    Examples
    --------
    >>> elastic_net_main_form(gamma=4.0, tau=2.0)
    (0.5, 1.0)
    """
    gamma, tau = check_number("gamma", gamma, low=0.0, strict=True), nonnegative("tau", tau)
    return 2.0 / gamma, 2.0 * tau / gamma
