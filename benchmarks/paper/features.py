"""Figures 3 to 5: the features that PCA, NMF, dictionary learning and SPCA find on D, E and F.

Drawn as in the paper: positive values red, negative ones blue, zero white. About ten nonzeros per
signal for dictionary learning and SPCA; SPCA with 70, 30 and 10 % nonzero entries in the
dictionary. The localization of a feature is measured in two ways, which need not agree: by the
share of its entries that hold 90 % of its energy (extent), and by the share of its energy within
the best window of half the height and width of the image (focus).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.paper.frame import Part, Study, Verdict
from benchmarks.peers.common import Array, timed
from smalto import NMF, learn
from smalto.coders import Lasso
from smalto.constraints import ElasticNetBall, L2Ball
from smalto.constraints.density import density
from smalto.plot import mosaic

TITLE = "Figures 3 to 5: PCA, NMF, dictionary learning, SPCA"
DENSITIES = (0.7, 0.3, 0.1)
ATOMS = {"D": 49, "E": 49, "F": 64}
CLEAR = 0.1  # of the energy: a difference that is visible
WIDEST = 56  # side of a feature in the figure, in pixels


def run(study: Study) -> None:
    """Run the experiment."""
    names = "DF" if study.quick else "DEF"
    found = {name: data_set(study, name) for name in names}
    labels = list(next(iter(found.values())))
    rows, results = [], {}
    for name, methods in found.items():
        results[name] = {
            label: {k: v for k, v in part.items() if k != "D"} for label, part in methods.items()
        }
        for label in labels:
            part = methods[label]
            rows.append(
                [
                    name,
                    label,
                    f"{100 * part['density']:.1f} %",
                    f"{100 * part['extent']:.0f} %",
                    f"{100 * part['focus']:.0f} %",
                    part.get("nonzeros"),
                    f"{part['seconds']:.1f}",
                ]
            )
    header = [
        "set",
        "method",
        "nonzero entries τ",
        "entries for 90 % of the energy",
        "energy in the best quarter",
        "nonzeros per signal",
        "seconds",
    ]
    notes = [f"{name}: {next(iter(found[name].values()))['about']}" for name in found]
    study.finish(TITLE, figure(found), header, rows, verdicts(found), results, notes)


def data_set(study: Study, name: str) -> dict[str, Part]:
    """Run every method on one data set."""
    n = {"D": 200, "E": 100, "F": 1_000}[name] if study.quick else {"F": 100_000}.get(name, 10_000)
    k = 16 if study.quick else ATOMS[name]
    # As many passes as a slow machine makes in its share of the time.
    epochs = 3 if study.quick else {"D": 40, "E": 10, "F": 2}[name]
    kept: dict[bool, Any] = {}

    def rows(center: bool) -> Any:
        if center not in kept:
            kept.clear()
            kept[center] = study.data.vectors(name, n, center=center)
        return kept[center]

    def part(label: str, center: bool, fit: Any) -> Part:
        settings = {"set": name, "n": n, "k": k, "epochs": epochs, "method": label}

        def compute() -> Part:
            X, shape, source = rows(center)
            seconds, (D, nonzeros) = timed(lambda: fit(X))
            about = f"{len(X):,} of {' x '.join(map(str, shape))} ({source}), k = {k}"
            return {
                "D": D.astype(np.float32),
                "shape": list(shape),
                "about": about,
                "seconds": seconds,
                "nonzeros": nonzeros,
                "density": density(D),
                "extent": extent(D),
                "focus": focus(D, shape),
            }

        return study.part("features", settings, compute)

    found = {"PCA": part("PCA", True, lambda X: (pca(X, k), float(k)))}
    found["NMF"] = part("NMF", False, lambda X: (nmf(X, k, epochs), None))
    found["DL"] = part("DL", True, lambda X: dictionary(X, k, L2Ball(), epochs))
    for wanted in DENSITIES:
        label = f"SPCA, τ = {100 * wanted:.0f} %"
        found[label] = part(
            label,
            True,
            lambda X, w=wanted: dictionary(X, k, ElasticNetBall(density=w), epochs),
        )
    return found


def pca(X: Array, k: int) -> Array:
    """Return the first principal components."""
    from sklearn.decomposition import PCA

    return PCA(k, svd_solver="randomized", random_state=0).fit(X).components_


def nmf(X: Array, k: int, epochs: int) -> Array:
    """Return non-negative features."""
    return NMF(k, random_state=0).fit(X).components_


def dictionary(X: Array, k: int, constraint: Any, epochs: int) -> tuple[Array, float]:
    """Return a dictionary for about ten nonzeros per signal, and their actual mean number."""
    result = learn(
        X, k, Lasso(mean_nonzeros=min(10, k // 2)), constraint, max_epochs=epochs, random_state=0
    )
    if result.stopped == "interrupt":
        raise KeyboardInterrupt
    tail = result.history[-max(1, len(result.history) // 10) :]
    return result.D, float(np.mean([record.mean_nonzeros for record in tail]))


def extent(D: Array) -> float:
    """Return the mean share of an atom's entries, largest first, that hold 90 % of its energy."""
    energy = -np.sort(-(D.astype(np.float64) ** 2), axis=1)
    total = energy.sum(axis=1, keepdims=True)
    alive = total[:, 0] > 0
    shares = np.cumsum(energy[alive], axis=1) / total[alive]
    return float(((shares < 0.9).sum(axis=1) + 1).mean() / D.shape[1])


def focus(D: Array, shape: tuple[int, int]) -> float:
    """Return the mean share of an atom's energy within the best quarter of the image."""
    energy = (D.astype(np.float64) ** 2).reshape(-1, *shape)
    height, width = shape[0] // 2, shape[1] // 2
    shares = []
    for atom in energy[energy.sum(axis=(1, 2)) > 0]:
        sums = np.pad(atom.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
        inside = (
            sums[height:, width:]
            - sums[:-height, width:]
            - sums[height:, :-width]
            + sums[:-height, :-width]
        )
        shares.append(inside.max() / atom.sum())
    return float(np.mean(shares))


def figure(found: dict[str, dict[str, Part]]) -> Any:
    """Draw one row of panels per data set."""
    from matplotlib.figure import Figure

    first = next(iter(found.values()))
    result = Figure(figsize=(2.6 * len(first), 2.9 * len(found)), dpi=110, layout="constrained")
    axes = result.subplots(len(found), len(first), squeeze=False)
    for line, (name, methods) in zip(axes, found.items(), strict=True):
        for ax, (label, part) in zip(line, methods.items(), strict=True):
            shape = (part["shape"][0], part["shape"][1])
            atoms, shape = smaller(part["D"], shape)
            ax.imshow(mosaic(atoms, shape, signed=True, gap=max(1, shape[0] // 16)))
            ax.set_axis_off()
            ax.set_title(f"{name}: {label}", fontsize=8)
    return result


def smaller(D: Array, shape: tuple[int, int]) -> tuple[Array, tuple[int, int]]:
    """Average large features over squares of pixels, for display."""
    by = -(-max(shape) // WIDEST)
    height, width = shape[0] // by, shape[1] // by
    cut = D.reshape(-1, *shape)[:, : height * by, : width * by]
    means = cut.reshape(len(D), height, by, width, by).mean(axis=(2, 4))
    return means.reshape(len(D), -1), (height, width)


def verdicts(found: dict[str, dict[str, Part]]) -> list[Verdict]:
    """Check the paper's statements about the figures, by the localization of the features."""
    result = []
    for name, methods in found.items():
        spread = {label: part["extent"] for label, part in methods.items()}
        focused = {label: part["focus"] for label, part in methods.items()}
        if name in "DE":
            claim = "PCA produces features spread out over the images, NMF more localised ones"
            few = spread["NMF"] < 0.6 * spread["PCA"]
            held = focused["NMF"] > focused["PCA"] + CLEAR
        else:
            claim = "neither PCA nor NMF learn localised features, dictionary learning does"
            few = spread["DL"] < 0.7 * min(spread["PCA"], spread["NMF"])
            held = focused["DL"] > max(focused["PCA"], focused["NMF"]) + CLEAR
        for how, answer, values in (
            ("entries for 90 % of the energy", few, spread),
            ("energy in the best quarter", held, focused),
        ):
            detail = ", ".join(f"{label} {100 * value:.0f} %" for label, value in values.items())
            result.append(Verdict(f"{name}: {claim} (by {how}).", answer, detail))
    errors = [
        abs(found[name][f"SPCA, τ = {100 * wanted:.0f} %"]["density"] / wanted - 1)
        for name in found
        for wanted in DENSITIES
    ]
    result.append(
        Verdict(
            "SPCA controls the level of sparsity of the learned matrices.",
            max(errors) < 0.1,
            f"the share of nonzero entries is within {100 * max(errors):.1f} % of what was asked "
            "for",
        )
    )
    return result
