"""Kernels as LLVM code, without what counts of references and debuggers would need.

Numba notes where each variable ends, stores zeros there, looks at old values before new ones are
stored, and asks LLVM for the size of every variable. Kernels have nothing to be freed. Nor do they
count from the end of an array, for which Numba compares every index with zero.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from numba.core import cgutils, ir, types
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering


class _PlainLower(Lower):  # type: ignore[misc]
    def pre_lower(self) -> None:
        super().pre_lower()
        for block in self.blocks.values():
            block.body = [line for line in block.body if not isinstance(line, ir.Del)]

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        return cgutils.alloca_once(self.builder, lltype, name=name)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars and not self._disable_sroa_like_opt:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))


def _index(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    return context.cast(builder, index, kind, types.intp)


@contextlib.contextmanager
def _indices_as_they_are() -> Iterator[None]:
    """Have Numba use indices as they are; it compiles one function at a time."""
    from numba.np import arrayobj  # slow to import, rarely needed

    before, arrayobj.fix_integer_index = arrayobj.fix_integer_index, _index
    try:
        yield
    finally:
        arrayobj.fix_integer_index = before


@register_pass(mutates_CFG=True, analysis_only=False)
class PlainLowering(NativeLowering):  # type: ignore[misc]
    """Numba's pass, for kernels."""

    _name = "plain_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What the pass is done with."""
        return _PlainLower

    def run_pass(self, state: Any) -> bool:
        """Write the code."""
        with _indices_as_they_are():
            return bool(super().run_pass(state))
