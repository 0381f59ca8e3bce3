"""Other programs on the axes of Figure 1: SPAMS, by the authors of the paper, and scikit-learn."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.paper.curves import FIRST, SPACING, Limit, Trace
from benchmarks.peers.common import Array

BATCH = 512


def spams(X: Array, D0: Array, lam: float, limit: Limit, seed: int, _: Any) -> Trace:
    """Run ``trainDL`` with its defaults: a run for each point, as it has no callback."""
    import spams as program

    signals, first = np.asfortranarray(X.T), np.asfortranarray(D0.T)
    kept: Trace = []
    steps = 1
    while not kept or 2.0 * kept[-1][1] <= limit.seconds:
        begin = time.process_time()
        D = program.trainDL(
            signals, D=first.copy(order="F"), lambda1=lam, iter=steps, batchsize=BATCH,
            numThreads=1, verbose=False,
        )  # fmt: skip
        used = time.process_time() - begin
        if used >= FIRST or 4 * used > limit.seconds:
            kept.append((steps * BATCH, used, np.ascontiguousarray(D.T)))
        steps *= 2
    return kept


def scikit_learn(X: Array, D0: Array, lam: float, limit: Limit, seed: int, _: Any) -> Trace:
    """Run ``MiniBatchDictionaryLearning`` with coordinate descent, the faster of its two coders."""
    from sklearn.decomposition import MiniBatchDictionaryLearning

    model = MiniBatchDictionaryLearning(
        len(D0),
        alpha=lam,
        fit_algorithm="cd",
        dict_init=D0.copy(),
        batch_size=BATCH,
        random_state=seed,
    )
    order = np.random.default_rng(seed).permutation(len(X))
    kept: Trace = []
    used, at = 0.0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while used < limit.seconds:
            rows = X[np.take(order, np.arange(at, at + BATCH), mode="wrap")]
            begin = time.process_time()
            model.partial_fit(rows)
            used += time.process_time() - begin
            at += BATCH
            if used >= (SPACING * kept[-1][1] if kept else FIRST) or used >= limit.seconds:
                kept.append((at, used, model.components_.copy()))
    return kept
