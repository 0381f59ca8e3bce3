"""The lasso with nested groups, on the Gram matrix.

Solves ``min_α ½‖x − αD‖² + λ Σ_g w_g ‖α_g‖₂ + l1 ‖α‖₁`` for groups of which any two are nested
or disjoint (see `grouped_norms.py`), optionally with α ≥ 0, from ``G = D Dᵀ`` and ``q = x Dᵀ`` (a ridge
term sits on the diagonal of G):

1. among the other atoms, those that violate optimality most join the working set;
2. the problem on the working set is solved (`grouped_inner.py`);
3. all correlations are refreshed in one pass over the active rows of G.

It ends when the residual, scaled into the feasible set of the dual, proves the code optimal.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.coding.active_set import largest_magnitude, subtract_rows
from smalto.kernels.coding.grouped_inner import solve_small
from smalto.kernels.coding.grouped_norms import (
    Span,
    add_squares,
    shrink,
    soft,
    vanishes,
    whole_span,
)
from smalto.kernels.coding.grouped_working_set import GroupedSignal, cut_out, join_unit, start_from
from smalto.kernels.flat import flat
from smalto.kernels.jit import kernel
from smalto.kernels.precision import is_double

FIRST = 8  # units that may join at once, at least ...
SHARE = 0.3  # ... those that violate by more than this share of the worst violation
PRECISION = 0.2  # of the solution on a working set, as a share of the worst violation
TENTH = 0.1  # of the gap that is aimed at, which errors of correlations may make up

MOST_ROUNDS = 500
MOST_WORK = 1e10  # multiplications for one signal: seconds
MOST_FAILS = 3  # rounds in which no atom joins and the gap is still too large

# The gap that is aimed at and the one that is reported as too large, as shares of the objective.
AIM_64, AIM_32 = 1e-10, 1e-6
SHORT_64, SHORT_32 = 1e-7, 2e-4

NOISE = 1e-15  # rounding of correlations in float64, relative to what cancels in them
NOISE_32 = 4e8  # times that in float32

# Places in `Whole.measures`.
ERROR, INNER, SIZE, LENGTH, CANCELS = range(5)


@kernel
def _correlate(search, n, signal):
    """Refresh the correlations of all atoms; those of the working set are known more exactly.

    Returns the number of atoms whose coefficient is not zero.
    """
    whole, small, buffer = search
    width = signal.width
    s = np.int64(0)
    for i in range(n):
        if small.code[i] != 0.0:
            whole.active[s] = whole.atoms[i]
            buffer[width + s] = small.code[i]
            s += 1
    subtract_rows(signal.G, width, signal.q, signal.start, whole.active, s, buffer)
    for j in range(whole.c.size):
        whole.c[j] = buffer[j]
    for i in range(n):
        whole.c[whole.atoms[i]] = small.corr[i]
    return s


@kernel
def _violations(forest, whole, s, penalty):
    """Score the units outside the working set by how much they violate optimality; the most.

    Groups whose code is not zero do not keep an atom from joining, the others do.
    """
    innermost, parent, _ = forest.groups
    c, v, score = whole.c, whole.v, whole.score
    for i in range(s):
        g = innermost[whole.active[i]]
        while g >= 0 and not whole.used[g]:
            whole.used[g] = True
            g = parent[g]
    for j in range(c.size):
        v[j] = soft(c[j], penalty.l1, penalty.positive)
    span = whole_span(forest.groups)
    shrink(v, forest.groups, span, whole.used, penalty.lam, whole.scratch)
    for i in range(s):
        g = innermost[whole.active[i]]
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
    """Let the units that violate most join; returns the number of atoms, −1 if there is no room."""
    least = (SHARE * top) ** 2
    room = max(FIRST, n)
    for u in range(whole.score.size):
        if whole.score[u] >= least and room > 0:
            n = join_unit(forest, whole, small, n, u)
            if n < 0:
                return -1
            room -= 1
    return n


@kernel
def _measure(small, n, p, penalty, norm, measures):
    """Measure the code: ‖r‖², ⟨αD, r⟩, the penalty, ‖α‖₁, and the size of what cancels."""
    error, inner, size, length, longest = norm, 0.0, 0.0, 0.0, 0.0
    fit = 0.0
    for i in range(n):
        value = abs(small.code[i])
        inner += small.code[i] * small.corr[i]
        error -= small.code[i] * (small.corr[i] + small.b[i])
        length += value
        fit += value * np.sqrt(small.H[i, i])
        longest = max(longest, small.H[i, i])
    squares = small.scratch.squares
    add_squares(small.code, small.groups, Span(0, n, 0, p), squares)
    for g in range(p):
        size += small.groups.weight[g] * np.sqrt(squares[g])
    measures[ERROR], measures[INNER] = max(error, 0.0), inner
    measures[SIZE], measures[LENGTH] = penalty.lam * size + penalty.l1 * length, length
    measures[CANCELS] = fit * np.sqrt(longest)


@kernel
def _certified(forest, whole, penalty, measures, share):
    """Whether the gap is below a share of the objective.

    The residual may be outside the feasible set of the dual by as much as that share allows.
    """
    error, size = measures[ERROR], measures[SIZE]
    objective = 0.5 * error + size
    beyond = np.sqrt(0.5 * share)
    if size * beyond > 0.5 * share * objective:
        beyond = 0.5 * share * objective / size
    scaled = 1.0 / (1.0 + beyond)
    gap = 0.5 * error * (1.0 - scaled) ** 2 + size - scaled * measures[INNER]
    return gap <= share * objective and vanishes(
        whole.c, whole.v, forest.groups, whole.unused, penalty, 1.0 + beyond, whole.scratch
    )


@kernel
def _descend(forest, search, n, penalty, signal, tally):
    """Find the optimum from the n atoms that have joined; returns their number, −1 if full."""
    whole, small, buffer = search
    measures = whole.measures
    narrow = not is_double(buffer)
    aim, too_large = (AIM_32, SHORT_32) if narrow else (AIM_64, SHORT_64)
    free = penalty.lam == 0.0 and penalty.l1 == 0.0
    scale = np.float64(largest_magnitude(signal.q, signal.start, signal.width))
    p, blocks = cut_out(forest, whole, small, n, signal)
    enough, fails, work = PRECISION * scale, 0, MOST_WORK
    for _ in range(MOST_ROUNDS):
        tally.rounds[signal.row] += 1
        worst = 0.0
        if n > 0:
            worst, work = solve_small(small, n, p, blocks, penalty, enough, work)
        s = _correlate(search, n, signal)
        _measure(small, n, p, penalty, signal.norm, measures)
        top = _violations(forest, whole, s, penalty)
        noise = NOISE * (scale + measures[CANCELS])
        little = max(aim * scale, NOISE_32 * noise if narrow else noise)
        if free:
            if max(top, worst) <= little:
                return n
        elif top <= little and _certified(forest, whole, penalty, measures, aim):
            return n
        objective = 0.5 * measures[ERROR] + measures[SIZE]
        precise = TENTH * np.sqrt(aim) * scale
        if measures[LENGTH] > 0.0:
            precise = min(precise, TENTH * aim * objective / measures[LENGTH])
        precise = max(precise, noise)
        if work < 0.0:
            break
        if top > noise:
            enough = max(PRECISION * top, precise)
            n = _join(forest, whole, small, n, top)
            if n < 0:
                return n
            p, blocks = cut_out(forest, whole, small, n, signal)
        elif fails == MOST_FAILS:
            break
        else:
            enough = max(min(precise, 0.01 * enough), noise)
            fails += 1
    unsure = work < 0.0 if free else not _certified(forest, whole, penalty, measures, too_large)
    tally.stuck[0] += unsure
    return n


@kernel
def _write(whole, small, n, out, position):
    """Append the code to the output by increasing atom; returns where it ends."""
    end = position
    for i in range(n):
        atom = whole.atoms[i]
        whole.chosen[atom] = False
        if small.code[i] != 0.0:
            p = end
            while p > position and out.indices[p - 1] > atom:
                out.indices[p] = out.indices[p - 1]
                out.values[p] = out.values[p - 1]
                p -= 1
            out.indices[p] = atom
            out.values[p] = small.code[i]
            end += 1
    return end


@kernel
def grouped_lasso_rows(G, signals, row, forest, penalty, search, out, tally):
    """Solve for the rows of ``signals`` from ``row`` on; returns the first row not done.

    Stops early, to be called again, when the working set or the output has no room left.
    ``tally.rounds`` counts passes over all correlations.
    """
    n_rows, width = signals.Q.shape
    q = flat(signals.Q)
    whole, small, _ = search
    warm = signals.first.indptr.size > 1
    while row < n_rows:
        position = out.indptr[row]
        if position + whole.atoms.size > out.indices.size:
            return row
        tally.rounds[row] = 0
        n = np.int64(0)
        if warm:
            n = start_from(forest, whole, small, penalty, row, signals.first)
        if n >= 0:
            signal = GroupedSignal(G, width, q, row * width, row, signals.norms[row])
            n = _descend(forest, search, n, penalty, signal, tally)
        if n < 0:
            whole.chosen[:] = False
            return row
        out.indptr[row + 1] = _write(whole, small, n, out, position)
        row += 1
    return row
