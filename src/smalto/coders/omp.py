"""Greedy coders: orthogonal matching pursuit, and a price for each nonzero."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from smalto.checks import Array, Rows
from smalto.coders.base import Coder, Solver
from smalto.coders.chunks import Chunk
from smalto.coders.codes import Codes
from smalto.coders.greedy import GreedySolver
from smalto.coders.parameters import as_setting, check_length, of_rows


@dataclass(frozen=True)
class OMP(Coder):
    """``min_α ½‖x − αD‖²  s.t. ‖α‖₀ ≤ max_nonzeros``, or until ``‖x − αD‖² ≤ eps``, greedily.

    Orthogonal matching pursuit: one atom joins at a time, and all coefficients are fitted
    anew. The problem is NP-hard; this is a heuristic for it (Section 5.1 of the paper), exact
    for orthogonal atoms. As a cost it counts the fit.

    Parameters
    ----------
    max_nonzeros : int or array of int (n,), optional
        How many nonzeros a code may have; one for all signals, or (for ``encode``) one each.
        More than there are atoms or features is as good as that many, and is said so.
    eps : float or array (n,), optional
        Stop where the squared norm of the residual is at most this. With both limits, the
        one that is met first stops.
    positive : bool, default False
        Demand α ≥ 0: coefficients are fitted under that constraint, and atoms may leave.
    look_ahead : bool, default True
        Which atom joins: the one with which the error, all coefficients fitted anew, is
        smallest (order-recursive matching pursuit), or the one most correlated with the
        residual (the textbook's). The first gives smaller errors at no more time.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import OMP
    >>> encode(np.array([[3.0, -1.0, 2.0]]), np.eye(3), OMP(max_nonzeros=2)).toarray()
    array([[3., 0., 2.]])
    """

    max_nonzeros: Any = None
    eps: Any = None
    positive: bool = False
    look_ahead: bool = True

    own_gram: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.max_nonzeros is None and self.eps is None:
            message = "OMP needs a limit: give max_nonzeros, eps or both"
            raise ValueError(message)
        if self.max_nonzeros is not None:
            nonzeros = as_setting("max_nonzeros", self.max_nonzeros, low=0, integer=True)
            object.__setattr__(self, "max_nonzeros", nonzeros)
        if self.eps is not None:
            object.__setattr__(self, "eps", as_setting("eps", self.eps, low=0))

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> OMP:
        """This problem with no more nonzeros than there are atoms or features."""
        check_length("max_nonzeros", self.max_nonzeros, X)
        check_length("eps", self.eps, X)
        if self.max_nonzeros is None:
            return self
        most, asked = min(D.shape), int(np.max(self.max_nonzeros, initial=0))
        if asked <= most:
            return self
        message = (
            f"max_nonzeros={asked} is more than the {D.shape[0]} atoms of {D.shape[1]} features "
            f"allow: {most} is used"
        )
        warnings.warn(message, UserWarning, stacklevel=3)
        if isinstance(self.max_nonzeros, tuple):
            return replace(
                self, max_nonzeros=tuple(min(count, most) for count in self.max_nonzeros)
            )
        return replace(self, max_nonzeros=most)

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G."""
        greedy = GreedySolver(G, bool(self.positive), bool(self.look_ahead))

        def solve(chunk: Chunk) -> Codes:
            n, numbers = len(chunk.Q), chunk.numbers
            limits = np.full(n, len(G), np.int64)
            if self.max_nonzeros is not None:
                limits = of_rows("max_nonzeros", self.max_nonzeros, numbers, n).astype(np.int64)
            eps = np.zeros(n) if self.eps is None else of_rows("eps", self.eps, numbers, n)
            return greedy.solve(chunk, limits, eps, 0.0)

        return solve

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Zero for each row of codes."""
        return np.zeros(codes.shape[0])

    def error_bound(self) -> Any:
        """The bound on the error, where no number of nonzeros stands before it."""
        return self.eps if self.max_nonzeros is None else None
