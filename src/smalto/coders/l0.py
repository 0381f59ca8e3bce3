"""Greedy sparse coding with a price for each nonzero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from smalto.checks import Array, check_number
from smalto.coders.base import Coder, Solver
from smalto.coders.chunks import Chunk
from smalto.coders.codes import Codes
from smalto.coders.greedy import GreedySolver


@dataclass(frozen=True)
class L0(Coder):
    """``min_α ½‖x − αD‖² + lam ‖α‖₀``, greedily.

    Atoms join one at a time, the one that lowers the error the most with all coefficients
    fitted anew, as long as one is worth its price: at the end no single further atom lowers
    the cost. A heuristic for an NP-hard problem, exact for orthogonal atoms.

    Parameters
    ----------
    lam : float
        The price of a nonzero.
    positive : bool, default False
        Demand α ≥ 0.

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

    def __post_init__(self) -> None:
        check_number("lam", self.lam, low=0)
        if not np.isfinite(self.lam):
            message = f"lam must be finite, got {self.lam}"
            raise ValueError(message)

    def describe(self) -> dict[str, float | None]:
        """Return ``lam``."""
        return {"lam": self.lam}

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G."""
        greedy = GreedySolver(G, bool(self.positive), True)
        lam = float(self.lam)

        def solve(chunk: Chunk) -> Codes:
            n = len(chunk.Q)
            limits = np.full(n, len(G), np.int64)
            return greedy.solve(chunk, limits, np.zeros(n), 2.0 * lam)

        return solve

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """``lam ‖α‖₀`` of each row of codes."""
        codes = sparse.csr_array(codes)
        counts = np.bincount(
            np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr)),
            weights=codes.data != 0, minlength=codes.shape[0],
        )  # fmt: skip
        return np.asarray(float(self.lam) * counts)
