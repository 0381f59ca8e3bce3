"""A dictionary prepared for coding, and the call of its solver."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy

from smalto.cached import cached_property
from smalto.checks import Array
from smalto.coders.base import Coder, Sizes, Solver, is_certified
from smalto.coders.certain_bounds import usable_span
from smalto.coders.checked_coder import solver_of
from smalto.coders.chunks import Chunk, Coarse, OwnGram, padded_width
from smalto.coders.codes import Codes, stack
from smalto.coders.masked_gram import one_by_one
from smalto.coders.patience import deadline
from smalto.coders.products import Packed, gram
from smalto.coders.scaling import atom_exponents, shifted, squared_norms
from smalto.coders.signals import Signals
from smalto.coders.unpenalized import Elimination
from smalto.kernels import aligned


@dataclass(frozen=True)
class Prepared:
    """A dictionary prepared for coding: padded, with its Gram matrix and solver.

    Unusually large or small atoms are divided by powers of two (see `scaling.py`), and ``solve`` is
    for these.
    """

    coder: Coder  # as given
    problem: Coder  # that `solve` solves: the same but for its scale
    padded: Array  # D with zero atoms added, scaled (width, m)
    given_gram: Array | None  # (width, width)
    n_atoms: int
    exponents: Array | None = None  # of the powers of two in the atoms of D (width,)
    slack: float = 0.0  # share of λ by which codes may violate optimality
    n_threads: int = 1  # that compute the Gram matrix
    deadline: float = field(default_factory=deadline)  # of slow work
    others: dict[Any, Prepared] = field(default_factory=dict, repr=False)  # scales, fewer atoms
    eliminations: dict[bytes, Elimination] = field(default_factory=dict, repr=False)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of codes."""
        return self.padded.dtype

    @cached_property
    def G(self) -> Array:
        """The Gram matrix (width, width)."""
        return gram(self.packed, self.n_threads) if self.given_gram is None else self.given_gram

    @cached_property
    def solve(self) -> Solver:
        """The solver."""
        return solver_of(self.problem, self.G, self.n_atoms, self.slack)

    @cached_property
    def packed(self) -> Packed:
        """The padded dictionary for products."""
        return Packed(self.padded)

    @cached_property
    def packed_single(self) -> Packed:
        """The same in float32."""
        return Packed(self.single)

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
        return self.problem.safe_norm(self.sizes, self.dtype)

    @cached_property
    def too_coarse(self) -> bool:
        """Whether the dtype is too coarse for any signal: without a penalty, rounding decides."""
        convex = is_certified(type(self.problem))
        return self.dtype == np.float32 and convex and self.problem.any_atom_scale

    @cached_property
    def fine_enough(self) -> bool:
        """Whether it is fine enough all the same for codes of whole signals, but not for their costs."""
        return self.too_coarse and self.problem.suits_float32(self.G)

    @cached_property
    def linear(self) -> Packed | None:
        """W if the codes of signals x over the used atoms are ``x Wᵀ``; see `Coder.linear`."""
        if type(self.problem).linear is Coder.linear:
            return None
        W = self.problem.linear(self.used_atoms)
        return None if W is None else Packed(W)

    @cached_property
    def used(self) -> Array:
        """The numbers of the atoms that are not zero."""
        return np.flatnonzero(squared_norms(self.padded) > 0).astype(np.int32)

    @cached_property
    def used_atoms(self) -> Array:
        """The atoms that are not zero."""
        return self.padded if len(self.used) == len(self.padded) else self.padded[self.used]

    @cached_property
    def wide(self) -> Array:
        """The padded dictionary in float64."""
        return self.padded.astype(np.float64, copy=False)

    @cached_property
    def single(self) -> Array:
        """The padded dictionary in float32."""
        return self.padded.astype(np.float32, copy=False)

    @cached_property
    def span(self) -> Array:
        """`usable_span` of the dictionary, for codes of this dtype."""
        return usable_span(self.wide[: self.n_atoms], self.dtype)

    @cached_property
    def solve_own(self) -> Solver:
        """The solver for signals that have a Gram matrix each."""
        if self.coder.own_gram:
            return self.solve
        return one_by_one(self.problem, self.dtype, self.n_atoms)

    @cached_property
    def double(self) -> Prepared:
        """The same in float64."""
        own: dict[str, Any] = {"others": {}, "eliminations": {}}
        return replace(self, padded=self.wide, given_gram=None, slack=0.0, n_threads=1, **own)

    @property
    def unweighted(self) -> Prepared:
        """The same without the penalty weights of the coder, for signals that have them."""
        # Not kept where it is this one itself: a cycle would keep the Gram matrix in memory.
        return self if self.problem.own_weights() is None else self._unweighted

    @cached_property
    def _unweighted(self) -> Prepared:
        own: dict[str, Any] = {"others": {}, "eliminations": {}}
        return replace(self, problem=self.problem.unweighted(), given_gram=self.G, **own)

    def at(self, signals: int, weights: int = 0) -> Prepared:
        """Return the same for signals and penalty weights divided by powers of two."""
        if (signals, weights) not in self.others:
            problem = self.problem.rescaled(2.0**-signals, 1.0, 2.0**-weights)
            assert problem is not None
            own: dict[str, Any] = {"others": {}, "eliminations": {}}
            other = replace(self, problem=problem, given_gram=self.G, **own)
            self.others[signals, weights] = other
        return self.others[signals, weights]


def prepare(
    D: Array, coder: Coder, n_threads: int, slack: float = 0.0, G: Array | None = None
) -> Prepared:
    """Pad the dictionary and compute its Gram matrix and solver, which all rows share.

    If codes are one product of the signals and a matrix, these are computed where they are needed.

    With a slack, codes may violate optimality by that share of λ. The Gram matrix of the padded
    dictionary need not be computed if it is given.
    """
    k, padded = len(D), padded_atoms(D)
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
    if exponents is not None:
        G = None
    prepared = Prepared(coder, problem, padded, G, k, exponents, slack, n_threads)
    if prepared.linear is None:
        _ = prepared.unweighted.solve  # made here, once, and not by each of the threads
    return prepared


def padded_atoms(D: Array) -> Array:
    """Return the dictionary with zero atoms added, so that it fills whole vectors."""
    width = padded_width(len(D))
    if width == len(D):
        return D
    padded = np.zeros((width, D.shape[1]), D.dtype)
    padded[: len(D)] = D
    return padded


def may_be_coarse(part: Signals, prepared: Prepared) -> bool:
    """Return whether float32 correlations of whole float64 signals are enough to choose atoms by."""
    dense = part.penalty_weights is None and not scipy.sparse.issparse(part.X)
    return dense and prepared.dtype == np.float64 and prepared.coder.takes_coarse


def coarse_products(x: Array, prepared: Prepared) -> Coarse:
    """Return dense float64 signals with their float32 correlations."""
    shape = len(x), len(prepared.single)
    few = x.astype(np.float32)
    Q = prepared.packed_single.products(few, aligned.reused(shape, np.float32, "coarse"))
    atoms = np.ascontiguousarray(prepared.padded)
    return Coarse(Q, np.ascontiguousarray(x), atoms)


def solve_part(chunk: Chunk, part: Signals, prepared: Prepared) -> Codes:
    """Code a chunk; signals with missing entries separately, since the others are cheaper.

    A group in which any entry is missing goes with them, as a whole.
    """
    weights = None
    if part.penalty_weights is not None:
        weights = np.ones(chunk.Q.shape)
        weights[:, : part.penalty_weights.shape[1]] = part.penalty_weights
        chunk = chunk._replace(own=OwnGram(prepared.padded, prepared.features, None, weights))
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
                prepared.padded,
                prepared.features,
                part.missing[rows],
                None if weights is None else weights[rows],
                None if signals is None else signals[rows],
            )
            parts.append(prepared.solve_own(some._replace(own=own)))
        else:
            if may_be_coarse(part, prepared):
                some = some._replace(coarse=coarse_products(part.X[rows], prepared))
            parts.append(solve(some))
        chunk.rounds[rows] = some.rounds
        order.append(rows)
    return stack(parts).take(np.argsort(np.concatenate(order)))
