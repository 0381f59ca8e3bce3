"""Coordinate descent for dense non-negative least squares, many right-hand sides at once.

Solves ``min_C ½ tr(Cᵀ G C) − tr((Q − shift)ᵀ C)`` over C ≥ 0, where each column is a separate
problem and all share G. With G = D Dᵀ and Q = D Xᵀ the columns are non-negative codes; with
G = A and Q = B they are the features of non-negative atoms: both halves of NMF use this kernel.
A vector holds the same coordinate of neighboring columns, which do not depend on each other (one
column alone is a chain of dependent steps), and a panel of columns stays in the first cache for all
its sweeps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.jit import inlined, kernel
from smalto.kernels.simd import fma, lanes, load, splat, store, vabs, vmax, zero

PANEL = 64  # columns worked on together
ROUND = 6  # sweeps, after which `settle` looks at the columns


class Panel(NamedTuple):
    """Scratch for a panel: k rows of PANEL numbers, flat."""

    q: Any
    c: Any
    missed: Any  # (PANEL,): by how much each column missed its optimum in the last sweep


def make_panel(k: int, dtype: Any) -> Panel:
    """Scratch for columns of k numbers."""
    q, c = np.empty((2, k * PANEL), dtype)
    return Panel(q, c, np.empty(PANEL, dtype))


@kernel
def _load(Q, shift, C, at, first, width, panel):
    """Fill a panel with ``width`` columns of Q, from ``at`` on, and of C, from ``first`` on."""
    q, c, _ = panel
    for t in range(C.shape[0]):
        for i in range(width):
            q[t * PANEL + i] = Q[t, at + i] - shift
            c[t * PANEL + i] = C[t, first + i]
        for i in range(width, PANEL):
            q[t * PANEL + i] = 0.0
            c[t * PANEL + i] = 0.0


@inlined
def _missed(new, old, diagonal, missed, first):
    """Raise ``missed`` to the slope that a coordinate of a vector of columns had before its step."""
    store(missed, first, vmax(vabs(new - old) * diagonal, load(missed, first)))


@kernel
def _sweep_panel(G, q, c, missed):
    """Minimize over one coordinate after the other, in all columns of a panel (k, PANEL).

    ``missed`` receives the largest slope of each column, or is None.
    """
    w, none = lanes(c), zero(c)
    if missed is not None:
        missed[:] = 0.0
    for t in range(G.shape[0]):
        if not G[t, t] > 0.0:
            continue
        step = splat(c.dtype.type(1.0 / G[t, t]))
        for first in range(t * PANEL, (t + 1) * PANEL, 4 * w):
            g0, g1 = load(q, first), load(q, first + w)
            g2, g3 = load(q, first + 2 * w), load(q, first + 3 * w)
            at = first - t * PANEL
            for r in range(G.shape[0]):
                x = splat(-G[t, r])
                g0 = fma(x, load(c, at), g0)
                g1 = fma(x, load(c, at + w), g1)
                g2 = fma(x, load(c, at + 2 * w), g2)
                g3 = fma(x, load(c, at + 3 * w), g3)
                at += PANEL
            c0, c1 = load(c, first), load(c, first + w)
            c2, c3 = load(c, first + 2 * w), load(c, first + 3 * w)
            n0, n1 = vmax(fma(g0, step, c0), none), vmax(fma(g1, step, c1), none)
            n2, n3 = vmax(fma(g2, step, c2), none), vmax(fma(g3, step, c3), none)
            store(c, first, n0)
            store(c, first + w, n1)
            store(c, first + 2 * w, n2)
            store(c, first + 3 * w, n3)
            if missed is not None:
                at, diagonal = first - t * PANEL, splat(G[t, t])
                _missed(n0, c0, diagonal, missed, at)
                _missed(n1, c1, diagonal, missed, at + w)
                _missed(n2, c2, diagonal, missed, at + 2 * w)
                _missed(n3, c3, diagonal, missed, at + 3 * w)


@kernel
def descend(G, Q, shift, sweeps, C, begin, end, panel):
    """Make ``sweeps`` passes over the columns of C (k, n) from ``begin`` to ``end``.

    G is (k, k); Q (k, end − begin) holds only these columns. Coordinates with G_tt = 0 are left
    alone.
    """
    q, c, _ = panel
    for first in range(begin, end, PANEL):
        width = min(PANEL, end - first)
        _load(Q, shift, C, first - begin, first, width, panel)
        for _ in range(sweeps):
            _sweep_panel(G, q, c, None)
        for t in range(G.shape[0]):
            for i in range(width):
                C[t, first + i] = c[t * PANEL + i]


class Slots(NamedTuple):
    """Which signal each column of a panel belongs to, and how far it is: one each of PANEL."""

    row: Any  # int64: the number of the signal, −1 for none
    sweeps: Any  # int64
    before: Any  # by how much it missed its optimum at the last look
    allowed: Any  # by how much it may


def make_slots() -> Slots:
    """Scratch for `settle`."""
    row, sweeps = np.empty((2, PANEL), np.int64)
    before, allowed = np.empty((2, PANEL))
    return Slots(row, sweeps, before, allowed)


@kernel
def _fill(slots, i, row, Q, used, share, codes, panel):
    """Let column i of a panel be the problem of a signal, or none after the last one."""
    q, c, _ = panel
    is_one = row < Q.shape[0]
    slots.row[i], slots.sweeps[i] = row if is_one else -1, 0
    largest = 0.0
    for t in range(used.size):
        value = Q[row, used[t]] if is_one else Q.dtype.type(0.0)
        q[t * PANEL + i] = value
        c[t * PANEL + i] = codes[row, used[t]] if is_one else Q.dtype.type(0.0)
        largest = max(largest, abs(np.float64(value)))
    slots.allowed[i] = share * largest
    return is_one


@kernel
def settle(G, Q, used, share, most, codes, panel, slots, sweeps):
    """Sweep over the code of each signal until it is optimal, up to a small slope.

    The codes are rows of ``codes`` (n, width), over the atoms ``used``, of which G is the Gram matrix and Q
    (n, width) has the correlations; ``share`` of the largest of these is the slope that is allowed. A
    code is given up where it would take more than ``most`` sweeps at its present pace. ``sweeps`` (n,)
    receives their number, negative where a code was given up. The next signal takes the place of one that
    is done; what becomes of a signal does not depend on the others.
    """
    q, c, missed = panel
    n, left = Q.shape[0], np.int64(0)
    after = min(PANEL, n)
    for i in range(PANEL):
        left += _fill(slots, i, i, Q, used, share, codes, panel)
    while left > 0:
        for _ in range(ROUND - 1):
            _sweep_panel(G, q, c, None)
        _sweep_panel(G, q, c, missed)
        for i in range(PANEL):
            row = slots.row[i]
            if row < 0:
                continue
            slots.sweeps[i] += ROUND
            now, done = np.float64(missed[i]), slots.sweeps[i]
            ahead, pace = now, now / slots.before[i] if done > ROUND else 0.0
            for _ in range((most - done) // ROUND):
                ahead *= pace
            slots.before[i] = now
            if now <= slots.allowed[i]:
                sweeps[row] = done
            elif ahead <= slots.allowed[i] and done < most:
                continue
            else:
                sweeps[row] = -done
            for t in range(used.size):
                codes[row, used[t]] = c[t * PANEL + i]
            left += _fill(slots, i, after, Q, used, share, codes, panel) - 1
            after += 1


@kernel
def count_positive(dense, indptr):
    """Write how many entries of the rows of a dense array up to each row are positive."""
    count = np.int64(0)
    indptr[0] = 0
    for i in range(dense.shape[0]):
        for j in range(dense.shape[1]):
            count += 1 if dense[i, j] > 0 else 0
        indptr[i + 1] = count


@kernel
def compress(dense, indices, values):
    """List the positive entries of the rows of a dense array, row after row.

    There must be room for one more: it is written before it is known whether it counts.
    """
    p = 0
    for i in range(dense.shape[0]):
        for j in range(dense.shape[1]):
            indices[p] = j
            values[p] = dense[i, j]
            p += dense[i, j] > 0
