"""The exact active-set lasso, on the Gram matrix.

Solves ``min_α ½‖x − αD‖² + λ‖α‖₁`` (Eq. 2 of the paper), optionally with α ≥ 0, from
``G = D Dᵀ`` and ``q = x Dᵀ`` (a ridge term sits on the diagonal of G). The paper walks the
LARS path, one atom a step; here several atoms join at once:

1. the atoms that violate optimality by more than a share of the worst violation join;
2. with signs held, the optimum on the active set is known through its factor; walk towards
   it, and where a coefficient reaches zero first, stop there, let that atom leave, go on;
3. all correlations are refreshed in one pass over the active rows of G.

Each walk lowers the objective, so no active set comes back, and the end is exact. About half
as many passes over G are needed as LARS takes steps.
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
    correlations,
    largest,
    remove,
    weights_of_dependent,
)
from smalto.kernels.coding.masked_gram import begin_signal, make_row
from smalto.kernels.jit import kernel
from smalto.kernels.simd import above, lanes, load, lowest_bit, splat, vabs

# Measured on dictionaries of 256 to 1 024 atoms, from random patches to learned ones.
FIRST = 8  # atoms that may join at once, at least ...
SHARE = 0.8  # ... those that violate by more than this share of the worst violation

PATIENCE = 32  # rounds before the objective is watched, and rounds that it may not fall

# An atom depends on others when less than this share of its squared norm lies outside their
# span: well above the rounding of a Gram matrix in float32, and of the factor in float64.
DEPENDENT_32 = 2e-6
DEPENDENT_64 = 1e-12


@kernel
def _swap_in(work, atoms, s, step_sign, used, tolerance):
    """Make room for an atom that depends on the active ones.

    Atom j = Σ w_i (active atom i). Moving ``t`` along (+1 on j, −w on the others) leaves the
    fit as it is and changes ‖α‖₁ at rate 1 − Σ sign_i w_i; j violates optimality just when
    that is negative. So move until a coefficient reaches zero, and let that atom leave:
    j depends no more on those that stay (weights so small that it would do not count).
    Returns their number and t; the number is unchanged where the violation is rounding.
    """
    stride = atoms.size
    weights, code, sign = GATHERED * stride, CODE * stride, SIGN * stride
    weights_of_dependent(work, atoms, s)
    rate = 0.0
    for i in range(s):
        work[weights + i] *= step_sign
        rate += work[weights + i] * work[sign + i]
    if rate <= 1.0 + 1e3 * tolerance:
        return s, 0.0
    t, p = np.inf, -1
    least = np.sqrt(tolerance)
    for i in range(s):
        shrinks = work[weights + i] * work[sign + i]
        if shrinks > least and abs(work[code + i]) < t * shrinks:
            t, p = abs(work[code + i]) / shrinks, i
    if p < 0:
        return s, 0.0
    for i in range(s):
        work[code + i] -= t * work[weights + i]
    used[atoms[p]] = False
    remove(work, atoms, s, p)
    return s - 1, t


@kernel
def join(lazy, G, fast_G, width, q, start, c, top, lam, positive, work, atoms, s, used, tolerance):
    """Let the worst violators join; ``lazy`` makes the rows of G, unless it is None.

    Returns the new number of atoms, whether any joined, and whether the code has moved.
    """
    code, sign = CODE * atoms.size, SIGN * atoms.size
    threshold = splat(c.dtype.type(lam + (top - lam) * SHARE))
    room = min(max(FIRST, s), capacity(work, atoms) - s)
    joined, moved = False, False
    for block in range(0, width, lanes(c)):
        v = load(c, block)
        bits = above(v if positive else vabs(v), threshold)
        while bits != 0 and room > 0:
            j = block + lowest_bit(bits)
            bits &= bits - 1
            if used[j]:
                continue
            side = 1.0 if c[j] > 0 else -1.0
            b = q[start + j] - lam * side
            t = 0.0
            if lazy is not None:
                make_row(lazy, j, G, fast_G)
            fits = append(G, width, work, atoms, s, j, b, tolerance)
            while not fits and lam > 0.0:  # again where the one that left was rounding itself
                left, more = _swap_in(work, atoms, s, side, used, tolerance)
                if left == s:
                    break
                s = left
                t += more
                joined = True
                moved |= more > 0.0
                fits = append(G, width, work, atoms, s, j, b, tolerance)
            if fits:
                work[code + s] = t * side
                work[sign + s] = side
                used[j] = True
                s += 1
                room -= 1
                joined = True
    return s, joined, moved


@kernel
def walk(work, atoms, s, free, used):
    """Go from the code to the target, letting atoms leave where they reach zero.

    With ``free`` the sign does not matter (λ = 0) and nothing leaves. Returns the number of
    atoms and whether the code has moved.
    """
    stride = atoms.size
    code, target, sign = CODE * stride, TARGET * stride, SIGN * stride
    moved = False
    while True:
        step, p = 1.0, -1
        if not free:
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
            return s, moved
        if step > 0.0:
            moved = True
            for i in range(s):
                work[code + i] += step * (work[target + i] - work[code + i])
        used[atoms[p]] = False
        remove(work, atoms, s, p)
        s -= 1


@kernel
def active_gap(c, lam, work, atoms, s):
    """Gather ``c_i − lam sign_i`` of the active atoms, zero at the optimum; the largest."""
    missing, sign = GATHERED * atoms.size, SIGN * atoms.size
    gap = 0.0
    for i in range(s):
        work[missing + i] = c[atoms[i]] - lam * work[sign + i]
        gap = max(gap, abs(work[missing + i]))
    return gap


@kernel
def refine(work, atoms, s):
    """Solve once more for what is missing at the active atoms, as just gathered."""
    stride = atoms.size
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
def rebuild(G, width, q, start, lam, work, atoms, s, used, tolerance):
    """Factor the active set afresh: atoms that had been near to dependent spoil the factor."""
    code, sign = CODE * atoms.size, SIGN * atoms.size
    kept = 0
    for i in range(s):
        j, value, side = atoms[i], work[code + i], work[sign + i]
        used[j] = append(G, width, work, atoms, kept, j, q[start + j] - lam * side, tolerance)
        if used[j]:
            work[code + kept] = value
            work[sign + kept] = side
            kept += 1
    return kept


@kernel
def _start(lazy, G, fast_G, width, q, start, lam, positive, row, first, work, atoms, used):
    """Take a given code as the active set, and go to the optimum on it; −1 if it is too large."""
    indptr, indices, values = first
    code, sign = CODE * atoms.size, SIGN * atoms.size
    s = 0
    for p in range(indptr[row], indptr[row + 1]):
        j, value = indices[p], np.float64(values[p])
        if value == 0.0 or (positive and value < 0.0) or used[j]:
            continue
        if s == capacity(work, atoms):
            return -1
        side = 1.0 if value > 0.0 else -1.0
        if lazy is not None:
            make_row(lazy, j, G, fast_G)
        # An atom that nearly depends on others is left out: it can still join later.
        if append(G, width, work, atoms, s, j, q[start + j] - lam * side, 1e-4):
            work[code + s] = value
            work[sign + s] = side
            used[j] = True
            s += 1
    return walk(work, atoms, s, lam == 0.0 and not positive, used)[0]


@kernel
def _objective(q, start, c, lam, work, atoms, s):
    """The objective less ½‖x‖², from correlations before (q) and after (c) the code."""
    code = CODE * atoms.size
    value = 0.0
    for i in range(s):
        a = work[code + i]
        value += lam * abs(a) - 0.5 * a * (
            np.float64(q[start + atoms[i]]) + np.float64(c[atoms[i]])
        )
    return value


@kernel
def _falls_short(top, c, lam, scale, work, atoms, s):
    """Whether optimality is missed by more than rounding explains: 1, else 0."""
    missed = max(top - lam, active_gap(c, lam, work, atoms, s))
    if c.itemsize == 8:
        return 1 if missed > 1e-6 * lam + 1e-9 * scale else 0
    return 1 if missed > 1e-3 * lam + 1e-4 * scale else 0


@kernel
def _descend(lazy, G, q, start, fast_G, fast_q, fast_start, c, width, lam, positive, work, atoms, s,
             used, scale, tolerance, stuck, rounds, row):  # fmt: skip
    """Rounds of join, walk, refresh, until optimal; the number of atoms, or −1 if full.

    The factor reads the Gram matrix ``G``; the passes read ``fast_G``, which may be its
    float32 copy, and write to ``c`` of the same dtype. Where rounding keeps it well short of
    the optimum, ``stuck[0]`` is raised by one; ``rounds[row]`` by one in each round.
    """
    code = CODE * atoms.size
    free = lam == 0.0 and not positive
    epsilon = np.float64(np.finfo(c.dtype).eps)
    allowed = 64.0 * epsilon * scale
    repairs, done, stalled = 0, 0, 0
    best = np.inf
    while True:
        for i in range(s):
            c[width + i] = work[code + i]
        top = np.float64(correlations(fast_G, width, fast_q, fast_start, atoms, s, positive, c))
        done += 1
        rounds[row] += 1
        if done > PATIENCE:
            # Each round lowers the objective; where rounding has it go in circles, it does not.
            value = _objective(fast_q, fast_start, c, lam, work, atoms, s)
            stalled = 0 if value < best - epsilon * abs(best) else stalled + 1
            best = min(best, value)
            if stalled == PATIENCE:
                stuck[0] += _falls_short(top, c, lam, scale, work, atoms, s)
                return s
        if top > lam + allowed:
            if s == capacity(work, atoms) and s < width:
                return -1
            s, joined, swapped = join(
                lazy, G, fast_G, width, q, start, c, top, lam, positive, work, atoms, s, used,
                tolerance,
            )  # fmt: skip
            if joined:
                s, moved = walk(work, atoms, s, free, used)
                if moved or swapped:
                    continue
        elif active_gap(c, lam, work, atoms, s) <= allowed:
            return s
        # Rounding keeps it from the optimum.
        if repairs == 3:
            stuck[0] += _falls_short(top, c, lam, scale, work, atoms, s)
            return s
        if repairs == 0:
            s = rebuild(G, width, q, start, lam, work, atoms, s, used, tolerance)
        else:
            active_gap(c, lam, work, atoms, s)
            refine(work, atoms, s)
        s, _ = walk(work, atoms, s, free, used)
        repairs += 1


@kernel
def write_sorted(work, atoms, s, used, out_atoms, out_codes, position):
    """Append the active code to the output by increasing atom, and mark its atoms unused."""
    code = CODE * atoms.size
    for i in range(s):
        atom = atoms[i]
        used[atom] = False
        p = position + i
        while p > position and out_atoms[p - 1] > atom:
            out_atoms[p] = out_atoms[p - 1]
            out_codes[p] = out_codes[p - 1]
            p -= 1
        out_atoms[p] = atom
        out_codes[p] = work[code + i]


@kernel
def lasso_rows(lazy, G, fast_G, Q, row, lam, positive, warm, first, work, atoms, used, c, fast_c,
               fast_q, out_ptr, out_atoms, out_codes, stuck, rounds):  # fmt: skip
    """Solve the lasso for the rows of Q from ``row`` on; returns the first row not done.

    Q is (n, width), G and fast_G flat with rows ``width`` apart; width fills whole vectors.
    Where they differ in dtype, the search runs on ``fast_G`` and the end is made exact on G.
    Both are filled for each signal anew where there is a ``lazy`` (see `lazy_gram.py`).
    With ``warm`` a row starts from its code in ``first`` (indptr, indices, values).
    Stops early, to be called again, when the active set or the output has no room left.
    ``stuck[0]`` counts the rows that rounding has kept from the optimum, ``rounds`` how many
    passes over the correlations each row took.
    """
    n, width = Q.shape
    q = Q.reshape(-1)
    two_stages = fast_G.itemsize != G.itemsize
    tolerance = DEPENDENT_64 if G.itemsize == 8 else DEPENDENT_32
    while row < n:
        position = out_ptr[row]
        if position + capacity(work, atoms) > out_atoms.size:
            return row
        start = row * width
        s = 0
        rounds[row] = 0
        if lazy is not None:
            begin_signal(lazy, row)
        if warm:
            s = _start(
                lazy, G, fast_G, width, q, start, lam, positive, row, first, work, atoms, used
            )
        scale = np.float64(largest(q, start, width, False))
        ended = stuck[0]
        if two_stages and s >= 0:
            for j in range(width):
                fast_q[j] = q[start + j]
            s = _descend(lazy, G, q, start, fast_G, fast_q, 0, fast_c, width, lam, positive, work,
                         atoms, s, used, scale, tolerance, stuck, rounds, row)  # fmt: skip
            stuck[0] = ended  # only the end counts
        if s >= 0:
            s = _descend(lazy, G, q, start, G, q, start, c, width, lam, positive, work, atoms, s,
                         used, scale, tolerance, stuck, rounds, row)  # fmt: skip
        if s < 0:
            used[:] = False
            return row
        write_sorted(work, atoms, s, used, out_atoms, out_codes, position)
        out_ptr[row + 1] = position + s
        row += 1
    return row


@kernel
def elastic_net_of_rows(indptr, values, lam, ridge, out):
    """``lam ‖α‖₁ + ridge/2 ‖α‖²`` of each row of sparse codes."""
    for row in range(out.size):
        total, squares = 0.0, 0.0
        for p in range(indptr[row], indptr[row + 1]):
            value = np.float64(values[p])
            total += abs(value)
            squares += value * value
        out[row] = lam * total + 0.5 * ridge * squares
