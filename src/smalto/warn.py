"""Warnings that point at the user's own line."""

from __future__ import annotations

import sys
import warnings

# scikit-learn wraps the methods of estimators, Numba the compilation of kernels.
_OURS = ("smalto", "sklearn", "numba")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of something; the warning names the line, outside this library, that led to it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package(frame.f_globals) in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(module: dict[str, object]) -> str:
    return str(module.get("__name__", "")).partition(".")[0]
