"""Learn the filters that ship with smalto, the last step of ``denoise``.

Squares of photographs (in gray) of ``natural/voc2006`` in the folder named by SMALTO_DATA get white
Gaussian noise and are denoised with the default effort. For each class of pixels (by contrast
relative to noise, coherence and angle of the edges) least squares then find the filter that brings
the estimates nearest to the clean picture.

Run it with ``python -m benchmarks.natural_filters``: it writes
``src/smalto/image/natural_filters.npz``.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.peers.common import Array
from smalto.datasets import DATA_VARIABLE
from smalto.image import denoise, luminance, read_picture
from smalto.image.natural_filters import RADIUS, Classes, balanced, classes_of, planes_of

CLASSES = Classes(np.array([0.03, 0.08, 0.16, 0.3, 0.5, 0.8, 1.3]), np.array([0.37, 0.61]))
SIDE = 2 * RADIUS + 1
RIDGE = 30.0  # towards the filter of all classes


def main() -> None:
    """Learn and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--pictures", type=int, default=60)
    parser.add_argument("--side", type=int, default=144, help="of the squares")
    parser.add_argument("--sigmas", nargs="+", type=float, default=[8, 15, 25, 40, 65])
    parser.add_argument("--out", type=Path, default=Path("src/smalto/image/natural_filters.npz"))
    options = parser.parse_args()
    folder = Path(os.environ[DATA_VARIABLE]) / "natural" / "voc2006"
    paths = sorted(folder.glob("*.png"))[: options.pictures]
    count = 4 * SIDE * SIDE
    squares = np.zeros((CLASSES.n_classes, count, count))
    products = np.zeros((CLASSES.n_classes, count))
    for number, path in enumerate(paths):
        photo = 255.0 * luminance(read_picture(path))
        row, column = ((length - options.side) // 2 for length in photo.shape)
        clean = photo[row : row + options.side, column : column + options.side].astype(np.float32)
        for sigma in options.sigmas:
            noise = np.random.default_rng([number, int(10 * sigma)]).normal(0, sigma, clean.shape)
            noisy = (clean + noise).astype(np.float32)
            estimates = _estimates(noisy, sigma)
            for flipped in (False, True):
                views = [np.rot90(one, number + flipped) for one in (clean, *estimates)]
                views = [one[:, ::-1] if flipped else one for one in views]
                _add(views[0], views[1:], sigma, squares, products)
        print(f"{number + 1} of {len(paths)} pictures", end="\r", flush=True)
    ridge = RIDGE * np.eye(count)
    common = np.linalg.solve(squares.sum(axis=0) + ridge, products.sum(axis=0))
    found = np.linalg.solve(squares + ridge, (products + RIDGE * common)[:, :, None])
    filters = balanced(found.reshape(CLASSES.n_classes, 4, SIDE, SIDE)).astype(np.float16)
    np.savez_compressed(options.out, filters=filters, **CLASSES._asdict())


def _estimates(noisy: Array, sigma: float) -> list[Array]:
    """The estimates of a gray picture that `denoise` puts together."""
    seen: list[list[Array]] = []

    def take(estimates: list[Array], sigma: float, n_threads: int) -> Array:
        seen.append(estimates)
        return estimates[0]

    with mock.patch("smalto.image.joint_denoising.combine", take):
        denoise(noisy, sigma, random_state=0)
    return seen[0]


def _add(
    clean: Array, estimates: list[Array], sigma: float, squares: Array, products: Array
) -> None:
    """Add the normal equations of one picture."""
    planes = planes_of(estimates, sigma)
    windows = sliding_window_view(planes, (SIDE, SIDE), axis=(1, 2))
    X = np.moveaxis(windows, 0, 2).reshape(clean.size, 4, -1).astype(np.float32)
    X[:, 0] -= X[:, 0].mean(axis=1, keepdims=True)
    X = X.reshape(clean.size, -1)
    y = ((clean - estimates[0]) / sigma).ravel().astype(np.float32)
    numbers = classes_of(estimates[0] / sigma, CLASSES).ravel()
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(CLASSES.n_classes + 1))
    X, y = X[order], y[order]
    for i in range(CLASSES.n_classes):
        some = slice(ends[i], ends[i + 1])
        squares[i] += X[some].T @ X[some]
        products[i] += X[some].T @ y[some]


if __name__ == "__main__":
    main()
