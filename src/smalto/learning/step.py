"""One step of learning: code a mini-batch, add it to the statistics, update the dictionary."""

from __future__ import annotations

import numpy as np

from smalto.checks import is_built_in, named
from smalto.learning.batches.base import MiniBatch
from smalto.learning.dictionary.replacement import candidates, remember_worst, replace_atoms
from smalto.learning.dictionary.wanted_density import update_to_density
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State, check_atoms, check_sums

ADAPT_EVERY = 64  # samples between two changes of a constraint that aims at a density


def step(state: State, batch: MiniBatch, n_threads: int) -> Record:
    """Make one step with a mini-batch; update the state in place, and return the record."""
    learner, n_new = state.learner, batch.n_samples
    seen = state.samples + n_new
    coded = batch.code(state, n_threads)
    lam, slack = state.coder_now().describe()["lam"], state.slack_after(state.samples)
    cost, weight, nonzeros, short = 0.0, 0.0, 0, 0
    used, worst = np.zeros(len(state.D), np.bool_), []
    with named(learner, "forget"):
        learner.forget(state, n_new)
    for number, part in enumerate(coded.parts):  # which are coded here, one after another
        with named(learner, "learn_from"):
            learner.learn_from(state, part.new, part.numbers, n_threads)
        used |= part.new.uses > 0
        worst.append(candidates(state, part.new, number))
        cost += float(part.new.weighted_costs().sum())
        weight += part.new.total_weight()
        nonzeros += part.nonzeros
        short += part.short
    # A step that ends before this has changed nothing but the statistics, which `Batch` clears.
    state.last_used[used] = seen
    for rows, costs in worst:
        remember_worst(state, rows, costs)
    adapts = seen // ADAPT_EVERY > state.samples // ADAPT_EVERY
    _update(state, n_new, n_threads, adapts=adapts and state.constraint.adapts)
    state.samples = seen
    state.step += 1
    replaced = replace_atoms(state, coded.G, n_threads)
    record = state.record(
        cost / weight if weight > 0 else 0.0,
        nonzeros / n_new,
        lam=lam,
        replaced=replaced,
        short=short,
        slack=slack,
        used=int(np.count_nonzero(used)),
    )
    state.place = batch.place
    if batch.ends_epoch:
        state.end_epoch()
    return record


def _update(state: State, n_new: int, n_threads: int, *, adapts: bool) -> None:
    """Have the learner update the dictionary; raise if it is none afterwards."""
    shape, dtype = state.D.shape, state.D.dtype
    with named(state.learner, "update"):
        if adapts:
            update_to_density(state, n_new, n_threads)
        else:
            state.learner.update(state, n_new, n_threads)
    culprit = type(state.learner).__name__
    check_atoms(f"{culprit}.update", state.D, shape, dtype)
    if not is_built_in(state.learner):
        check_sums(culprit, state.stats)
