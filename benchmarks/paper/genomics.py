"""Figure 6: expression and copy number of breast tumors, chromosome by chromosome.

For each chromosome one pair (u, v) with γ₁ = γ₂ = 1: about 25 genes that correlate with a
piecewise constant stretch of copy numbers. Correlations of Xu and Yv are measured on the three
quarters of the tumors used for training and on the rest, over ten random splits. smalto's
`SparseCCA` (OL) is compared with the penalized matrix decomposition (PMD) of Witten, Tibshirani
and Hastie, with the penalty that is best on the test samples out of five.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.genomes import Genomes, correlation, standardized
from benchmarks.paper.frame import Part, Study, Verdict, new_figure
from benchmarks.peers.common import Array, blas_threads
from benchmarks.pmd import pmd
from smalto import SparseCCA

TITLE = "Figure 6: correlations of expression and copy number"
OURS, GENES = "OL", 25
MULTIPLES = {f"PMD, {c:g} x noise": c for c in (0.25, 0.5, 1.0, 2.0, 4.0)}
METHODS = (OURS, *MULTIPLES)
PAPER_DEVIATIONS = (0.0339, 0.1391)  # train and test, averages over chromosomes


def run(study: Study) -> None:
    """Run the experiment."""
    genomes = study.data.genomes()
    splits = 2 if study.quick else 10
    chromosomes = sorted({int(c) for c in genomes.chromosome})
    parts = [
        study.part(
            "genomics",
            {"split": number, "source": genomes.source},
            lambda number=number: one_split(genomes, chromosomes, number),
        )
        for number in range(splits)
    ]
    # (split, chromosome, train or test)
    found = {name: np.array([part[name] for part in parts]) for name in METHODS}
    best = max(MULTIPLES, key=lambda name: found[name][:, :, 1].mean())
    figure, axes = new_figure(1, size=(8.0, 3.6))
    ax = axes[0][0]
    for name, label, color in ((OURS, OURS, "C0"), (best, "PMD", "C3")):
        for side, (what, style) in enumerate((("train", "-"), ("test", "--"))):
            means = found[name][:, :, side].mean(axis=0)
            ax.plot(
                chromosomes,
                means,
                style,
                color=color,
                marker="o",
                markersize=3,
                label=f"{label}, {what}",
            )
    rows = []
    for name in METHODS:
        means = found[name].mean(axis=(0, 1))
        deviations = found[name].std(axis=0, ddof=1).mean(axis=0)
        seconds = sum(part[f"{name} seconds"] for part in parts)
        rows.append(
            [
                name,
                *(f"{value:.3f}" for value in means),
                *(f"{value:.4f}" for value in deviations),
                f"{seconds:.1f}",
            ]
        )
    ax.set_xticks(chromosomes)
    ax.set_xlabel("chromosome", fontsize=8)
    ax.set_ylabel("correlation", fontsize=8)
    ax.set_ylim(0, 1)
    ax.grid(visible=True, color="0.92")
    ax.legend(fontsize=7, frameon=False, loc="lower left", ncols=2)
    genes = float(np.mean([part["genes"] for part in parts]))
    results = {
        "chromosomes": chromosomes,
        "source": genomes.source,
        "splits": splits,
        "genes": genes,
        "best_pmd": best,
        **{name: found[name].tolist() for name in METHODS},
    }
    note = (
        f"{genomes.source}: {genomes.expressions.shape[1]:,} genes, {genomes.copies.shape[1]:,} "
        f"spots, {len(genomes.copies)} samples; {splits} splits, {genes:.1f} genes per pair"
    )
    header = ["method", "train", "test", "mean deviation, train", "test", "processor seconds"]
    verdict = judge(found[OURS], found[best])
    study.finish(TITLE, figure, header, rows, [verdict], results, [note])


def one_split(genomes: Genomes, chromosomes: list[int], number: int) -> Part:
    """Return the correlations on both parts of a split, for each chromosome and method."""
    train, test = genomes.split(number)
    found: Part = {
        "genes": [],
        **{name: [] for name in METHODS},
        **{f"{name} seconds": 0.0 for name in METHODS},
    }
    X = standardized(genomes.expressions, train)
    for chromosome in chromosomes:
        Y = standardized(genomes.copies[:, genomes.chromosome == chromosome], train)
        for name in METHODS:
            begin = time.process_time()
            with blas_threads(1):
                u, v = fit(name, X[train], Y[train])
            found[f"{name} seconds"] += time.process_time() - begin
            found[name].append([correlation(X[rows] @ u, Y[rows] @ v) for rows in (train, test)])
            if name == OURS:
                found["genes"].append(int(np.count_nonzero(u)))
    return found


def fit(name: str, X: Array, Y: Array) -> tuple[Array, Array]:
    """Return the pair (u, v) of a method."""
    if name != OURS:
        return pmd(X, Y, GENES, MULTIPLES[name])
    model = SparseCCA(max_nonzeros_x=GENES, gamma1=1.0, gamma2=1.0).fit(X, Y)
    return model.x_weights_[:, 0], model.y_weights_[:, 0]


def judge(ours: Array, theirs: Array) -> Verdict:
    """Check that both methods do about equally well."""
    means, others = ours.mean(axis=(0, 1)), theirs.mean(axis=(0, 1))
    deviations = ours.std(axis=0, ddof=1).mean(axis=0)
    ahead = int((ours[:, :, 1].mean(axis=0) > theirs[:, :, 1].mean(axis=0)).sum())
    return Verdict(
        "The method exhibits in general a performance similar to PMD's.",
        bool(abs(means[1] - others[1]) < 0.03),
        f"mean correlation {means[0]:.3f} (train) and {means[1]:.3f} (test), PMD {others[0]:.3f} "
        f"and {others[1]:.3f}; ahead on the test for {ahead} of {ours.shape[1]} chromosomes; "
        f"average deviations {deviations[0]:.4f} and {deviations[1]:.4f} (the paper: "
        f"{PAPER_DEVIATIONS[0]} and {PAPER_DEVIATIONS[1]})",
    )
