"""How every kernel of the library is compiled."""

from __future__ import annotations

from typing import Any

from numba import njit

from smalto.kernels.code_cache import with_own_files

# No bounds checks, no GIL, kept on disk; a division by zero gives what IEEE says.
kernel: Any = with_own_files(njit(cache=True, nogil=True, error_model="numpy", _nrt=False))

# The same for loops whose sums may be added in any order (so that they fill vectors).
summing: Any = with_own_files(
    njit(
        cache=True, nogil=True, error_model="numpy", _nrt=False,
        fastmath={"reassoc", "contract", "nsz"},
    )
)  # fmt: skip

# The same for what is called in the innermost loops: at each call, arrays are many arguments.
inlined: Any = with_own_files(
    njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)
)
