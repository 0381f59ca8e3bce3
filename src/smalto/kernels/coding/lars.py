"""LARS-Lasso: the regularization path of a signal, with atoms that leave (Section 3.2).

Follows the solutions of ``min_α ½‖x − αD‖² + μ‖α‖₁`` from the μ above which the code is zero down
to a stop: at a given μ, where ``‖α‖₁`` has reached a radius (ℓ′ of Section 5.5), or where
``‖x − αD‖²`` has fallen to a bound (ℓ″). Between two kinks the code moves along ``G_SS⁻¹ sign``,
which is the target of the active set for the right-hand side ``sign``; an atom joins where its
correlation reaches μ and leaves where its coefficient reaches zero. `lars_path` records every kink
of one signal, `lars_rows` the ends of many; they share the steps. Everything is in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.active_moves import DEPENDENT_32, write_sorted
from smalto.kernels.coding.active_set import (
    CODE,
    SIGN,
    TARGET,
    ActiveSet,
    append,
    capacity,
    largest,
    remove,
    subtract_rows,
)
from smalto.kernels.flat import flat
from smalto.kernels.jit import kernel

FREE, USED, BARRED = 0, 1, 2  # an atom that depends on the active ones is barred till one leaves
SLACK = 0.1  # of what is rounding: within this of μ an atom has reached it
SLACK_ON_PATH = 1e-12  # of the first μ, for `lars_path`

# Where to stop.
AT_LAM, AT_RADIUS, AT_ERROR = 0, 1, 2

# Why the walk stopped.
DONE, NO_ROOM, MANY_STEPS = 0, 1, 2


class Bounds(NamedTuple):
    """Where each of n signals stops."""

    stop: int  # AT_LAM, AT_RADIUS or AT_ERROR
    values: Any  # (n,)
    norms: Any  # (n,): ‖x‖²
    positive: bool  # whether α ≥ 0


class Bound(NamedTuple):
    """Where one signal stops."""

    stop: int
    value: float
    norm: float  # ‖x‖²


class Rounding(NamedTuple):
    """What counts as rounding."""

    dependent: float  # share of an atom's squared norm outside the span of others, at most
    tiny: float  # share of the first μ


class PathProblem(NamedTuple):
    """The path of one signal."""

    G: Any
    q: Any
    start: int
    n_atoms: int  # without those that fill up vectors
    positive: bool  # whether α ≥ 0
    rounding: Rounding


ROUNDING_64 = Rounding(1e-11, 1e-13)
ROUNDING_32 = Rounding(DEPENDENT_32, 1e-6)  # of signals in float32


class PathScratch(NamedTuple):
    """Scratch for one path."""

    active: ActiveSet
    state: Any  # int8 (width,): FREE, USED or BARRED; zero at the start
    c: Any  # (width + room,): correlations, followed by coefficients
    change: Any  # the same, per fall of μ by 1
    zeros: Any  # (width,), all zero


def make_path_scratch(active: ActiveSet, width: int) -> PathScratch:
    """Scratch for an active set out of ``width`` atoms."""
    c, change = np.empty((2, width + active.atoms.size))
    return PathScratch(active, np.zeros(width, np.int8), c, change, np.zeros(width))


@kernel
def _most_steps(n_atoms):
    """More steps than a path takes, unless rounding makes it go in circles."""
    return 16 * n_atoms + 64


@kernel
def _next_event(problem, scratch, mu, s, just_left):
    """The step to the next kink, and which active atom leaves there (−1: one joins)."""
    active, state, c, change, _ = scratch
    work, stride = active.work, active.atoms.size
    code, target, sign = CODE * stride, TARGET * stride, SIGN * stride
    step, leave = mu, np.int64(-1)
    for j in range(problem.n_atoms):
        if state[j] != FREE:
            continue
        # The correlation of j is c_j − step·change_j, the bound is μ − step. The atom that has
        # just left is at the bound that it comes from, and moves inward.
        if change[j] < 1.0 and not (j == just_left and c[j] > 0):
            reach = (mu - c[j]) / (1.0 - change[j])
            if reach < step:
                step = max(reach, 0.0)
        if not problem.positive and change[j] > -1.0 and not (j == just_left and c[j] < 0):
            reach = (mu + c[j]) / (1.0 + change[j])
            if reach < step:
                step = max(reach, 0.0)
    for i in range(s):
        if work[target + i] * work[sign + i] < 0.0:
            reach = -work[code + i] / work[target + i]
            if reach <= step:
                step, leave = max(reach, 0.0), np.int64(i)
    return step, leave


@kernel
def _join(problem, scratch, mu, slack, s, just_left):
    """Let every atom join that has reached the bound μ.

    Returns the number of atoms, −1 if full, and the atom that has just left.
    """
    active, state, c, _, zeros = scratch
    atoms, work = active
    code, target, sign = CODE * atoms.size, TARGET * atoms.size, SIGN * atoms.size
    for j in range(problem.n_atoms):
        if state[j] != FREE or j == just_left:
            continue
        if (c[j] if problem.positive else abs(c[j])) >= mu - slack:
            if s == capacity(active):
                return np.int64(-1), just_left
            side = 1.0 if c[j] > 0 else -1.0
            if append(problem.G, zeros.size, active, s, j, side, problem.rounding.dependent):
                work[code + s] = 0.0
                work[sign + s] = side
                state[j] = USED
                s += 1
            else:
                state[j] = BARRED
    # Degenerate ties: an atom at zero whose direction has the wrong sign must not join.
    i = np.int64(0)
    while i < s:
        if work[code + i] == 0.0 and work[target + i] * work[sign + i] <= 0.0:
            just_left = atoms[i]
            state[just_left] = FREE
            remove(active, s, i)
            s -= 1
            i = np.int64(0)
        else:
            i += 1
    return s, just_left


@kernel
def _directions(problem, scratch, s):
    """Write how fast correlations change along the path; returns how fast ‖α‖₁ does."""
    active, _, _, change, zeros = scratch
    work, width = active.work, zeros.size
    target, sign = TARGET * active.atoms.size, SIGN * active.atoms.size
    rate = 0.0
    for i in range(s):
        change[width + i] = -work[target + i]
        rate += work[sign + i] * work[target + i]
    subtract_rows(problem.G, width, zeros, np.int64(0), active.atoms, s, change)
    return rate


@kernel
def _move(problem, scratch, step, leave, s):
    """Go a step along the path, let an atom leave at its end (−1: none), refresh c.

    Returns the number of atoms and the atom that has left.
    """
    active, state, c, _, zeros = scratch
    atoms, work = active
    code, target, width = CODE * atoms.size, TARGET * atoms.size, zeros.size
    for i in range(s):
        work[code + i] += step * work[target + i]
    just_left = np.int64(-1)
    if leave >= 0:
        just_left = atoms[leave]
        state[just_left] = FREE
        work[code + leave] = 0.0
        remove(active, s, leave)
        s -= 1
        for j in range(problem.n_atoms):
            if state[j] == BARRED:
                state[j] = FREE
    for i in range(s):
        c[width + i] = work[code + i]
    subtract_rows(problem.G, width, problem.q, problem.start, atoms, s, c)
    return s, just_left


@kernel
def lars_path(problem, lam_end, max_nonzeros, scratch, kinks, out):
    """Record the path of one signal; returns (why it stopped, number of kinks).

    ``kinks`` receives the decreasing μ of the kinks, and ``out`` (`SparseRows`) the code at each of
    them, its atoms in no order. The path ends at lam_end, when max_nonzeros atoms are active, or
    when the residual has no correlation left.
    """
    active, _, c, _, zeros = scratch
    atoms, work = active
    indptr, indices, values = out
    width, code = zeros.size, CODE * atoms.size
    top = largest(problem.q, problem.start, width, problem.positive)
    mu, s, count = top, np.int64(0), 0
    just_left = np.int64(-1)
    subtract_rows(problem.G, width, problem.q, problem.start, atoms, s, c)
    while True:
        if count == kinks.size or indptr[count] + s > indices.size:
            return NO_ROOM, count
        kinks[count] = mu
        position = indptr[count]
        for i in range(s):
            indices[position + i] = atoms[i]
            values[position + i] = work[code + i]
        count += 1
        indptr[count] = position + s
        if mu <= lam_end or mu <= problem.rounding.tiny * top or s >= max_nonzeros:
            return DONE, count
        s, just_left = _join(problem, scratch, mu, SLACK_ON_PATH * top, s, just_left)
        if s < 0:
            return NO_ROOM, count
        if s == 0:
            return DONE, count
        _directions(problem, scratch, s)
        step, leave = _next_event(problem, scratch, mu, s, just_left)
        if mu - step < lam_end:
            step, leave = mu - lam_end, np.int64(-1)
        s, just_left = _move(problem, scratch, step, leave, s)
        mu -= step
        if count > _most_steps(problem.n_atoms):
            return MANY_STEPS, count


@kernel
def _step_to_stop(bound, mu, length, error, rate):
    """How far it is along the path to the stop, if no kink comes first.

    ``length`` is ‖α‖₁ and grows at the rate ``signᵀ G_SS⁻¹ sign``; the error ‖x − αD‖²
    falls by the rate times the fall of μ².
    """
    if bound.stop == AT_LAM:
        return mu - bound.value
    if bound.stop == AT_RADIUS:
        return (bound.value - length) / rate
    fall = (error - bound.value) / rate
    if fall >= mu * mu:
        return mu
    return fall / (mu + np.sqrt(mu * mu - fall))


@kernel
def _drop_zeros(active, s):
    """Let atoms leave that are at zero, as they may be where the stop is also a kink."""
    work, stride = active.work, active.atoms.size
    code, sign = CODE * stride, SIGN * stride
    i = np.int64(0)
    while i < s:
        if work[code + i] * work[sign + i] <= 0.0:
            remove(active, s, i)
            s -= 1
        else:
            i += 1
    return s


@kernel
def _lars_row(problem, bound, scratch):
    """Follow the path of one signal to its stop, or to its least-squares end.

    Returns the number of active atoms, −1 if there is no room for them.
    """
    active, _, c, _, zeros = scratch
    atoms, work = active
    q, start, width = problem.q, problem.start, zeros.size
    code, target = CODE * atoms.size, TARGET * atoms.size
    top = largest(q, start, width, problem.positive)
    tiny = problem.rounding.tiny * top
    mu, length, error, s = top, 0.0, bound.norm, np.int64(0)
    just_left = np.int64(-1)
    subtract_rows(problem.G, width, q, start, atoms, s, c)
    for _ in range(_most_steps(problem.n_atoms)):
        if mu <= tiny:
            break
        s, just_left = _join(
            problem, scratch, mu, SLACK * problem.rounding.tiny * top, s, just_left
        )
        if s <= 0:
            break
        rate = _directions(problem, scratch, s)
        step, leave = _next_event(problem, scratch, mu, s, just_left)
        last = _step_to_stop(bound, mu, length, error, rate)
        if last <= step:
            for i in range(s):
                work[code + i] += max(last, 0.0) * work[target + i]
            break
        s, just_left = _move(problem, scratch, step, leave, s)
        mu -= step
        length, error = 0.0, bound.norm
        for i in range(s):
            value = work[code + i]
            length += abs(value)
            error -= value * (q[start + atoms[i]] + c[atoms[i]])
    return _drop_zeros(active, s)


@kernel
def lars_rows(G, Q, row, last, bounds, rounding, scratch, out):
    """Code the rows of Q from ``row`` to ``last``, each to its own bound.

    Returns the first row not done: stops early, to be called again, when the active set or the
    output has no room left. A path that does not come to its stop ends with least squares.
    """
    width = Q.shape[1]
    q = flat(Q)
    while row < last:
        position = out.indptr[row]
        if position + capacity(scratch.active) > out.indices.size:
            return row
        scratch.state[:] = FREE
        s = np.int64(0)
        bound = Bound(bounds.stop, bounds.values[row], bounds.norms[row])
        done = bound.stop == AT_ERROR and bound.norm <= bound.value
        if not (done or (bound.stop == AT_RADIUS and bound.value <= 0.0)):
            problem = PathProblem(G, q, row * width, width, bounds.positive, rounding)
            s = _lars_row(problem, bound, scratch)
        if s < 0:
            return row
        write_sorted(scratch.active, s, scratch.state, out, position)
        out.indptr[row + 1] = position + s
        row += 1
    return row
