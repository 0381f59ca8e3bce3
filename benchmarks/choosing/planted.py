"""How often `select` finds the number of atoms of tables where it is known.

    python -m benchmarks.choosing.planted                     # 10 trials of each kind
    python -m benchmarks.choosing.planted --trials 100 --seconds 100 --store counts.json

With ``--store`` what is done is kept, and another call goes on where the last one ended; with
``--seconds`` a call ends after that time. A trial counts if the number chosen is within 10 % of
the number planted. Signal-to-noise ratios are those of variances. `select` is told the table, the
numbers to choose from, and whether to use `NMF`; neither the noise nor a penalty.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import scipy

from smalto import NMF, DictionaryLearning, select

KINDS = ("gaussian", "nonnegative", "counts")
RATIOS = (10, 3)
GRIDS = {
    5: [2, 3, 4, 5, 6, 7, 9, 12],
    20: [12, 15, 18, 20, 22, 25, 30],
    60: [42, 48, 54, 60, 66, 72],
}


def planted(kind, k, ratio, seed, n=None, m=None):
    """Return a table of samples composed of k atoms, with noise."""
    rng = np.random.default_rng([seed, k, ratio, KINDS.index(kind)])
    n = 400 + 20 * k if n is None else n
    m = max(120, 5 * k) if m is None else m
    active = 2 if k < 10 else 3
    if kind == "nonnegative":
        S = rng.gamma(0.3, size=(n, k)) @ rng.gamma(0.3, size=(k, m))
        spread = S.var() / (ratio * S.mean())
        return rng.gamma(np.maximum(S / spread, 1e-9)) * spread  # variance: spread times mean
    C = np.zeros((n, k))
    for row in C:
        row[rng.choice(k, active, replace=False)] = 1.0
    if kind == "counts":  # few features per atom, few atoms per sample: most counts are zero
        C *= rng.gamma(2.0, size=C.shape)
        S = C @ (rng.gamma(1.0, size=(k, m)) * (rng.random((k, m)) < 0.15))
        return scipy.sparse.csr_array(rng.poisson(S * ratio * S.mean() / S.var()).astype(float))
    C *= rng.standard_normal(C.shape)
    D = rng.standard_normal((k, m))
    S = C @ (D / np.linalg.norm(D, axis=1, keepdims=True))
    return S + rng.standard_normal(S.shape) * np.sqrt(S.var() / ratio)


def chosen(kind, k, ratio, seed, n_threads=None):
    """Return the number of atoms that is chosen for a planted table, and that with the lowest error."""
    X = planted(kind, k, ratio, seed)
    estimator = DictionaryLearning if kind == "gaussian" else NMF
    choice = select(
        X, GRIDS[k], estimator=estimator, refit=False, n_threads=n_threads, random_state=seed
    )
    return choice.rows[choice.chosen]["n_atoms"], choice.rows[choice.lowest]["n_atoms"]


def main():
    """Print how often the number was right, for each kind of table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--atoms", type=int, nargs="+", default=list(GRIDS))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--ratios", type=int, nargs="+", default=list(RATIOS))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--store", type=Path)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    done = {}
    if options.store is not None and options.store.exists():
        done = json.loads(options.store.read_text())
    began = time.monotonic()
    for seed in range(options.trials):
        for kind in options.kinds:
            for k in options.atoms:
                for ratio in options.ratios:
                    key = f"{kind} {k} {ratio} {seed}"
                    if key in done or time.monotonic() - began > options.seconds:
                        continue
                    start = time.monotonic()
                    done[key] = [
                        *chosen(kind, k, ratio, seed, options.threads),
                        round(time.monotonic() - start, 2),
                    ]
                    if options.store is not None:
                        options.store.write_text(json.dumps(done))
    print("| table | atoms | SNR | trials | right within 10 % | chosen | seconds |")
    print("|---|---|---|---|---|---|---|")
    for kind in options.kinds:
        for k in options.atoms:
            for ratio in options.ratios:
                trials = [done[key] for key in done if key.startswith(f"{kind} {k} {ratio} ")]
                if trials:
                    right = sum(abs(found - k) <= 0.1 * k for found, _, _ in trials)
                    numbers, counts = np.unique([t[0] for t in trials], return_counts=True)
                    found = ", ".join(f"{a} ({c})" for a, c in zip(numbers, counts, strict=True))
                    seconds = np.median([t[2] for t in trials])
                    print(
                        f"| {kind} | {k} | {ratio} | {len(trials)} | {right} | {found} "
                        f"| {seconds:.1f} |"
                    )


if __name__ == "__main__":
    main()
