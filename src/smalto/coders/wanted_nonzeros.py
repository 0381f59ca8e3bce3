"""The lam for a wanted number of nonzeros, and a warning if the number was not reached."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.base import Coder
from smalto.coders.lasso_paths import follow, padded_gram
from smalto.coders.parameters import scaled_number
from smalto.coders.preparing import padded_atoms
from smalto.coders.products import Packed, gram
from smalto.coders.scaling import largest_entry, number_exponent, shifted
from smalto.coders.signals import Signals
from smalto.threads import run_tasks

SAMPLE = 512  # signals that determine lam ...
OWN_SAMPLE = 128  # ... and if each has a Gram matrix of its own
FEW = 64  # signals coded as one task, and those with which a search for lam begins
_CLOSE = 0.01  # relative error of the number of nonzeros; that of the sample is larger
_LEAST = 1e-6  # of the largest correlation: where a search for lam ends
_TRIALS = 8
_MISSED = 0.75  # share of the wanted number below which users are warned

# Given correlations of signals and lam, returns the number of nonzeros of their codes.
Count: TypeAlias = Callable[[Array, float], int]


def lam_for_nonzeros(
    signals: Signals,
    D: Array,
    nonzeros: float,
    ridge: float,
    positive: bool,
    n_threads: int,
    count_over: Callable[[Array], Count],
    G: Array | None = None,
) -> float | None:
    """Return the lam at which codes of signals over D have ``nonzeros`` nonzeros on average.

    (A sample of) the rows are coded with one lam after another; ``count_over`` makes the function
    that does so from a Gram matrix: G, that of the padded dictionary, if it is given. For few rows,
    for rows with missing entries or weights, or if this fails, lam comes from whole paths. None if
    no row is correlated with any atom.
    """
    k, m = D.shape
    if nonzeros > min(m, k):
        message = f"mean_nonzeros must be at most {min(m, k)} (k={k} atoms, m={m}), got {nonzeros}"
        raise ValueError(message)
    signal, atom = number_exponent(largest_entry(signals.X)), number_exponent(largest_entry(D))
    if signal or atom:
        signals, D = replace(signals, X=shifted(signals.X, -signal)), shifted(D, -atom)
        ridge = scaled_number(ridge, 2.0**-atom, 2.0**-atom)
        lam = lam_for_nonzeros(signals, D, nonzeros, ridge, positive, n_threads, count_over)
        return None if lam is None else scaled_number(lam, 2.0**signal, 2.0**atom)
    own = signals.missing is not None or signals.penalty_weights is not None
    n, most = len(signals), OWN_SAMPLE if own else SAMPLE
    rows = np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))
    chosen = replace(signals, groups=None).take(rows)
    sample = chosen.X.toarray() if scipy.sparse.issparse(chosen.X) else chosen.X
    lam = None
    if len(rows) > FEW and not own:
        packed = Packed(padded_atoms(D))
        if G is None or ridge:
            G = gram(packed, n_threads)
            G[np.arange(k), np.arange(k)] += D.dtype.type(ridge)
        Q = packed.products(sample.astype(D.dtype, copy=False))
        lam = _by_coding(Q, nonzeros, positive, count_over(G), n_threads)
    if lam is None:
        lam = _by_paths(replace(chosen, X=sample), D, nonzeros, ridge, positive, n_threads)
    return lam


def _by_coding(
    Q: Array, nonzeros: float, positive: bool, count: Count, n_threads: int
) -> float | None:
    """Return lam, searched by coding: few signals at first, then all; None if it is not found.

    Between two values of lam, the number of nonzeros is taken for a power of lam.
    """

    def mean(Q: Array, lam: float) -> float:
        found = np.zeros(-(-len(Q) // FEW), np.int64)

        def task(number: int) -> None:
            found[number] = count(Q[number * FEW : (number + 1) * FEW], lam)

        run_tasks(task, len(found), n_threads)
        return float(found.sum()) / len(Q)

    few = np.ascontiguousarray(Q[:: -(-len(Q) // FEW)])
    high = float((Q if positive else np.abs(Q)).max(initial=0.0))
    lam, now, exponent = high, 0.0, 1.0

    def go_to(new: float, Q: Array) -> None:
        nonlocal lam, now, exponent
        count = mean(Q, new)
        if now and count and new != lam:
            exponent = min(max(math.log(count / now) / math.log(lam / new), 0.5), 4.0)
        lam, now = new, count

    while now < nonzeros and lam > _LEAST * high:
        go_to(0.5 * lam, few)
    for _ in range(_TRIALS):
        if lam <= _LEAST * high:
            return None
        go_to(lam * min(max((now / nonzeros) ** (1.0 / exponent), 0.5), 2.0), Q)
        if abs(now - nonzeros) <= max(_CLOSE * nonzeros, 0.5 / len(Q)):
            return lam
    return None


def _by_paths(
    signals: Signals, D: Array, nonzeros: float, ridge: float, positive: bool, n_threads: int
) -> float | None:
    """Return lam from the path of each signal, whose number of nonzeros is a step function of lam.

    It is the middle of the first step at which the mean reaches ``nonzeros``. If no path can be
    followed, as over atoms that are all alike, it is as small as it gets.
    """
    k, n, D = len(D), len(signals), np.asarray(D, np.float64)
    X, missing = np.asarray(signals.X, np.float64), signals.missing
    weights = signals.penalty_weights
    G, width = padded_gram(D, ridge)
    limit = int(min(k, np.ceil(4 * nonzeros) + 8))  # paths are followed up to this many nonzeros
    events: list[Any] = [None] * n
    tops = np.zeros(n)  # the largest correlations

    def task(i: int) -> None:
        atoms, gram, by = D, G, np.ones(k)
        if missing is not None:
            atoms = np.where(missing[i], 0.0, atoms)
        if weights is not None:
            by = 1.0 / weights[i % len(weights)]
            atoms = by[:, None] * atoms
        if atoms is not D:
            gram, _ = padded_gram(atoms, ridge * by * by)
        q = np.zeros(width)
        q[:k] = atoms @ X[i]
        tops[i] = (q if positive else np.abs(q)).max(initial=0.0)
        try:
            lams, indptr, _, _ = follow(gram, q, k, 0.0, positive, limit)
        except ArithmeticError:  # leave out a signal whose path cannot be followed
            return
        # Just below a kink, the code has as many nonzeros as on arrival at the next kink.
        counts = np.diff(indptr)
        events[i] = (lams[:-1], np.maximum(counts[1:], counts[:-1]))

    run_tasks(task, n, n_threads)
    events = [event for event in events if event is not None]
    if not tops.any():
        return None
    if not events:
        return float(_LEAST * tops.max())
    lams = np.concatenate([event[0] for event in events])
    changes = np.concatenate([np.diff(event[1], prepend=0) for event in events])
    if lams.size == 0 or lams.max() == 0.0:
        return None
    order = np.argsort(-lams, kind="stable")
    mean = np.cumsum(changes[order]) / len(events)
    reached = np.flatnonzero(mean >= nonzeros)
    place = int(reached[0]) if reached.size else len(order) - 1
    lams = np.append(lams[order], 0.0)
    return float(0.5 * (lams[place] + lams[place + 1]))


def missed_nonzeros(coder: Coder, mean: float) -> str | None:
    """Return what to tell a user if codes have fewer nonzeros than wanted; None if they have not.

    They can have fewer although `lam` is as small as it gets: for samples that few atoms, or a
    non-negative combination of few atoms, represent exactly.
    """
    wanted = getattr(coder, "mean_nonzeros", None)
    if wanted is None or mean >= _MISSED * wanted:
        return None
    return f"mean_nonzeros={wanted:g} was not reached: codes have {mean:.3g} nonzeros on average"
