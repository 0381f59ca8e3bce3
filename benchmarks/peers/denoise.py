"""Denoising of standard pictures, compared with scikit-image and BM3D.

smalto's ``denoise``, with different effort, against scikit-image's non-local means and
wavelets (BayesShrink) and, where the package ``bm3d`` is installed, BM3D, on pictures with white
Gaussian noise of standard deviation 15, 25 and 50, which is given to all methods. The measure is
the peak signal-to-noise ratio in decibels. Processor seconds are those of all threads, divided by
their number.

Run it with ``python -m benchmarks.peers.denoise``. It reads the twelve gray pictures of
``test_images/set12`` in the folder named by SMALTO_DATA, with ``--color`` squares from the middle
of those of ``test_images/kodak12``; without it, it takes two packaged photographs. With ``--kept``
every result is also added to a file, and those that are there are not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.common import Array, add_common, announce, importable, machine, save, table
from benchmarks.peers.restoration import pictures, psnr
from smalto.image import denoise

NAMES = dict(
    zip(
        (f"{i:02d}" for i in range(1, 13)),
        [
            "cameraman",
            "house",
            "peppers",
            "starfish",
            "monarch",
            "airplane",
            "parrot",
            "lena",
            "barbara",
            "boat",
            "man",
            "couple",
        ],
        strict=True,
    )
)


def methods(options: argparse.Namespace) -> dict[str, Callable[[Array, float], Array]]:
    """Whatever is installed."""
    axis = -1 if options.color else None
    few: dict[str, Any] = {"random_state": 0, "channel_axis": axis}
    if options.quick:
        few |= {"max_steps": 5}
    found: dict[str, Callable[[Array, float], Array]] = {
        f"smalto {effort}": lambda y, s, effort=effort: denoise(
            y, s, effort=effort, n_threads=options.threads, **few
        )
        for effort in options.efforts
    }
    if importable("skimage"):
        from skimage.restoration import denoise_nl_means

        found["non-local means"] = lambda y, s: denoise_nl_means(
            y,
            patch_size=7,
            patch_distance=10,
            h=0.6 * s,
            sigma=s,
            fast_mode=True,
            channel_axis=axis,
        )
        if importable("pywt"):
            from skimage.restoration import denoise_wavelet

            found["wavelets"] = lambda y, s: denoise_wavelet(
                y, sigma=s, rescale_sigma=False, channel_axis=axis
            )
    if importable("bm3d"):
        import bm3d

        found["BM3D"] = bm3d.bm3d_rgb if options.color else bm3d.bm3d
    wanted = options.methods or found
    return {name: way for name, way in found.items() if name in wanted}


def _middle(image: Array, side: int) -> Array:
    """A square from the middle of a picture, as large as the picture allows."""
    row, column = (max(length - side, 0) // 2 for length in image.shape[:2])
    return image[row : row + side, column : column + side]


def _measured(
    way: Callable[[Array, float], Array], noisy: Array, clean: Array, sigma: float
) -> Any:
    """What a method makes of a picture, and the time that it takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wall, busy = time.perf_counter(), time.process_time()
        restored = way(noisy, sigma)
        wall, busy = time.perf_counter() - wall, time.process_time() - busy
    return {"psnr": psnr(clean, restored), "seconds": wall, "busy": busy}


class Kept:
    """Results in a file, one line each, so that a long comparison can be gone on with."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self._found = {json.dumps(case): result for case, result in map(json.loads, lines)}

    def get(self, case: dict[str, Any], measure: Callable[[], Any]) -> Any:
        """The result of a case: one that was kept, or else a new one."""
        key = json.dumps(case)
        if key not in self._found:
            self._found[key] = measure()
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([case, self._found[key]]) + "\n")
        return self._found[key]


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description="Denoising against scikit-image",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--sigmas", nargs="+", type=float, default=[15.0, 25.0, 50.0])
    parser.add_argument("--only", nargs="+", help="names of pictures", default=None)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--methods", nargs="+", help="names of methods", default=None)
    parser.add_argument("--efforts", nargs="+", type=int, default=[0, 1, 2], help="of smalto")
    parser.add_argument("--set", default=None, help="folder of test_images to take")
    parser.add_argument("--color", action="store_true", help="color pictures")
    parser.add_argument("--side", type=int, default=256, help="of the squares of color pictures")
    parser.add_argument("--kept", type=Path, default=None, help="file to go on with")
    add_common(parser)
    options = parser.parse_args()
    about = machine()
    announce(about)
    folder = options.set or ("kodak12" if options.color else "set12")
    images = pictures(folder, gray=not options.color, quick=options.quick)
    if options.color:
        images = {name: _middle(image, options.side) for name, image in images.items()}
    titles = NAMES if options.set is None and not options.color else {}
    ways = methods(options)
    kept = Kept(options.kept)
    entries = []
    for sigma in options.sigmas:
        rows: list[list[Any]] = []
        for number, (name, clean) in enumerate(images.items()):
            if options.only and name not in options.only:
                continue
            noise = np.random.default_rng([number, int(10 * sigma)]).normal(0.0, sigma, clean.shape)
            noisy = (clean + noise).astype(np.float32)
            row: list[Any] = [titles.get(name, name), psnr(clean, noisy)]
            for method, way in ways.items():
                case = {
                    "set": folder,
                    "shape": clean.shape,
                    "sigma": sigma,
                    "picture": name,
                    "method": method,
                }
                result = kept.get(case, partial(_measured, way, noisy, clean, sigma))
                row.append(result["psnr"])
                entries.append(case | result | {"picture": titles.get(name, name)})
            rows.append(row)
        means = [float(np.mean([row[i] for row in rows])) for i in range(1, len(ways) + 2)]
        print(f"sigma = {sigma:g}: peak signal-to-noise ratio in dB")
        shown = [[name, *(f"{value:.2f}" for value in rest)] for name, *rest in rows]
        shown.append(["mean", *(f"{value:.2f}" for value in means)])
        table(["picture", "noisy", *ways], shown)
    largest = max(np.prod(entry["shape"]) for entry in entries)
    print("Seconds for the largest pictures, mean over them and sigma")
    rows = []
    for method in ways:
        mine = [e for e in entries if e["method"] == method and np.prod(e["shape"]) == largest]
        wall, busy = (float(np.mean([e[key] for e in mine])) for key in ("seconds", "busy"))
        rows.append([method, f"{wall:.1f}", f"{busy / options.threads:.1f}"])
    table(["method", "seconds", f"processor / {options.threads}"], rows)
    save(options.out, "denoise", about, options, runs=entries)


if __name__ == "__main__":
    main()
