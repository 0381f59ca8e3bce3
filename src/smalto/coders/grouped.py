"""The lasso over groups of atoms, any two of which are nested or disjoint."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from smalto.cached import cached_property
from smalto.checks import Array, Rows, check_finite_number
from smalto.coders.base import Coder, Sizes, Solver, too_small
from smalto.coders.certain_lasso import (
    BOUND_WORK,
    LEAST,
    Norms,
    certain_code,
    least_error,
    with_correlations,
)
from smalto.coders.chunks import Chunk, Problem, Residuals, residuals
from smalto.coders.codes import Codes
from smalto.coders.kernel_output import GrowingCodes
from smalto.coders.masked_gram import with_ridge
from smalto.coders.parameters import as_weights, check_count, scaled_number
from smalto.coders.work import Work
from smalto.kernels.coding.arguments import SparseRows
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

_MOST_WORK = 2e11  # multiplications that the slow method may take for a code: seconds

Groups: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Nested:
    """The problem ``min_α ½‖x − αD‖² + lam Σ_g w_g‖α_g‖₂ + l1‖α‖₁ + ridge/2 ‖α‖²``.

    The groups are given by the innermost group of each atom (``own``) and by the smallest group
    around each group (``parent``, −1 if there is none).
    """

    own: Array  # (k,)
    parent: Array  # (groups,)
    weights: npt.ArrayLike | None  # (groups,)
    lam: float
    l1: float
    ridge: float
    positive: bool

    @cached_property
    def forest(self) -> Forest:
        """The groups in the order of the kernels: inner groups first, each tree contiguous."""
        k, p = len(self.own), len(self.parent)
        order = _inner_first(self.parent)
        number = np.empty(p, np.int64)
        number[order] = np.arange(p)
        own, outer = number[self.own], self.parent[order]
        rank = np.empty(k, np.int64)
        rank[np.argsort(own, kind="stable")] = np.arange(k)
        unit = np.unique(own, return_inverse=True)[1].reshape(-1)
        if self.l1 or self.positive:  # single atoms can be zero
            unit = np.arange(k)
        weights = np.ones(p) if self.weights is None else np.asarray(self.weights)[order]
        return Forest(
            AtomGroups(own, np.where(outer >= 0, number[outer], -1), weights),
            rank,
            unit,
            unit_ptr=np.concatenate([[0], np.cumsum(np.bincount(unit))]),
            unit_atoms=np.argsort(unit, kind="stable"),
        )

    def check(self, n_atoms: int) -> None:
        """Raise ValueError unless the groups cover the atoms of the dictionary."""
        if n_atoms != len(self.own):
            message = f"the groups cover {len(self.own)} atoms, but the dictionary has {n_atoms}"
            raise ValueError(message)

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        G = with_ridge(G, self.ridge)
        flat, forest, penalty = G.reshape(-1), self.forest, self._penalty()

        def solve(chunk: Chunk) -> Codes:
            return _solve_rows(flat, chunk, forest, penalty)

        return solve

    def penalty(self, codes: Any) -> Array:
        """Return the penalty of each row of codes."""
        self.check(codes.shape[1])
        codes, groups = scipy.sparse.csr_array(codes), self.forest.groups
        norms, rest = np.empty((2, codes.shape[0]))
        rows = SparseRows(codes.indptr, codes.indices, codes.data)
        norms_of_rows(rows, groups, np.empty(len(groups.parent)), norms)
        elastic_net_of_rows(codes.indptr, codes.data, self.l1, self.ridge, rest)
        return np.asarray(self.lam * norms + rest)

    def certain(self, problem: Problem) -> Array:
        """Return the float64 code of one signal, found slowly however similar the atoms are."""
        D = problem.D

        def gap(code: Array) -> float:
            return float(self.gap(residuals(problem.X, D, scipy.sparse.csr_array(code[None])))[0])

        work = Work(_MOST_WORK)
        return certain_code(problem.X[0], D, self._norms(), self.ridge, gap, work)

    def lower_bound(self, problem: Problem, code: Array) -> float:
        """Return the value of dual points that are corrected for the rounding of a code.

        At the optimum their correlations with the atoms in use are the slopes of the penalty; see
        `corrected_residuals`.
        """
        x, D, norms = problem.X[0], problem.D, self._norms()
        half, best, used, work = 0.5 * float(x @ x), -np.inf, -1, Work(BOUND_WORK)
        if self.ridge:  # the same as longer atoms and signals
            D = np.hstack([D, np.sqrt(self.ridge) * np.eye(len(D))])
            x = np.append(x, np.zeros(len(D)))
        for least in (0.0, *LEAST[::-1]):
            some = np.flatnonzero((code != 0) & norms.large(code, least * half))
            if some.size == used:
                continue
            used = some.size
            if not work.allows(min(used, len(x)), max(used, len(x))):
                break
            target = norms.slopes(code)[None, some]
            left = with_correlations((x - code @ D)[None], D[some], target)
            theta = left[0] / self._levels(left @ D.T)[0]
            best = max(best, float(x @ theta - 0.5 * theta @ theta))
        return best

    def _norms(self) -> Norms:
        """Return the penalty as a sum of norms."""
        forest, k = self.forest.groups, len(self.own)
        owner, members = [], []
        for atom, group in enumerate(forest.innermost.tolist()):
            while group >= 0:
                owner.append(group)
                members.append(atom)
                group = int(forest.parent[group])
        lams = self.lam * forest.weight
        parts = [(lams, np.array(members, np.int64), np.array(owner, np.int64))]
        if self.l1:
            parts.append((np.full(k, self.l1), np.arange(k), np.arange(k)))
        shift = len(lams) * np.arange(len(parts))
        norms = Norms(
            np.concatenate([part[0] for part in parts]),
            np.concatenate([part[1] for part in parts]),
            np.concatenate([part[2] + by for part, by in zip(parts, shift, strict=True)]),
            self.positive,
        )
        return norms.above_zero()

    def gap(self, left: Residuals) -> Array:
        """Return the duality gap of each row; its scaled residual is the dual point.

        A ridge is equivalent to the atoms (D, √ridge I) and the signals (x, 0).
        """
        codes, ridge = left.codes, self.ridge
        penalty = self.penalty(codes)
        sizes = np.asarray(codes.multiply(codes).sum(axis=1)).ravel()
        C = left.C - ridge * codes.toarray() if ridge else left.C
        scale = 1.0 / self._levels(C)
        # The dual value of θ = scale · r is ⟨x, θ⟩ − ½‖θ‖², and ⟨x, r⟩ = ‖r‖² + ⟨αD, r⟩. Subtracted
        # from ½‖r‖² + ψ(α) this gives a formula without cancellation of large numbers.
        missed = penalty - 0.5 * ridge * sizes - scale * (left.inner() - ridge * sizes)
        gaps = 0.5 * (left.squares + ridge * sizes) * (1.0 - scale) ** 2 + missed
        return np.asarray(np.maximum(gaps, 0.0))

    def _levels(self, C: Array) -> Array:
        """Return by what correlations are to be divided for a dual point; 1 if they are one."""
        groups, (n, k) = self.forest.groups, C.shape
        p = len(groups.parent)
        levels, skip = np.empty(n), np.zeros(p, np.bool_)
        C, scratch = np.ascontiguousarray(C), PerGroup(*np.empty((2, p)))
        dual_norms(C, np.empty(k), groups, skip, self._penalty(), scratch, levels)
        return levels

    def _penalty(self) -> Penalty:
        return Penalty(self.lam, self.l1, self.positive)


class GroupedCoder(Coder):
    """Base class of coders over nested groups of atoms."""

    lam: float
    l1: float
    ridge: float

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "start"})

    @property
    @abstractmethod
    def _nested(self) -> Nested:
        """The problem, with its groups as arrays."""

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> Self:
        """Return this problem; raise ValueError unless its groups cover the atoms of D."""
        self._nested.check(len(D))
        return self

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> Self:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale."""
        return replace(  # type: ignore[type-var]
            self,
            lam=scaled_number(self.lam, signals, atoms),
            l1=scaled_number(self.l1, signals, atoms),
            ridge=scaled_number(self.ridge, atoms, atoms),
        )

    def relaxed(self, factor: float) -> Self:
        """Return this problem with ``lam`` and ``l1`` multiplied by ``factor``."""
        return replace(  # type: ignore[type-var]
            self, lam=float(self.lam) * factor, l1=float(self.l1) * factor
        )

    def describe(self) -> dict[str, float | None]:
        """Return ``lam``."""
        return {"lam": self.lam}

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        return self._nested.solver(G)

    def certain(self, problem: Problem) -> Array:
        """Return float64 codes, found slowly however similar the atoms are."""
        return self._nested.certain(problem)[None]

    def lower_bound(self, problem: Problem, codes: Array) -> float:
        """Return the objective of least squares if there is no penalty, else of a dual point."""
        if self.lam or self.l1 or self.ridge:
            return self._nested.lower_bound(problem, codes[0])
        return 0.5 * least_error(problem.X[0], problem.D, bool(self.positive), problem.dtype)

    def delicate(self, chunk: Chunk, atoms: Sizes) -> Any:
        """Return for which signals the penalty is too small for rounding, as kernels take it."""
        lam = self.lam * float(self._nested.forest.groups.weight.min()) + self.l1
        if atoms.uneven or lam == 0:
            return atoms.uneven
        return too_small(float(lam), chunk, atoms)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return ``lam Σ_g w_g‖α_g‖₂ + l1‖α‖₁ + ridge/2 ‖α‖²`` of each row of codes."""
        return self._nested.penalty(codes)

    def gap(self, left: Residuals) -> Array:
        """Return the duality gap of each row."""
        return self._nested.gap(left)


def check_penalty(lam: Any, l1: Any, ridge: Any) -> None:
    """Raise unless the weights of the penalty are finite and not negative."""
    for name, value in (("lam", lam), ("l1", l1), ("ridge", ridge)):
        check_finite_number(name, value)


def as_group_weights(
    weights: npt.ArrayLike | None, count: int, of: str
) -> tuple[float, ...] | None:
    """Return the weights as a tuple; raise unless there are ``count``, finite and > 0."""
    if weights is None:
        return None
    values = as_weights("group_weights", weights, of, finite=True)
    check_count("group_weights", values, count, of)
    return values


def as_atom_lists(groups: Any) -> Groups:
    """Return lists of atoms as increasing tuples; raise unless they cover atoms 0, ..., k − 1."""
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
            message = f"group {number} contains an atom twice: {atoms.tolist()}"
            raise ValueError(message)
        found.append(tuple(np.sort(atoms).tolist()))
    named = np.unique(np.concatenate([np.array(group) for group in found]))
    missing = np.flatnonzero(named != np.arange(len(named)))
    if missing.size:
        message = f"atom {missing[0]} is in no group: put it into one, if necessary by itself"
        raise ValueError(message)
    return tuple(found)


def nest(groups: Groups) -> tuple[Array, Array]:
    """Return the innermost group of each atom, and the group around each group (−1: none).

    Raises ValueError if groups overlap and neither contains the other.
    """
    own = np.full(1 + max(group[-1] for group in groups), -1)
    parent = np.full(len(groups), -1)
    # From large to small: all atoms of a group must have the same innermost group so far.
    for g in sorted(range(len(groups)), key=lambda g: -len(groups[g])):
        atoms = np.array(groups[g])
        around = own[atoms]
        if (around != around[0]).any():
            others = [
                h for h in set(around.tolist()) if h >= 0 and not set(groups[g]) <= set(groups[h])
            ]
            a, b = sorted((g, others[0]))
            message = f"groups {a} and {b} overlap and neither contains the other"
            raise ValueError(message)
        parent[g] = around[0]
        own[atoms] = g
    return own, parent


def _inner_first(parent: Array) -> Array:
    """Return the nodes of a forest, children before parents and each tree contiguous."""
    children: list[list[int]] = [[] for _ in parent]
    roots: list[int] = []
    for node, around in enumerate(parent.tolist()):
        (roots if around < 0 else children[around]).append(node)
    order, stack = [], roots
    while stack:  # parents first, reversed below
        node = stack.pop()
        order.append(node)
        stack.extend(children[node])
    return np.array(order[::-1], np.int64)


def _solve_rows(G: Array, chunk: Chunk, forest: Forest, penalty: Penalty) -> Codes:
    """Run the kernel on all rows."""
    n, width = chunk.Q.shape
    k, dtype = len(forest.unit), chunk.Q.dtype
    first = SparseRows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, dtype))
    if chunk.start is not None:
        first = SparseRows(*chunk.start[:2], chunk.start.values.astype(dtype, copy=False))
    signals = GroupedSignals(chunk.Q, chunk.norms, first)
    tally = chunk.tally()
    out = GrowingCodes(n, dtype, min(128, k), k, min(64, k))

    def run(row: int, room: int) -> int:
        search = make_grouped_search(forest, width, room, dtype)
        return int(grouped_lasso_rows(G, signals, row, forest, penalty, search, out.rows, tally))

    return out.fill(run)
