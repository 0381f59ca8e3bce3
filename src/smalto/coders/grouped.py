"""Groups of atoms of which any two are nested or disjoint, and the problems over them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from smalto.checks import Array, check_number
from smalto.coders.base import Solver
from smalto.coders.chunks import Chunk, Residuals
from smalto.coders.codes import Codes
from smalto.coders.kernel_output import GrowingCodes
from smalto.kernels.coding.arguments import SparseRows, Tally
from smalto.kernels.coding.fit import elastic_net_of_rows
from smalto.kernels.coding.grouped_lasso import grouped_lasso_rows
from smalto.kernels.coding.grouped_norms import (
    AtomGroups,
    Penalty,
    PerGroup,
    dual_norms,
    norms_of_rows,
)
from smalto.kernels.coding.grouped_working_set import Forest, GroupedSignals, make_grouped_search

Groups: TypeAlias = tuple[tuple[int, ...], ...]
Weights: TypeAlias = tuple[float, ...] | None


@dataclass(frozen=True, eq=False)
class Nested:
    """The problem ``min_α ½‖x − αD‖² + lam Σ_g w_g‖α_g‖₂ + l1‖α‖₁ + ridge/2 ‖α‖²``.

    Of groups it is enough to know which one is the innermost of each atom (``own``), and which
    one is around another (``parent``, −1 where none is).
    """

    own: Array  # (k,)
    parent: Array  # (groups,)
    weights: Weights
    lam: float
    l1: float
    ridge: float
    positive: bool

    @cached_property
    def forest(self) -> Forest:
        """The groups as the kernels want them: inner ones first, each tree in one piece."""
        k, p = len(self.own), len(self.parent)
        order = _inner_first(self.parent)
        number = np.empty(p, np.int64)
        number[order] = np.arange(p)
        own, outer = number[self.own], self.parent[order]
        rank = np.empty(k, np.int64)
        rank[np.argsort(own, kind="stable")] = np.arange(k)
        unit = np.unique(own, return_inverse=True)[1].reshape(-1)
        if self.l1 or self.positive:  # atoms can be zero one by one
            unit = np.arange(k)
        weights = np.ones(p) if self.weights is None else np.array(self.weights)[order]
        return Forest(
            AtomGroups(own, np.where(outer >= 0, number[outer], -1), weights),
            rank,
            unit,
            unit_ptr=np.concatenate([[0], np.cumsum(np.bincount(unit))]),
            unit_atoms=np.argsort(unit, kind="stable"),
        )

    def check(self, n_atoms: int) -> None:
        """Refuse a dictionary of another number of atoms."""
        if n_atoms != len(self.own):
            message = f"the groups are of {len(self.own)} atoms, the dictionary has {n_atoms}"
            raise ValueError(message)

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G."""
        if self.ridge:
            G = G.copy()
            G[np.diag_indices(len(G))] += G.dtype.type(self.ridge)
        flat, forest, penalty = G.reshape(-1), self.forest, self._penalty()

        def solve(chunk: Chunk) -> Codes:
            return _solve_rows(flat, chunk, forest, penalty)

        return solve

    def penalty(self, codes: Any) -> Array:
        """What is added to the error, for each row of codes."""
        self.check(codes.shape[1])
        codes, groups = sparse.csr_array(codes), self.forest.groups
        norms, rest = np.empty((2, codes.shape[0]))
        rows = SparseRows(codes.indptr, codes.indices, codes.data)
        norms_of_rows(rows, groups, np.empty(len(groups.parent)), norms)
        elastic_net_of_rows(codes.indptr, codes.data, self.l1, self.ridge, rest)
        return np.asarray(self.lam * norms + rest)

    def gap(self, left: Residuals) -> Array:
        """The duality gap of each row: scaled residuals are feasible for the dual problem.

        With a ridge that is the problem over the atoms (D, √ridge I) and the signals (x, 0).
        """
        codes, ridge, groups = left.codes, self.ridge, self.forest.groups
        penalty = self.penalty(codes)
        sizes = np.asarray(codes.multiply(codes).sum(axis=1)).ravel()
        C = left.C - ridge * codes.toarray() if ridge else left.C
        k, p = len(groups.innermost), len(groups.parent)
        levels, skip = np.empty(len(C)), np.zeros(p, np.bool_)
        C, scratch = np.ascontiguousarray(C), PerGroup(*np.empty((2, p)))
        dual_norms(C, np.empty(k), groups, skip, self._penalty(), scratch, levels)
        scale = 1.0 / levels
        # The dual value of θ = scale · r is ⟨x, θ⟩ − ½‖θ‖², and ⟨x, r⟩ = ‖r‖² + ⟨αD, r⟩: taken
        # from ½‖r‖² + ψ(α) it leaves this, where nothing large cancels.
        missed = penalty - 0.5 * ridge * sizes - scale * (left.inner() - ridge * sizes)
        gaps = 0.5 * (left.squares + ridge * sizes) * (1.0 - scale) ** 2 + missed
        return np.asarray(np.maximum(gaps, 0.0))

    def _penalty(self) -> Penalty:
        return Penalty(self.lam, self.l1, self.positive)


def check_settings(lam: Any, l1: Any, ridge: Any) -> None:
    """Refuse penalties that are negative or without bound."""
    for name, value in (("lam", lam), ("l1", l1), ("ridge", ridge)):
        check_number(name, value, low=0)
        if not np.isfinite(value):
            message = f"{name} must be finite, got {value}"
            raise ValueError(message)


def as_group_weights(weights: Any, count: int, of: str) -> Weights:
    """Weights above zero, one per group, as a tuple (which compares and hashes)."""
    if weights is None:
        return None
    values = np.asarray(weights)
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        message = f"group_weights must be numbers, one per {of}, got {weights!r}"
        raise TypeError(message)
    if len(values) != count:
        message = f"group_weights has {len(values)} numbers, there are {count} {of}s"
        raise ValueError(message)
    bad = np.flatnonzero(~(values > 0) | ~np.isfinite(values))
    if bad.size:
        place = int(bad[0])
        message = f"group_weights must be > 0 and finite, got {values[place]} for {of} {place}"
        raise ValueError(message)
    return tuple(float(value) for value in values)


def as_atom_lists(groups: Any) -> Groups:
    """Lists of atoms as tuples, each increasing; together they must name 0, ..., k − 1."""
    found = []
    for number, group in enumerate(groups):
        atoms = np.asarray(group)
        if atoms.ndim != 1 or (atoms.size and atoms.dtype.kind not in "iu"):
            message = (
                f"atom_groups must be lists of atoms (integers), got {group!r} as group {number}"
            )
            raise TypeError(message)
        if not atoms.size:
            message = f"group {number} has no atoms"
            raise ValueError(message)
        if atoms.min() < 0:
            message = f"atoms are numbered from 0, got {atoms.min()} in group {number}"
            raise ValueError(message)
        if len(np.unique(atoms)) < len(atoms):
            message = f"group {number} names an atom twice: {atoms.tolist()}"
            raise ValueError(message)
        found.append(tuple(np.sort(atoms).tolist()))
    named = np.unique(np.concatenate([np.array(group) for group in found]))
    missing = np.flatnonzero(named != np.arange(len(named)))
    if missing.size:
        message = f"atom {missing[0]} is in no group: give it one, of its own if need be"
        raise ValueError(message)
    return tuple(found)


def nest(groups: Groups) -> tuple[Array, Array]:
    """The innermost group of each atom, and the group around each group (−1: none).

    Refuses groups that overlap without one being within the other.
    """
    own = np.full(1 + max(group[-1] for group in groups), -1)
    parent = np.full(len(groups), -1)
    # From large to small: the innermost group so far must be the same for all of the next one.
    for g in sorted(range(len(groups)), key=lambda g: -len(groups[g])):
        atoms = np.array(groups[g])
        around = own[atoms]
        if (around != around[0]).any():
            others = [
                h for h in set(around.tolist()) if h >= 0 and not set(groups[g]) <= set(groups[h])
            ]
            a, b = sorted((g, others[0]))
            message = f"groups {a} and {b} overlap and neither is within the other"
            raise ValueError(message)
        parent[g] = around[0]
        own[atoms] = g
    return own, parent


def _inner_first(parent: Array) -> Array:
    """The nodes of a forest, children before parents and each tree in one piece."""
    children: list[list[int]] = [[] for _ in parent]
    roots: list[int] = []
    for node, around in enumerate(parent.tolist()):
        (roots if around < 0 else children[around]).append(node)
    order, stack = [], roots
    while stack:  # parents first, to be turned round
        node = stack.pop()
        order.append(node)
        stack.extend(children[node])
    return np.array(order[::-1], np.int64)


def _solve_rows(G: Array, chunk: Chunk, forest: Forest, penalty: Penalty) -> Codes:
    """Run the kernel over all rows."""
    n, width = chunk.Q.shape
    k, dtype = len(forest.unit), chunk.Q.dtype
    first = SparseRows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, dtype))
    if chunk.start is not None:
        first = SparseRows(*chunk.start[:2], chunk.start.values.astype(dtype, copy=False))
    signals = GroupedSignals(chunk.Q, chunk.norms, first)
    tally = Tally(chunk.rounds, np.zeros(1, np.int64))
    out = GrowingCodes(n, dtype, min(128, k), k, min(64, k))

    def run(row: int, room: int) -> int:
        search = make_grouped_search(forest, width, room, dtype)
        return int(grouped_lasso_rows(G, signals, row, forest, penalty, search, out.rows, tally))

    codes = out.fill(run)
    if tally.stuck[0]:
        _warn_short(int(tally.stuck[0]), n)
    return codes


def _warn_short(count: int, rows: int) -> None:
    """Say that some signals have not come to their optimum."""
    message = (
        f"{count} of {rows} signals end near, not at, their optimum: lam is too small for atoms "
        f"as alike as these. A small ridge helps, or float64, or a larger lam"
    )
    warnings.warn(message, RuntimeWarning, stacklevel=2)
