"""Learning from a share of the features per step, on faces of 192 x 168 pixels.

``python -m benchmarks.scaling.features`` learns 49 non-negative atoms from the Extended Yale B
faces (m = 32 256), with all features and with a share of them at each step, and prints the
processor seconds after which each reaches a given cost.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from smalto import encode, learn
from smalto.coders import Lasso
from smalto.constraints import L2Ball
from smalto.learners import Online


def faces() -> Any:
    """Return the faces as rows of norm 1, in random order."""
    file = Path(os.environ["SMALTO_DATA"]) / "yale_b" / "yaleb_cropped_192x168.npz"
    with np.load(file) as arrays:
        X = arrays["images"].reshape(len(arrays["images"]), -1).astype(np.float32)
    X = X[np.random.default_rng(0).permutation(len(X))]
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.maximum(norms, 1e-6)


def cost(X: Any, D: Any, coder: Lasso) -> float:
    """Return the mean cost of the rows of X over a dictionary."""
    codes = encode(X, D, coder)
    left = X - codes @ D
    return float(0.5 * np.sum(left * left) + coder.penalty(codes).sum()) / len(X)


def run(
    X: Any, atoms: int, coder: Lasso, share: float, most: float
) -> list[tuple[int, float, Any]]:
    """Return dictionaries during a run, with their step and processor seconds."""
    learner = Online(256, features=None if share == 1.0 else share)
    options: Any = {"constraint": L2Ball(positive=True), "learner": learner, "n_threads": 1}
    learn(X, atoms, coder, max_steps=2, random_state=0, **options)  # compile the kernels
    kept: list[tuple[int, float, Any]] = []
    clock, aside = time.process_time(), 0.0

    def keep(state: Any, record: Any) -> bool:
        nonlocal aside
        now = time.process_time()
        if state.step < 8 or state.step % 8 == 0:
            kept.append((state.step, now - clock - aside, state.D.copy()))
            aside += time.process_time() - now
        return now - clock - aside > most

    learn(X, atoms, coder, max_steps=10**9, random_state=0, callbacks=[keep], **options)
    return kept


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--shares", type=float, nargs="*", default=[1.0, 0.25, 0.1, 0.05])
    parser.add_argument("--atoms", type=int, default=49)
    arguments = parser.parse_args()
    if "SMALTO_DATA" not in os.environ:
        raise SystemExit("SMALTO_DATA must name the folder with yale_b/yaleb_cropped_192x168.npz")
    X = faces()
    train, test = X[:2200], X[2200:]
    coder = Lasso(1.2 / np.sqrt(X.shape[1]), positive=True)
    curves: dict[float, list[tuple[float, float]]] = {}
    for share in arguments.shares:
        kept = run(train, arguments.atoms, coder, share, arguments.seconds)
        curves[share] = [(seconds, cost(test, D, coder)) for _, seconds, D in kept]
        steps, seconds, _ = kept[-1]
        print(
            f"share {share:4.2f}: {steps:5d} steps of {1000 * seconds / steps:.0f} ms, "
            f"cost at the end {curves[share][-1][1]:.5f}",
            flush=True,
        )
    final = min(cost for curve in curves.values() for _, cost in curve)
    for excess in (0.2, 0.1, 0.05, 0.02):
        wanted = final * (1 + excess)
        found = {
            share: next((seconds for seconds, cost in curve if cost <= wanted), None)
            for share, curve in curves.items()
        }
        shown = ", ".join(
            f"{share:4.2f}: {'never' if at is None else f'{at:.2f} s'}"
            for share, at in found.items()
        )
        print(f"seconds to within {excess:.0%} of the best cost: {shown}")


if __name__ == "__main__":
    main()
