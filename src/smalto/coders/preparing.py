"""A dictionary prepared for coding, and the call of its solver."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy

from smalto.cached import cached_property
from smalto.checks import Array, Rows
from smalto.coders.base import Coder, Sizes, Solver
from smalto.coders.checked_coder import solver_of
from smalto.coders.chunks import Chunk, OwnGram, padded_width
from smalto.coders.codes import Codes, stack
from smalto.coders.masked_gram import one_by_one
from smalto.coders.scaling import atom_exponents, shifted
from smalto.coders.signals import Signals
from smalto.coders.unpenalized import Elimination
from smalto.kernels import aligned
from smalto.threads import run_tasks

BLOCK = 128  # rows of the Gram matrix computed as one task


@dataclass(frozen=True)
class Prepared:
    """A dictionary prepared for coding: padded, with its Gram matrix and solver.

    Unusually large or small atoms are divided by powers of two (see `scaling.py`), and ``solve`` is
    for these.
    """

    coder: Coder  # as given
    problem: Coder  # that `solve` solves: the same but for its scale
    padded: Array  # D with zero atoms added, scaled (width, m)
    G: Array  # (width, width)
    solve: Solver
    n_atoms: int
    exponents: Array | None = None  # of the powers of two in the atoms of D (width,)
    slack: float = 0.0  # share of λ by which codes may violate optimality
    others: dict[Any, Prepared] = field(default_factory=dict, repr=False)  # scales, fewer atoms
    eliminations: dict[bytes, Elimination] = field(default_factory=dict, repr=False)

    @cached_property
    def features(self) -> Array:
        """Dᵀ (m, width), C-contiguous."""
        return np.ascontiguousarray(self.padded.T)

    @cached_property
    def sizes(self) -> Sizes:
        """Norms of the atoms."""
        return Sizes.of(self.G)

    @cached_property
    def safe_norm(self) -> float:
        """Squared norm of signals up to which they are not delicate, without weights."""
        return self.problem.safe_norm(self.sizes, self.G.dtype)

    @cached_property
    def linear(self) -> Array | None:
        """W if the codes of signals x over the used atoms are ``x Wᵀ``; see `Coder.linear`."""
        return self.problem.linear(self.used_atoms)

    @cached_property
    def used(self) -> Array:
        """The numbers of the atoms that are not zero."""
        return np.flatnonzero(self.sizes.norms > 0).astype(np.int32)

    @cached_property
    def used_atoms(self) -> Array:
        """The atoms that are not zero."""
        return self.padded[self.used]

    @cached_property
    def wide(self) -> Array:
        """The padded dictionary in float64."""
        return self.padded.astype(np.float64, copy=False)

    @cached_property
    def solve_own(self) -> Solver:
        """The solver for signals that have a Gram matrix each."""
        if self.coder.own_gram:
            return self.solve
        return one_by_one(self.problem, self.G.dtype, self.n_atoms)

    @cached_property
    def double(self) -> Prepared:
        """The same in float64."""
        G = gram(self.wide, 1)
        solve = solver_of(self.problem, G, self.n_atoms)
        own: dict[str, Any] = {"others": {}, "eliminations": {}}
        return replace(self, padded=self.wide, G=G, solve=solve, slack=0.0, **own)

    def at(self, signals: int, weights: int = 0) -> Prepared:
        """Return the same for signals and penalty weights divided by powers of two."""
        if (signals, weights) not in self.others:
            problem = self.problem.rescaled(2.0**-signals, 1.0, 2.0**-weights)
            assert problem is not None
            solve = solver_of(problem, self.G, self.n_atoms, self.slack)
            other = replace(self, problem=problem, solve=solve, others={}, eliminations={})
            self.others[signals, weights] = other
        return self.others[signals, weights]


def prepare(D: Array, coder: Coder, n_threads: int, slack: float = 0.0) -> Prepared:
    """Pad the dictionary and compute its Gram matrix and solver, which all rows share.

    With a slack, codes may violate optimality by that share of λ.
    """
    k, m = D.shape
    width = padded_width(k)
    padded = D
    if width > k:
        padded = np.zeros((width, m), D.dtype)
        padded[:k] = D
    problem, exponents = coder, None
    with np.errstate(over="ignore"):
        exponents = atom_exponents(padded, coder.any_atom_scale)
    if exponents is not None:
        atoms = 1.0 if coder.any_atom_scale else 2.0 ** -int(exponents[0])
        rescaled = coder.rescaled(1.0, atoms)
        if rescaled is None:
            exponents = None
        else:
            problem, padded = rescaled, shifted(padded, -exponents)
    G = gram(padded, n_threads)
    solve = solver_of(problem, G, k, slack)
    return Prepared(coder, problem, padded, G, solve, k, exponents, slack)


def gram(D: Array, n_threads: int) -> Array:
    """Return ``D Dᵀ``: the lower triangle by blocks of rows, the rest by symmetry."""
    k = len(D)
    G = aligned.empty((k, k), D.dtype)

    def task(number: int) -> None:
        a, b = number * BLOCK, min((number + 1) * BLOCK, k)
        np.matmul(D[a:b], D[:b].T, out=G[a:b, :b])
        G[:a, a:b] = G[a:b, :a].T

    run_tasks(task, -(-k // BLOCK), n_threads)
    return G


def squared_norms(x: Rows) -> Array:
    """Return ``‖x‖²`` of each row."""
    if scipy.sparse.issparse(x):
        return np.asarray(x.multiply(x).sum(axis=1), np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", x, x))


def products(x: Rows, atoms: Array, out: Array | None = None) -> Array:
    """Return ``x Dᵀ``, C-contiguous; in ``out`` if it is given."""
    if out is None:
        out = aligned.empty((x.shape[0], len(atoms)), atoms.dtype)
    if scipy.sparse.issparse(x):
        out[...] = x @ atoms.T
        return out
    return np.matmul(x, atoms.T, out=out)


def solve_part(chunk: Chunk, part: Signals, prepared: Prepared) -> Codes:
    """Code a chunk; signals with missing entries separately, since the others are cheaper.

    A group in which any entry is missing goes with them, as a whole.
    """
    weights = None
    if part.penalty_weights is not None:
        weights = np.ones(chunk.Q.shape)
        weights[:, : part.penalty_weights.shape[1]] = part.penalty_weights
        chunk = chunk._replace(own=OwnGram(prepared.features, None, weights))
    solve = prepared.solve if chunk.own is None else prepared.solve_own
    if part.missing is None:
        return solve(chunk)
    holes, signals = np.asarray(part.missing.any(axis=1)), None
    if part.groups is not None and len(part):
        holes = np.repeat(np.logical_or.reduceat(holes, part.groups[:-1]), np.diff(part.groups))
        signals = part.X
    parts, order = [], []
    for has_holes in (False, True):
        rows = np.flatnonzero(holes == has_holes)
        if not rows.size:
            continue
        some = chunk.take(rows)
        if has_holes:
            own = OwnGram(
                prepared.features,
                part.missing[rows],
                None if weights is None else weights[rows],
                None if signals is None else signals[rows],
            )
            parts.append(prepared.solve_own(some._replace(own=own)))
        else:
            parts.append(solve(some))
        chunk.rounds[rows] = some.rounds
        order.append(rows)
    return stack(parts).take(np.argsort(np.concatenate(order)))
