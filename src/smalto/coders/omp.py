"""Orthogonal matching pursuit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from smalto.checks import Array, Rows
from smalto.coders.base import Coder, Solver
from smalto.coders.certain_pursuit import Pursuit
from smalto.coders.chunks import Chunk, Problem
from smalto.coders.codes import Codes
from smalto.coders.greedy import GreedySolver, mark_unsure
from smalto.coders.parameters import (
    PerSignal,
    as_per_signal,
    check_length,
    limit_nonzeros,
    of_rows,
    scaled_numbers,
)


@dataclass(frozen=True)
class OMP(Coder):
    """Greedy pursuit: ``‖α‖₀ ≤ max_nonzeros``, or until ``‖x − αD‖² ≤ eps``.

    Orthogonal matching pursuit for ``min_α ½‖x − αD‖² subject to ‖α‖₀ ≤ max_nonzeros``: atoms are
    added one at a time, and all coefficients are refitted. A heuristic for an NP-hard problem
    (Section 5.1 of the paper), exact for orthogonal atoms. The cost of a code is its fit.

    Parameters
    ----------
    max_nonzeros : int or array of int (n,), optional
        Maximum number of nonzeros of a code; one for all signals, or (with ``encode``) one each.
        If it exceeds the number of atoms or features, that number is used, with a warning.
    eps : float or array (n,), optional
        Stop when the squared norm of the residual is at most this. If both limits are given,
        the first one reached counts.
    positive : bool, default False
        Require α ≥ 0: coefficients are fitted under this constraint, and atoms may be removed.
    look_ahead : bool, default True
        Add the atom that gives the smallest error when all coefficients are refitted
        (order-recursive matching pursuit). If False, add the atom most correlated with the
        residual, as in textbooks; the errors are larger, the time is not shorter.

    See Also
    --------
    L0 : A penalty instead of a bound.
    JointOMP : Signals that share their atoms.
    ErrorBound : The convex problem with a bound on the error.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import OMP
    >>> encode(np.array([[3.0, -1.0, 2.0]]), np.eye(3), OMP(max_nonzeros=2)).toarray()
    array([[3., 0., 2.]])
    """

    max_nonzeros: int | npt.ArrayLike | None = None
    eps: float | npt.ArrayLike | None = None
    positive: bool = False
    look_ahead: bool = True

    own_gram: ClassVar[bool] = True
    takes_coarse: ClassVar[bool] = True
    remedy: ClassVar[str] = "fewer nonzeros or a larger eps"

    def __post_init__(self) -> None:
        if self.max_nonzeros is None and self.eps is None:
            message = "OMP needs a limit: give max_nonzeros, eps or both"
            raise ValueError(message)
        if self.max_nonzeros is not None:
            nonzeros = as_per_signal("max_nonzeros", self.max_nonzeros, integer=True)
            object.__setattr__(self, "max_nonzeros", nonzeros)
        if self.eps is not None:
            object.__setattr__(self, "eps", as_per_signal("eps", self.eps))

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> OMP:
        """Return this problem with max_nonzeros limited to the number of atoms or features."""
        check_length("max_nonzeros", self.max_nonzeros, X)
        check_length("eps", self.eps, X)
        if self.max_nonzeros is None:
            return self
        asked = int(np.max(self.max_nonzeros, initial=0))
        most = limit_nonzeros(asked, D)
        if asked <= most:
            return self
        if isinstance(self.max_nonzeros, tuple):
            return replace(self, max_nonzeros=np.minimum(self.max_nonzeros, most))
        return replace(self, max_nonzeros=most)

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> OMP:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale."""
        if self.eps is None:
            return self
        return replace(self, eps=scaled_numbers(self.eps, signals, signals))

    @property
    def any_atom_scale(self) -> bool:
        """Whether each atom can be scaled by itself."""
        return True

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        greedy = GreedySolver(G, bool(self.positive), bool(self.look_ahead))

        def solve(chunk: Chunk) -> Codes:
            n, numbers = len(chunk.Q), chunk.numbers
            limits = np.full(n, len(G), np.int64)
            if self.max_nonzeros is not None:
                limits = of_rows("max_nonzeros", self.max_nonzeros, numbers, n).astype(np.int64)
            eps = np.full(n, -np.inf)
            if self.eps is not None:
                eps = of_rows("eps", self.eps, numbers, n)
            codes = greedy.solve(chunk, limits, eps, 0.0)
            if self.eps is not None and self.max_nonzeros is not None:
                mark_unsure(chunk, codes, limits, eps, chunk.norms)
            return codes

        return solve

    def certain(self, problem: Problem) -> Array:
        """Return float64 codes, found slowly however similar the atoms are."""
        X, D, numbers, dtype = problem.X, problem.D, problem.numbers, problem.dtype
        most, eps = int(min(D.shape)), 0.0
        if self.max_nonzeros is not None:
            most = min(most, int(of_rows("max_nonzeros", self.max_nonzeros, numbers, 1)[0]))
        if self.eps is not None:
            eps = float(of_rows("eps", self.eps, numbers, 1)[0])
        rules = {"positive": bool(self.positive), "look_ahead": bool(self.look_ahead)}
        return Pursuit(most, eps, **rules).codes(X, D, dtype, problem.near)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return zero for each row of codes."""
        return np.zeros(codes.shape[0])

    def two_limits(self) -> tuple[PerSignal, PerSignal] | None:
        """Return max_nonzeros and eps if both are given."""
        if self.max_nonzeros is None or self.eps is None:
            return None
        return self.max_nonzeros, self.eps

    def error_bound(self) -> PerSignal | None:
        """Return the bound on the error; None if max_nonzeros may prevent it from being met."""
        return self.eps if self.max_nonzeros is None else None
