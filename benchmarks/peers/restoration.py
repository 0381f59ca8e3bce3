"""Test pictures for the restoration benchmarks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from benchmarks.peers.common import Array
from smalto.datasets import DATA_VARIABLE, luminance, sample_photo
from smalto.image import read_picture


def pictures(folder: str, *, gray: bool, quick: bool) -> dict[str, Array]:
    """Return the test pictures of a folder by name, uint8; packaged ones if it is missing."""
    data = os.environ.get(DATA_VARIABLE)
    if data and not quick:
        paths = sorted((Path(data) / "test_images" / folder).glob("*.png"))
        return {path.stem: read_picture(path) for path in paths}
    photos = {name: sample_photo(name) for name in ("china", "flower")}  # type: ignore[arg-type]
    if gray:
        photos = {
            name: np.rint(255 * luminance(photo)).astype(np.uint8) for name, photo in photos.items()
        }
    if quick:
        photos = {name: photo[150:230, 250:346] for name, photo in photos.items()}
    return photos


def psnr(clean: Array, restored: Array) -> float:
    """Return 10 log₁₀ (255² / mean squared error), in decibels."""
    error = clean.astype(np.float64) - restored.astype(np.float64)
    return float(10.0 * np.log10(255.0**2 / np.mean(error * error)))
