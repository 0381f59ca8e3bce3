"""Time and memory of learning very many atoms, as for activations of language models.

Samples are sparse combinations of planted atoms, with noise. One thread, float32, and ``lam`` such
that codes have some number of nonzeros. Each number of atoms runs in a process of its own, for its
memory. Batches have 2k samples, as they have by default after some steps; the first step, in which
``lam`` is found, is not counted.

Run it with ``python -m benchmarks.scaling.atoms``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from typing import Any

import numpy as np

from smalto import learn
from smalto.coders import Lasso
from smalto.learners import Online


def samples(n: int, m: int, k: int, nonzeros: int, seed: int = 0) -> Any:
    """Return n sparse combinations of k planted atoms, of norm about 1, with noise of 30 %."""
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((k, m), np.float32) / np.float32(np.sqrt(m))
    X = np.empty((n, m), np.float32)
    for row in X:
        chosen = rng.integers(k, size=nonzeros)
        row[:] = rng.exponential(size=nonzeros).astype(np.float32) @ atoms[chosen]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X += 0.3 * rng.standard_normal(X.shape, np.float32) / np.float32(np.sqrt(m))
    return X


def measure(k: int, m: int, nonzeros: int, steps: int, epochs: int) -> dict[str, float]:
    """Return microseconds per sample after the first step, the samples of a step, and gigabytes."""
    data = samples(2 * k * (1 + steps), m, k, nonzeros)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = learn(
        data, k, Lasso(mean_nonzeros=nonzeros), learner=Online(2 * k),
        max_steps=epochs * (1 + steps), n_threads=1, random_state=0,
    )  # fmt: skip
    first, last = result.history[0], result.history[-1]
    count = last.samples - first.samples
    return {
        "atoms": k,
        "samples of a step": (last.samples - result.history[-2].samples),
        "nonzeros": last.mean_nonzeros,
        "us per sample": 1e6 * (last.seconds - first.seconds) / count,
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "of it data": before / 2**20,
    }


def main() -> None:
    """Measure each number of atoms in a process of its own."""
    parser = argparse.ArgumentParser(description="Time and memory of learning very many atoms.")
    parser.add_argument("--atoms", type=int, nargs="+", default=[4096, 8192])
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--nonzeros", type=int, default=30)
    parser.add_argument("--steps", type=int, default=1, help="steps after the first one")
    parser.add_argument("--epochs", type=int, default=1, help="passes over these samples")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        sizes = options.features, options.nonzeros, options.steps, options.epochs
        found = measure(options.atoms[0], *sizes)
        print(json.dumps(found))
        return
    for k in options.atoms:
        command = [sys.executable, "-m", "benchmarks.scaling.atoms", "--child", "--atoms", str(k)]
        for name in ("features", "nonzeros", "steps", "epochs"):
            command += [f"--{name}", str(getattr(options, name))]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")


if __name__ == "__main__":
    main()
