"""LARS-Lasso: the whole regularisation path of one signal, with drops (Section 3.2).

Follows the solutions of ``min_α ½‖x − αD‖² + μ‖α‖₁`` from the μ at which all is zero down
to ``lam_end``. Between two kinks the code moves along ``G_SS⁻¹ sign``, which is the target of
the active set for the right-hand side ``sign``; an atom joins when its correlation reaches μ
and leaves when its coefficient reaches zero. Everything is in float64.
"""

from __future__ import annotations

from smalto.kernels.active import (
    CODE,
    SIGN,
    TARGET,
    append,
    capacity,
    correlations,
    largest,
    remove,
)
from smalto.kernels.jit import kernel

FREE, USED, BARRED = 0, 1, 2  # an atom that depends on the active ones is barred till one leaves
DEPENDENT = 1e-11

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
    code, target, sign = CODE * atoms.size, TARGET * atoms.size, SIGN * atoms.size
    start = largest(q, 0, width, positive)
    mu, s, count = start, 0, 0
    tiny = 1e-13 * start
    just_left = -1
    correlations(G, width, q, 0, atoms, 0, positive, c)
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
        if mu <= lam_end or mu <= tiny or s >= max_nonzeros:
            return DONE, count
        # Whatever has reached the bound joins; at the start that is the largest correlation.
        for j in range(k):
            if state[j] != FREE or j == just_left:
                continue
            if (c[j] if positive else abs(c[j])) >= mu - 1e-12 * start:
                if s == capacity(work, atoms):
                    return NO_ROOM, count
                side = 1.0 if c[j] > 0 else -1.0
                if append(G, width, work, atoms, s, j, side, DEPENDENT):
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
        if s == 0:
            return DONE, count
        for i in range(s):
            change[width + i] = -work[target + i]
        correlations(G, width, zeros, 0, atoms, s, positive, change)
        step, leave = _next_event(c, change, mu, state, work, atoms, s, just_left, k, positive)
        just_left = -1
        if mu - step < lam_end:
            step, leave = mu - lam_end, -1
        for i in range(s):
            work[code + i] += step * work[target + i]
        mu -= step
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
        correlations(G, width, q, 0, atoms, s, positive, c)
        if count > 16 * k + 64:
            return MANY_STEPS, count
