"""All numbers of an array as one row, inside a kernel.

``array.reshape(-1)`` does the same and takes Numba a quarter of a second to compile.
"""

from __future__ import annotations

from typing import Any

from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic


def _flat(typing: Any, array: Any) -> Any:
    """Return a C-contiguous array as a one-dimensional one, without a copy."""
    if not isinstance(array, types.Array) or array.layout != "C":
        return None
    row = types.Array(array.dtype, 1, "C", readonly=not array.mutable)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np.arrayobj import make_array, populate_array  # slow to import, rarely needed

        old = make_array(array)(context, builder, arguments[0])
        new = make_array(row)(context, builder)
        populate_array(
            new,
            data=old.data,
            shape=cgutils.pack_array(builder, [old.nitems]),
            strides=cgutils.pack_array(builder, [old.itemsize]),
            itemsize=old.itemsize,
            meminfo=old.meminfo,
            parent=old.parent,
        )
        return new._getvalue()

    return row(array), generate


flat: Any = (lambda array: array.reshape(-1)) if config.DISABLE_JIT else intrinsic(_flat)
