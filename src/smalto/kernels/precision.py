"""The data type of an array, and its rounding and range, inside a kernel.

``array.itemsize`` and ``np.finfo`` say the same, but each use of them takes Numba a tenth of a
second to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, types
from numba.extending import intrinsic

EPSILON_32, EPSILON_64 = (float(np.finfo(dtype).eps) for dtype in (np.float32, np.float64))
TINY_32, TINY_64 = (float(np.finfo(dtype).tiny) for dtype in (np.float32, np.float64))
HUGE_32, HUGE_64 = (float(np.finfo(dtype).max) for dtype in (np.float32, np.float64))

ENDLESS = np.int64(np.iinfo(np.int64).max)


def _is_double(typing: Any, array: Any) -> Any:
    """Tell whether an array is in float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.boolean, array.dtype == types.float64)

    return types.boolean(array), generate


is_double: Any = (
    (lambda array: array.dtype == np.float64) if config.DISABLE_JIT else intrinsic(_is_double)
)
