"""The lasso with nested groups, on the Gram matrix.

Solves ``min_α ½‖x − αD‖² + λ Σ_g w_g ‖α_g‖₂ + l1 ‖α‖₁`` for groups of which any two are nested
or disjoint (see `nested.py`), optionally with α ≥ 0, from ``G = D Dᵀ`` and ``q = x Dᵀ`` (a ridge
term sits on the diagonal of G):

1. among the atoms that are out, those that violate optimality most join the working set;
2. the problem on the working set is solved (`nested_small.py`);
3. all correlations are refreshed in one pass over the active rows of G.

It ends where the residual, scaled into the dual's feasible set, proves that the code is optimal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.active_set import largest, subtract_rows
from smalto.kernels.coding.grouped_inner import refresh, solve_small
from smalto.kernels.coding.grouped_norms import add_squares, shrink, soft, vanishes
from smalto.kernels.jit import kernel

FIRST = 8  # units that may join at once, at least ...
SHARE = 0.3  # ... those that violate by more than this share of the worst violation
PRECISION = 0.2  # of a working set's solution, as a share of the worst violation

MOST_ROUNDS = 500

# The gap that is aimed at and the one that is said to be too large, as shares of the objective.
AIM_64, AIM_32 = 1e-10, 1e-6
SHORT_64, SHORT_32 = 1e-7, 2e-4


# What is known of a code, and where it stands.
ERROR, INNER, SIZE, LENGTH, CANCELS = range(5)


class Forest(NamedTuple):
    """Groups of k atoms of which any two are nested or disjoint, numbered as `nested.py` says.

    Atoms that can only be zero together form a unit.
    """

    own: Any  # int64 (k,): innermost group of each atom
    rank: Any  # int64 (k,): order of the atoms by their innermost group
    parent: Any  # int64 (groups,)
    weight: Any  # float64 (groups,)
    unit: Any  # int64 (k,)
    unit_ptr: Any  # int64 (units + 1,)
    unit_atoms: Any  # int64 (k,): the atoms of unit u are those from unit_ptr[u] to unit_ptr[u + 1]


class Whole(NamedTuple):
    """Scratch for one signal and all atoms."""

    atoms: Any  # int64 (room,): the working set, by rank
    active: Any  # int64 (room,): those whose coefficient is not zero
    chosen: Any  # bool (k,): whether an atom is in the working set, all False between signals
    c: Any  # float64 (k,): correlations of the residual
    v: Any  # float64 (k,)
    score: Any  # float64 (units,)
    squares: Any  # float64 (groups,)
    factor: Any  # float64 (groups,)
    local: Any  # int64 (groups,): number of a group in the small problem, or −1
    measures: Any  # float64 (5,)
    used: Any  # bool (groups,): whether the code of a group is not zero, all False between rounds
    unused: Any  # bool (groups,), all False


def make_whole(forest: Forest, room: int) -> Whole:
    """Room for a working set of so many atoms: one per thread, reused for every signal."""
    k, groups = len(forest.own), len(forest.parent)
    atoms, active = np.empty((2, room), np.int64)
    c, v = np.empty((2, k))
    squares, factor = np.empty((2, groups))
    used, unused = np.zeros((2, groups), np.bool_)
    return Whole(
        atoms, active, np.zeros(k, np.bool_), c, v, np.empty(len(forest.unit_ptr) - 1), squares,
        factor, np.full(groups, -1), np.empty(5), used, unused,
    )  # fmt: skip


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
def _join_unit(forest, whole, small, n, unit):
    """Let the atoms of a unit join that have not; returns −1 where there is no room."""
    for u in range(forest.unit_ptr[unit], forest.unit_ptr[unit + 1]):
        atom = forest.unit_atoms[u]
        if not whole.chosen[atom]:
            if n == whole.atoms.size:
                return -1
            n = _insert(forest, whole, small, n, atom, 0.0)
    return n


@kernel
def _start(forest, whole, small, penalty, row, first):
    """Begin with the units of an earlier code; returns how many atoms, or −1."""
    indptr, indices, values = first
    n = 0
    for p in range(indptr[row], indptr[row + 1]):
        if values[p] != 0.0:
            n = _join_unit(forest, whole, small, n, forest.unit[indices[p]])
            if n < 0:
                return -1
    for i in range(n):
        for p in range(indptr[row], indptr[row + 1]):
            if indices[p] == whole.atoms[i]:
                value = np.float64(values[p])
                small.code[i] = max(value, 0.0) if penalty.positive else value
    return n


@kernel
def _cut_out(forest, whole, small, n, G, width, q, start):
    """Write the problem on the working set; returns its numbers of groups and of trees."""
    local, atoms, H = whole.local, whole.atoms, small.H
    for i in range(n):
        g = forest.own[atoms[i]]
        while g >= 0 and local[g] < 0:
            local[g] = 0
            g = forest.parent[g]
    p = 0
    for g in range(local.size):
        if local[g] == 0:
            local[g] = p
            small.weight[p] = forest.weight[g]
            small.parent[p] = g
            p += 1
    for g in range(p):
        around = forest.parent[small.parent[g]]
        small.parent[g] = local[around] if around >= 0 else -1
    blocks, begin = 0, 0
    small.cuts[0, 0] = small.cuts[0, 1] = 0
    for i in range(n):
        atom = atoms[i]
        small.own[i] = local[forest.own[atom]]
        small.b[i] = q[start + atom]
        for j in range(i + 1):
            H[i, j] = H[j, i] = G[atom * width + atoms[j]]
    for g in range(p):
        if small.parent[g] < 0:
            steep = 0.0
            while begin < n and small.own[begin] <= g:
                steep = max(steep, H[begin, begin])
                begin += 1
            small.steep[blocks] = steep if steep > 0.0 else 1.0
            blocks += 1
            small.cuts[blocks, 0], small.cuts[blocks, 1] = begin, g + 1
    for i in range(n):
        g = forest.own[atoms[i]]
        while g >= 0 and local[g] >= 0:
            local[g] = -1
            g = forest.parent[g]
    refresh(small, n)
    return p, blocks


@kernel
def _correlate(whole, small, n, G, width, q, start, buffer):
    """Refresh the correlations of all atoms; those of the working set are known better."""
    s = 0
    for i in range(n):
        if small.code[i] != 0.0:
            whole.active[s] = whole.atoms[i]
            buffer[width + s] = small.code[i]
            s += 1
    subtract_rows(G, width, q, start, whole.active, s, buffer)
    for j in range(whole.c.size):
        whole.c[j] = buffer[j]
    for i in range(n):
        whole.c[whole.atoms[i]] = small.corr[i]
    return s


@kernel
def _violations(forest, whole, s, penalty):
    """How much the units outside of the working set violate optimality; the most of it.

    Groups whose code is not zero do not keep an atom from joining, the others do.
    """
    own, parent, c, v, score = forest.own, forest.parent, whole.c, whole.v, whole.score
    for i in range(s):
        g = own[whole.active[i]]
        while g >= 0 and not whole.used[g]:
            whole.used[g] = True
            g = parent[g]
    for j in range(c.size):
        v[j] = soft(c[j], penalty.l1, penalty.positive)
    shrink(
        v, 0, v.size, own, parent, forest.weight, whole.used, 0, parent.size, penalty.lam,
        whole.squares, whole.factor,
    )  # fmt: skip
    for i in range(s):
        g = own[whole.active[i]]
        while g >= 0 and whole.used[g]:
            whole.used[g] = False
            g = parent[g]
    score[:] = 0.0
    for j in range(v.size):
        if v[j] != 0.0 and not whole.chosen[j]:
            score[forest.unit[j]] += v[j] * v[j]
    top = 0.0
    for u in range(score.size):
        top = max(top, score[u])
    return np.sqrt(top)


@kernel
def _join(forest, whole, small, n, top):
    """Let the units that violate most join; returns how many atoms there are then, or −1."""
    least = (SHARE * top) ** 2
    room = max(FIRST, n)
    for u in range(whole.score.size):
        if whole.score[u] >= least and room > 0:
            n = _join_unit(forest, whole, small, n, u)
            if n < 0:
                return -1
            room -= 1
    return n


@kernel
def _measure(small, n, p, penalty, norm, measures):
    """Write what the code comes to: ‖r‖², ⟨αD, r⟩, the penalty, ‖α‖₁, and what may cancel."""
    error, inner, size, length, longest = norm, 0.0, 0.0, 0.0, 0.0
    fit = 0.0
    for i in range(n):
        value = abs(small.code[i])
        inner += small.code[i] * small.corr[i]
        error -= small.code[i] * (small.corr[i] + small.b[i])
        length += value
        fit += value * np.sqrt(small.H[i, i])
        longest = max(longest, small.H[i, i])
    add_squares(small.code, 0, n, small.own, small.parent, 0, p, small.squares)
    for g in range(p):
        size += small.weight[g] * np.sqrt(small.squares[g])
    measures[ERROR], measures[INNER] = max(error, 0.0), inner
    measures[SIZE], measures[LENGTH] = penalty.lam * size + penalty.l1 * length, length
    measures[CANCELS] = fit * np.sqrt(longest)


@kernel
def _certified(forest, whole, penalty, measures, share):
    """Whether the gap is below a share of the objective.

    The residual may be out of the dual's feasible set by as much as that share allows for.
    """
    error, size = measures[ERROR], measures[SIZE]
    objective = 0.5 * error + size
    beyond = np.sqrt(0.5 * share)
    if size * beyond > 0.5 * share * objective:
        beyond = 0.5 * share * objective / size
    scaled = 1.0 / (1.0 + beyond)
    gap = 0.5 * error * (1.0 - scaled) ** 2 + size - scaled * measures[INNER]
    return gap <= share * objective and vanishes(
        whole.c, whole.v, forest.own, forest.parent, forest.weight, whole.unused, penalty.lam,
        penalty.l1, penalty.positive, 1.0 + beyond, whole.squares, whole.factor,
    )  # fmt: skip


@kernel
def _descend(forest, whole, small, n, penalty, G, width, q, start, norm, buffer, short, rounds,
             row):  # fmt: skip
    """Find the optimum from the n atoms that have joined; returns their number, or −1."""
    measures = whole.measures
    narrow = buffer.itemsize == 4
    aim, too_large = (AIM_32, SHORT_32) if narrow else (AIM_64, SHORT_64)
    free = penalty.lam == 0.0 and penalty.l1 == 0.0
    scale = np.float64(largest(q, start, width, False))
    p, blocks = _cut_out(forest, whole, small, n, G, width, q, start)
    enough, fails = PRECISION * scale, 0
    for _ in range(MOST_ROUNDS):
        rounds[row] += 1
        worst = solve_small(small, n, p, blocks, penalty, enough) if n > 0 else 0.0
        s = _correlate(whole, small, n, G, width, q, start, buffer)
        _measure(small, n, p, penalty, norm, measures)
        top = _violations(forest, whole, s, penalty)
        noise = 1e-15 * (scale + measures[CANCELS])
        little = max(aim * scale, 4e8 * noise if narrow else noise)
        if free:
            if max(top, worst) <= little:
                return n
        elif top <= little and _certified(forest, whole, penalty, measures, aim):
            return n
        objective = 0.5 * measures[ERROR] + measures[SIZE]
        # With correlations wrong by this much the gap is a tenth of what is allowed.
        precise = 0.1 * np.sqrt(aim) * scale
        if measures[LENGTH] > 0.0:
            precise = min(precise, 0.1 * aim * objective / measures[LENGTH])
        precise = max(precise, noise)
        if top > noise:
            enough = max(PRECISION * top, precise)
            n = _join(forest, whole, small, n, top)
            if n < 0:
                return -1
            p, blocks = _cut_out(forest, whole, small, n, G, width, q, start)
        elif fails == 3:
            break
        else:
            enough = max(min(precise, 0.01 * enough), noise)
            fails += 1
    short[0] += not (free or _certified(forest, whole, penalty, measures, too_large))
    return n


@kernel
def _write(whole, small, n, out_atoms, out_codes, position):
    """Append the code to the output by increasing atom; returns where it ends."""
    end = position
    for i in range(n):
        atom = whole.atoms[i]
        whole.chosen[atom] = False
        if small.code[i] != 0.0:
            p = end
            while p > position and out_atoms[p - 1] > atom:
                out_atoms[p] = out_atoms[p - 1]
                out_codes[p] = out_codes[p - 1]
                p -= 1
            out_atoms[p] = atom
            out_codes[p] = small.code[i]
            end += 1
    return end


@kernel
def nested_lasso_rows(G, Q, norms, row, forest, penalty, warm, first, whole, small, buffer,
                      out_ptr, out_atoms, out_codes, short, rounds):  # fmt: skip
    """Solve for the rows of Q from ``row`` on; returns the first row not done.

    Q is (n, width), G flat with rows ``width`` apart; width fills whole vectors. With ``warm`` a
    row starts from its code in ``first`` (indptr, indices, values). Stops early, to be called
    again, when the working set or the output has no room left; the buffer is as long as width and
    this room. ``short[0]`` counts the rows
    that have not come near the optimum, ``rounds`` how many passes over the correlations each
    row took.
    """
    n_rows, width = Q.shape
    q = Q.reshape(-1)
    while row < n_rows:
        position = out_ptr[row]
        if position + whole.atoms.size > out_atoms.size:
            return row
        rounds[row] = 0
        n = _start(forest, whole, small, penalty, row, first) if warm else 0
        if n >= 0:
            n = _descend(
                forest, whole, small, n, penalty, G, width, q, row * width, norms[row],
                buffer, short, rounds, row,
            )  # fmt: skip
        if n < 0:
            whole.chosen[:] = False
            return row
        out_ptr[row + 1] = _write(whole, small, n, out_atoms, out_codes, position)
        row += 1
    return row
