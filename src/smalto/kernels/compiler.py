"""A compiler for kernels that call kernels.

Numba makes machine code of every function by itself, together with all that it calls: a kernel at
the bottom of four others is optimized five times, and has entries for Python that nobody uses.
Here a kernel that Python calls becomes machine code, an *entry*. One that is compiled for its
callers, an *inner* kernel, stops at LLVM's intermediate form and is optimized as part of them.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.event import trigger_event
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import InlineClosureLikes

from smalto.kernels.file_lock import locked
from smalto.kernels.interrupts import interrupts_wait
from smalto.kernels.lowering import PlainLowering

# Passes for what kernels do not use: local functions and comprehensions, functions of Numba that
# are merged into their callers, expressions of whole arrays.
_NEEDLESS = {InlineClosureLikes, InlineOverloads, NopythonRewrites}
# Passes that are done in another way.
_OTHERS = {NativeLowering: PlainLowering}


class _UnderWay(threading.local):
    kernels = 0  # that this thread is compiling, each for the one before


_under_way = _UnderWay()


def compiling_for_a_kernel() -> bool:
    """Tell whether what is compiled now is for a kernel that calls it, not for Python."""
    return _under_way.kernels > 0


@contextlib.contextmanager
def _counted() -> Iterator[None]:
    _under_way.kernels += 1
    try:
        yield
    finally:
        _under_way.kernels -= 1


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """Keep Python from looking for garbage, of which a compiler makes little for all it creates."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_functions: Any = BaseFunction
_resolve = _functions.get_call_type
_signatures: dict[str, dict[Any, Any]] = {}  # by the flags of a compilation


@contextlib.contextmanager
def _types_remembered(flags: Any) -> Iterator[None]:
    """Have Numba find out the types of a function or operator once for the same arguments.

    It asks again for each use of an operator, in each round of type inference, and when the code is
    written.
    """
    memory = _signatures.setdefault(flags.get_mangle_string(), {})
    before = _functions.get_call_type  # of the kernel that this one is compiled for

    def remember(function: Any, context: Any, arguments: Any, keywords: Any) -> Any:
        key = (function, tuple(arguments), tuple(keywords.items()))
        if key not in memory:
            found = _resolve(function, context, arguments, keywords)
            memory[key] = found, function._impl_keys[found.args]
        found, function._impl_keys[found.args] = memory[key]
        return found

    _functions.get_call_type = remember
    try:
        yield
    finally:
        _functions.get_call_type = before


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A kernel; compiled on demand for each combination of types, as an entry or as inner."""

    @global_compiler_lock
    def compile(self, sig: Any) -> Any:
        """Compile for these types of arguments, or load the file of someone who did.

        One thread of one process compiles; others that need the same kernel wait, and load it then.
        """
        inner = compiling_for_a_kernel()
        path = None if inner else self._cache.lacking(sig, self.targetctx)
        if path is None:
            return super().compile(sig)
        details = {"dispatcher": self, "args": sig, "return_type": None}
        try:
            with trigger_event("numba:compile", details), locked(path.with_suffix(".lock")):
                return super().compile(sig)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # without the hundred frames of the compiler

    @property
    def overloads(self) -> Any:
        """What is compiled: for Python, or for other kernels."""
        return self._inner if compiling_for_a_kernel() else self._entries

    @overloads.setter
    def overloads(self, empty: dict[Any, Any]) -> None:
        self._entries, self._inner = empty, empty.copy()

    def add_overload(self, found: CompileResult) -> None:
        """Keep what has been compiled; Python can call entries only."""
        if compiling_for_a_kernel():
            self.overloads[tuple(found.signature.args)] = found
        else:
            super().add_overload(found)


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Compiles a kernel for one combination of types."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's sequence of passes, without those for what is not used in kernels."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        kept = [entry for entry in passes.passes if entry[0] not in _NEEDLESS]
        passes.passes = [(_OTHERS.get(kind, kind), text) for kind, text in kept]
        passes.finalize()
        return [passes]

    def compile_extra(self, func: Callable[..., Any]) -> CompileResult:
        """Compile a kernel: to machine code if it is an entry."""
        state, inner = self.state, compiling_for_a_kernel()
        library = InnerCode if inner else EntryCode
        state.library = library(state.targetctx.codegen(), func.__qualname__)
        state.library.enable_object_caching()
        state.flags.no_cfunc_wrapper = True
        state.flags.no_cpython_wrapper = state.flags.no_compile = inner
        with _counted(), _nothing_collected(), _types_remembered(state.flags):
            found = super().compile_extra(func)
        if inner:
            found = found._replace(entry_point=object())  # only what callers know it by
            state.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
        else:
            for environment in found._find_referenced_environments():  # those of inner kernels
                found.library.codegen.set_env(environment.env_name, environment)
        return found


class EntryCode(JITCodeLibrary):  # type: ignore[misc]
    """The code of an entry, with that of all inner kernels below it."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout  # all is optimized at the end

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def finalize(self) -> None:
        """Join the code of all inner kernels, at any depth, and make machine code of it."""
        for code in self._linking_libraries:  # which grows
            known = set(self._linking_libraries)
            self._linking_libraries += [new for new in code._linking_libraries if new not in known]
        super().finalize()

    def _finalize_specific(self) -> None:
        with interrupts_wait():
            super()._finalize_specific()


class InnerCode(EntryCode):
    """The code of an inner kernel alone: not optimized, not executable, without what it calls."""

    def finalize(self) -> None:
        """End here: `EntryCode` does the rest."""
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"  # it may come from several places
        return self._final_module
