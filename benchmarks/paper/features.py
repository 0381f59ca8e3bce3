"""Figures 3 to 5: the features that PCA, NMF, dictionary learning and SPCA find on D, E and F.

Drawn as in the paper: positive values red, negative ones blue, zero white. About ten nonzeros per
signal for dictionary learning (DL) and SPCA; SPCA with 70, 30 and 10 % nonzero entries in the
dictionary. What NMF finds depends on how long it runs: it is shown after 1, 5, 20 and 100 epochs
of the paper's online algorithm, in SPAMS, and converged (smalto's `NMF`). How local features are is
judged by the share of their energy within the best window of half the height and width of the
image; the share of the entries that hold 90 % of the energy is a second column.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.paper.frame import Claim, Key, Part, Study, Task, Verdict
from benchmarks.peers.common import Array, blas_threads
from smalto import NMF, learn
from smalto.coders import Lasso
from smalto.constraints import ElasticNetBall, L2Ball
from smalto.constraints.density import density
from smalto.learners import Online
from smalto.plot import mosaic

TITLE = "Figures 3 to 5: PCA, NMF, dictionary learning, SPCA"
DENSITIES = (0.7, 0.3, 0.1)
ATOMS = {"D": 49, "E": 49, "F": 64}
EPOCHS = (1, 5, 20, 100)  # of online NMF
DL_EPOCHS = {"D": 100, "E": 20, "F": 20}
CONVERGED = "NMF, converged"
SHOWN = ("PCA", "NMF, 5 epochs", "NMF, 100 epochs", CONVERGED, "DL",
         *(f"SPCA, τ = {100 * wanted:.0f} %" for wanted in DENSITIES))  # fmt: skip
CLEAR = 0.1  # of the energy: a difference that is visible
WIDEST = 56  # side of a feature in the figure, in pixels

CLAIMS = (
    *(
        Claim(
            name,
            f"{name}: PCA produces features spread out over the images, NMF more localised ones.",
            "NMF has at least 10 % of the energy more in the best quarter than PCA, after 5, 20 and 100 "
            "epochs and converged; in part: some of these.",
        )
        for name in "DE"
    ),
    Claim(
        "F NMF",
        "F: neither PCA nor NMF learn localised features.",
        "PCA, and NMF after 5, 20 and 100 epochs and converged, have less energy in the best quarter "
        "than dictionary learning; in part: some of these.",
    ),
    Claim(
        "F DL",
        "F: dictionary learning learns localised features.",
        "It has at least 10 % of the energy more in the best quarter than PCA.",
    ),
    Claim(
        "SPCA",
        "SPCA controls the level of sparsity of the learned matrices.",
        "The share of nonzero entries is within 10 % of each of 70, 30 and 10 % on D, E and F.",
    ),
)


def tasks(study: Study) -> dict[Key, Task]:
    """Return the parts: one for each set and method."""
    found: dict[Key, Task] = {}
    for name in "DF" if study.quick else "DEF":
        k = 16 if study.quick else ATOMS[name]
        epochs = 3 if study.quick else DL_EPOCHS[name]
        fits: dict[str, tuple[bool, Callable[[Array], dict[str, Any]], float]] = {
            "PCA": (True, lambda X, k=k: {"PCA": (pca(X, k), float(k))}, 0.5),
            "online NMF": (False, lambda X, k=k: online_nmf(X, k), 6.0),
            CONVERGED: (False, lambda X, k=k: {CONVERGED: (nmf(X, k), None)}, 2.0),
            "NMF, SPAMS": (False, lambda X, k=k: {"NMF, SPAMS": (spams_nmf(X, k), None)}, 1.0),
            "DL": (True, lambda X, k=k, e=epochs: {"DL": dictionary(X, k, L2Ball(), e)}, 1.5),
        }
        for wanted in DENSITIES:
            method = f"SPCA, τ = {100 * wanted:.0f} %"

            def fit(
                X: Array, k: int = k, e: int = epochs, w: float = wanted, method: str = method
            ) -> dict[str, Any]:
                return {method: dictionary(X, k, ElasticNetBall(density=w), e)}

            fits[method] = True, fit, 1.5
        for method, (center, run, minutes) in fits.items():
            n = {"D": 200, "F": 300}[name] if study.quick else {"F": 100_000}.get(name, 10_000)
            settings = {"set": name, "n": n, "k": k, "epochs": epochs, "method": method,
                        "of NMF": EPOCHS}  # fmt: skip

            def compute(
                name: str = name, n: int = n, center: bool = center, run: Any = run
            ) -> Part:
                X, shape, source = study.data.vectors(name, n, center=center)
                with blas_threads(1):
                    fitted = run(X)
                part: Part = {"shape": list(shape), "about": f"{len(X):,} of {shape[0]} x {shape[1]} ({source})",
                              "methods": list(fitted)}  # fmt: skip
                for number, (D, nonzeros) in enumerate(fitted.values()):
                    part[f"D{number}"] = D.astype(np.float32)
                    part[f"facts{number}"] = {"density": density(D), "extent": extent(D),
                                              "focus": focus(D, shape), "nonzeros": nonzeros}  # fmt: skip
                return part

            found[name, method] = Task("features", settings, compute, minutes)
    return found


def report(study: Study, parts: dict[Key, Part]) -> None:
    """Judge the claims, draw the figure, write the table."""
    facts: dict[str, dict[str, dict[str, Any]]] = {}
    pictures: dict[Key, Any] = {}
    rows = []
    for (name, _), part in parts.items():
        for number, method in enumerate(part["methods"]):
            found = facts.setdefault(name, {})[method] = part[f"facts{number}"]
            pictures[name, method] = part[f"D{number}"], tuple(part["shape"])
            rows.append([
                name, method, f"{100 * found['density']:.1f} %", f"{100 * found['extent']:.0f} %",
                f"{100 * found['focus']:.0f} %", found["nonzeros"],
            ])  # fmt: skip
    header = ("set", "method", "nonzero entries τ", "entries for 90 % of the energy",
              "energy in the best quarter", "nonzeros per signal")  # fmt: skip
    about = {key[0]: part["about"] for key, part in parts.items()}
    notes = [f"{name}: {text}." for name, text in about.items()]
    notes.append("Nothing here is timed, so that it ran beside other work.")
    study.finish(
        sys.modules[__name__], figure(pictures), header, rows, judge(facts), parts, facts, notes
    )


def pca(X: Array, k: int) -> Array:
    """Return the first principal components."""
    from sklearn.decomposition import PCA

    return PCA(k, svd_solver="randomized", random_state=0).fit(X).components_


def nmf(X: Array, k: int) -> Array:
    """Return converged non-negative features."""
    return NMF(k, random_state=0, n_threads=1).fit(X).components_


def online_nmf(X: Array, k: int) -> dict[str, Any]:
    """Return the features after some epochs of the paper's online NMF."""
    found: dict[str, Any] = {}

    def watch(state: Any, record: Any) -> None:
        for epochs in EPOCHS:
            if record.samples >= epochs * len(X):
                found.setdefault(
                    f"NMF, {epochs} epoch{'s' if epochs > 1 else ''}", (state.D.copy(), None)
                )

    X = X.astype(np.float64)  # without a penalty, codes in float32 are certified slowly
    result = learn(
        X, k, Lasso(0.0, positive=True), L2Ball(positive=True), Online(512, rho=0.0, slack=0.0),
        max_epochs=max(EPOCHS), callbacks=[watch], n_threads=1, random_state=0,
    )  # fmt: skip
    if result.stopped == "interrupt":
        raise KeyboardInterrupt
    return found


def spams_nmf(X: Array, k: int) -> Array:
    """Return the features of ``spams.nmf`` after five epochs."""
    import spams

    steps = max(1, 5 * len(X) // 512)
    D = spams.nmf(np.asfortranarray(X.T), K=k, iter=steps, batchsize=512, numThreads=1)
    return np.ascontiguousarray((D[0] if isinstance(D, tuple) else D).T)


def dictionary(X: Array, k: int, constraint: Any, epochs: int) -> tuple[Array, float]:
    """Return a dictionary for about ten nonzeros per signal, and their actual mean number."""
    result = learn(
        X, k, Lasso(mean_nonzeros=min(10, k // 2)), constraint, max_epochs=epochs, n_threads=1,
        random_state=0,
    )  # fmt: skip
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


def figure(pictures: dict[Key, Any]) -> Any:
    """Draw two rows of panels per data set."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for name, _ in pictures))
    half = len(SHOWN) // 2
    result = Figure(figsize=(10.0, 5.4 * len(names)), dpi=110, layout="constrained")
    axes = result.subplots(2 * len(names), half, squeeze=False)
    panels = [(name, method) for name in names for method in SHOWN]
    for ax, key in zip(axes.flat, panels, strict=True):
        atoms, shape = smaller(*pictures[key])
        ax.imshow(mosaic(atoms, shape, signed=True, gap=max(1, shape[0] // 16)))
        ax.set_axis_off()
        ax.set_title(f"{key[0]}: {key[1]}", fontsize=11)
    return result


def smaller(D: Array, shape: tuple[int, int]) -> tuple[Array, tuple[int, int]]:
    """Average large features over squares of pixels, for display."""
    by = -(-max(shape) // WIDEST)
    height, width = shape[0] // by, shape[1] // by
    cut = D.reshape(-1, *shape)[:, : height * by, : width * by]
    means = cut.reshape(len(D), height, by, width, by).mean(axis=(2, 4))
    return means.reshape(len(D), -1), (height, width)


def judge(facts: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Verdict]:
    """Judge the claims by the energy in the best quarter."""
    result = {}
    for name, methods in facts.items():
        focus = {method: found["focus"] for method, found in methods.items()}
        longer = [f"NMF, {epochs} epochs" for epochs in EPOCHS if epochs >= 5] + [CONVERGED]
        if name in "DE":
            local = [focus[method] > focus["PCA"] + CLEAR for method in longer]
            result[name] = Verdict.of(all(local), _shares(focus, "PCA", *longer), any(local))
        else:
            less = [focus[method] < focus["DL"] for method in ("PCA", *longer)]
            said = _shares(focus, "DL", "PCA", *longer)
            result["F NMF"] = Verdict.of(all(less), said, any(less))
            far = focus["DL"] > focus["PCA"] + CLEAR
            result["F DL"] = Verdict.of(far, _shares(focus, "DL", "PCA"))
    errors = [
        abs(methods[f"SPCA, τ = {100 * wanted:.0f} %"]["density"] / wanted - 1)
        for methods in facts.values()
        for wanted in DENSITIES
    ]
    result["SPCA"] = Verdict.of(
        max(errors) < 0.1, f"within {100 * max(errors):.1f} % of what was asked for"
    )
    return result


def _shares(focus: dict[str, float], *methods: str) -> str:
    """Return the energy in the best quarter of some methods."""
    shares = ", ".join(f"{method} {100 * focus[method]:.0f} %" for method in methods)
    return f"energy in the best quarter: {shares}"
