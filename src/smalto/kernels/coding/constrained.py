"""The exact active-set method for an ℓ1 radius or a bound on the error, on the Gram matrix.

Solves ℓ′ and ℓ″ of Section 5.1, for one signal x each:

- ``min_α ½‖x − αD‖²  s.t. ‖α‖₁ ≤ T``,
- ``min_α ‖α‖₁  s.t. ‖x − αD‖² ≤ ε``.

Both have the solution of a lasso whose λ is not known beforehand. On an active set with known
signs that λ has a closed form: with ``y = L⁻¹q`` and ``z = L⁻¹ sign`` (`active.py`),

    ‖α‖₁ = yᵀz − λ‖z‖²  and  ‖x − αD‖² = ‖x‖² − ‖y‖² + λ²‖z‖².

So the method is that of `lasso.py` (several atoms join, walk to the optimum on the active set,
let atoms leave, refresh the correlations), with λ set anew whenever the active set has
changed. While the bound cannot be met yet on the few atoms that are active, λ falls by a
share in each round. Where λ would have to be tiny (the bound is out of reach or nearly so),
and where rounding keeps the method from ending, the signal is left to the homotopy.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.coding.active_set import (
    CODE,
    GATHERED,
    INVERSE,
    LANES,
    SIGN,
    TARGET,
    capacity,
    correlations,
    largest,
    remove,
)
from smalto.kernels.coding.lars import AT_ERROR, AT_RADIUS
from smalto.kernels.coding.lasso import (
    DEPENDENT_32,
    DEPENDENT_64,
    active_gap,
    join,
    rebuild,
    refine,
    write_sorted,
)
from smalto.kernels.coding.masked_gram import begin_signal
from smalto.kernels.jit import kernel
from smalto.kernels.simd import fma, hsum, load, splat, store

FALL = 0.5  # by which λ falls while the bound cannot be met ...
NEAR = 1.5  # ... in a round in which no correlation exceeds it by more than this
END = 1e-3  # share of the largest correlation below which λ is not looked for here

# Why a row stopped.
DONE, NO_ROOM, LEFT = 0, 1, 2


@kernel
def _aim(stop, bound, norm, lam, least, work, atoms, s):
    """Move the target of the active set from λ to the one that meets the bound.

    Returns the new λ, and whether it is that one: it is at least ``least``.
    """
    stride = atoms.size
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
        if stop == AT_RADIUS:
            wanted = (yz - bound) / zz
        elif norm - yy < bound:
            wanted = np.sqrt((bound - (norm - yy)) / zz)
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
def _settle(stop, bound, norm, lam, least, work, atoms, s, used):
    """Walk to the optimum on the active set; (atoms left, λ, whether the bound is met, moved).

    Where a coefficient reaches zero its atom leaves, and λ is set anew for those that stay:
    so a code that meets the bound never ceases to.
    """
    stride = atoms.size
    code, target, sign = CODE * stride, TARGET * stride, SIGN * stride
    moved = False
    while True:
        lam, met = _aim(stop, bound, norm, lam, least, work, atoms, s)
        step, p = 1.0, -1
        for i in range(s):
            if work[target + i] * work[sign + i] <= 0.0:
                now = work[code + i]
                reach = now / (now - work[target + i]) if now != 0.0 else 0.0
                if p < 0 or reach < step:
                    step, p = reach, i
        if p < 0:
            for i in range(s):
                moved |= work[code + i] != work[target + i]
                work[code + i] = work[target + i]
            return s, lam, met, moved
        if step > 0.0:
            moved = True
            for i in range(s):
                work[code + i] += step * (work[target + i] - work[code + i])
        used[atoms[p]] = False
        remove(work, atoms, s, p)
        s -= 1


@kernel
def _descend(lazy, stop, bound, norm, G, q, start, fast_G, fast_q, fast_start, c, width, lam, least,
             met, positive, work, atoms, s, used, scale, tolerance, rounds, row):  # fmt: skip
    """Rounds of join, settle, refresh, until optimal; (why, atoms, λ, the least λ, bound met).

    As in the lasso, the factor reads ``G`` and the passes ``fast_G``.
    """
    code = CODE * atoms.size
    allowed = 64.0 * np.float64(np.finfo(c.dtype).eps) * scale
    repairs = 0
    for _ in range(64 + 4 * width):
        rounds[row] += 1
        for i in range(s):
            c[width + i] = work[code + i]
        top = np.float64(correlations(fast_G, width, fast_q, fast_start, atoms, s, positive, c))
        lower = not met and least > 0.0 and top <= NEAR * lam
        if lower:
            least *= FALL
            if least < END * scale:
                if stop == AT_ERROR:
                    return LEFT, s, lam, least, met
                least = 0.0
        if top > lam + allowed:
            if s == capacity(work, atoms) and s < width:
                return NO_ROOM, s, lam, least, met
            s, joined, swapped = join(
                lazy, G, fast_G, width, q, start, c, top, lam, positive, work, atoms, s, used,
                tolerance,
            )  # fmt: skip
            if joined or lower:
                s, lam, met, moved = _settle(stop, bound, norm, lam, least, work, atoms, s, used)
                if moved or swapped:
                    continue
        elif lower:
            s, lam, met, _ = _settle(stop, bound, norm, lam, least, work, atoms, s, used)
            continue
        elif active_gap(c, lam, work, atoms, s) <= allowed:
            return DONE, s, lam, least, met
        # Rounding keeps it from the optimum.
        if repairs == 3:
            return (DONE if met else LEFT), s, lam, least, met
        if repairs == 0:
            s = rebuild(G, width, q, start, lam, work, atoms, s, used, tolerance)
        else:
            active_gap(c, lam, work, atoms, s)
            refine(work, atoms, s)
        s, lam, met, _ = _settle(stop, bound, norm, lam, least, work, atoms, s, used)
        repairs += 1
    return LEFT, s, lam, least, met


@kernel
def constrained_rows(lazy, G, fast_G, Q, row, stop, bounds, norms, positive, work, atoms, used, c,
                     fast_c, fast_q, out_ptr, out_atoms, out_codes, rounds):  # fmt: skip
    """Code the rows of Q from ``row`` on, each to its own bound; (why it stops, at which row).

    Arrays as in `lasso_rows`. `NO_ROOM`: the active set or the output is too small;
    `LEFT`: this row is one for the homotopy.
    """
    n, width = Q.shape
    q = Q.reshape(-1)
    two_stages = fast_G.itemsize != G.itemsize
    tolerance = DEPENDENT_64 if G.itemsize == 8 else DEPENDENT_32
    while row < n:
        position = out_ptr[row]
        if position + capacity(work, atoms) > out_atoms.size:
            return NO_ROOM, row
        start = row * width
        bound, norm = bounds[row], norms[row]
        scale = np.float64(largest(q, start, width, positive))
        zero = scale == 0.0 or (bound <= 0.0 if stop == AT_RADIUS else norm <= bound)
        why, s = DONE, 0
        rounds[row] = 0
        if lazy is not None:
            begin_signal(lazy, row)
        lam, met = FALL * scale, False
        least = lam
        if two_stages and not zero:
            for j in range(width):
                fast_q[j] = q[start + j]
            why, s, lam, least, met = _descend(
                lazy, stop, bound, norm, G, q, start, fast_G, fast_q, 0, fast_c, width, lam, least,
                met, positive, work, atoms, s, used, scale, tolerance, rounds, row,
            )  # fmt: skip
        if why == DONE and not zero:
            why, s, lam, least, met = _descend(
                lazy, stop, bound, norm, G, q, start, G, q, start, c, width, lam, least, met,
                positive, work, atoms, s, used, scale, tolerance, rounds, row,
            )  # fmt: skip
        if why != DONE:
            used[:] = False
            return why, row
        write_sorted(work, atoms, s, used, out_atoms, out_codes, position)
        out_ptr[row + 1] = position + s
        row += 1
    return DONE, row
