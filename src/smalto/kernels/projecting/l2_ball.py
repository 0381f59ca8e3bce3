"""Euclidean projection onto the ℓ2 ball, and onto its non-negative part (Section 5.2)."""

from __future__ import annotations

import math

import numpy as np

from smalto.kernels.jit import kernel
from smalto.kernels.precision import HUGE_32, HUGE_64, TINY_32, TINY_64, is_double
from smalto.kernels.simd import fma, hmax, hsum, lanes, load, splat, vabs, vmax, zero

BLOCK = 128  # vectors summed in the vector's precision, before double precision takes over
MARGIN = 1e8  # factor that entries keep from where their squares leave the range of the dtype


@kernel
def squares(v, scale, positive):
    """Sum ``(scale v)²`` over v or its positive part; also max|v|, and 0.0 or NaN (not finite)."""
    w = lanes(v)
    whole = v.size - v.size % w
    none, factor = zero(v), splat(v.dtype.type(scale))
    total, defect = 0.0, 0.0
    top = none
    for begin in range(0, whole, BLOCK * w):
        part, bad = none, none
        for i in range(begin, min(begin + BLOCK * w, whole), w):
            y = load(v, i)
            bad = fma(y, none, bad)
            top = vmax(vabs(y), top)
            if positive:
                y = vmax(y, none)
            y = y * factor
            part = fma(y, y, part)
        total, defect = total + hsum(part), defect + hsum(bad)
    highest = float(hmax(top))
    for i in range(whole, v.size):
        y = np.float64(v[i])
        defect += y * 0.0
        highest = max(highest, abs(y))
        if not positive or y > 0.0:
            total += (y * scale) ** 2
    return total, highest, defect


@kernel
def project(v, out, radius, positive):
    """Project v onto ``‖u‖ ≤ radius``, with ``u ≥ 0`` if positive; out may be v.

    Returns whether v is finite; if it is not, ``out`` is not valid.
    """
    total, top, defect = squares(v, 1.0, positive)
    if defect != 0.0:  # or NaN
        return False
    unit = 1.0
    tiny, huge = (TINY_64, HUGE_64) if is_double(v) else (TINY_32, HUGE_32)
    if not math.sqrt(tiny) * MARGIN < top < math.sqrt(huge) / MARGIN:  # or squares may overflow
        unit = max(top, 4.0 * tiny)
        total = squares(v, 1.0 / unit, positive)[0]
    norm = math.sqrt(total)
    scale = radius / unit / norm if norm * unit > radius else 1.0
    for i in range(v.size):
        out[i] = v[i] * scale if v[i] > 0.0 or not positive else 0.0
    return True


@kernel
def project_rows(rows, out, radius, positive):
    """Project every row; return whether all are finite."""
    finite = True
    for i in range(rows.shape[0]):
        finite &= project(rows[i], out[i], radius, positive)
    return finite


@kernel
def project_l2(v, positive):
    """Project v in place onto ``‖u‖ ≤ 1``, with ``u ≥ 0`` if positive."""
    project(v, v, 1.0, positive)
