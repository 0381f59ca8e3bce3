"""Properties that are computed once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """`functools.cached_property` without a lock.

        Up to Python 3.11 that one has a lock, the same for all instances: a process that forks
        while another thread computes the property finds it locked for ever in the child. Here two
        threads may compute the same value.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Compute the value; where it is kept, Python finds it before this property."""
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
