"""A run of smalto's `learn` with SPAMS's parameters, and SPAMS's ``model`` of its past."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows, check_integer, check_number
from smalto.coders import Coder
from smalto.compat.spams.columns import atoms, check_shape, columns, n_threads, refuse, signals
from smalto.compat.spams.modes import AtomSet
from smalto.learners import SGD, Batch, Learner, Online, Replacement
from smalto.learning import State, learn

_BATCH = 512  # samples of a step by default; SPAMS's own default depends on the number of cores
_RHO = 3.0  # where SPAMS has no parameter: lower costs than its own from some ten steps on
_CONVERGED = 1e-5  # share of the cost by which ten more passes of `NMF` would lower it
_NEVER = Replacement(every=2**62)  # steps between two searches for atoms to be replaced


@dataclass(frozen=True)
class Schedule:
    """SPAMS's parameters of the learning algorithm."""

    batchsize: int
    iter: int
    t0: float
    rho: float
    modeParam: int
    iter_updateD: int | None
    batch: bool
    stochastic: bool
    clean: bool
    in_memory: bool = False

    def learner(self, n: int) -> Learner:
        """Return the learner for n samples."""
        mode = check_integer("modeParam", self.modeParam, low=0, high=2)
        sweeps = self.iter_updateD
        t0 = abs(check_number("t0", self.t0))
        size = _BATCH if self.batchsize < 0 else check_integer("batchsize", self.batchsize)
        size = min(size, n)
        if self.batch:
            return Batch(sweeps=5 if sweeps is None else sweeps)
        if self.stochastic:
            return SGD(a=self.rho, b=t0, batch_size=size)
        rho = None if self.in_memory else _RHO
        if mode == 1:
            rho = check_number("rho", self.rho, low=0)
            if self.in_memory and rho:
                refuse("trainDL_Memory(modeParam=1)", "leave it at 0: old codes are replaced")
        elif mode == 2:
            refuse("modeParam=2 (A ← rho A)", "use modeParam=1, where rho > 1 forgets faster")
        memory = "replace" if self.in_memory else "two-epochs"
        sweeps = 1 if sweeps is None else sweeps
        return Online(batch_size=size, rho=rho, t0=t0, memory=memory, sweeps=sweeps)  # type: ignore[arg-type]

    def limits(self, done: int) -> dict[str, Any]:
        """Return the limits of `learn` after ``done`` steps; a negative ``iter`` is in seconds."""
        steps = check_integer("iter", self.iter, low=-(2**31))
        return {"max_seconds": -steps} if steps < 0 else {"max_steps": done + steps}


def train(
    X: Any,
    coder: Coder,
    within: AtomSet,
    schedule: Schedule,
    D: Any,
    K: int,
    model: Any,
    return_model: bool,
    whiten: bool,
    numThreads: int,
) -> Any:
    """Return the dictionary as columns, with the model of the past if asked for."""
    x = _samples(X, whiten)
    first, k = _first_atoms(D, K, x.shape[1])
    size = within.size
    settings: dict[str, Any] = {
        "n_atoms": k,
        "coder": coder if size == 1.0 else coder.rescaled(1.0, 1.0 / size),
        "constraint": within.constraint,
        "learner": schedule.learner(x.shape[0]),
        "replacement": Replacement() if schedule.clean else _NEVER,
        "n_threads": n_threads(numThreads),
    }
    start: dict[str, Any] = {"init": None if first is None else first / size, "random_state": 0}
    if model is None:
        result = learn(x, **settings, **start, **schedule.limits(0))
    else:
        if first is None:
            message = "model needs D, the dictionary that was returned with it"
            raise ValueError(message)
        state = learn(x, **settings, **start, max_steps=0).state
        _recall(state, model, size)
        result = learn(x, **settings, state=state, **schedule.limits(state.step))
    found = columns(size * result.D, result.D.dtype)
    return (found, _model(result.state, size)) if return_model else found


def factorize(x: Rows, lambda1: float, K: int, batchsize: int, iter: int, numThreads: int) -> Array:
    """Return non-negative atoms as columns, found by `NMF` in as many passes as SPAMS makes."""
    from smalto.estimators import NMF  # not above: scikit-learn takes long to import

    _, k = _first_atoms(None, K, x.shape[1])
    steps = check_integer("iter", iter, low=-(2**31))
    size = _BATCH if batchsize < 0 else check_integer("batchsize", batchsize)
    passes = max(1, math.ceil(steps * size / x.shape[0]))
    model = NMF(
        k,
        lam=lambda1,
        max_epochs=None if steps < 0 else passes,
        max_seconds=-steps if steps < 0 else None,
        tol=_CONVERGED,
        n_threads=n_threads(numThreads),
        random_state=0,
    )
    return columns(model.fit(x).components_)


def _samples(X: Any, whiten: bool) -> Rows:
    """Return the columns of X as samples, each without its mean if ``whiten``."""
    x = signals("X", X)
    if not whiten:
        return x
    if scipy.sparse.issparse(x):
        refuse("whiten=True for a sparse X", "give X.toarray()")
    return x - x.mean(axis=1, keepdims=True)


def _first_atoms(D: Any, K: int, n_features: int) -> tuple[Rows | None, int]:
    """Return the atoms to start from, if there are any, and their number."""
    if D is None or 0 in np.shape(D):
        if K < 0:
            message = "K, the number of atoms, must be given, or D to start from"
            raise ValueError(message)
        return None, check_integer("K", K)
    first = atoms("D", D, n_features)
    if K >= 0 and first.shape[0] != K:
        message = f"D has {first.shape[0]} atoms, but K={K}: leave out K"
        raise ValueError(message)
    return first, int(first.shape[0])


def _recall(state: State, model: Any, size: float) -> None:
    """Make the statistics of a model the past of a state that has none."""
    k, m = state.D.shape
    if not isinstance(model, dict) or any(key not in model for key in ("A", "B", "iter")):
        message = (
            "model must be a dictionary with A, B and iter, as returned with return_model=True"
        )
        raise ValueError(message)
    check_shape("model['A']", model["A"], (k, k), "atoms, atoms")
    check_shape("model['B']", model["B"], (m, k), "features, atoms")
    steps = check_integer("model['iter']", model["iter"], low=0)
    past = state.stats[0]
    past.A[:] = size**2 * np.asarray(model["A"])
    past.B[:] = size * np.asarray(model["B"]).T
    state.step = steps
    state.samples = steps * state.learner.rows_per_step(state.n_rows or 0)
    state.last_used[:] = state.samples
    state.measure_surrogate()


def _model(state: State, size: float) -> dict[str, Any]:
    """Return SPAMS's model: the statistics and the number of steps so far."""
    A: Array = sum(part.scale * part.A for part in state.stats) / size**2  # type: ignore[assignment]
    B: Array = sum(part.scale * part.B for part in state.stats) / size  # type: ignore[assignment]
    dtype = state.D.dtype
    return {"A": columns(A, dtype), "B": columns(B, dtype), "iter": int(state.step)}
