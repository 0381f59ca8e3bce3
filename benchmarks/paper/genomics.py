"""Figure 6: expression and copy number of breast tumours, chromosome by chromosome.

For each chromosome one pair (u, v): about 25 genes that go with a piecewise constant stretch of
the chromosome's copy numbers, γ₁ = γ₂ = 1. Correlations of Xu and Yv on three quarters of the
tumours, which they are fitted to, and on the rest, over ten random splits; with smalto's
`SparseCCA` and with the penalised matrix decomposition (PMD) of Witten, Tibshirani and Hastie.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.paper.data import Genomes
from benchmarks.paper.frame import Part, Study, Verdict, mean_and_deviation, new_figure
from benchmarks.peers.common import Array
from benchmarks.pmd import pmd
from smalto import SparseCCA

TITLE = "Figure 6: correlations of expression and copy number"
METHODS = ("OL", "PMD")
PAPER_DEVIATIONS = (0.0339, 0.1391)  # train and test, averages over chromosomes


def run(study: Study) -> None:
    """Run it."""
    genomes = study.data.genomes()
    splits = 2 if study.quick else 10
    chromosomes = sorted({int(c) for c in genomes.chromosome})
    parts = [
        study.part(
            "genomics", {"split": number, "source": genomes.source},
            lambda number=number: one_split(genomes, chromosomes, number),
        )
        for number in range(splits)
    ]  # fmt: skip
    # (split, chromosome, train or test)
    found = {name: np.array([part[name] for part in parts]) for name in METHODS}
    figure, axes = new_figure(1, size=(8.0, 3.6))
    ax = axes[0][0]
    rows = []
    for name, colour in zip(METHODS, ("C0", "C3"), strict=True):
        for side, (what, style) in enumerate((("train", "-"), ("test", "--"))):
            means = found[name][:, :, side].mean(axis=0)
            ax.plot(chromosomes, means, style, color=colour, marker="o", markersize=3,
                    label=f"{name}, {what}")  # fmt: skip
            deviation = found[name][:, :, side].std(axis=0, ddof=1).mean()
            rows.append([name, what, f"{means.mean():.3f}", f"{deviation:.4f}",
                         f"{means.min():.3f}", f"{means.max():.3f}"])  # fmt: skip
    ax.set_xticks(chromosomes)
    ax.set_xlabel("chromosome", fontsize=8)
    ax.set_ylabel("correlation", fontsize=8)
    ax.set_ylim(0, 1)
    ax.grid(visible=True, color="0.92")
    ax.legend(fontsize=7, frameon=False, loc="lower left", ncols=2)
    seconds = {name: sum(part[f"{name} seconds"] for part in parts) for name in METHODS}
    genes = mean_and_deviation(np.concatenate([part["genes"] for part in parts]))
    results = {
        "chromosomes": chromosomes, "source": genomes.source, "seconds": seconds,
        "splits": splits, "genes": genes, **{name: found[name].tolist() for name in METHODS},
    }  # fmt: skip
    notes = [
        f"{genomes.source}: {genomes.expression.shape[1]:,} genes, {genomes.copies.shape[1]:,} "
        f"spots, {len(genomes.copies)} samples; {splits} splits, {genes[0]:.1f} genes per pair; "
        + ", ".join(f"{name} {value:.1f} s in all" for name, value in seconds.items())
    ]
    header = ["method", "samples", "mean correlation", "mean standard deviation", "least", "most"]
    study.finish(TITLE, figure, header, rows, [judge(found)], results, notes)


def one_split(genomes: Genomes, chromosomes: list[int], number: int) -> Part:
    """Correlations on both parts of one split, for each chromosome and method."""
    order = np.random.default_rng(number).permutation(len(genomes.copies))
    train, test = np.split(order, [round(0.75 * len(order))])
    found: Part = {"genes": [], **{name: [] for name in METHODS},
                   **{f"{name} seconds": 0.0 for name in METHODS}}  # fmt: skip
    X, X_test = standardised(genomes.expression, train, test)
    for chromosome in chromosomes:
        copies = genomes.copies[:, genomes.chromosome == chromosome]
        Y, Y_test = standardised(copies, train, test)
        for name in METHODS:
            begin = time.perf_counter()
            u, v = ours(X, Y) if name == "OL" else theirs(X, Y)
            found[f"{name} seconds"] += time.perf_counter() - begin
            pair = (correlation(X @ u, Y @ v), correlation(X_test @ u, Y_test @ v))
            found[name].append(pair)
            if name == "OL":
                found["genes"].append(int(np.count_nonzero(u)))
    return found


def ours(X: Array, Y: Array) -> tuple[Array, Array]:
    """The pair by smalto."""
    model = SparseCCA(nonzeros_x=25, gamma1=1.0, gamma2=1.0).fit(X, Y)
    return model.x_weights_[:, 0], model.y_weights_[:, 0]


def theirs(X: Array, Y: Array) -> tuple[Array, Array]:
    """The pair by PMD."""
    return pmd(X, Y)


def standardised(values: Array, train: Array, test: Array) -> tuple[Array, Array]:
    """Both parts with the mean and the deviation of the first; constant columns become zero."""
    mean, deviation = values[train].mean(axis=0), values[train].std(axis=0, ddof=1)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return (values[train] - mean) / deviation, (values[test] - mean) / deviation


def correlation(a: Array, b: Array) -> float:
    """Pearson's; 0 where a side is constant."""
    a, b = a - a.mean(), b - b.mean()
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / size) if size > 0 else 0.0


def judge(found: dict[str, Any]) -> Verdict:
    """Whether both do about as well."""
    means = {name: found[name].mean(axis=(0, 1)) for name in METHODS}
    deviations = found["OL"].std(axis=0, ddof=1).mean(axis=0)
    ahead = int((found["OL"][:, :, 1].mean(axis=0) > found["PMD"][:, :, 1].mean(axis=0)).sum())
    return Verdict(
        "The method exhibits in general a performance similar to PMD's.",
        bool(means["OL"][1] > means["PMD"][1] - 0.03),
        f"mean correlation OL {means['OL'][0]:.3f} (train) and {means['OL'][1]:.3f} (test), PMD "
        f"{means['PMD'][0]:.3f} and {means['PMD'][1]:.3f}; OL is ahead on the test for {ahead} of "
        f"{found['OL'].shape[1]} chromosomes; its average deviations are {deviations[0]:.4f} and "
        f"{deviations[1]:.4f} (the paper: {PAPER_DEVIATIONS[0]} and {PAPER_DEVIATIONS[1]})",
    )
