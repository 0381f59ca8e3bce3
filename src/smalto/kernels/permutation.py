"""A keyed permutation of 0 ... n − 1 that is computed, not stored."""

from __future__ import annotations

import numpy as np

from smalto.kernels.jit import kernel


@kernel
def _mix(x):
    """Scatter the bits of a 64-bit integer (a multiply-xorshift hash)."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@kernel
def permute(begin, n, half, keys, out):
    """Write where the permutation sends ``begin``, ``begin + 1``, ...

    A Feistel network on 2·half bits with one round per key permutes 0 ... 4^half − 1; a place
    that lands at n or beyond is sent on until it lands below n (soon, as 4^half < 4n).
    """
    shift = np.uint64(half)
    low = (np.uint64(1) << shift) - np.uint64(1)
    for i in range(out.size):
        place = np.uint64(begin + i)
        while True:
            left, right = place >> shift, place & low
            for key in keys:
                left, right = right, left ^ (_mix(right ^ key) & low)
            place = (left << shift) | right
            if place < np.uint64(n):
                break
        out[i] = np.int64(place)
