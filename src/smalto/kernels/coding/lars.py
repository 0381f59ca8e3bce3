"""LARS-Lasso: the regularisation path of a signal, with drops (Section 3.2).

Follows the solutions of ``min_α ½‖x − αD‖² + μ‖α‖₁`` from the μ at which all is zero down
to where it is told to stop: at a given μ, where ``‖α‖₁`` has reached a radius (ℓ′ of
Section 5.1) or where ``‖x − αD‖²`` has fallen to a bound (ℓ″). Between two kinks the code
moves along ``G_SS⁻¹ sign``, which is the target of the active set for the right-hand side
``sign``; an atom joins when its correlation reaches μ and leaves when its coefficient reaches
zero. `lars_path` records every kink of one signal, `lars_rows` the ends of many; they share
the steps. Everything is in float64.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.coding.active_set import (
    CODE,
    SIGN,
    TARGET,
    append,
    capacity,
    largest,
    remove,
    subtract_rows,
)
from smalto.kernels.coding.lasso import write_sorted
from smalto.kernels.jit import kernel

FREE, USED, BARRED = 0, 1, 2  # an atom that depends on the active ones is barred till one leaves
DEPENDENT = 1e-11

# Where to stop.
AT_LAM, AT_RADIUS, AT_ERROR = 0, 1, 2

# Why the walk stopped.
DONE, NO_ROOM, MANY_STEPS = 0, 1, 2


@kernel
def _next_event(c, change, mu, state, work, atoms, s, just_left, k, positive):
    """The step to the next kink, and which active atom leaves there (−1: one joins)."""
    code, target, sign = CODE * atoms.size, TARGET * atoms.size, SIGN * atoms.size
    step, leave = mu, -1
    for j in range(k):
        if state[j] != FREE:
            continue
        # The correlation of j is c_j − step·change_j, the bound μ − step. The atom that has
        # just left sits at the bound it came from and moves inward.
        if change[j] < 1.0 and not (j == just_left and c[j] > 0):
            reach = (mu - c[j]) / (1.0 - change[j])
            if reach < step:
                step = max(reach, 0.0)
        if not positive and change[j] > -1.0 and not (j == just_left and c[j] < 0):
            reach = (mu + c[j]) / (1.0 + change[j])
            if reach < step:
                step = max(reach, 0.0)
    for i in range(s):
        if work[target + i] * work[sign + i] < 0.0:
            reach = -work[code + i] / work[target + i]
            if reach <= step:
                step, leave = max(reach, 0.0), i
    return step, leave


@kernel
def _join(G, width, c, mu, slack, tolerance, positive, work, atoms, s, state, just_left, k):
    """Let join whatever has reached the bound; (number of atoms or −1 if full, just left)."""
    code, target, sign = CODE * atoms.size, TARGET * atoms.size, SIGN * atoms.size
    for j in range(k):
        if state[j] != FREE or j == just_left:
            continue
        if (c[j] if positive else abs(c[j])) >= mu - slack:
            if s == capacity(work, atoms):
                return -1, just_left
            side = 1.0 if c[j] > 0 else -1.0
            if append(G, width, work, atoms, s, j, side, tolerance):
                work[code + s] = 0.0
                work[sign + s] = side
                state[j] = USED
                s += 1
            else:
                state[j] = BARRED
    # Degenerate ties: an atom at zero whose direction has the wrong sign must not join.
    i = 0
    while i < s:
        if work[code + i] == 0.0 and work[target + i] * work[sign + i] <= 0.0:
            just_left = atoms[i]
            state[just_left] = FREE
            remove(work, atoms, s, i)
            s -= 1
            i = 0
        else:
            i += 1
    return s, just_left


@kernel
def _move(G, width, q, start, c, step, leave, work, atoms, s, state, k):
    """Go a step along the path, let an atom leave at its end (−1: none), refresh c.

    Returns the number of atoms and the one that has left.
    """
    code, target = CODE * atoms.size, TARGET * atoms.size
    for i in range(s):
        work[code + i] += step * work[target + i]
    just_left = -1
    if leave >= 0:
        just_left = atoms[leave]
        state[just_left] = FREE
        work[code + leave] = 0.0
        remove(work, atoms, s, leave)
        s -= 1
        for j in range(k):
            if state[j] == BARRED:
                state[j] = FREE
    for i in range(s):
        c[width + i] = work[code + i]
    subtract_rows(G, width, q, start, atoms, s, c)
    return s, just_left


@kernel
def lars_path(G, q, k, lam_end, positive, max_nonzeros, work, atoms, state, c, change, zeros, kinks,
              indptr, indices, values):  # fmt: skip
    """Record the path of one signal; returns (why it stopped, number of kinks).

    ``kinks`` receives the decreasing μ of each kink, the code at kink i is
    ``indices, values[indptr[i] : indptr[i + 1]]`` in no order. G is flat; q and zeros fill
    whole vectors (``width``), c and change have room for coefficients behind; ``state`` must
    be zero. The path ends at lam_end,
    when max_nonzeros atoms are active, or when the residual has no correlation left.
    """
    width = zeros.size
    code, target = CODE * atoms.size, TARGET * atoms.size
    top = largest(q, 0, width, positive)
    mu, s, count = top, 0, 0
    just_left = -1
    subtract_rows(G, width, q, 0, atoms, 0, c)
    while True:
        # The kink at mu.
        if count == kinks.size or indptr[count] + s > indices.size:
            return NO_ROOM, count
        kinks[count] = mu
        position = indptr[count]
        for i in range(s):
            indices[position + i] = atoms[i]
            values[position + i] = work[code + i]
        count += 1
        indptr[count] = position + s
        if mu <= lam_end or mu <= 1e-13 * top or s >= max_nonzeros:
            return DONE, count
        s, just_left = _join(
            G, width, c, mu, 1e-12 * top, DEPENDENT, positive, work, atoms, s, state, just_left, k
        )
        if s < 0:
            return NO_ROOM, count
        if s == 0:
            return DONE, count
        for i in range(s):
            change[width + i] = -work[target + i]
        subtract_rows(G, width, zeros, 0, atoms, s, change)
        step, leave = _next_event(c, change, mu, state, work, atoms, s, just_left, k, positive)
        if mu - step < lam_end:
            step, leave = mu - lam_end, -1
        s, just_left = _move(
            G, width, q, 0, c, step, leave, work, atoms, s, state, k
        )  # fmt: skip
        mu -= step
        if count > 16 * k + 64:
            return MANY_STEPS, count


@kernel
def _step_to_stop(stop, bound, mu, length, error, rate):
    """How far it is along the path to the stop, if no kink comes first.

    ``length`` is ‖α‖₁ and grows at the rate ``signᵀ G_SS⁻¹ sign``; the error ‖x − αD‖²
    falls by the rate times the fall of μ².
    """
    if stop == AT_LAM:
        return mu - bound
    if stop == AT_RADIUS:
        return (bound - length) / rate
    fall = (error - bound) / rate
    if fall >= mu * mu:
        return mu
    return fall / (mu + np.sqrt(mu * mu - fall))


@kernel
def lars_row(G, q, start, k, stop, bound, norm, positive, tolerance, tiny, work, atoms, state, c,
             change, zeros):  # fmt: skip
    """Follow the path of one signal to its stop, or to its least-squares end.

    Returns the number of active atoms, −1 if there is no room for them. ``state`` must be
    zero; ``tolerance`` and ``tiny`` say when an atom depends on others, and which share of
    the first μ is rounding.
    """
    width = zeros.size
    code, target, sign = CODE * atoms.size, TARGET * atoms.size, SIGN * atoms.size
    top = largest(q, start, width, positive)
    mu, length, error, s = top, 0.0, norm, 0
    just_left = -1
    subtract_rows(G, width, q, start, atoms, 0, c)
    for _ in range(16 * k + 64):
        if mu <= tiny * top:
            break
        s, just_left = _join(
            G, width, c, mu, 0.1 * tiny * top, tolerance, positive, work, atoms, s, state,
            just_left, k,
        )  # fmt: skip
        if s <= 0:
            break
        rate = 0.0
        for i in range(s):
            change[width + i] = -work[target + i]
            rate += work[sign + i] * work[target + i]
        subtract_rows(G, width, zeros, 0, atoms, s, change)
        step, leave = _next_event(c, change, mu, state, work, atoms, s, just_left, k, positive)
        last = _step_to_stop(stop, bound, mu, length, error, rate)
        if last <= step:
            for i in range(s):
                work[code + i] += max(last, 0.0) * work[target + i]
            break
        s, just_left = _move(
            G, width, q, start, c, step, leave, work, atoms, s, state, k
        )  # fmt: skip
        mu -= step
        length, error = 0.0, norm
        for i in range(s):
            value = work[code + i]
            length += abs(value)
            error -= value * (q[start + atoms[i]] + c[atoms[i]])
    i = 0
    while i < s:  # where the stop is a kink too, an atom may be at zero
        if work[code + i] * work[sign + i] <= 0.0:
            remove(work, atoms, s, i)
            s -= 1
        else:
            i += 1
    return s


@kernel
def lars_rows(G, Q, row, last, k, stop, bounds, norms, positive, tolerance, tiny, work, atoms,
              state, c, change, zeros, out_ptr, out_atoms, out_codes):  # fmt: skip
    """Code the rows of Q from ``row`` to ``last``, each to its own bound; the first not done.

    G (flat) and Q are float64. Stops early, to be called again, when the active set or the
    output has no room left. A path that does not come to its stop ends with least squares.
    """
    width = zeros.size
    q = Q.reshape(-1)
    while row < last:
        position = out_ptr[row]
        if position + capacity(work, atoms) > out_atoms.size:
            return row
        state[:] = FREE
        s = 0
        nothing = stop == AT_ERROR and norms[row] <= bounds[row]
        if not (nothing or (stop == AT_RADIUS and bounds[row] <= 0.0)):
            s = lars_row(G, q, row * width, k, stop, bounds[row], norms[row], positive,
                         tolerance, tiny, work, atoms, state, c, change, zeros)  # fmt: skip
        if s < 0:
            return row
        write_sorted(work, atoms, s, state, out_atoms, out_codes, position)
        out_ptr[row + 1] = position + s
        row += 1
    return row
