"""How much computing may go into a single code."""

from __future__ import annotations


class Work:
    """What is left of it, in multiplications; the same on every machine, unlike seconds."""

    def __init__(self, left: float) -> None:
        self.left = left

    def allows(self, k: int, m: int) -> bool:
        """Subtract a factorization for k atoms of m features; return whether that was left."""
        return self.spend((k + m) * k * k)

    def spend(self, multiplications: float) -> bool:
        """Subtract these; return whether they were left."""
        self.left -= multiplications
        return self.left >= 0
