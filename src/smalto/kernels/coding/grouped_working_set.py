"""The working set of the lasso with nested groups: which atoms it has, and the problem on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.coding.grouped_inner import Small, make_small, refresh
from smalto.kernels.coding.grouped_norms import AtomGroups, PerGroup
from smalto.kernels.jit import kernel


class Forest(NamedTuple):
    """Groups of k atoms of which any two are nested or disjoint.

    Atoms that can only be zero together form a unit.
    """

    groups: AtomGroups
    rank: Any  # int64 (k,): order of the atoms by their innermost group
    unit: Any  # int64 (k,): unit of each atom
    unit_ptr: Any  # int64 (units + 1,)
    unit_atoms: Any  # int64 (k,): the atoms of unit u are those from unit_ptr[u] to unit_ptr[u + 1]


class GroupedSignals(NamedTuple):
    """The signals to code."""

    Q: Any  # x Dᵀ (n, width)
    norms: Any  # ‖x‖² (n,)
    first: SparseRows  # codes to start from; with no rows: from zero


class GroupedSignal(NamedTuple):
    """The problem of one signal."""

    G: Any
    width: int
    q: Any
    start: int
    row: int
    norm: float  # ‖x‖²


class Whole(NamedTuple):
    """Scratch for one signal and all atoms."""

    atoms: Any  # int64 (room,): the working set, by rank
    active: Any  # int64 (room,): those of it whose coefficient is not zero
    chosen: Any  # bool (k,): whether an atom is in the working set, all False between signals
    c: Any  # float64 (k,): correlations of the residual
    v: Any  # float64 (k,)
    score: Any  # float64 (units,)
    scratch: PerGroup
    local: Any  # int64 (groups,): number of a group in the small problem, or −1
    measures: Any  # float64 (5,): what is known of a code
    used: Any  # bool (groups,): whether the code of a group is not zero, all False between rounds
    unused: Any  # bool (groups,), all False


class GroupedSearch(NamedTuple):
    """Scratch for one signal."""

    whole: Whole  # in float64, whatever the dtype of the data: compiled only once
    small: Small
    buffer: Any  # (width + room,): correlations in the dtype of G, followed by coefficients


def make_grouped_search(forest: Forest, width: int, room: int, dtype: Any) -> GroupedSearch:
    """Room for a working set of ``room`` atoms: one per thread, reused for every signal."""
    k, n_groups = len(forest.unit), len(forest.groups.parent)
    atoms, active = np.empty((2, room), np.int64)
    c, v = np.empty((2, k))
    squares, factor = np.empty((2, n_groups))
    used, unused = np.zeros((2, n_groups), np.bool_)
    whole = Whole(
        atoms=atoms,
        active=active,
        chosen=np.zeros(k, np.bool_),
        c=c,
        v=v,
        score=np.empty(len(forest.unit_ptr) - 1),
        scratch=PerGroup(squares, factor),
        local=np.full(n_groups, -1),
        measures=np.empty(5),
        used=used,
        unused=unused,
    )
    small = make_small(room, n_groups, dtype)
    return GroupedSearch(whole, small, np.empty(width + room, dtype))


@kernel
def _insert(forest, whole, small, n, atom, value):
    """Let an atom join the working set, with this coefficient."""
    rank, atoms, code = forest.rank, whole.atoms, small.code
    p = n
    while p > 0 and rank[atoms[p - 1]] > rank[atom]:
        atoms[p] = atoms[p - 1]
        code[p] = code[p - 1]
        p -= 1
    atoms[p] = atom
    code[p] = value
    whole.chosen[atom] = True
    return n + 1


@kernel
def join_unit(forest, whole, small, n, unit):
    """Let the atoms of a unit join that have not yet; returns their number, −1 if there is no room."""
    for u in range(forest.unit_ptr[unit], forest.unit_ptr[unit + 1]):
        atom = forest.unit_atoms[u]
        if not whole.chosen[atom]:
            if n == whole.atoms.size:
                return -1
            n = _insert(forest, whole, small, n, atom, 0.0)
    return n


@kernel
def start_from(forest, whole, small, penalty, row, first):
    """Begin with the units of an earlier code; returns the number of atoms, −1 if there is no room."""
    indptr, indices, values = first
    n = np.int64(0)
    for p in range(indptr[row], indptr[row + 1]):
        if values[p] != 0.0:
            n = join_unit(forest, whole, small, n, forest.unit[indices[p]])
            if n < 0:
                return np.int64(-1)
    for i in range(n):
        for p in range(indptr[row], indptr[row + 1]):
            if indices[p] == whole.atoms[i]:
                value = np.float64(values[p])
                small.code[i] = max(value, 0.0) if penalty.positive else value
    return n


@kernel
def cut_out(forest, whole, small, n, signal):
    """Write the problem on the working set; returns its numbers of groups and of trees."""
    outer, inner = forest.groups, small.groups
    local, atoms, H = whole.local, whole.atoms, small.H
    for i in range(n):
        g = outer.innermost[atoms[i]]
        while g >= 0 and local[g] < 0:
            local[g] = 0
            g = outer.parent[g]
    p = 0
    for g in range(local.size):
        if local[g] == 0:
            local[g] = p
            inner.weight[p] = outer.weight[g]
            inner.parent[p] = g
            p += 1
    for g in range(p):
        around = outer.parent[inner.parent[g]]
        inner.parent[g] = local[around] if around >= 0 else -1
    blocks, begin = 0, 0
    small.cuts[0, 0] = small.cuts[0, 1] = 0
    for i in range(n):
        atom = atoms[i]
        inner.innermost[i] = local[outer.innermost[atom]]
        small.b[i] = signal.q[signal.start + atom]
        for j in range(i + 1):
            H[i, j] = H[j, i] = signal.G[atom * signal.width + atoms[j]]
    for g in range(p):
        if inner.parent[g] < 0:
            steep = 0.0
            while begin < n and inner.innermost[begin] <= g:
                steep = max(steep, H[begin, begin])
                begin += 1
            small.steep[blocks] = steep if steep > 0.0 else 1.0
            blocks += 1
            small.cuts[blocks, 0], small.cuts[blocks, 1] = begin, g + 1
    for i in range(n):
        g = outer.innermost[atoms[i]]
        while g >= 0 and local[g] >= 0:
            local[g] = -1
            g = outer.parent[g]
    refresh(small, n)
    return p, blocks
