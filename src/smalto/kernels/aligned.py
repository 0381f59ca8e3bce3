"""Arrays that begin a cache line: vectors loaded from them never lie across two."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LINE = 64  # bytes


def empty(shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    """``np.empty``, which promises 16 bytes only; the passes over G gain up to a tenth."""
    sizes = (shape,) if isinstance(shape, int) else shape
    kind = np.dtype(dtype)
    count = math.prod(sizes) * kind.itemsize
    raw = np.empty(count + LINE, np.uint8)
    first = -raw.ctypes.data % LINE
    return np.asarray(raw[first : first + count].view(kind).reshape(sizes))


def copy(values: np.ndarray, dtype: Any) -> np.ndarray:
    """A copy in another dtype."""
    out = empty(values.shape, dtype)
    out[...] = values
    return out
