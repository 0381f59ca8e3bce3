"""The time of `consensus` beside that of the procedure known from single cells (cNMF).

    python -m benchmarks.choosing.consensus --cells 1000 --starts 20

Both factorize the same table of simulated cells from the same number of starts, in one process, on
the same cores, and are judged by the programs that were planted. The procedure is that of Kotliar
et al. (eLife 2019), written here anew: scikit-learn's NMF by coordinate descent from random starts
(tol 1e-4, at most 1000 iterations), spectra of norm 1, those with far neighbors left out, k-means,
medians, and usages refitted. Its starts run on all cores, as with its ``--total-workers``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, non_negative_factorization
from sklearn.metrics import pairwise_distances, silhouette_score
from threadpoolctl import threadpool_limits

from smalto import consensus
from smalto.choosing import matched_similarity
from smalto.threads import available_cores

DENSITY_THRESHOLD = (
    0.5  # mean distance to the nearest neighbors, above which a spectrum is left out
)
NEIGHBORS = 0.3  # of the starts


def cells(n, m, k, seed=0):
    """Return counts of m genes in n cells, scaled to unit variance, and the k programs.

    As in such tables, programs have most of their expression in common: in each of them every
    tenth gene differs from the others. A cell is mostly of one type, and uses others a little.
    """
    rng = np.random.default_rng(seed)
    common = rng.gamma(0.6, size=m)
    changed = rng.random((k, m)) < 0.1
    programs = common * np.where(changed, rng.lognormal(1.0, 1.0, size=(k, m)), 1.0)
    programs /= programs.sum(axis=1, keepdims=True)
    usage = rng.dirichlet(np.full(k, 0.3), size=n) * rng.lognormal(8.0, 0.4, size=(n, 1))
    counts = rng.poisson(usage @ programs).astype(np.float64)
    spread = counts.std(axis=0)
    kept = spread > 0
    return scipy.sparse.csr_array(counts[:, kept] / spread[kept]), programs[:, kept] / spread[kept]


def known_procedure(X, k, n_starts, workers):
    """Return the consensus by scikit-learn's NMF and k-means, and its stability."""

    def spectra(seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return NMF(k, init="random", tol=1e-4, max_iter=1000, random_state=seed).fit(X)

    with threadpool_limits(1), ThreadPoolExecutor(workers) as pool:
        found = np.vstack([model.components_ for model in pool.map(spectra, range(n_starts))])
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    distances = pairwise_distances(found)
    nearest = int(NEIGHBORS * n_starts)
    density = np.sort(distances, axis=1)[:, 1 : nearest + 1].mean(axis=1)
    kept = found[density < DENSITY_THRESHOLD]
    labels = KMeans(k, n_init=10, random_state=1).fit_predict(kept)
    centers = np.stack([np.median(kept[labels == j], axis=0) for j in range(k)])
    centers /= centers.sum(axis=1, keepdims=True)
    non_negative_factorization(
        X, H=centers, n_components=k, update_H=False, init="custom", tol=1e-4, max_iter=1000
    )
    return centers, silhouette_score(kept, labels)


def main():
    """Print the time of both, how stable they call it, and how well the programs are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--genes", type=int, default=1000)
    parser.add_argument("--atoms", type=int, default=10)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--dense", action="store_true")
    options = parser.parse_args()
    X, programs = cells(options.cells, options.genes, options.atoms)
    X = X.toarray() if options.dense else X
    cores = available_cores()
    consensus(X[:200], options.atoms, n_starts=2, random_state=0)  # compiles what is needed
    began = time.perf_counter()
    ours = consensus(X, options.atoms, n_starts=options.starts, random_state=0)
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    theirs, score = known_procedure(X, options.atoms, options.starts, cores)
    known_seconds = time.perf_counter() - began
    print(f"{X.shape[0]} cells x {X.shape[1]} genes, {options.atoms} programs, "
          f"{options.starts} starts, {cores} cores")  # fmt: skip
    print("| | seconds | stability | similarity to the programs |")
    print("|---|---|---|---|")
    for name, time_, stable, D in (
        ("smalto.consensus", seconds, ours.best.stability.mean(), ours.best.D),
        ("scikit-learn's NMF, k-means", known_seconds, score, theirs),
    ):
        similarity = matched_similarity(programs, [D]).mean()
        print(f"| {name} | {time_:.1f} | {stable:.3f} | {similarity:.3f} |")
    print(f"{known_seconds / seconds:.1f} times as fast")


if __name__ == "__main__":
    main()
