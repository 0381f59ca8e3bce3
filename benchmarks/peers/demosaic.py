"""Demosaicking: colors from a Bayer mask (RGGB), against bilinear means and OpenCV.

The measure is the peak signal-to-noise ratio in decibels, without a border of eight pixels.

Run it with ``python -m benchmarks.peers.demosaic``. It reads ``test_images/kodak12`` in the folder
named by SMALTO_DATA; without it, it takes two packaged photographs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy import ndimage

from benchmarks.peers.common import Array, add_common, announce, importable, machine, save, table
from benchmarks.peers.restoration import pictures, psnr
from smalto.image import demosaic
from smalto.image.demosaic import bayer_mask

BORDER = 8


def bilinear(raw: Array) -> Array:
    """Means of the known values among the neighbors of each pixel."""
    known = bayer_mask(raw.shape, "RGGB").astype(np.float64)
    weights = np.outer([1.0, 2.0, 1.0], [1.0, 2.0, 1.0])[:, :, None]
    total = ndimage.convolve(raw[:, :, None] * known, weights, mode="mirror")
    return np.asarray(total / ndimage.convolve(known, weights, mode="mirror"))


def methods(options: argparse.Namespace) -> dict[str, Callable[[Array], Array]]:
    """Whatever is installed."""
    few = {"max_steps": 10, "n_atoms": 32} if options.quick else {}
    found: dict[str, Callable[[Array], Array]] = {
        "smalto": lambda raw: demosaic(raw, n_threads=options.threads, random_state=0, **few),
        "bilinear": bilinear,
    }
    if importable("cv2"):
        import cv2

        # OpenCV names patterns by the second row and column.
        found["OpenCV, VNG"] = lambda raw: cv2.demosaicing(raw, cv2.COLOR_BayerBG2RGB_VNG)
        found["OpenCV, edge-aware"] = lambda raw: cv2.demosaicing(raw, cv2.COLOR_BayerBG2RGB_EA)
    return found


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--crop", type=int, default=256, help="side of the squares in the middle")
    parser.add_argument("--threads", type=int, default=2)
    add_common(parser)
    options = parser.parse_args()
    about = machine()
    announce(about)
    ways = methods(options)
    entries, rows = [], []
    for name, whole in pictures("kodak12", gray=False, quick=options.quick).items():
        top, left = (2 * (max(side - options.crop, 0) // 4) for side in whole.shape[:2])
        clean = whole[top : top + options.crop, left : left + options.crop]
        raw = (clean * bayer_mask(clean.shape[:2], "RGGB")).sum(axis=2).astype(np.uint8)
        inner = np.s_[BORDER:-BORDER, BORDER:-BORDER]
        values = {way: psnr(clean[inner], fill(raw)[inner]) for way, fill in ways.items()}
        entries += [
            {"picture": name, "method": way, "psnr": value} for way, value in values.items()
        ]
        rows.append([name, *(f"{value:.2f}" for value in values.values())])
    means = [np.mean([e["psnr"] for e in entries if e["method"] == way]) for way in ways]
    rows.append(["mean", *(f"{mean:.2f}" for mean in means)])
    table(["picture", *ways], rows)
    save(options.out, "demosaic", about, options, runs=entries)


if __name__ == "__main__":
    main()
