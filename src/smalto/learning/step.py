"""One step of learning: code new samples, add them to the past, update the dictionary."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from smalto.checks import Array, Rows
from smalto.coders.encoding import ROWS_AT_ONCE, code_rows, prepare, warn_if_all_zero
from smalto.constraints import Adaptive, density
from smalto.learning.atoms import Replacement, remember_worst, replace_atoms
from smalto.learning.continuation import Continuation
from smalto.learning.interrupts import deferred_interrupt
from smalto.learning.state import Record, State
from smalto.learning.stats import Contribution
from smalto.threads import single_threaded_blas


def is_power_of_two(number: int) -> bool:
    """Whether it is 1, 2, 4, 8, ..."""
    return number > 0 and number & (number - 1) == 0


def step(
    state: State,
    blocks: Iterable[tuple[Array, Rows]],
    n_new: int,
    replacement: Replacement,
    continuation: Continuation | None,
    n_threads: int,
) -> Record:
    """Learn from n_new samples, given as blocks of (their numbers, their rows), in place."""
    clock = time.perf_counter()
    k = len(state.D)
    iterator = iter(blocks)
    first_block = next(iterator)
    if state.step == 0 or is_power_of_two(state.step):
        # Now and then, what depends on the dictionary is decided anew.
        state.coder = state.coder.resolve(first_block[1], state.D, n_threads)
    coder = state.coder if continuation is None else continuation.at(state.coder, state.step)
    prepared = prepare(state.D, coder, n_threads)
    total_cost, nonzeros = 0.0, 0
    state.learner.forget(state, n_new)
    for numbers, X in itertools.chain([first_block], iterator):
        start = None if state.store is None else state.store.fetch(numbers)
        coded = code_rows(X, prepared, start, n_threads)
        penalties = coder.penalty(coded.codes.as_csr(k))
        new = Contribution.of(coded.codes, X, k, coded.norms, coded.fit, penalties)
        state.learner.learn_from(state, new, numbers, n_threads)
        state.last_used[new.uses > 0] = state.samples + n_new
        remember_worst(state, X, new.costs)
        total_cost += float(new.costs.sum())
        nonzeros += len(coded.codes.indices)
        if nonzeros == 0 and state.step == 0:
            warn_if_all_zero(coder, X, state.D)
    if isinstance(state.constraint, Adaptive):
        state.constraint = state.constraint.adapted(state.D)
    state.learner.update(state, n_new, n_threads)
    state.samples += n_new
    state.step += 1
    replaced = replace_atoms(state, replacement, prepared.G)
    surrogate = state.mean_surrogate()
    state.seconds += time.perf_counter() - clock
    return Record(
        step=state.step,
        epoch=state.epoch,
        samples=state.samples,
        seconds=state.seconds,
        batch_cost=total_cost / n_new,
        surrogate=None if math.isnan(surrogate) else surrogate,
        test_cost=None,
        mean_nonzeros=nonzeros / n_new,
        replaced=replaced,
        density=density(state.D),
        lam=getattr(coder, "lam", None),
    )


def step_on(
    state: State,
    X: Rows,
    replacement: Replacement | None,
    continuation: Continuation | None,
    n_threads: int,
) -> Record:
    """One step on these rows, all of them, as the next batch of a stream.

    A Ctrl-C during it raises KeyboardInterrupt when it is done: the state is whole.
    """
    n = X.shape[0]
    blocks = (
        (np.arange(a, min(a + ROWS_AT_ONCE, n)), X[a : a + ROWS_AT_ONCE])
        for a in range(0, n, ROWS_AT_ONCE)
    )
    with single_threaded_blas(), deferred_interrupt() as interrupted:
        record = step(state, blocks, n, replacement or Replacement(), continuation, n_threads)
    if interrupted():
        raise KeyboardInterrupt
    return replace(record, seconds=state.seconds)
