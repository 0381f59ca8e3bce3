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

from smalto.kernels.jit import kernel
from smalto.kernels.simd import fma, lanes, load, splat, store, vmax, zero

PANEL = 64  # columns worked on together


class Panel(NamedTuple):
    """Scratch for a panel: k rows of PANEL numbers, flat."""

    q: Any
    c: Any


def make_panel(k: int, dtype: Any) -> Panel:
    """Scratch for columns of k numbers."""
    return Panel(*np.empty((2, k * PANEL), dtype))


@kernel
def _sweep_panel(G, q, c):
    """Minimize over one coordinate after the other, in all columns of a panel (k, PANEL)."""
    w, none = lanes(c), zero(c)
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
            store(c, first, vmax(fma(g0, step, load(c, first)), none))
            store(c, first + w, vmax(fma(g1, step, load(c, first + w)), none))
            store(c, first + 2 * w, vmax(fma(g2, step, load(c, first + 2 * w)), none))
            store(c, first + 3 * w, vmax(fma(g3, step, load(c, first + 3 * w)), none))


@kernel
def descend(G, Q, shift, sweeps, C, begin, end, panel):
    """Make ``sweeps`` passes over the columns of C (k, n) from ``begin`` to ``end``.

    G is (k, k); Q (k, end − begin) holds only these columns. Coordinates with G_tt = 0 are left
    alone.
    """
    q, c = panel
    k = G.shape[0]
    for first in range(begin, end, PANEL):
        width = min(PANEL, end - first)
        for t in range(k):
            for i in range(width):
                q[t * PANEL + i] = Q[t, first - begin + i] - shift
                c[t * PANEL + i] = C[t, first + i]
            for i in range(width, PANEL):
                q[t * PANEL + i] = 0.0
                c[t * PANEL + i] = 0.0
        for _ in range(sweeps):
            _sweep_panel(G, q, c)
        for t in range(k):
            for i in range(width):
                C[t, first + i] = c[t * PANEL + i]


@kernel
def compress(dense, indices, values):
    """List the positive entries of the rows of a dense array, row after row."""
    p = 0
    for i in range(dense.shape[0]):
        for j in range(dense.shape[1]):
            if dense[i, j] > 0:
                indices[p] = j
                values[p] = dense[i, j]
                p += 1
