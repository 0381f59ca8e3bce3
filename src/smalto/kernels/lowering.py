"""Kernels as LLVM code, without what counts of references and debuggers would need.

Numba notes where each variable ends, stores zeros there, looks at old values before new ones are
stored, and asks LLVM for the size of every variable. Kernels have nothing to be freed.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, ir
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


@register_pass(mutates_CFG=True, analysis_only=False)
class PlainLowering(NativeLowering):  # type: ignore[misc]
    """Numba's pass, for kernels."""

    _name = "plain_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What the pass is done with."""
        return _PlainLower
