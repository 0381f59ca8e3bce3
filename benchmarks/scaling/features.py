"""Shares of the features on data with very many of them: faces of 192 x 168 pixels.

``python -m benchmarks.scaling.features`` learns 49 non-negative atoms from the Extended Yale B
faces (m = 32 256), with all features and with shares of them at each step, and prints after how
long each comes to a cost.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

from smalto import learn
from smalto.coders import Lasso
from smalto.constraints import L2Ball
from smalto.learners import Online


def faces() -> Any:
    """The faces as rows of norm 1, in random order."""
    file = Path(os.environ["SMALTO_DATA"]) / "yale_b" / "yaleb_cropped_192x168.npz"
    with np.load(file) as arrays:
        X = arrays["images"].reshape(len(arrays["images"]), -1).astype(np.float32)
    X = X[np.random.default_rng(0).permutation(len(X))]
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.maximum(norms, 1e-6)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--shares", type=float, nargs="*", default=[1.0, 0.25, 0.1, 0.05])
    parser.add_argument("--atoms", type=int, default=49)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if "SMALTO_DATA" not in os.environ:
        raise SystemExit("SMALTO_DATA must name the folder with yale_b/yaleb_cropped_192x168.npz")
    X = faces()
    train, test = X[:2200], X[2200:]
    coder = Lasso(1.2 / np.sqrt(X.shape[1]), positive=True)
    curves = {}
    for share in arguments.shares:
        learner = Online(256, features=None if share == 1.0 else share)
        result = learn(
            train, arguments.atoms, coder, L2Ball(positive=True), learner,
            max_seconds=arguments.seconds, validation=test, n_threads=arguments.threads,
            random_state=0,
        )  # fmt: skip
        tested = [record for record in result.history if record.test_cost is not None]
        curves[share] = [(record.seconds, record.test_cost) for record in tested]
        step = result.state.seconds / max(result.state.step, 1)
        print(
            f"share {share:4.2f}: {result.state.step:5d} steps of {1000 * step:.0f} ms, "
            f"cost at the end {curves[share][-1][1]:.5f}", flush=True,
        )  # fmt: skip
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
