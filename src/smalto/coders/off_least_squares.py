"""By how much codes of pursuits fit worse than least squares on the atoms that they use."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.coders.chunks import Problem
from smalto.coders.codes import Codes
from smalto.kernels.coding.active_set import make_active_set
from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.coding.off_least_squares import off_least_squares

_WELL_CONDITIONED = 1e-9  # reciprocal: an error of a percent takes 1e-12 with 100 atoms


class OffLeastSquares:
    """Differences of the fit ``½‖x − αD‖²``, which are remembered: the same are asked for often."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def of_signals(self, codes: Any, rows: Array, X: Array, D: Array) -> Array:
        """Return those of some rows of X (n, m), whose codes are given; common supports at once."""
        codes.eliminate_zeros()
        key = tuple(p.tobytes() for p in (rows, codes.indptr, codes.indices, codes.data))
        if key not in self._known:
            together: dict[bytes, list[int]] = {}
            for place in range(len(rows)):
                used = codes.indices[codes.indptr[place] : codes.indptr[place + 1]].tobytes()
                together.setdefault(used, []).append(place)
            left, out = X[rows] - codes @ D, np.zeros(len(rows))
            for used, places in together.items():
                span = D[np.frombuffer(used, codes.indices.dtype)]
                out[places] = 0.5 * squares_in_span(left[places], span)
            self._known[key] = out
        return np.asarray(self._known[key])

    def of_problem(self, codes: Array, first: int, problem: Problem) -> float:
        """Return that of the signals of a problem together, of which ``first`` is the first row."""
        key = (first, codes.tobytes())
        if key not in self._known:
            self._known[key] = _of_problem(codes, problem)
        return float(self._known[key])


def off_roughly(codes: Codes, X: Rows, D: Array, G: Array) -> tuple[Array, Array]:
    """Return ``‖x − αD‖²`` and roughly those of codes, by a Gram matrix that may be in float32.

    They are infinite where an atom nearly depends on the others in use.
    """
    x = X.toarray() if scipy.sparse.issparse(X) else X
    squares, off = np.empty((2, len(x)))
    m, width, most = x.shape[1], len(G), int(np.diff(codes.indptr).max(initial=0))
    scratch = make_active_set(most), np.empty(m), np.empty(width)
    wide = x.astype(np.float64, order="C", copy=False)
    off_least_squares(wide, D, SparseRows(*codes), G.reshape(-1), *scratch, squares, off)
    return squares, off


def _of_problem(codes: Array, problem: Problem) -> float:
    left = problem.X - codes @ problem.D
    if problem.missing is None:
        atoms = problem.D[np.abs(codes).sum(axis=0) > 0]
        return 0.5 * float(squares_in_span(left, atoms).sum())
    off = 0.0
    for row, known in enumerate(~problem.missing):  # each has taken what does not depend on others
        atoms = problem.D[codes[row] != 0.0][:, known]
        off += 0.5 * float(squares_in_span(left[None, row, known], atoms)[0])
    return off


def squares_in_span(rows: Array, atoms: Array) -> Array:
    """Return the squared norms of the parts of rows that lie in the span of atoms, to a percent.

    It is ``cᵀ(D Dᵀ)⁻¹c`` for the correlations c, by a Cholesky factor where the condition of the Gram
    matrix is far from what rounding would spoil, and by orthogonal projection elsewhere.
    """
    c, G, lapack = atoms @ rows.T, atoms @ atoms.T, scipy.linalg.lapack
    norms = np.sqrt(np.diagonal(G))
    norms = np.where(norms > 0, norms, 1.0)
    G /= norms[:, None]
    G /= norms
    size = float(np.abs(G).sum(axis=0).max(initial=0.0))
    factor, failed = lapack.dpotrf(G.T, lower=1, clean=0, overwrite_a=1)
    if len(G) and not failed and lapack.dpocon(factor, size, uplo="L")[0] > _WELL_CONDITIONED:
        y = lapack.dtrtrs(factor, c / norms[:, None], lower=1)[0]
        return np.asarray(np.sum(y**2, axis=0))
    left = rows @ np.linalg.qr(atoms.T)[0]
    return np.asarray(np.sum(left**2, axis=1))
