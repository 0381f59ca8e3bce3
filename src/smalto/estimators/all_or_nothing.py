"""Estimators that stay as they were when `fit` fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# What scikit-learn needs to end its callbacks.
_WATCHED = {"_callback_fit_ctx", "_skl_callbacks_to_teardown"}


@contextmanager
def all_or_nothing(model: Any) -> Iterator[None]:
    """Restore the attributes of a model if the body raises."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        watched = {name: value for name, value in vars(model).items() if name in _WATCHED}
        vars(model).clear()
        vars(model).update(before | watched)
        raise
