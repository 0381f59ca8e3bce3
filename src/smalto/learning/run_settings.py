"""The settings of a run: coder, constraint, learner and options."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

from smalto.checks import check_kind
from smalto.coders.base import Coder, check_coder
from smalto.coders.lasso import Lasso
from smalto.constraints.base import Constraint, check_constraint
from smalto.constraints.l2_ball import L2Ball
from smalto.learning.learners.base import Learner, check_learner
from smalto.learning.learners.online import Online
from smalto.learning.memory.state import State
from smalto.learning.options import Continuation, Replacement


class RunSettings(NamedTuple):
    """The settings that a user has given for a run; None where none was given."""

    coder: Coder | None = None
    constraint: Constraint | None = None
    learner: Learner | None = None
    replacement: Replacement | None = None
    continuation: Continuation | None = None

    @classmethod
    def of(
        cls,
        coder: Any,
        constraint: Any,
        learner: Any,
        replacement: Any = None,
        continuation: Any = None,
    ) -> RunSettings:
        """Check the settings that a user has given; raise TypeError for a wrong type."""
        check_kind("replacement", replacement, Replacement | None, "None or Replacement(...)")
        check_kind("continuation", continuation, Continuation | None, "None or Continuation(...)")
        return cls(
            None if coder is None else check_coder(coder),
            None if constraint is None else check_constraint(constraint),
            None if learner is None else check_learner(learner),
            replacement,
            continuation,
        )

    def complete(self) -> tuple[Coder, Constraint, Learner, Replacement, Continuation | None]:
        """Return all settings of a new run, with defaults for those not given."""
        return (
            Lasso() if self.coder is None else self.coder,
            L2Ball() if self.constraint is None else self.constraint,
            Online() if self.learner is None else self.learner,
            Replacement() if self.replacement is None else self.replacement,
            self.continuation,
        )

    def check_same(self, state: State) -> None:
        """Raise ValueError if a given setting differs from that of the state."""
        constraint, learner = self.constraint, self.learner
        if constraint is not None:
            constraint = constraint.matching(state.constraint)
        if learner is not None:
            learner = learner.resolve(len(state.D), state.n_rows)
        coder = None if self.coder is None else self.coder.matching(state.coder)
        asked = self._replace(coder=coder, constraint=constraint, learner=learner)
        for name, given in asked._asdict().items():
            had = getattr(state, name)
            if given is not None and given != had:
                message = f"the state was created with {name}={had}, but {name}={given} was given"
                raise ValueError(message)


def check_seed(random_state: Any, state: State) -> None:
    """Raise ValueError if an integer is given that is not the seed of the state."""
    if isinstance(random_state, numbers.Integral) and int(random_state) != state.seed:
        message = (
            f"the state was created with random_state={state.seed}, but "
            f"random_state={random_state} was given: leave it out to resume the run"
        )
        raise ValueError(message)
