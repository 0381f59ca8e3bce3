"""Locks and forks: what another thread holds while a process forks is never released in the child."""

from __future__ import annotations

import os
from typing import Any


def hold_during_forks(*locks: Any) -> None:
    """Acquire these locks, in this order, before every fork; release them in parent and child."""
    if hasattr(os, "register_at_fork"):
        for lock in reversed(locks):  # what is registered last is called first
            os.register_at_fork(
                before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
            )
