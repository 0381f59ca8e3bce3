"""Sparse CCA on genomic data: correlations of gene expressions with copy numbers (Section 6.3).

Breast cancer samples (Chin et al. 2006). For each of 23 chromosomes a pair of weights is fitted on
3/4 of the samples: for the expressions of all genes (25 nonzero) and for the copy numbers along
the chromosome. Correlations are measured on these samples and on the rest, over ten random splits.
Everything is standardized by the training part. The baseline is our own implementation of the
penalized matrix decomposition, with the penalty of the best mean *test* correlation.

The data is read from the folder named by SMALTO_DATA (breast_chin2006/breastdata.npz: the
``breastdata`` of the R package PMA); without it, similar data is simulated.

Run it with ``python -m benchmarks.peers.sparse_cca``.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.genomes import PLACE, Genomes, correlation, made_up, read, standardized
from benchmarks.peers.common import Array, add_common, announce, blas_threads, machine, save, table
from benchmarks.pmd import pmd
from smalto import SparseCCA

MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)  # penalties of the baseline, in multiples of the noise


def load(quick: bool) -> Genomes:
    """Return the breast cancer data, or simulated data."""
    folder = os.environ.get("SMALTO_DATA")
    if folder and not quick:
        return read(Path(folder) / PLACE)
    return made_up(300, 2) if quick else made_up(20_000, 23)


def correlations(model: SparseCCA, X: Array, Y: Array, data: Genomes, seed: int) -> list[float]:
    """Fit on the training part of a split; return the correlations on it and on the rest."""
    train, test = data.split(seed)
    model.fit(X[train], Y[train])
    return [model.score(X[train], Y[train]), model.score(X[test], Y[test])]


def smalto_run(data: Genomes, splits: int, threads: int) -> tuple[float, Array]:
    """Return seconds, and correlations (splits, chromosomes, 2)."""
    numbers = np.unique(data.chromosome)
    jobs = [(seed, c) for seed in range(splits) for c in numbers]

    def job(pair: tuple[int, Any]) -> list[float]:
        Y = data.copies[:, data.chromosome == pair[1]]
        return correlations(SparseCCA(max_nonzeros_x=25), data.expressions, Y, data, pair[0])

    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(job, jobs))
    return time.perf_counter() - begin, np.array(found).reshape(splits, len(numbers), 2)


def pmd_run(data: Genomes, splits: int, multiple: float) -> tuple[float, Array]:
    """Return the same for the baseline."""
    numbers = np.unique(data.chromosome)
    found = np.empty((splits, len(numbers), 2))
    begin = time.perf_counter()
    for seed in range(splits):
        train, test = data.split(seed)
        X = standardized(data.expressions, train)
        for place, c in enumerate(numbers):
            Y = standardized(data.copies[:, data.chromosome == c], train)
            u, v = pmd(X[train], Y[train], 25, multiple)
            for part, rows in enumerate((train, test)):
                found[seed, place, part] = correlation(X[rows] @ u, Y[rows] @ v)
    return time.perf_counter() - begin, found


def main(arguments: list[str] | None = None) -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument(
        "--threads", nargs="+", type=int, default=[1, 2], help="number of fits at once"
    )
    add_common(parser)
    options = parser.parse_args(arguments)
    about = machine()
    announce(about)
    data = load(options.quick)
    splits = 2 if options.quick else options.splits
    n, genes = data.expressions.shape
    print(
        f"{n} samples, {genes} genes, {data.copies.shape[1]} spots on "
        f"{len(np.unique(data.chromosome))} chromosomes ({data.source}), {splits} splits"
    )
    first = data.copies[:, data.chromosome == data.chromosome[0]]
    with blas_threads(1):
        correlations(SparseCCA(max_nonzeros_x=25), data.expressions, first, data, 0)  # compile
        runs = [_entry("smalto", t, *smalto_run(data, splits, t)) for t in options.threads]
        runs += [_entry(f"PMD, {c} x noise", 1, *pmd_run(data, splits, c)) for c in MULTIPLES]
    header = ["method", "threads", "seconds", "train", "test", "deviation", "of test"]
    keys = ["method", "threads", "seconds", "train", "test", "train_deviation", "test_deviation"]
    table(header, [[run[key] for key in keys] for run in runs])
    best = max((run for run in runs if run["method"] != "smalto"), key=lambda run: run["test"])
    print(f"test correlation: {runs[0]['test']:.4f}, best of PMD {best['test']:.4f}")
    save(options.out, "sparse_cca", about, options, runs=runs, source=data.source)


def _entry(method: str, threads: int, seconds: float, found: Array) -> dict[str, Any]:
    mean, deviation = found.mean(axis=(0, 1)), found.std(axis=0, ddof=1).mean(axis=0)
    return {
        "method": method,
        "threads": threads,
        "seconds": seconds,
        "train": float(mean[0]),
        "test": float(mean[1]),
        "train_deviation": float(deviation[0]),
        "test_deviation": float(deviation[1]),
        "test_by_chromosome": found.mean(axis=0)[:, 1].tolist(),
    }


if __name__ == "__main__":
    main()
