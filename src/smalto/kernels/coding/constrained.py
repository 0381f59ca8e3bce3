"""The exact active-set method for an ℓ1 radius or a bound on the error, on the Gram matrix.

Solves ℓ′ and ℓ″ of Section 5.5, for each signal x:

- ``min_α ½‖x − αD‖²  s.t. ‖α‖₁ ≤ T``,
- ``min_α ‖α‖₁  s.t. ‖x − αD‖² ≤ ε``.

Both have the solution of a lasso whose λ is not known beforehand. On an active set with known
signs, λ has a closed form: with ``y = L⁻¹q`` and ``z = L⁻¹ sign`` (`active_set.py`),

    ‖α‖₁ = yᵀz − λ‖z‖²  and  ‖x − αD‖² = ‖x‖² − ‖y‖² + λ²‖z‖².

So the method is that of `lasso.py` (several atoms join, the code walks to the optimum on the active
set, atoms leave, correlations are refreshed), and λ is set anew whenever the active set has
changed. While the few active atoms cannot meet the bound yet, λ falls by a factor in each round.
Where λ would have to be tiny, because the bound is out of reach or nearly so, and where rounding
keeps the method from ending, the signal is left to the homotopy (`lars.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smalto.kernels.coding.active_moves import (
    DEPENDENT_32,
    DEPENDENT_64,
    active_gap,
    first_to_vanish,
    join,
    move_code,
    repair,
    write_sorted,
)
from smalto.kernels.coding.active_set import (
    CODE,
    GATHERED,
    INVERSE,
    LANES,
    SIGN,
    TARGET,
    capacity,
    largest,
)
from smalto.kernels.coding.arguments import Signal, View
from smalto.kernels.coding.lars import AT_ERROR, AT_RADIUS, Bound
from smalto.kernels.coding.lasso import REPAIRS, ROUNDING
from smalto.kernels.coding.masked_atoms import correlations_of_signal
from smalto.kernels.coding.masked_gram import begin_signal, forget_rows
from smalto.kernels.flat import flat
from smalto.kernels.jit import kernel
from smalto.kernels.precision import EPSILON_32, EPSILON_64, is_double
from smalto.kernels.simd import fma, hsum, load, splat, store

FALL = 0.5  # factor by which λ falls while the bound cannot be met ...
NEAR = 1.5  # ... in a round in which no correlation exceeds it by more than this factor
END = 1e-3  # share of the largest correlation below which λ is left to the homotopy

# Why a row stopped; `UNDECIDED` rows are left to the homotopy.
DONE, NO_ROOM, UNDECIDED = 0, 1, 2


class Level(NamedTuple):
    """The λ of the lasso that is being solved."""

    lam: float
    least: float  # what λ may be at the least, for now
    met: bool  # whether the code meets the bound


@kernel
def _most_rounds(width):
    """More rounds than it takes, unless rounding makes the method go in circles."""
    return 64 + 4 * width


@kernel
def _is_met_by_zero(bound):
    """Whether the zero code is the solution."""
    return bound.value <= 0.0 if bound.stop == AT_RADIUS else bound.norm <= bound.value


@kernel
def _aim(bound, lam, least, active, s):
    """Move the target of the active set from the one for ``lam`` to one that meets the bound.

    Returns its λ, which is at least ``least``, and whether the bound is met.
    """
    work, stride = active.work, active.atoms.size
    inverse, target = INVERSE * stride, TARGET * stride
    sign, direction = SIGN * stride, GATHERED * stride
    z = inverse + s * stride  # the scratch row
    zz, yz, yy = 0.0, 0.0, 0.0
    for i in range(s):
        row = inverse + i * stride
        total = load(work, row) * load(work, sign)
        for o in range(LANES, i + 1, LANES):
            total = fma(load(work, row + o), load(work, sign + o), total)
        inner = hsum(total)
        work[z + i] = inner
        y = work[i] + lam * inner
        zz += inner * inner
        yz += y * inner
        yy += y * y
    wanted = -1.0
    if s > 0:
        if bound.stop == AT_RADIUS:
            wanted = (yz - bound.value) / zz
        elif bound.norm - yy < bound.value:
            wanted = np.sqrt((bound.value - (bound.norm - yy)) / zz)
    new = max(wanted, least)
    shift = lam - new
    for i in range(s):
        work[i] += shift * work[z + i]
    by = splat(shift)
    for o in range(0, s, LANES):
        total = splat(0.0)
        row = inverse + o * stride + o
        for i in range(o, s):
            total = fma(splat(work[z + i]), load(work, row), total)
            row += stride
        store(work, direction + o, total)
        store(work, target + o, fma(by, total, load(work, target + o)))
    return new, wanted >= least


@kernel
def _settle(bound, level, active, s, used):
    """Walk to the optimum on the active set; returns (number of atoms, level, whether it moved).

    Where a coefficient reaches zero its atom leaves, and λ is set anew for those that stay: a code
    that meets the bound goes on meeting it.
    """
    moved = False
    lam, met = level.lam, level.met
    while True:
        lam, met = _aim(bound, lam, level.least, active, s)
        step, p = first_to_vanish(active, s)
        s, more = move_code(active, s, step, p, used)
        moved |= more
        if p < 0:
            return s, Level(lam, level.least, met), moved


@kernel
def _descend(signal, view, bound, level, active, s, used, rounds):
    """Rounds of join, settle, refresh, until optimal; returns (why it ended, atoms, level).

    As in the lasso, the factor reads the exact Gram matrix of the signal, the passes the view.
    """
    atoms, work = active
    width, c, code = used.size, view.c, CODE * atoms.size
    allowed = ROUNDING * (EPSILON_64 if is_double(c) else EPSILON_32) * signal.scale
    repairs = np.int64(0)
    for _ in range(_most_rounds(width)):
        rounds[signal.row] += 1
        for i in range(s):
            c[width + i] = work[code + i]
        top = np.float64(correlations_of_signal(view.lazy, view, width, atoms, s, signal.positive))
        lower = not level.met and level.least > 0.0 and top <= NEAR * level.lam
        if lower:
            least = level.least * FALL
            if least < END * signal.scale:
                if bound.stop == AT_ERROR:
                    return UNDECIDED, s, level
                least = 0.0
            level = Level(level.lam, least, level.met)
        if top > level.lam + allowed:
            if s == capacity(active) and s < width:
                return NO_ROOM, s, level
            s, joined, swapped = join(signal, c, top, level.lam, allowed, active, s, used)
            if joined or lower:
                s, level, moved = _settle(bound, level, active, s, used)
                if moved or swapped:
                    continue
        elif lower:
            s, level, _ = _settle(bound, level, active, s, used)
            continue
        elif active_gap(c, level.lam, active, s) <= allowed:
            return DONE, s, level
        if repairs == REPAIRS:
            rounds[signal.row] = -rounds[signal.row]  # stuck: the code is to be checked
            return (DONE if level.met else UNDECIDED), s, level
        s = repair(signal, c, level.lam, active, s, used, repairs)
        s, level, _ = _settle(bound, level, active, s, used)
        repairs += 1
    return UNDECIDED, s, level


@kernel
def constrained_rows(gram, Q, row, bounds, search, out, rounds):
    """Code the rows of Q from ``row`` on, each to its own bound; (why it stops, at which row).

    Arguments as in `lasso_rows`. `NO_ROOM`: the active set or the output is too small;
    `UNDECIDED`: this row is left to the homotopy.
    """
    n, width = Q.shape
    q = flat(Q)
    active, used, c, fast_c, fast_q = search
    two_stages = is_double(gram.fast) != is_double(gram.exact)
    tolerance = DEPENDENT_64 if is_double(gram.exact) else DEPENDENT_32
    while row < n:
        position = out.indptr[row]
        if position + capacity(active) > out.indices.size:
            return NO_ROOM, row
        start = row * width
        bound = Bound(bounds.stop, bounds.values[row], bounds.norms[row])
        scale = np.float64(largest(q, start, width, bounds.positive))
        signal = Signal(gram, q, start, row, bounds.positive, scale, tolerance)
        is_zero = scale == 0.0 or _is_met_by_zero(bound)
        why, s = DONE, np.int64(0)
        rounds[row] = 0
        begin_signal(gram.lazy, row)
        forget_rows(gram.fast_lazy)
        level = Level(FALL * scale, FALL * scale, False)
        if two_stages and not is_zero:
            for j in range(width):
                fast_q[j] = q[start + j]
            fast = View(gram.fast, fast_q, 0, fast_c, gram.fast_lazy)
            why, s, level = _descend(signal, fast, bound, level, active, s, used, rounds)
        if why == DONE and not is_zero:
            rounds[row] = abs(rounds[row])
            exact = View(gram.exact, q, start, c, gram.lazy)
            why, s, level = _descend(signal, exact, bound, level, active, s, used, rounds)
        if why != DONE:
            used[:] = False
            return why, row
        write_sorted(active, s, used, out, position)
        out.indptr[row + 1] = position + s
        row += 1
    return DONE, row
