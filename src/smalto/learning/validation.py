"""Held-out samples: how they are checked, and after which steps their cost is measured."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smalto.checks import as_floats, check_integer, check_scale
from smalto.coders.base import Coder, check_takes
from smalto.coders.coding import mean_cost
from smalto.coders.signals import Missing, Signals, as_signals, in_groups
from smalto.learning.batches.base import Batches, is_power_of_two
from smalto.learning.dictionary.wanted_density import feasible
from smalto.learning.memory.state import State


@dataclass(frozen=True)
class Validation:
    """Held-out samples, and the steps after which to evaluate their cost."""

    signals: Signals
    is_due: Callable[[int], bool]

    @classmethod
    def of(
        cls,
        validation: Any,
        groups: Any,
        every: int | Sequence[int] | None,
        batches: Batches,
        missing: Missing,
        coder: Coder,
    ) -> Validation | None:
        """Check held-out samples against the data; return None if there are none."""
        is_due = schedule(every)
        if validation is None:
            return None
        signals = as_signals("validation", validation, None, missing)
        n, m = signals.X.shape
        if n == 0 or m != batches.n_features:
            message = (
                f"validation must have samples of {batches.n_features} features, got shape {(n, m)}"
            )
            raise ValueError(message)
        check_takes(coder, mask=signals.missing, groups=groups)
        if groups is None and "groups" in coder.takes:
            message = f"{type(coder).__name__} needs validation_groups: a label for each sample"
            raise ValueError(message)
        signals, _ = in_groups(signals, groups, coder)
        check_scale("validation", signals.X, batches.dtype, may_vanish=True)
        return cls(replace(signals, X=as_floats(signals.X, batches.dtype)), is_due)

    def cost(self, state: State, n_threads: int) -> float:
        """Return the mean cost of the held-out samples over the dictionary of the state."""
        return mean_cost(self.signals, state.D, state.coder, n_threads)

    def final_cost(self, state: State, n_threads: int) -> float:
        """Return their mean cost over the dictionary that a run returns if it ends here."""
        return mean_cost(self.signals, feasible(state, n_threads).D, state.coder, n_threads)


def schedule(every: Any) -> Callable[[int], bool]:
    """Return a function that tells whether to evaluate held-out samples after a step."""
    if every is None:
        return lambda step: is_power_of_two(step) or (step % 3 == 0 and is_power_of_two(step // 3))
    if isinstance(every, numbers.Integral):
        period = check_integer("validate_every", every)
        return lambda step: step % period == 0
    if isinstance(every, str) or not isinstance(every, Iterable):
        message = f"validate_every must be an integer or a sequence of them, got {every!r}"
        raise TypeError(message)
    steps = frozenset(check_integer("validate_every", number, low=0) for number in every)
    return lambda step: step in steps
