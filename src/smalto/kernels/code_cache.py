"""Compiled kernels on disk, written by several processes at once.

Numba numbers the files with a kernel's code, one for each combination of argument types, and keeps
an index of them. Two processes that compile the same kernel for different types at the same moment
take the same number: the index then leads to code for other types, and compiling whatever calls it
fails. Here file names also say which process wrote them, so that the worst that can happen is
that something is compiled twice.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from typing import Any

_written_by = uuid.uuid4().hex[:8]


def _renew() -> None:
    global _written_by
    _written_by = uuid.uuid4().hex[:8]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def with_own_files(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """The decorator ``njit(cache=True)``, for kernels whose files no other process writes to."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = compiled(function)
        file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
        if file is not None:  # else nothing is compiled, or nothing is cached
            number_only = file._data_name
            file._data_name = lambda number: f"{number_only(number)[:-4]}.{_written_by}.nbc"
        return kernel

    return decorate
