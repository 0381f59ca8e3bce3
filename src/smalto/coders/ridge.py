"""Ridge regression: dense codes in closed form."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, check_finite_number
from smalto.coders.base import PROMISED_GAP, Coder, Sizes, Solver
from smalto.coders.chunks import Chunk, Problem, Residuals
from smalto.coders.codes import Codes
from smalto.coders.parameters import scaled_number
from smalto.kernels.coding.fit import elastic_net_of_rows

_FAR_BELOW = 0.1  # of the promised gap


@dataclass(frozen=True)
class Ridge(Coder):
    """A squared penalty: ``min_α ½‖x − αD‖² + lam/2 ‖α‖²``, with dense codes.

    They are ``α = x Dᵀ (D Dᵀ + lam I)⁻¹ = x (DᵀD + lam I)⁻¹ Dᵀ``: one product per signal, with a
    matrix that is computed once per dictionary, in float64. Codes are CSR arrays in which all entries are stored, except those of zero atoms.

    Parameters
    ----------
    lam : float
        Weight of the squared norm of the code, above zero.

    See Also
    --------
    Lasso : Sparse codes; with ``ridge=`` the elastic net.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import Ridge
    >>> encode(np.array([[3.0, 1.0]]), np.eye(2), Ridge(lam=1.0)).toarray()
    array([[1.5, 0.5]])
    """

    lam: float

    def __post_init__(self) -> None:
        check_finite_number("lam", self.lam, strict=True)

    def describe(self) -> dict[str, float | None]:
        """Return ``lam``."""
        return {"lam": self.lam}

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> Ridge:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale."""
        return replace(self, lam=scaled_number(self.lam, atoms, atoms))

    def linear(self, D: Array) -> Array | None:
        """Return ``(D Dᵀ + lam I)⁻¹ D``, by the smaller of the two Gram matrices.

        The gradient at the code of x is ``x Rᵀ``, with an R that is computed here. It and the
        rounding of ``x Wᵀ`` bound the gap; None if the bound is not far below what is promised.
        """
        if not D.size:
            return D
        dtype, lam, D = D.dtype, float(self.lam), D.astype(np.float64)
        (k, m), unit = D.shape, float(np.finfo(np.float64).eps)
        shifted = D.T @ D if k > m else D @ D.T
        shifted[np.diag_indices(len(shifted))] += lam
        trace, ones = float(np.trace(shifted)), np.eye(len(shifted))
        factor, _ = _factor(shifted.copy(), lam)
        inverse = np.tril(scipy.linalg.lapack.dpotri(factor, lower=1)[0])
        inverse += np.tril(inverse, -1).T
        W = D @ inverse if k > m else inverse @ D
        # R is D (S S⁻¹ − I), or (S S⁻¹ − I) D, and the rounding of W.
        off = np.linalg.norm(shifted @ inverse - ones) * np.linalg.norm(D)
        off += trace * len(shifted) * unit * np.linalg.norm(inverse) * np.linalg.norm(D)
        off += trace * float(np.finfo(dtype).eps) * np.linalg.norm(W)
        harmless = off * off <= _FAR_BELOW * PROMISED_GAP[dtype.itemsize] * lam
        return np.ascontiguousarray(W, dtype) if harmless else None

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        used = np.flatnonzero(np.diagonal(G) > 0).astype(np.int32)  # no padding, no zero atoms

        @functools.cache
        def factor() -> Any:
            shifted = G[np.ix_(used, used)].astype(np.float64)
            shifted[np.diag_indices(len(used))] += float(self.lam)
            return _factor(shifted, float(self.lam))

        def solve(chunk: Chunk) -> Codes:
            Q, n, count = chunk.Q, len(chunk.Q), len(used)
            chunk.rounds[:] = 1
            codes = np.zeros((n, count))
            if codes.size:
                codes = scipy.linalg.cho_solve(factor(), Q[:, used].T.astype(np.float64)).T
            return Codes(
                count * np.arange(n + 1, dtype=np.int64),
                np.tile(used, n),
                np.ascontiguousarray(codes, dtype=Q.dtype).reshape(-1),
            )

        return solve

    def certain(self, problem: Problem) -> Array:
        """Return float64 codes, found slowly however similar the atoms are."""
        U, sizes, V = np.linalg.svd(problem.D, full_matrices=False)
        return np.asarray((problem.X @ V.T) * (sizes / (sizes**2 + float(self.lam))) @ U.T)

    def delicate(self, chunk: Chunk, atoms: Sizes) -> Any:
        """Return whether ``lam`` is so small that the rounding of the Gram matrix counts.

        The gap is at most ``(rounding/lam)² ‖x‖²/8``.
        """
        dtype = chunk.Q.dtype
        rounding = float(np.finfo(dtype).eps) * float(atoms.norms @ atoms.norms)
        return rounding > np.sqrt(PROMISED_GAP[dtype.itemsize]) * float(self.lam)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return ``lam/2 ‖α‖²`` of each row of codes."""
        codes = scipy.sparse.csr_array(codes)
        out = np.empty(codes.shape[0])
        elastic_net_of_rows(codes.indptr, codes.data, 0.0, float(self.lam), out)
        return out

    def gap(self, left: Residuals) -> Array:
        """Return ``‖gradient‖²/(2 lam)`` of each row: the problem is lam-strongly convex."""
        gradient = float(self.lam) * left.codes.toarray() - left.C
        return np.asarray((gradient * gradient).sum(axis=1) / (2.0 * float(self.lam)))


def _factor(shifted: Array, lam: float) -> Any:
    """Return the Cholesky factor of ``G + lam I``; add to the diagonal if rounding requires it."""
    if not len(shifted):
        return None
    diagonal = np.diag_indices(len(shifted))
    more = max(lam, 1e-15 * float(shifted[diagonal].max()))
    while True:
        try:
            return scipy.linalg.cho_factor(shifted, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            shifted[diagonal] += more
            more *= 10.0
