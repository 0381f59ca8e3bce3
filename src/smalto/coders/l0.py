"""Greedy sparse coding with a cost per nonzero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy

from smalto.checks import Array, check_finite_number
from smalto.coders.base import Coder, Solver
from smalto.coders.certain_pursuit import Pursuit
from smalto.coders.chunks import Chunk, Problem
from smalto.coders.codes import Codes
from smalto.coders.greedy import GreedySolver
from smalto.coders.parameters import scaled_number


@dataclass(frozen=True)
class L0(Coder):
    """A penalty on the number of nonzeros: ``min_α ½‖x − αD‖² + lam ‖α‖₀``, greedily.

    Atoms are added one at a time, always the one that reduces the error most when all coefficients
    are refitted, until no further atom reduces the cost. A heuristic for an NP-hard problem, exact
    for orthogonal atoms.

    Parameters
    ----------
    lam : float
        Cost of a nonzero.
    positive : bool, default False
        Require α ≥ 0.

    See Also
    --------
    OMP : A number of nonzeros or an error, instead of a penalty.
    Lasso : The convex problem.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import L0
    >>> encode(np.array([[3.0, -1.0, 2.0]]), np.eye(3), L0(lam=1.0)).toarray()
    array([[3., 0., 2.]])
    """

    lam: float
    positive: bool = False

    own_gram: ClassVar[bool] = True
    takes_coarse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_finite_number("lam", self.lam)

    def describe(self) -> dict[str, float | None]:
        """Return ``lam``."""
        return {"lam": self.lam}

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> L0:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale."""
        return replace(self, lam=scaled_number(self.lam, signals, signals))

    @property
    def any_atom_scale(self) -> bool:
        """Whether each atom can be scaled by itself."""
        return True

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        greedy = GreedySolver(G, bool(self.positive), True)
        lam = float(self.lam)

        def solve(chunk: Chunk) -> Codes:
            n = len(chunk.Q)
            limits = np.full(n, len(G), np.int64)
            return greedy.solve(chunk, limits, np.zeros(n), 2.0 * lam)

        return solve

    def certain(self, problem: Problem) -> Array:
        """Return float64 codes, found slowly however similar the atoms are."""
        pursuit = Pursuit(
            int(min(problem.D.shape)), gain=2.0 * float(self.lam), positive=bool(self.positive)
        )
        return pursuit.codes(problem.X, problem.D, problem.dtype, problem.near)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return ``lam ‖α‖₀`` of each row of codes."""
        codes = scipy.sparse.csr_array(codes)
        rows = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
        counts = np.bincount(rows, weights=codes.data != 0, minlength=codes.shape[0])
        return np.asarray(float(self.lam) * counts)
