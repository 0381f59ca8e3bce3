"""How every kernel of the library is compiled.

Numba compiles a kernel once for each combination of argument types, and a literal such as 0 has a
type of its own. Counters that are passed to other kernels therefore begin as ``np.int64(0)``, or
everything below would be compiled twice.
"""

from __future__ import annotations

from typing import Any

from numba import njit

# No bounds checks, no GIL, no reference counts, cached on disk; x / 0 follows IEEE 754.
kernel: Any = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)

# The same, for sums that may be taken in any order, so that they can be vectorized.
summing: Any = njit(
    cache=True, nogil=True, error_model="numpy", _nrt=False, fastmath={"reassoc", "contract", "nsz"}
)

# The same, for what is called in the innermost loops, where passing arguments would take time.
inlined: Any = njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)

# The same, for parts of one caller that have a name for the sake of the reader: they are merged into
# it before it is compiled, which saves a kernel that would contain all that they call.
part: Any = njit(cache=True, nogil=True, error_model="numpy", _nrt=False, inline="always")
