"""A user's program for type checkers (`test_typing.py`): what they know of the public names."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from smalto import NMF, DictionaryLearning, Result, SparsePCA, State, encode, learn
from smalto.coders import OMP, Coder, ErrorBound, GroupLasso, Info, JointLasso, Lasso
from smalto.constraints import Constraint, L2Ball
from smalto.learners import Batch, Online
from smalto.learning import Checkpoint, Record

X: NDArray[np.float64] = np.random.default_rng(0).standard_normal((100, 8))
D: NDArray[np.float64] = np.eye(8)

# Coders are coders, and constraints are constraints.
coders: list[Coder] = [Lasso(0.1), OMP(max_nonzeros=3), ErrorBound(0.1), JointLasso(0.1)]
coders.append(GroupLasso(0.1, np.arange(8) // 2))
coders.append(ErrorBound(np.full(100, 0.1)))  # a number for each signal
constraint: Constraint = L2Ball(positive=True)

# Codes alone, or codes and what is known of them.
codes = encode(X, D, Lasso(0.1))
dense: NDArray[np.float64] = codes.toarray()
both = encode(X, D, Lasso(0.1), return_info=True)
assert_type(both[1], Info)
more_codes, info = encode(X, D, return_info=True, n_threads=1)
assert_type(info, Info)
assert_type(info.coder, Coder)
worst = float(info.gap.max())


def coded(return_info: bool) -> Any:
    """Neither is known before the program runs."""
    return encode(X, D, return_info=return_info)


# Learning.
result = learn(X, 16, Lasso(0.1), constraint, Online(batch_size=50), max_epochs=2, random_state=0)
assert_type(result, Result)
assert_type(result.state, State)
assert_type(result.history, list[Record])
assert_type(result.stopped, str)
assert_type(result.history[-1].batch_cost, float)
again = learn(X, 16, learner=Batch(), state=result.state, callbacks=[Checkpoint("run.safetensors")])


def stop_early(state: State, record: Record) -> bool:
    """A callback."""
    return record.test_cost is not None and record.test_cost < 1.0


learn(X, 16, callbacks=[stop_early, lambda state, record: None], validation=X)

# Estimators.
model = DictionaryLearning(16, coder=Lasso(0.1), random_state=0).fit(X)
assert_type(model, DictionaryLearning)
atoms: NDArray[Any] = model.components_
features: NDArray[Any] = model.transform(X)
parts: NDArray[Any] = NMF(4).fit(abs(X)).components_
components: NDArray[Any] = SparsePCA(2).fit(X).components_
