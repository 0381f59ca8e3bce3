"""One step of learning: code new samples, add them to the past, update the dictionary."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable
from dataclasses import replace

from smalto.coders.base import Reaching, penalties
from smalto.coders.encoding import (
    code_rows,
    count_out_of_reach,
    prepare,
    warn_if_all_zero,
)
from smalto.constraints import Adaptive, density
from smalto.learning.atoms import remember_worst, replace_atoms
from smalto.learning.continuation import Continuation
from smalto.learning.interrupts import deferred_interrupt
from smalto.learning.replacement import Replacement
from smalto.learning.samples import Samples, filled
from smalto.learning.state import Record, State
from smalto.learning.stats import Contribution
from smalto.threads import single_threaded_blas


def is_power_of_two(number: int) -> bool:
    """Whether it is 1, 2, 4, 8, ..."""
    return number > 0 and number & (number - 1) == 0


def step(
    state: State,
    blocks: Iterable[Samples],
    n_new: int,
    replacement: Replacement,
    continuation: Continuation | None,
    n_threads: int,
) -> Record:
    """Learn from n_new samples, given in blocks, in place."""
    clock = time.perf_counter()
    k = len(state.D)
    iterator = iter(blocks)
    first_block = next(iterator)
    if state.step == 0 or is_power_of_two(state.step):
        # Now and then, what depends on the dictionary is decided anew.
        state.coder = state.coder.resolve(first_block.signals.X, state.D, n_threads)
    coder = state.coder if continuation is None else continuation.at(state.coder, state.step)
    prepared = prepare(state.D, coder, n_threads)
    total_cost, total_weight, nonzeros, short = 0.0, 0.0, 0, 0
    promised = coder.promised() if isinstance(coder, Reaching) else None
    state.learner.forget(state, n_new)
    for samples in itertools.chain([first_block], iterator):
        start = None if state.store is None else state.store.fetch(samples.numbers)
        coded = code_rows(samples.signals, prepared, start, n_threads)
        codes = coded.codes.as_csr(k)
        new = Contribution.of(
            coded, filled(samples.signals, codes, state.D), k,
            penalties(coder, codes, samples.signals.groups), samples.weights,
            filled=samples.signals.missing is not None,
        )  # fmt: skip
        state.learner.learn_from(state, new, samples.numbers, n_threads)
        state.last_used[new.uses > 0] = state.samples + n_new
        weighted = new.weighted_costs()
        remember_worst(state, new.X, weighted)
        total_cost += float(weighted.sum())
        total_weight += samples.total_weight()
        nonzeros += len(coded.codes.indices)
        if promised is not None:
            short += count_out_of_reach(
                promised, coded, state.D.dtype, samples.signals.groups
            )  # fmt: skip
        if nonzeros == 0 and state.step == 0:
            warn_if_all_zero(coder, samples.signals.X, state.D)
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
        batch_cost=total_cost / total_weight if total_weight > 0 else 0.0,
        surrogate=None if math.isnan(surrogate) else surrogate,
        test_cost=None,
        mean_nonzeros=nonzeros / n_new,
        replaced=replaced,
        density=density(state.D),
        lam=getattr(coder, "lam", None),
        short=short,
    )


def step_on(
    state: State,
    samples: Samples,
    replacement: Replacement | None,
    continuation: Continuation | None,
    n_threads: int,
) -> Record:
    """One step on these samples, all of them, as the next batch of a stream.

    A Ctrl-C during it raises KeyboardInterrupt when it is done: the state is whole.
    """
    with single_threaded_blas(), deferred_interrupt() as interrupted:
        record = step(
            state,
            samples.parts(),
            len(samples),
            replacement or Replacement(),
            continuation,
            n_threads,
        )
    if interrupted():
        raise KeyboardInterrupt
    return replace(record, seconds=state.seconds)
