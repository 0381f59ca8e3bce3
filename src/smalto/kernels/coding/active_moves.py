"""Moves of an active set and its code: atoms join, the code walks to its target, atoms leave.

Shared by the exact methods: the lasso (`lasso.py`), and its forms with a bound in place of the
penalty (`constrained.py`). The target of the active set is the optimum on it with signs held.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.coding.active_set import (
    CODE,
    GATHERED,
    INVERSE,
    SIGN,
    TARGET,
    append,
    capacity,
    remove,
    weights_of_dependent,
)
from smalto.kernels.coding.masked_atoms import make_products
from smalto.kernels.jit import inlined, kernel
from smalto.kernels.simd import above, lanes, load, lowest_bit, splat, vabs

# Measured on dictionaries of 256 to 1 024 atoms, from random patches to learned ones.
FIRST = 8  # atoms that may join at once, at least ...
SHARE = 0.8  # ... those that violate by more than this share of the worst violation, ...
LAST_SHARE, RISE = 0.2, 1.2  # ... or by less near the optimum, where few of them leave again

# An atom depends on others if less than this share of its squared norm lies outside their span:
# well above the rounding of a Gram matrix in float32, and of the factor in float64.
DEPENDENT_32 = 2e-6
DEPENDENT_64 = 1e-12
WORSE_THAN_ROUNDING = 1e3  # times `DEPENDENT`: a rate this much above 1 is not rounding


@kernel
def _swap_in(active, s, side, used, tolerance):
    """Make room for an atom that depends on the active ones.

    Atom j = Σ w_i (active atom i). Moving by t along (+1 on j, −w on the others) leaves the fit
    as it is and changes ‖α‖₁ at rate 1 − Σ sign_i w_i, which is negative exactly if j violates
    optimality. So the code moves until a coefficient reaches zero, and that atom leaves: j does
    not depend on those that stay (weights so small that it would are ignored). Returns the number
    of atoms, which is unchanged where the violation is rounding, and t.
    """
    atoms, work = active
    stride = atoms.size
    weights, code, sign = GATHERED * stride, CODE * stride, SIGN * stride
    weights_of_dependent(active, s)
    rate = 0.0
    for i in range(s):
        work[weights + i] *= side
        rate += work[weights + i] * work[sign + i]
    if rate <= 1.0 + WORSE_THAN_ROUNDING * tolerance:
        return s, 0.0
    t, p = np.inf, np.int64(-1)
    least = np.sqrt(tolerance)
    for i in range(s):
        shrinks = work[weights + i] * work[sign + i]
        if shrinks > least and abs(work[code + i]) < t * shrinks:
            t, p = abs(work[code + i]) / shrinks, np.int64(i)
    if p < 0:
        return s, 0.0
    for i in range(s):
        work[code + i] -= t * work[weights + i]
    used[atoms[p]] = False
    remove(active, s, p)
    return s - 1, t


@kernel
def join(signal, c, top, lam, allowed, active, s, used):
    """Let the worst violators join; ``top`` is the largest of the correlations c.

    Those that violate optimality by less than ``allowed`` need not.

    Returns the new number of atoms, whether any joined, and whether the code has moved.
    """
    gram, work, width = signal.gram, active.work, used.size
    code, sign = CODE * active.atoms.size, SIGN * active.atoms.size
    excess = top - lam
    near = max(allowed, (LAST_SHARE + RISE * excess / top) * excess)
    threshold = splat(c.dtype.type(lam + min(SHARE * excess, near)))
    room = min(max(FIRST, s), capacity(active) - s)
    joined, moved = False, False
    for block in range(0, width, lanes(c)):
        v = load(c, block)
        bits = above(v if signal.positive else vabs(v), threshold)
        while bits != 0 and room > 0:
            j = block + lowest_bit(bits)
            bits &= bits - 1
            if used[j]:
                continue
            side = 1.0 if c[j] > 0 else -1.0
            b = signal.q[signal.start + j] - lam * side
            t = 0.0
            make_products(gram.lazy, j, active.atoms, s, gram.exact)
            fits = append(gram.exact, width, active, s, j, b, signal.tolerance)
            while not fits and lam > 0.0:  # again if the atom that left was rounding itself
                staying, more = _swap_in(active, s, side, used, signal.tolerance)
                if staying == s:
                    break
                s = staying
                t += more
                joined = True
                moved |= more > 0.0
                fits = append(gram.exact, width, active, s, j, b, signal.tolerance)
            if fits:
                work[code + s] = t * side
                work[sign + s] = side
                used[j] = True
                s += 1
                room -= 1
                joined = True
    return s, joined, moved


@inlined
def first_to_vanish(active, s):
    """How much of the way from code to target can be gone, and which atom is then zero (or −1)."""
    work, stride = active.work, active.atoms.size
    code, target, sign = CODE * stride, TARGET * stride, SIGN * stride
    step, p = 1.0, np.int64(-1)
    for i in range(s):
        if work[target + i] * work[sign + i] <= 0.0:
            now = work[code + i]
            reach = now / (now - work[target + i]) if now != 0.0 else 0.0
            if p < 0 or reach < step:
                step, p = reach, np.int64(i)
    return step, p


@inlined
def move_code(active, s, step, p, used):
    """Move the code that much of the way to its target, and let its p-th atom leave (−1: none).

    Returns the number of atoms and whether any coefficient has changed.
    """
    atoms, work = active
    code, target = CODE * atoms.size, TARGET * atoms.size
    moved = False
    if p < 0:
        for i in range(s):
            moved |= work[code + i] != work[target + i]
            work[code + i] = work[target + i]
        return s, moved
    if step > 0.0:
        moved = True
        for i in range(s):
            work[code + i] += step * (work[target + i] - work[code + i])
    used[atoms[p]] = False
    remove(active, s, p)
    return s - 1, moved


@kernel
def walk(active, s, free, used):
    """Go from the code to the target, letting atoms leave where they reach zero.

    With ``free`` signs do not matter (λ = 0) and no atom leaves. Returns the number of atoms and
    whether the code has moved.
    """
    moved = False
    while True:
        step, p = 1.0, np.int64(-1)
        if not free:
            step, p = first_to_vanish(active, s)
        s, more = move_code(active, s, step, p, used)
        moved |= more
        if p < 0:
            return s, moved


@kernel
def active_gap(c, lam, active, s):
    """Gather ``c_i − lam sign_i`` of the active atoms, zero at the optimum; return the largest."""
    atoms, work = active
    missing, sign = GATHERED * atoms.size, SIGN * atoms.size
    gap = 0.0
    for i in range(s):
        work[missing + i] = c[atoms[i]] - lam * work[sign + i]
        gap = max(gap, abs(work[missing + i]))
    return gap


@kernel
def refine(active, s):
    """Correct the target by solving for what `active_gap` has gathered."""
    work, stride = active.work, active.atoms.size
    missing, target, inverse = GATHERED * stride, TARGET * stride, INVERSE * stride
    for r in range(s):
        row = inverse + r * stride
        y = 0.0
        for i in range(r + 1):
            y += work[row + i] * work[missing + i]
        work[r] += y
        for i in range(r + 1):
            work[target + i] += y * work[row + i]


@kernel
def rebuild(signal, lam, active, s, used):
    """Factor the active set afresh: atoms that were nearly dependent have spoiled the factor."""
    atoms, work = active
    code, sign = CODE * atoms.size, SIGN * atoms.size
    kept = np.int64(0)
    for i in range(s):
        j, value, side = atoms[i], work[code + i], work[sign + i]
        b = signal.q[signal.start + j] - lam * side
        used[j] = append(signal.gram.exact, used.size, active, kept, j, b, signal.tolerance)
        if used[j]:
            work[code + kept] = value
            work[sign + kept] = side
            kept += 1
    return kept


@kernel
def repair(signal, c, lam, active, s, used, repairs):
    """Better the target where rounding hides the optimum; returns the number of atoms."""
    if repairs == 0:
        return rebuild(signal, lam, active, s, used)
    active_gap(c, lam, active, s)
    refine(active, s)
    return s


@kernel
def write_sorted(active, s, used, out, position):
    """Append the active code to the output by increasing atom, and mark its atoms unused."""
    atoms, work = active
    code = CODE * atoms.size
    for i in range(s):
        atom = atoms[i]
        used[atom] = False
        p = position + i
        while p > position and out.indices[p - 1] > atom:
            out.indices[p] = out.indices[p - 1]
            out.values[p] = out.values[p - 1]
            p -= 1
        out.indices[p] = atom
        out.values[p] = work[code + i]
