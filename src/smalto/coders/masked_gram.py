"""Gram matrices for kernels: shared, or one per signal if entries are missing or weighted."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Coder, Solver
from smalto.coders.checked_coder import solver_of
from smalto.coders.chunks import Chunk, OwnGram, padded_width
from smalto.coders.codes import Codes, stack
from smalto.kernels import aligned
from smalto.kernels.coding.arguments import Gram
from smalto.kernels.coding.masked_gram import LazyGram


def lazy_gram(own: OwnGram | None, exact: Array, fast: Array, ridge: float = 0.0) -> Gram:
    """Return the Gram matrix for kernels: one that all signals share, or one per signal.

    ``exact`` is the shared matrix, flat, with the ridge on its diagonal; ``fast`` is its
    `float32_copy`.
    """
    if own is None:
        return Gram(exact, fast, None)
    m, width = own.features.shape
    n = len(own.missing if own.missing is not None else _weights(own))
    missing = np.zeros((n, m), np.bool_) if own.missing is None else own.missing
    inverse = np.empty((0, width), exact.dtype)
    if own.weights is not None:
        inverse = np.ascontiguousarray(1.0 / own.weights, exact.dtype)
    lazy = LazyGram(
        shared=exact,
        features=own.features.reshape(-1),
        missing=missing,
        inverse=inverse,
        listed=np.empty((2, m), np.int64),
        counts=np.zeros(4, np.int64),
        made=np.zeros(width, np.bool_),
        ridge=float(ridge),
        atoms=own.atoms.reshape(-1),
        gathered=np.empty(width, np.int8),
        entries=aligned.empty(width * padded_width(m), exact.dtype),
        scratch=aligned.empty(width + padded_width(m), exact.dtype),
    )
    G = aligned.empty(exact.size, exact.dtype)
    return Gram(G, G if fast is exact else aligned.empty(fast.size, fast.dtype), lazy)


def float32_copy(exact: Array) -> Array:
    """Return an aligned float32 copy of a flat Gram matrix, or the matrix itself if float32.

    In float64, kernels search on the copy and then make the solution exact.
    """
    if exact.dtype == np.float32:
        return exact
    with np.errstate(over="ignore"):  # of a huge ridge: a diagonal of infinity, codes of zero
        return aligned.copy(exact, np.float32)


def with_ridge(G: Array, ridge: float) -> Array:
    """Return a Gram matrix with ``ridge`` added to its diagonal, infinity if it is beyond the dtype."""
    if not ridge:
        return G
    G = G.copy()
    with np.errstate(over="ignore"):
        G[np.diag_indices(len(G))] += G.dtype.type(ridge)
    return G


def with_fast_rows(gram: Gram, fast: Array) -> Gram:
    """Return ``gram`` for kernels that fill the float32 copy separately; ``fast`` is shared."""
    lazy = gram.lazy
    if lazy is None:
        return gram
    if gram.fast is gram.exact:
        return gram._replace(fast_lazy=lazy)
    with np.errstate(over="ignore"):  # of tiny weights, whose codes are solved again
        inverse = lazy.inverse.astype(np.float32)
    fast_lazy = lazy._replace(
        shared=fast,
        features=lazy.features.astype(np.float32),
        inverse=inverse,
        made=lazy.made.copy(),
        atoms=lazy.atoms.astype(np.float32),
        gathered=lazy.gathered.copy(),
        entries=aligned.empty(lazy.entries.size, np.float32),
        scratch=aligned.empty(lazy.scratch.size, np.float32),
    )
    return gram._replace(fast_lazy=fast_lazy)


def with_weights(chunk: Chunk, weights: Array) -> Chunk:
    """Return the chunk with its weights multiplied by ``weights`` (n or 1, width)."""
    Q, own = chunk.Q, chunk.own
    n, width = Q.shape
    if own is None:  # nothing is missing, so features are never read
        own = OwnGram(np.empty((width, 0), Q.dtype), np.empty((0, width), Q.dtype), None, None)
    if own.weights is not None:
        weights = weights * own.weights
    return chunk._replace(own=own._replace(weights=np.broadcast_to(weights, (n, width))))


def in_own_units(own: OwnGram | None, Q: Array) -> Array:
    """Return the correlations with the atoms d_j / w_j, given those with the atoms d_j."""
    if own is None or own.weights is None:
        return Q
    with np.errstate(over="ignore"):  # of tiny weights, whose codes are solved again
        return np.ascontiguousarray(Q / own.weights, Q.dtype)


def from_own_units(own: OwnGram | None, codes: Codes) -> Codes:
    """Return the coefficients of the atoms d_j, given those of the atoms d_j / w_j."""
    if own is None or own.weights is None:
        return codes
    with np.errstate(over="ignore"):  # of tiny weights, whose codes are solved again
        values = (codes.values / _of_entries(own.weights, codes)).astype(codes.values.dtype)
    return codes._replace(values=values)


def _of_entries(weights: Array, codes: Codes) -> Array:
    """Return the weight of each nonzero of the codes."""
    rows = np.repeat(np.arange(len(codes.indptr) - 1), np.diff(codes.indptr))
    return weights[rows, codes.indices]


def start_in_own_units(own: OwnGram | None, start: Codes | None) -> Codes | None:
    """Return the coefficients of the atoms d_j / w_j, given those of the atoms d_j."""
    if start is None or own is None or own.weights is None:
        return start
    weights = _of_entries(own.weights, start)
    used = np.isfinite(weights)  # an infinite weight excludes an atom
    values = np.where(used, start.values * np.where(used, weights, 1.0), 0.0)
    return start._replace(values=values.astype(start.values.dtype))


def whole_gram(own: OwnGram, row: int, ridge: float = 0.0) -> Array:
    """Return the full Gram matrix of one signal, in float64."""
    atoms = own.features.T.astype(np.float64)
    if own.missing is not None:
        atoms = atoms[:, ~own.missing[row]]
    G = atoms @ atoms.T
    G[np.diag_indices(len(G))] += ridge
    if own.weights is not None:
        inverse = 1.0 / own.weights[row]
        G *= inverse * inverse[:, None]
    return np.asarray(G)


def one_by_one(coder: Coder, dtype: np.dtype[Any], n_atoms: int) -> Solver:
    """Return a solver for signals with a Gram matrix each, for a coder without `own_gram`."""

    def solve(chunk: Chunk) -> Codes:
        assert chunk.own is not None
        parts = []
        for row in range(len(chunk.Q)):
            G = np.ascontiguousarray(whole_gram(chunk.own, row), dtype)
            solver = solver_of(coder, G, n_atoms)
            here = slice(row, row + 1)
            numbers = None if chunk.numbers is None else chunk.numbers[here]
            parts.append(
                solver(
                    Chunk(
                        chunk.Q[here],
                        chunk.norms[here],
                        chunk.rounds[here],
                        numbers,
                        stuck=chunk.stuck,
                    )
                )
            )
        return stack(parts)

    return solve


def _weights(own: OwnGram) -> Array:
    assert own.weights is not None, "OwnGram needs missing entries or weights"
    return own.weights
