"""Gene expressions and copy numbers of the same tumors, for the experiments of Section 6.3."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers.common import Array

PLACE = "breast_chin2006/breastdata.npz"  # in the folder of the data sets


@dataclass(frozen=True, eq=False)
class Genomes:
    """Expressions (n, genes), copy numbers (n, spots), and the chromosome of each spot."""

    expressions: Array
    copies: Array
    chromosome: Array
    source: str

    def split(self, seed: int) -> tuple[Array, Array]:
        """Return three quarters of the samples for training, and the rest for testing."""
        order = np.random.default_rng(seed).permutation(len(self.copies))
        count = round(0.75 * len(order))
        return order[:count], order[count:]


def read(path: Path) -> Genomes:
    """Read the breast cancer data of Chin et al. 2006."""
    with np.load(path) as found:
        genes = found["rna_std"].T.astype(np.float64)
        copies = found["dna"].T.astype(np.float64)
        return Genomes(genes, copies, found["chrom"], "Chin et al. 2006")


def made_up(genes: int, chromosomes: int, n: int = 80, spots: int = 40) -> Genomes:
    """Simulate such data: gains or losses of stretches, and genes that follow them."""
    rng = np.random.default_rng(0)
    expressions = rng.standard_normal((n, genes))
    copies = rng.standard_normal((n, spots * chromosomes))
    for c in range(chromosomes):
        gain = rng.standard_normal((n, 1))
        copies[:, spots * c + 10 : spots * c + 25] += gain
        expressions[:, rng.choice(genes, 30, replace=False)] += gain
    return Genomes(expressions, copies, np.repeat(np.arange(1, chromosomes + 1), spots), "made up")


def standardized(block: Array, train: Array) -> Array:
    """Center and scale columns by their training part; constant ones become zero."""
    deviation = block[train].std(axis=0, ddof=1)
    return (block - block[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def correlation(a: Array, b: Array) -> float:
    """Return Pearson's correlation; 0 if one side is constant."""
    a, b = a - a.mean(), b - b.mean()
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else 0.0
