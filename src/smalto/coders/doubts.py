"""Which codes rounding may have spoilt: a cheap test after each chunk.

They are those with large coefficients that cancel each other, those that a kernel itself reports, and
those of signals for which the penalty is too small for the dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.base import PROMISED_GAP, Coder, Sizes, is_certified
from smalto.coders.chunks import Chunk
from smalto.coders.codes import Codes
from smalto.coders.off_least_squares import off_roughly
from smalto.coders.preparing import Prepared
from smalto.coders.signals import Signals
from smalto.kernels.coding.doubt import doubtful_rows

_LARGEST = {4: 50.0, 8: 1e4}  # Σ|α_j|‖d_j‖/‖x‖ up to which rounding does no harm ...
_TO_MEASURE = {4: 10.0, 8: 1e3}  # ... to the error as the Gram matrix gives it, to compare with eps
_SURE = 0.1  # share of what is promised up to which a rough measure shows that a promise is kept
_NO_ROWS = np.empty(0, np.int64)


def delicate_rows(
    chunk: Chunk, coder: Coder, atoms: Sizes, safe: float, weights: Array | None
) -> Any:
    """Return `Coder.delicate` of a chunk; ``safe`` is `Coder.safe_norm` without weights."""
    if weights is None:
        if safe > 0.0 and (chunk.norms <= safe).all():
            return False
        return coder.delicate(chunk, atoms)
    k = weights.shape[1]
    with np.errstate(over="ignore"):  # kernels divide atoms by weights
        Q = (chunk.Q[:, :k] / weights).astype(chunk.Q.dtype)
    atoms = Sizes.of_norms(atoms.norms[:k] / weights, Q.dtype)
    return coder.delicate(chunk._replace(Q=Q), atoms)


def doubtful(
    codes: Codes, chunk: Chunk, part: Signals, prepared: Prepared, delicate: Any, tame: bool
) -> Array:
    """Return the rows whose codes need to be checked, with the delicate ones; whole groups.

    ``tame`` says that all rows are known to be far from having large coefficients.
    """
    coder = prepared.problem
    found: Any = False if tame else cancelling(codes, chunk.norms, coder, prepared.sizes)
    if found is not False and _can_be_measured(coder, part):
        rows = np.flatnonzero(found)
        found[rows] = ~_are_sure(codes.take(rows), chunk.norms[rows], part.take(rows), prepared)
    stuck = chunk.stuck is not None and chunk.stuck[0] > 0
    marked = chunk.rounds < 0
    if found is False and not stuck and delicate is False and not marked.any():
        return _NO_ROWS
    rows = np.flatnonzero(np.broadcast_to(found | stuck | marked | delicate, len(chunk.Q)))
    return whole_groups(rows, chunk.groups)


def _can_be_measured(coder: Coder, part: Signals) -> bool:
    """Return whether codes are least squares on the atoms in use, with all entries known."""
    pursues = coder.any_atom_scale and coder.can_be_mended and not is_certified(type(coder))
    return pursues and "groups" not in coder.takes and part.missing is None


def _are_sure(codes: Codes, norms: Array, part: Signals, prepared: Prepared) -> Array:
    """Return which codes are so near to least squares on their atoms that a rough measure shows it."""
    coder = prepared.problem
    squares, off = off_roughly(codes, part.X, prepared.wide, prepared.G)
    csr = codes.as_csr(prepared.n_atoms)
    sure = off <= 0.5 * norms * _SURE * PROMISED_GAP[codes.values.dtype.itemsize]
    sure &= 0.5 * squares + coder.penalty(csr) <= 0.5 * norms  # and not worse than the zero code
    if coder.positive:
        sure &= csr.min(axis=1).toarray().ravel() >= 0
    return sure


def cancelling(codes: Codes, norms: Array, coder: Coder, atoms: Sizes) -> Any:
    """Return which rows have large coefficients that cancel each other; False if none has."""
    found = np.empty(len(norms), np.bool_)
    proven = coder.error_bound() is not None and is_certified(type(coder))
    limit = (_TO_MEASURE if proven else _LARGEST)[codes.values.dtype.itemsize]
    return found if doubtful_rows(*codes, atoms.norms, norms, limit, found) else False


def unmeasured(codes: Codes, chunk: Chunk, atoms: Sizes) -> Array:
    """Return the rows whose error the Gram matrix does not tell well enough to compare it with eps."""
    found = np.empty(len(chunk.Q), np.bool_)
    limit = _TO_MEASURE[chunk.Q.dtype.itemsize]
    count = doubtful_rows(*codes, atoms.norms, chunk.norms, limit, found)
    return np.flatnonzero(found) if count else _NO_ROWS


def whole_groups(rows: Array, groups: Array | None) -> Array:
    """Return the rows of all groups of which one row is given; the rows as they are if None."""
    if groups is None or not rows.size:
        return rows
    numbers = np.unique(np.searchsorted(groups, rows, side="right") - 1)
    return np.concatenate([np.arange(groups[g], groups[g + 1]) for g in numbers])
