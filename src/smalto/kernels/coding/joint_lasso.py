"""The joint lasso, on the Gram matrix: the signals of a group share their atoms.

Solves ``min_A ½‖X − AD‖² + lam Σ_j ‖A_j‖₂`` for each group of rows X, where A_j holds the
coefficients of atom j, one per signal (the ℓ1/ℓ2 norm). A working set of atoms grows:

1. all correlations ``C = Q − A G`` are computed in one pass, but only their norms over the group
   are kept; with them comes the duality gap, which ends it when it is small;
2. the atoms that violate optimality, ‖C_j‖ > lam, by more than a share of the worst join;
3. the problem on the working set is solved (`joint_newton.py`), ever more exactly; atoms whose
   coefficients are zero leave.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.coding.active_set import LANES, largest
from smalto.kernels.coding.joint_newton import SPARE, inner, refresh, settle
from smalto.kernels.coding.joint_tables import padded, write_group
from smalto.kernels.jit import kernel
from smalto.kernels.simd import above, fma, lanes, load, lowest_bit, splat, store, zero

FIRST = 8  # atoms that may join at once, at least ...
SHARE = 0.5  # ... those that violate by more than this share of the worst violation
_MOST = 500  # rounds
_EASE = 0.1  # what a round's solution may violate, as a share of what the last one did


@kernel
def _norms_of_correlations(G, width, q, row, n, atoms, s, a, size, score):
    """Write ``Σ_i c_ij²`` over the signals i, for every atom j, of ``c = q − a G``.

    ``a`` is the table of codes in the dtype of G. Four signals and two vectors of atoms at once.
    """
    step = lanes(score)
    for j in range(0, width, 2 * step):
        two = j + step < width  # widths are whole vectors of float32
        k = j + step if two else j
        s0, s1 = zero(score), zero(score)
        i = 0
        while i + 4 <= n:
            p = (row + i) * width
            c00, c01 = load(q, p + j), load(q, p + k)
            c10, c11 = load(q, p + width + j), load(q, p + width + k)
            c20, c21 = load(q, p + 2 * width + j), load(q, p + 2 * width + k)
            c30, c31 = load(q, p + 3 * width + j), load(q, p + 3 * width + k)
            for r in range(s):
                g = atoms[r] * width
                g0, g1 = load(G, g + j), load(G, g + k)
                at = r * size + i
                v = splat(-a[at])
                c00, c01 = fma(v, g0, c00), fma(v, g1, c01)
                v = splat(-a[at + 1])
                c10, c11 = fma(v, g0, c10), fma(v, g1, c11)
                v = splat(-a[at + 2])
                c20, c21 = fma(v, g0, c20), fma(v, g1, c21)
                v = splat(-a[at + 3])
                c30, c31 = fma(v, g0, c30), fma(v, g1, c31)
            s0 = fma(c00, c00, fma(c10, c10, fma(c20, c20, fma(c30, c30, s0))))
            s1 = fma(c01, c01, fma(c11, c11, fma(c21, c21, fma(c31, c31, s1))))
            i += 4
        while i < n:
            p = (row + i) * width
            c00, c01 = load(q, p + j), load(q, p + k)
            for r in range(s):
                g = atoms[r] * width
                v = splat(-a[r * size + i])
                c00, c01 = fma(v, load(G, g + j), c00), fma(v, load(G, g + k), c01)
            s0, s1 = fma(c00, c00, s0), fma(c01, c01, s1)
            i += 1
        store(score, j, s0)
        if two:
            store(score, k, s1)


@kernel
def _join(G, q, width, row, n, size, score, top, lam, gram, stride, atoms, s, room, used, codes,
          given, norms):  # fmt: skip
    """Let the worst violators join, with coefficients of zero; the new number of atoms."""
    least = lam + (top - lam) * SHARE
    threshold = splat(score.dtype.type(least * least))
    room = min(max(FIRST, s), room - s)
    for block in range(0, width, lanes(score)):
        bits = above(load(score, block), threshold)
        while bits != 0 and room > 0:
            j = block + lowest_bit(bits)
            bits &= bits - 1
            if used[j]:
                continue
            used[j] = True
            atoms[s] = j
            norms[s] = 0.0
            for r in range(s + 1):
                value = np.float64(G[j * width + atoms[r]])
                gram[s * stride + r] = value
                gram[r * stride + s] = value
            for o in range(0, size, LANES):
                store(codes, s * size + o, splat(0.0))
                store(given, s * size + o, splat(0.0))
            for i in range(n):
                given[s * size + i] = q[(row + i) * width + j]
            s += 1
            room -= 1
    return s


@kernel
def _gap(norm, top, lam, codes, given, left, norms, s, size):
    """The duality gap and the objective, from the largest norm of correlations.

    Scaled residuals are feasible for the dual problem.
    """
    fitted, taken, total = 0.0, 0.0, 0.0
    for p in range(s):
        with_left = inner(codes, p * size, left, p * size, size)
        fitted += with_left
        taken += inner(codes, p * size, given, p * size, size) + with_left
        total += norms[p]
    square = max(norm - taken, 0.0)  # ‖R‖², and ⟨X, R⟩ = ‖R‖² + ⟨AD, R⟩
    scale = lam / top if top > lam else 1.0
    primal = 0.5 * square + lam * total
    return primal - scale * (square + fitted) + 0.5 * scale * scale * square, primal


@kernel
def _descend(G, q, row, fast_G, fast_q, fast_row, width, n, norm, scale, lam, tolerance, score, a,
             gram, stride, atoms, s, room, used, codes, left, given, norms, matrix, schur, move,
             other, small, stuck, rounds):  # fmt: skip
    """Rounds of join, settle, refresh, until optimal; the number of atoms, or −1 if full.

    The working set reads ``G`` and ``q``; the passes over all atoms read ``fast_G`` and ``fast_q``,
    which may be float32 copies, and write to ``a`` and ``score`` of the same dtype.
    """
    size = padded(n)
    allowed = 64.0 * np.float64(np.finfo(score.dtype).eps) * scale
    unit = np.finfo(np.float64).eps
    floor, tight = 8.0 * unit * norm, 64.0 * unit * scale
    goal = scale
    for _ in range(_MOST):
        refresh(gram, stride, s, codes, given, left, size)
        for o in range(s * size):
            a[o] = codes[o]
        _norms_of_correlations(fast_G, width, fast_q, fast_row, n, atoms, s, a, size, score)
        top = np.sqrt(np.float64(largest(score, 0, width, True)))
        rounds[row] += 1
        gap, primal = _gap(norm, top, lam, codes, given, left, norms, s, size)
        if gap <= tolerance * primal + floor:
            return s
        before = s
        if top > lam + allowed:
            if s == room and s < width:
                return -1
            s = _join(G, q, width, row, n, size, score, top, lam, gram, stride, atoms, s, room,
                      used, codes, given, norms)  # fmt: skip
        if s > before:
            goal = max(min(goal, _EASE * (top - lam)), tight)
        elif goal <= tight:
            break  # rounding keeps it from the optimum
        else:
            goal = max(1e-3 * goal, tight)
        s = settle(gram, stride, s, lam, goal, atoms, used, codes, given, left, size, norms, matrix,
                   schur, move, other, small)  # fmt: skip
    if gap > 1e3 * (tolerance * primal + floor):
        stuck[0] += 1
    return s


@kernel
def joint_lasso_groups(G, fast_G, Q, groups, g, squares, lam, by_size, tolerance, fast_q, score,
                       fast_score, a, fast_a, gram, atoms, used, codes, left, given, norms, matrix,
                       schur, move, other, small, order, out_ptr, out_atoms, out_codes, stuck,
                       rounds):  # fmt: skip
    """Code the groups of rows of Q from group ``g`` on; returns the first one not done.

    G and fast_G are flat; where they differ in dtype, the search runs on the latter and the end is
    made exact. ``squares`` are ‖x‖² of the rows; with ``by_size`` lam is meant times the root of
    a group's size. Stops early when the working set or the output has no room left; ``stuck[0]``
    counts the groups that rounding has kept from the optimum.
    """
    width = Q.shape[1]
    q = Q.reshape(-1)
    room = norms.size - SPARE
    stride = gram.size // norms.size
    while g < groups.size - 1:
        row, n = groups[g], groups[g + 1] - groups[g]
        if out_ptr[row] + n * room > out_atoms.size:
            return g
        norm = 0.0
        for i in range(row, row + n):
            norm += squares[i]
            rounds[i] = 0
        here = lam * np.sqrt(np.float64(n)) if by_size else lam
        _norms_of_correlations(G, width, q, row, n, atoms, 0, a, padded(n), score)
        scale = np.sqrt(np.float64(largest(score, 0, width, True)))
        s, ended = 0, stuck[0]
        if scale > here and fast_G.itemsize != G.itemsize:
            for o in range(n * width):
                fast_q[o] = q[row * width + o]
            s = _descend(G, q, row, fast_G, fast_q, 0, width, n, norm, scale, here, 1e-6,
                         fast_score, fast_a, gram, stride, atoms, s, room, used, codes, left, given,
                         norms, matrix, schur, move, other, small, stuck, rounds)  # fmt: skip
            stuck[0] = ended  # only the end counts
        if scale > here and s >= 0:
            s = _descend(G, q, row, G, q, row, width, n, norm, scale, here, tolerance, score, a,
                         gram, stride, atoms, s, room, used, codes, left, given, norms, matrix,
                         schur, move, other, small, stuck, rounds)  # fmt: skip
        if s < 0:
            used[:] = False
            return g
        for p in range(s):
            used[atoms[p]] = False
        write_group(codes, atoms, s, order, row, n, out_ptr, out_atoms, out_codes)
        for i in range(row + 1, row + n):
            rounds[i] = rounds[row]
        g += 1
    return g
