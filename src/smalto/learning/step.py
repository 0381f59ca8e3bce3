"""One step of learning: code new samples, add them to the past, update the dictionary."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from smalto.checks import Array, Rows
from smalto.coders.base import Coder, resolved
from smalto.coders.coding import prepare
from smalto.constraints import Adaptive, density
from smalto.learning.batches.samples import Samples
from smalto.learning.dictionary.feature_sweep import Viewing
from smalto.learning.dictionary.replacement import remember_worst, replace_atoms
from smalto.learning.interrupts import deferred_interrupt
from smalto.learning.memory.contributions import Addition, Part, code_samples, warn_of_zeros
from smalto.learning.memory.state import Record, State
from smalto.learning.options import Continuation, Replacement
from smalto.threads import single_threaded_blas

ADAPT_EVERY = 64  # samples between two moves of a set that adapts to a wanted density


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
    iterator = iter(blocks)
    first_block = next(iterator)
    decide_anew(state, lambda: first_block.signals.X, n_threads)
    coder = state.coder if continuation is None else continuation.at(state.coder, state.step)
    learner = state.learner
    view = learner.view(state) if isinstance(learner, Viewing) else None
    prepared = prepare(state.D if view is None else view.rows(state.D), coder, n_threads)

    def parts() -> Iterator[Part]:
        for samples in itertools.chain([first_block], iterator):
            start = None if state.store is None else state.store.fetch(samples.numbers)
            part = code_samples(samples, state.D, prepared, start, n_threads, view)
            if state.step == 0:
                warn_of_zeros(part, samples, coder, state.D)
            yield part

    record = take_in(state, parts(), n_new, coder, prepared.G, replacement, n_threads)
    state.seconds += time.perf_counter() - clock
    return replace(record, seconds=state.seconds)


def decide_anew(state: State, rows: Callable[[], Rows], n_threads: int) -> None:
    """Now and then, decide again what depends on the dictionary, from the next samples."""
    if state.step == 0 or is_power_of_two(state.step):
        state.coder = resolved(state.coder, rows(), state.D, n_threads)


def take_in(
    state: State,
    parts: Iterable[Part],
    n_new: int,
    coder: Coder,
    G: Array,
    replacement: Replacement,
    n_threads: int,
) -> Record:
    """Learn from n_new coded samples, in place; ``G`` is the Gram matrix of the dictionary."""
    total_cost, total_weight, nonzeros, short = 0.0, 0.0, 0, 0
    state.learner.forget(state, n_new)
    for part in parts:
        new: Addition = part.new
        state.learner.learn_from(state, new, part.numbers, n_threads)
        state.last_used[new.uses > 0] = state.samples + n_new
        remember_worst(state, *new.worst())
        total_cost += float(new.weighted_costs().sum())
        total_weight += new.total_weight()
        nonzeros += part.nonzeros
        short += part.short
    # Atoms take some samples to follow a set that has moved: it waits for them.
    waited = (state.samples + n_new) // ADAPT_EVERY > state.samples // ADAPT_EVERY
    if isinstance(state.constraint, Adaptive) and waited:
        state.constraint = state.constraint.adapted(state.D)
    state.learner.update(state, n_new, n_threads)
    state.samples += n_new
    state.step += 1
    replaced = replace_atoms(state, replacement, G)
    surrogate = state.mean_surrogate()
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
