"""The exact active-set lasso, on the Gram matrix.

Solves ``min_α ½‖x − αD‖² + λ‖α‖₁`` (Eq. 2 of the paper), optionally with α ≥ 0, from
``G = D Dᵀ`` and ``q = x Dᵀ`` (a ridge term sits on the diagonal of G). The paper follows the
LARS path, one atom a step; here several atoms join at once:

1. the atoms that violate optimality by more than a share of the worst violation join;
2. with signs held, the optimum on the active set is known through its factor; the code moves
   towards it, and wherever a coefficient reaches zero first, its atom leaves;
3. all correlations are refreshed in one pass over the active rows of G.

Each round lowers the objective, so no active set comes back, and the end is exact. A third to half
as many passes over G are needed as LARS takes steps. With a slack above zero the rounds end once no
atom violates optimality by more than that share of λ: the code is then the optimum on its atoms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels import aligned
from smalto.kernels.coding.active_moves import (
    DEPENDENT_32,
    DEPENDENT_64,
    active_gap,
    join,
    rebuild,
    repair,
    walk,
    write_sorted,
)
from smalto.kernels.coding.active_set import (
    CODE,
    SIGN,
    ActiveSet,
    append,
    capacity,
    largest_magnitude,
    make_active_set,
)
from smalto.kernels.coding.arguments import Signal, View
from smalto.kernels.coding.masked_atoms import correlations_of_signal, make_products
from smalto.kernels.coding.masked_gram import begin_signal, forget_rows
from smalto.kernels.flat import flat
from smalto.kernels.jit import kernel
from smalto.kernels.precision import EPSILON_32, EPSILON_64, is_double

PATIENCE = 32  # rounds before the objective is watched, and rounds in which it need not fall
USUAL = 8  # rounds, after which the factor is watched, too
SPOILT = 1e-4  # share of the largest correlation by which a code misses the optimum on its atoms
REPAIRS = 3  # attempts at an optimum that rounding hides: a new factor, then refinements
ROUNDING = 64.0  # units in the last place of the largest correlation that a violation may have

DEPENDENT_AT_START = 1e-4  # for atoms of a code to start from, which can still join later

# A signal is reported as stuck, and its code is checked, where a violation exceeds this share of λ,
# plus this share of the largest correlation.
STUCK_64 = (1e-8, 2e-14)
STUCK_32 = (1e-3, 2e-5)


class Penalty(NamedTuple):
    """``lam ‖α‖₁``, whether α ≥ 0, and how well to solve it."""

    lam: float
    positive: bool
    slack: float = 0.0  # share of λ by which optimality may be violated


class Search(NamedTuple):
    """Scratch for one signal: the active set and passes over all atoms."""

    active: ActiveSet
    used: Any  # bool (width,): whether an atom is active, all False between signals
    c: Any  # (width + room,) as in `View`
    fast_c: Any  # the same in float32
    fast_q: Any  # float32 (width,): correlations of the signal


def make_search(width: int, room: int, dtype: Any) -> Search:
    """Room for ``room`` active atoms out of ``width``: one per thread, reused for every signal."""
    return Search(
        make_active_set(room),
        np.zeros(width, np.bool_),
        aligned.empty(width + room, dtype),
        aligned.empty(width + room, np.float32),
        np.empty(width, np.float32),
    )


@kernel
def _start(signal, lam, first, active, used):
    """Take a given code as the active set and go to the optimum on it.

    Returns the number of atoms, −1 if there is no room for them.
    """
    gram, work = signal.gram, active.work
    code, sign = CODE * active.atoms.size, SIGN * active.atoms.size
    s = np.int64(0)
    for p in range(first.indptr[signal.row], first.indptr[signal.row + 1]):
        j, value = np.int64(first.indices[p]), np.float64(first.values[p])
        if value == 0.0 or (signal.positive and value < 0.0) or used[j]:
            continue
        if s == capacity(active):
            return np.int64(-1)
        side = 1.0 if value > 0.0 else -1.0
        make_products(gram.lazy, j, active.atoms, s, gram.exact)
        b = signal.q[signal.start + j] - lam * side
        if append(gram.exact, used.size, active, s, j, b, DEPENDENT_AT_START):
            work[code + s] = value
            work[sign + s] = side
            used[j] = True
            s += 1
    return walk(active, s, lam == 0.0 and not signal.positive, used)[0]


@kernel
def _objective(view, lam, active, s):
    """The objective less ½‖x‖², from correlations before (q) and after (c) the code."""
    atoms, work = active
    code = CODE * atoms.size
    value = 0.0
    for i in range(s):
        a, j = work[code + i], atoms[i]
        both = np.float64(view.q[view.start + j]) + np.float64(view.c[j])
        value += lam * abs(a) - 0.5 * a * both
    return value


@kernel
def _falls_short(top, c, lam, scale, active, s):
    """1 if optimality is missed by more than rounding explains, else 0."""
    missed = max(top - lam, active_gap(c, lam, active, s))
    of_lam, of_scale = STUCK_64 if is_double(c) else STUCK_32
    return 1 if missed > of_lam * lam + of_scale * scale else 0


@kernel
def _descend(signal, view, lam, slack, active, s, used, tally):
    """Rounds of join, walk, refresh, until optimal; returns the number of atoms, −1 if full.

    A violation of ``slack`` is allowed, and of what rounding explains.

    The factor reads the exact Gram matrix of the signal, the passes over all atoms read the view.
    Where rounding keeps the code well short of the optimum, ``tally.stuck[0]`` rises by one.
    """
    atoms, work = active
    width, c, code = used.size, view.c, CODE * atoms.size
    free = lam == 0.0 and not signal.positive
    epsilon = EPSILON_64 if is_double(c) else EPSILON_32
    allowed = max(slack, ROUNDING * epsilon * signal.scale)
    repairs, done, stalled = np.int64(0), 0, 0
    best = np.inf
    while True:
        for i in range(s):
            c[width + i] = work[code + i]
        top = np.float64(correlations_of_signal(view.lazy, view, width, atoms, s, signal.positive))
        done += 1
        tally.rounds[signal.row] += 1
        if done > PATIENCE:
            # Each round lowers the objective, unless rounding makes the method go in circles: it ends
            # where it lowers hardly anything, and after so many rounds in any case.
            value = _objective(view, lam, active, s)
            stalled = 0 if value < best - ROUNDING * epsilon * abs(best) else stalled + 1
            best = min(best, value)
            if stalled == PATIENCE or done == PATIENCE * (1 + width):
                tally.stuck[0] += _falls_short(top, c, lam, signal.scale, active, s)
                return s
        if done > USUAL and active_gap(c, lam, active, s) > max(allowed, SPOILT * signal.scale):
            # Atoms that were nearly dependent have joined and left: the target is wrong.
            s = rebuild(signal, lam, active, s, used)
            s, moved = walk(active, s, free, used)
            if moved:
                continue
        if top > lam + allowed:
            if s == capacity(active) and s < width:
                return np.int64(-1)
            s, joined, swapped = join(signal, c, top, lam, allowed, active, s, used)
            if joined:
                s, moved = walk(active, s, free, used)
                if moved or swapped:
                    continue
        elif active_gap(c, lam, active, s) <= allowed:
            return s
        if repairs == REPAIRS:
            tally.stuck[0] += _falls_short(top, c, lam, signal.scale, active, s)
            return s
        s = repair(signal, c, lam, active, s, used, repairs)
        s, _ = walk(active, s, free, used)
        repairs += 1


@kernel
def lasso_rows(gram, Q, row, penalty, first, search, out, tally):
    """Solve the lasso for the rows of Q from ``row`` on; returns the first row not done.

    A row starts from its code in ``first`` (`SparseRows`, with no rows: from zero). Stops early,
    to be called again, when the active set or the output has no room left. ``tally.rounds``
    counts passes over all correlations.
    """
    n, width = Q.shape
    q = flat(Q)
    lam, positive, slack = penalty
    active, used, c, fast_c, fast_q = search
    two_stages = is_double(gram.fast) != is_double(gram.exact)
    tolerance = DEPENDENT_64 if is_double(gram.exact) else DEPENDENT_32
    warm = first.indptr.size > 1
    while row < n:
        position = out.indptr[row]
        if position + capacity(active) > out.indices.size:
            return row
        start = row * width
        scale = np.float64(largest_magnitude(q, start, width))
        signal = Signal(gram, q, start, row, positive, scale, tolerance)
        s = np.int64(0)
        tally.rounds[row] = 0
        begin_signal(gram.lazy, row)
        forget_rows(gram.fast_lazy)
        if warm:
            s = _start(signal, lam, first, active, used)
        stuck, is_enough = tally.stuck[0], False
        if two_stages and s >= 0:
            for j in range(width):
                fast_q[j] = q[start + j]
            fast = View(gram.fast, fast_q, 0, fast_c, gram.fast_lazy)
            s = _descend(signal, fast, lam, slack * lam, active, s, used, tally)
            rough = slack * lam > ROUNDING * EPSILON_32 * scale
            is_enough = rough and tally.stuck[0] == stuck
            tally.stuck[0] = stuck  # only the exact stage counts
        if s >= 0 and not is_enough:
            exact = View(gram.exact, q, start, c, gram.lazy)
            s = _descend(signal, exact, lam, slack * lam, active, s, used, tally)
        if s < 0:
            used[:] = False
            return row
        write_sorted(active, s, used, out, position)
        out.indptr[row + 1] = position + s
        row += 1
    return row
