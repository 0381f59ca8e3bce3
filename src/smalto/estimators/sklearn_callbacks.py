"""scikit-learn's own callbacks (from version 1.9 on), such as its ``ProgressBar``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

from smalto.learning.callbacks.base import Callback, Share
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State

Method = TypeVar("Method", bound=Callable[..., Any])


class _NoCallbacks:
    """Estimators of a scikit-learn without callbacks, which have no ``set_callbacks``."""


def _support() -> tuple[Any, Callable[[Any], Any]]:
    """Return scikit-learn's mixin for callbacks and its decorator of `fit`, or nothing of that."""
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # before 1.9
        return _NoCallbacks, lambda method: method
    return CallbackSupportMixin, with_callbacks


CallbackSupportMixin, _decorate = _support()


def with_callbacks(method: Method) -> Method:
    """Make `fit` end scikit-learn's callbacks, also if it raises."""
    return cast(Method, _decorate(method))


class Tasks(Callback):
    """A callback that tells scikit-learn's callbacks of an estimator of `fit` and of its steps.

    They see a task "fit" with a task "step" for each step of learning. One that returns True after
    a step ends the run.

    Parameters
    ----------
    estimator : estimator
        The estimator, on which ``set_callbacks`` was called, or which is a part of one.
    X : array
        The data that `fit` was given.
    counted : bool, default True
        Whether the number of steps follows from the limits of the run.
    """

    def __init__(self, estimator: Any, X: Any, *, counted: bool = True) -> None:
        self.estimator, self.X, self.counted = estimator, X, counted
        self._fit: Any = None

    def begin(self, state: State, share: Share) -> None:
        """Begin the task of `fit`."""
        steps = _number_of_steps(state, share) if self.counted else None
        self._fit = self.estimator._init_callback_context(max_subtasks=steps)
        self._fit.call_on_fit_task_begin(estimator=self.estimator, X=self.X)

    def __call__(self, state: State, record: Record) -> bool:
        """Begin and end the task of a step; return whether a callback wants to stop."""
        if self._fit.max_subtasks is not None:  # which was estimated
            self._fit.max_subtasks = max(self._fit.max_subtasks, record.step)
        step = self._fit.subcontext(task_name="step")
        step.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return bool(
            step.call_on_fit_task_end(
                estimator=self.estimator,
                X=self.X,
                reconstruction_attributes=lambda: fitted_attributes(state),
            )
        )

    def finish(self, state: State) -> None:
        """End the task of `fit`."""
        self._fit.call_on_fit_task_end(
            estimator=self.estimator,
            X=self.X,
            reconstruction_attributes=lambda: fitted_attributes(state),
        )


def tasks_of(estimator: Any, X: Any, *, counted: bool = True) -> list[Tasks]:
    """Return the callback for scikit-learn's callbacks of an estimator, if it has some."""
    watched = {"_skl_callbacks", "_parent_callback_ctx"} & set(vars(estimator))
    return [Tasks(estimator, X, counted=counted)] if watched else []


def fitted_attributes(state: State) -> dict[str, Any]:
    """Return the attributes with which a copy of an estimator can transform."""
    return {
        "components_": state.D.copy(),
        "coder_": state.coder.fixed(),
        "n_features_in_": state.D.shape[1],
    }


def _number_of_steps(state: State, share: Share) -> int | None:
    """Return how many steps the run has, by its limits on steps and epochs; None if unknown."""
    nothing = replace(state.record(lam=None), step=0, samples=0, seconds=0.0)
    found = []
    by_step = share(replace(nothing, step=1))
    if by_step:
        found.append(round(1 / by_step))
    if state.n_rows is not None:
        by_epoch = share(replace(nothing, samples=state.n_rows))
        if by_epoch:
            size = state.learner.rows_per_step(state.n_rows)
            found.append(round(1 / by_epoch) * math.ceil(state.n_rows / size))
    return min(found) if found else None
