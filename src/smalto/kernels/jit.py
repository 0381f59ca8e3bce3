"""How every kernel of the library is compiled.

Numba compiles a kernel once for each combination of argument types, and a literal such as 0 has a
type of its own. Counters that are passed to other kernels therefore begin as ``np.int64(0)``, or
everything below would be compiled twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import config

from smalto.kernels.compiled_files import KernelCache
from smalto.kernels.compiler import Kernel, KernelCompiler
from smalto.kernels.compiling import watch_the_compiler

watch_the_compiler()


def _compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator: no bounds checks, no GIL, no reference counts; x / 0 follows IEEE 754."""
    options |= {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": False}

    def decorate(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return function
        compiled = Kernel(function, targetoptions=options, pipeline_class=KernelCompiler)
        compiled._cache = KernelCache(function)
        return compiled

    return decorate


kernel: Any = _compiled()

# The same, for sums that may be taken in any order, so that they can be vectorized.
summing: Any = _compiled(fastmath={"reassoc", "contract", "nsz"})

# The same, for what is called in the innermost loops, where passing arguments would take time.
inlined: Any = _compiled(forceinline=True)

# The same, for parts of one caller that have a name for the sake of the reader: they are merged into
# it before it is compiled, which saves a kernel that would contain all that they call.
part: Any = _compiled(inline="always")
