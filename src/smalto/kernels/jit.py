"""How every kernel of the library is compiled.

Numba compiles a kernel once for each combination of argument types, and a literal such as 0 has a
type of its own. Counters that are passed to other kernels therefore begin as ``np.int64(0)``: this
halves the time of the first call.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from smalto.kernels.code_cache import with_own_files

# No bounds checks, no GIL, no reference counts, cached on disk; x / 0 follows IEEE 754.
kernel: Any = with_own_files(njit(cache=True, nogil=True, error_model="numpy", _nrt=False))

# The same, for sums that may be taken in any order, so that they can be vectorized.
_any_order = {"reassoc", "contract", "nsz"}
summing: Any = with_own_files(
    njit(cache=True, nogil=True, error_model="numpy", _nrt=False, fastmath=_any_order)
)

# The same, for what is called in the innermost loops, where passing arguments would take time.
inlined: Any = with_own_files(
    njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
)
