"""Sparse coding within an ℓ1 ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from smalto.checks import Array, Rows
from smalto.coders.base import Coder, Solver
from smalto.coders.chunks import Residuals
from smalto.coders.constrained_solver import constrained_solver
from smalto.coders.parameters import as_setting, check_length, of_rows
from smalto.kernels.coding.lars import (
    AT_RADIUS,
)


@dataclass(frozen=True)
class L1Ball(Coder):
    """``min_α ½‖x − αD‖²  s.t. ‖α‖₁ ≤ radius`` (ℓ′ of Section 5.5).

    Solved exactly, to rounding, by an active-set method on the Gram matrix. As a cost it
    counts the fit alone: the constraint holds.

    Parameters
    ----------
    radius : float or array (n,)
        Bound on the ℓ1 norm of a code; one for all signals, or (for ``encode``) one each.
    positive : bool, default False
        Demand α ≥ 0.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import L1Ball
    >>> encode(np.array([[3.0, 1.0]]), np.eye(2), L1Ball(2.5)).toarray()
    array([[2.25, 0.25]])
    """

    radius: Any
    positive: bool = False

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "penalty_weights"})
    own_gram: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", as_setting("radius", self.radius, low=0))

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> L1Ball:
        """This problem, if it has one number for all signals or one for each."""
        check_length("radius", self.radius, X)
        return self

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G."""
        return constrained_solver(AT_RADIUS, "radius", self.radius, G, self.positive)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Zero for each row of codes."""
        return np.zeros(codes.shape[0])

    def gap(self, left: Residuals) -> Array:
        """The duality gap of each row, at the dual point that is its residual."""
        radii = of_rows("radius", self.radius, left.numbers, len(left.norms))
        gap = np.maximum(radii * left.steepest(self.positive) - left.inner(), 0.0)
        return np.asarray(np.where(left.lengths() <= radii * (1.0 + 1e-5), gap, np.inf))
