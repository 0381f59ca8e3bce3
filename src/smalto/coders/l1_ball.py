"""Sparse coding within an ℓ1 ball."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from smalto.checks import Array, Rows
from smalto.coders.base import Coder, Sizes, Solver, margin
from smalto.coders.certain_bounds import certain_in_ball, dual_points, least_in_span
from smalto.coders.chunks import Chunk, Problem, Residuals
from smalto.coders.constrained_solver import constrained_solver
from smalto.coders.parameters import as_per_signal, check_length, of_rows, scaled_numbers
from smalto.kernels.coding.lars import (
    AT_RADIUS,
)


@dataclass(frozen=True)
class L1Ball(Coder):
    """Bounded ℓ1 norm: ``min_α ½‖x − αD‖² subject to ‖α‖₁ ≤ radius`` (ℓ′ of Section 5.5).

    Solved exactly, up to rounding, by an active-set method on the Gram matrix. The penalty ψ is
    zero, so that the cost of a code is its fit.

    Parameters
    ----------
    radius : float or array (n,)
        Bound on the ℓ1 norm of a code; one for all signals, or (with ``encode``) one each.
    positive : bool, default False
        Require α ≥ 0.

    See Also
    --------
    Lasso : A penalty instead of a bound.
    ErrorBound : A bound on the error.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import L1Ball
    >>> encode(np.array([[3.0, 1.0]]), np.eye(2), L1Ball(2.5)).toarray()
    array([[2.25, 0.25]])
    """

    radius: float | npt.ArrayLike
    positive: bool = False

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "penalty_weights"})
    own_gram: ClassVar[bool] = True
    remedy: ClassVar[str] = "a smaller radius"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", as_per_signal("radius", self.radius))

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> L1Ball:
        """Return this problem; raise ValueError if the number of radii is wrong."""
        check_length("radius", self.radius, X)
        return self

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> L1Ball:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale."""
        return replace(self, radius=scaled_numbers(self.radius, signals, 1.0 / atoms, weights))

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        return constrained_solver(AT_RADIUS, "radius", self.radius, G, self.positive)

    def certain(self, problem: Problem) -> Array:
        """Return float64 codes, found slowly however similar the atoms are."""
        radius = float(of_rows("radius", self.radius, problem.numbers, 1)[0])
        x, D, weights = problem.X[0], problem.D, problem.weights
        return certain_in_ball(x, D, weights, radius, bool(self.positive))[None]

    def lower_bound(self, problem: Problem, codes: Array) -> float:
        """Return the value of dual points that are corrected for the rounding of the code.

        Least squares are a bound too, the best one for large radii.
        """
        radius = float(of_rows("radius", self.radius, problem.numbers, 1)[0])
        x, D, weights = problem.X[0], problem.D, problem.weights
        points = dual_points(x, D, weights, bool(self.positive), codes[0])
        values = [float(x @ left - 0.5 * left @ left - radius * top) for left, top in points]
        best = max(values, default=-np.inf)
        return max(best, least_in_span(x, D, radius / float(weights.min())))

    def delicate(self, chunk: Chunk, atoms: Sizes) -> Any:
        """Return for which signals the radius is so large that rounding decides the gap."""
        radii = of_rows("radius", self.radius, chunk.numbers, len(chunk.Q))
        most = margin(chunk.Q.dtype) * np.sqrt(chunk.norms)
        return atoms.uneven or radii * atoms.largest > most

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return zero for each row of codes."""
        return np.zeros(codes.shape[0])

    def gap(self, left: Residuals) -> Array:
        """Return the duality gap of each row; its residual is the dual point."""
        radii = of_rows("radius", self.radius, left.numbers, len(left.norms))
        gap = np.maximum(radii * left.steepest(self.positive) - left.inner(), 0.0)
        return np.asarray(np.where(left.lengths() <= radii * (1.0 + 1e-5), gap, np.inf))
