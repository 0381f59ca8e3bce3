"""Rounding of codes to float32 such that the errors of the coefficients cancel each other."""

from __future__ import annotations

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.codes import Codes


def rounded_together(codes: Codes, D: Array, missing: Array | None = None) -> Codes:
    """Return codes rounded to float32, one coefficient after the other, the largest first.

    Each takes up, before it is rounded itself, as much as it can of the errors of those before it
    (Babai's nearest plane). Large coefficients of similar atoms, which nearly cancel each other,
    then leave an error of the size that the smallest of them make, not the largest. ``missing`` is
    True for the entries of each signal that do not count.
    """
    values = codes.values.astype(np.float64)
    out = values.astype(np.float32)
    for row, begin in enumerate(codes.indptr[:-1]):
        here = slice(begin, codes.indptr[row + 1])
        atoms = D[codes.indices[here]]
        out[here] = _rounded(values[here], atoms if missing is None else atoms[:, ~missing[row]])
    return codes._replace(values=out)


def _rounded(code: Array, atoms: Array) -> Array:
    """Return the coefficients of one code; plainly rounded if there are more atoms than features."""
    plain = code.astype(np.float32)
    if len(code) > atoms.shape[1] or not np.isfinite(code).all():
        return plain
    order = np.argsort(np.abs(code), kind="stable")
    R = scipy.linalg.qr(atoms[order].T, mode="r", check_finite=False)[0]
    off, out = np.zeros(len(code)), np.empty(len(code), np.float32)
    for j in range(len(code) - 1, -1, -1):
        exact = code[order[j]]
        shift = R[j, j + 1 : len(code)] @ off[j + 1 :]
        if R[j, j] != 0.0 and abs(shift) <= abs(R[j, j] * exact):  # keep its sign
            exact += shift / R[j, j]
        out[j] = exact
        off[j] = code[order[j]] - np.float64(out[j])
    rounded = np.empty_like(out)
    rounded[order] = out
    return rounded
