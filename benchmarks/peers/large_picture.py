"""Removal of text from a photograph of 13 megapixels: time and quality.

    python -m benchmarks.peers.large_picture

As in Section 6.4 of the paper, a dictionary of 256 atoms is learned in two passes over all
undamaged 12 x 12 color patches, then the text is filled in. If they are installed, SPAMS learns
from a sample of the patches that fits into memory, and the text is also filled in by OpenCV's two
methods and by scikit-image's biharmonic one (in overlapping tiles, to save memory).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.data import Data
from smalto import learn
from smalto.coders import Lasso
from smalto.datasets import DATA_VARIABLE
from smalto.image import PatchSource, inpaint, text_mask

Array = np.ndarray[Any, Any]
BATCH = 512  # of SPAMS: the paper's
TILE, AROUND = 1056, 32  # side of a tile, and the margin around it, in pixels


def main() -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--atoms", type=int, default=256)
    parser.add_argument("--patch", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--letters", type=int, default=40, help="height of the letters")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--quick", action="store_true", help="a small photograph, few patches")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    folder = os.environ.get(DATA_VARIABLE)
    data = Data(None if options.quick or not folder else Path(folder))
    original, _ = data.photo()
    letters = 18 if options.quick else options.letters
    mask = text_mask(original.shape[:2], size=letters)
    damaged = np.where(mask[:, :, None], np.uint8(0), original)
    clock = time.perf_counter()
    source = PatchSource(damaged, options.patch, mask=mask, n_threads=options.threads)
    result = learn(
        source, options.atoms, Lasso(1.2 / source.n_features**0.5), n_threads=options.threads,
        max_epochs=None if options.quick else options.epochs,
        max_steps=10 if options.quick else None, random_state=0,
    )  # fmt: skip
    learning = time.perf_counter() - clock
    clock = time.perf_counter()
    restored = inpaint(
        damaged, mask, effort=0, D=result.D, patch_size=options.patch, channel_axis=2,
        stride=3 if options.quick else None, n_threads=options.threads,
    )  # fmt: skip
    filling = time.perf_counter() - clock
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    found = {"smalto": psnr(original, restored, mask)} | opencv(original, damaged, mask)
    found |= biharmonic(original, damaged, mask)
    rate = spams_rate(source, result.D, 2048 if options.quick else 100_000, options.threads)
    samples = result.state.samples
    print(
        f"{original.shape[1]} x {original.shape[0]} pixels, {100 * mask.mean():.1f} % under text, "
        f"{source.n_rows:,} undamaged patches\n"
        f"learning: {samples:,} patches in {learning:.1f} s, {samples / learning:,.0f} per second\n"
        f"filling in: {filling:.1f} s; at most {memory:.2f} GB of memory"
    )
    if rate is not None:
        ratio = samples / learning / rate
        print(f"SPAMS: {rate:,.0f} patches per second; smalto is {ratio:.1f} times as fast")
    for name, value in found.items():
        print(f"{name}: {value:.2f} dB in the damaged pixels")
    options.out.mkdir(parents=True, exist_ok=True)
    content = {
        "options": {key: str(value) for key, value in vars(options).items()},
        "patches": source.n_rows, "samples": samples, "learning": learning, "filling": filling,
        "gigabytes": memory, "psnr": found, "spams_rate": rate,
    }  # fmt: skip
    (options.out / "large_picture.json").write_text(json.dumps(content, indent=1))


def psnr(original: Array, other: Array, mask: Array) -> float:
    """Return the peak signal-to-noise ratio in the damaged pixels."""
    error = original[mask].astype(np.float64) - other[mask]
    return float(10 * np.log10(255.0**2 / np.mean(error**2)))


def opencv(original: Array, damaged: Array, mask: Array) -> dict[str, float]:
    """Run OpenCV's two methods, if it is installed."""
    if importlib.util.find_spec("cv2") is None:
        return {}
    import cv2

    methods = {"OpenCV Telea": cv2.INPAINT_TELEA, "OpenCV Navier-Stokes": cv2.INPAINT_NS}
    marks = mask.astype(np.uint8)
    return {
        name: psnr(original, cv2.inpaint(damaged, marks, 5, kind), mask)
        for name, kind in methods.items()
    }


def biharmonic(original: Array, damaged: Array, mask: Array) -> dict[str, float]:
    """Run scikit-image's method, if it is installed."""
    if importlib.util.find_spec("skimage") is None:
        return {}
    from skimage.restoration import inpaint_biharmonic

    restored = np.empty_like(damaged)
    for top in range(0, mask.shape[0], TILE):
        for left in range(0, mask.shape[1], TILE):
            above, before = min(top, AROUND), min(left, AROUND)
            tile = np.s_[
                top - above : top + TILE + AROUND, left - before : left + TILE + AROUND
            ]  # fmt: skip
            filled = 255 * np.clip(
                inpaint_biharmonic(damaged[tile], mask[tile], channel_axis=2), 0, 1
            )
            inner = np.s_[above : above + TILE, before : before + TILE]
            restored[top : top + TILE, left : left + TILE] = np.rint(filled[inner])
    return {"biharmonic": psnr(original, restored, mask)}


def spams_rate(source: PatchSource, D: Array, count: int, threads: int | None) -> float | None:
    """Return how many patches per second SPAMS learns from, starting at the learned atoms."""
    if importlib.util.find_spec("spams") is None:
        return None
    import spams

    numbers = np.random.default_rng(0).choice(source.n_rows, min(count, source.n_rows), False)
    X = np.asfortranarray(source.rows(np.sort(numbers)).T)
    steps = max(1, X.shape[1] // BATCH)
    first = np.asfortranarray(D.T, dtype=X.dtype)
    clock = time.perf_counter()
    spams.trainDL(
        X, D=first, lambda1=1.2 / source.n_features**0.5, iter=steps, batchsize=BATCH,
        numThreads=-1 if threads is None else threads, verbose=False,
    )  # fmt: skip
    return steps * BATCH / (time.perf_counter() - clock)


if __name__ == "__main__":
    main()
