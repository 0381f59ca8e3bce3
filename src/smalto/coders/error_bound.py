"""Sparse coding with a bound on the error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from smalto.checks import Array, Rows
from smalto.coders.base import Coder, Solver
from smalto.coders.certain_bounds import certain_to_error, dual_points
from smalto.coders.chunks import Problem, Residuals
from smalto.coders.constrained_solver import constrained_solver
from smalto.coders.parameters import PerSignal, as_per_signal, check_length, of_rows, scaled_numbers
from smalto.kernels.coding.fit import elastic_net_of_rows
from smalto.kernels.coding.lars import (
    AT_ERROR,
)


@dataclass(frozen=True)
class ErrorBound(Coder):
    """Bounded error: ``min_α ‖α‖₁ subject to ‖x − αD‖² ≤ eps`` (ℓ″ of Section 5.5).

    Solved exactly, up to rounding, by an active-set method on the Gram matrix. The code of a
    signal with ``‖x‖² ≤ eps`` is zero. If no code has an error as small as ``eps``, the code is
    the least-squares solution at the end of the lasso path, and ``encode`` warns how many signals
    were affected. The cost of a code is its fit plus ``‖α‖₁``.

    Parameters
    ----------
    eps : float or array (n,)
        Bound on the squared norm of the residual; one for all signals, or (with ``encode``)
        one each.
    positive : bool, default False
        Require α ≥ 0.

    See Also
    --------
    Lasso : A penalty instead of a bound.
    L1Ball : A bound on the norm of the code.
    OMP : Greedy codes up to an error.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import ErrorBound
    >>> encode(np.array([[3.0, 1.0]]), np.eye(2), ErrorBound(2.0)).toarray()
    array([[2., 0.]])
    """

    eps: float | npt.ArrayLike
    positive: bool = False

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "penalty_weights"})
    own_gram: ClassVar[bool] = True
    remedy: ClassVar[str] = "a larger eps"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", as_per_signal("eps", self.eps))

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> ErrorBound:
        """Return this problem; raise ValueError if the number of bounds is wrong."""
        check_length("eps", self.eps, X)
        return self

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> ErrorBound:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale."""
        return replace(self, eps=scaled_numbers(self.eps, signals, signals))

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        return constrained_solver(AT_ERROR, "eps", self.eps, G, self.positive)

    def certain(self, problem: Problem) -> Array:
        """Return float64 codes, found slowly however similar the atoms are."""
        eps = float(of_rows("eps", self.eps, problem.numbers, 1)[0])
        x, D, weights = problem.X[0], problem.D, problem.weights
        return certain_to_error(x, D, weights, eps, bool(self.positive))[None]

    def lower_bound(self, problem: Problem, codes: Array) -> float:
        """Return the value of dual points that are corrected for the rounding of the code."""
        eps = float(of_rows("eps", self.eps, problem.numbers, 1)[0])
        x, D, weights = problem.X[0], problem.D, problem.weights
        points = dual_points(x, D, weights, bool(self.positive), codes[0])
        values = [
            (x @ left - np.sqrt(eps * (left @ left))) / top for left, top in points if top > 0
        ]
        return float(max(values, default=-np.inf))

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return ``‖α‖₁`` of each row of codes."""
        codes = scipy.sparse.csr_array(codes)
        out = np.empty(codes.shape[0])
        elastic_net_of_rows(codes.indptr, codes.data, 1.0, 0.0, out)
        return out

    def error_bound(self) -> PerSignal:
        """Return the bound on the error."""
        return self.eps

    def gap(self, left: Residuals) -> Array:
        """Return the duality gap of each row; its scaled residual is the dual point.

        The gap is infinite where the bound is out of reach: there is no optimum.
        """
        eps = of_rows("eps", self.eps, left.numbers, len(left.norms))
        length = left.lengths()
        top = left.steepest(self.positive)
        value = left.squares + left.inner() - np.sqrt(eps * left.squares)  # ⟨x, r⟩ − √eps ‖r‖
        dual = np.divide(value, top, out=np.zeros_like(top), where=top > 0)
        gap = np.maximum(length - np.maximum(dual, 0.0), 0.0)
        reached = left.squares <= eps + 1e-5 * left.norms
        return np.asarray(np.where(reached, gap, np.inf))
