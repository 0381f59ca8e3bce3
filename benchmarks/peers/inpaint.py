"""Inpainting of photographs with text over them, or with 50 or 80 % of the pixels missing.

``--damage bold`` is text of heavier letters, which leaves hardly a patch undamaged, and
``--damage hole24`` a single hole of 24 x 24 pixels in the middle.

smalto's ``inpaint`` against scikit-image's ``inpaint_biharmonic`` and, if installed,
OpenCV's two methods, on color pictures, or on gray ones with ``--gray``. The measure is the peak
signal-to-noise ratio in the missing pixels, in decibels; with ``--whole`` also that of the whole
picture.

Run it with ``python -m benchmarks.peers.inpaint``. It reads ``test_images/kodak12``, or ``set12``,
in the folder named by SMALTO_DATA; without it, it takes two packaged photographs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.ndimage import binary_dilation

from benchmarks.peers.common import Array, add_common, announce, importable, machine, save, table
from benchmarks.peers.restoration import pictures, psnr
from smalto.image import inpaint, text_mask


def damage(kind: str, shape: tuple[int, ...], seed: int) -> Array:
    """Return the mask of the missing pixels."""
    height, width = shape[:2]
    if kind == "bold":
        return np.asarray(binary_dilation(text_mask((height, width)), iterations=2))
    if kind.startswith("hole"):
        side = int(kind.removeprefix("hole"))
        square = np.zeros((height, width), np.bool_)
        middle(square, side)[:] = True
        return square
    if kind != "text":
        share = float(kind.rstrip("%")) / 100
        return np.asarray(np.random.default_rng(seed).random((height, width)) < share)
    return text_mask((height, width))


def middle(array: Array, side: int) -> Array:
    """Cut a square from the middle of a picture."""
    top, left = ((length - side) // 2 for length in array.shape[:2])
    return array[top : top + side, left : left + side]


def methods(options: argparse.Namespace) -> dict[str, Callable[[Array, Array], Array]]:
    """Whatever is installed."""
    axis = None if options.gray else 2
    few: dict[str, Any] = {"random_state": 0, "n_threads": options.threads, "channel_axis": axis}
    if options.quick:
        few |= {"max_steps": 20, "n_atoms": 64}
    found: dict[str, Callable[[Array, Array], Array]] = {
        f"smalto {effort}": lambda y, mask, effort=effort: inpaint(y, mask, effort=effort, **few)
        for effort in options.efforts
    }
    if importable("skimage"):
        from skimage.restoration import inpaint_biharmonic

        found["biharmonic"] = lambda y, mask: np.rint(
            255 * np.clip(inpaint_biharmonic(y, mask, channel_axis=axis), 0, 1)
        )
    if importable("cv2"):
        import cv2

        for name, method in (("OpenCV NS", cv2.INPAINT_NS), ("OpenCV Telea", cv2.INPAINT_TELEA)):
            found[name] = lambda y, mask, method=method: cv2.inpaint(
                y, mask.astype(np.uint8), 3, method
            )
    return found


def columns(entries: list[dict[str, Any]], measure: str) -> list[list[str]]:
    """Rows of a table: pictures, and their mean, by methods."""
    names, ways = (list(dict.fromkeys(e[key] for e in entries)) for key in ("picture", "method"))
    values = np.array([e[measure] for e in entries]).reshape(len(names), len(ways))
    numbers = np.vstack([values, values.mean(axis=0)])
    return [
        [name, *(f"{value:.2f}" for value in row)]
        for name, row in zip([*names, "mean"], numbers, strict=True)
    ]


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description="Inpainting against scikit-image and OpenCV",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--damage", nargs="+", default=["text", "50%", "80%"])
    parser.add_argument("--only", nargs="+", help="names of pictures", default=None)
    parser.add_argument("--methods", nargs="+", help="names of methods", default=None)
    parser.add_argument(
        "--crop", type=int, default=None, help="side of a square cut from the middle"
    )
    parser.add_argument("--efforts", type=int, nargs="+", default=[1], help="of smalto")
    parser.add_argument("--gray", action="store_true", help="gray pictures")
    parser.add_argument("--whole", action="store_true", help="decibels of the whole picture, too")
    parser.add_argument("--threads", type=int, default=2)
    add_common(parser)
    options = parser.parse_args()
    about = machine()
    announce(about)
    images = pictures(
        "set12" if options.gray else "kodak12", gray=options.gray, quick=options.quick
    )
    ways = methods(options)
    if options.methods:
        ways = {name: way for name, way in ways.items() if name in options.methods}
    entries = []
    for kind in options.damage:
        for number, (name, clean) in enumerate(images.items()):
            if options.only and name not in options.only:
                continue
            mask = damage(kind, clean.shape, number)
            if options.crop:
                clean, mask = (middle(array, options.crop) for array in (clean, mask))
            damaged = clean.copy()
            damaged[mask] = 0
            for method, way in ways.items():
                wall, busy = time.perf_counter(), time.process_time()
                restored = way(damaged, mask)
                wall, busy = time.perf_counter() - wall, time.process_time() - busy
                entries.append(
                    {
                        "damage": kind,
                        "picture": name,
                        "method": method,
                        "psnr": psnr(clean[mask], restored[mask]),
                        "whole": psnr(clean, restored),
                        "seconds": wall,
                        "busy": busy,
                    }
                )
            latest = entries[-len(ways) :]
            found = [f"{entry['psnr']:.2f}" for entry in latest]
            seconds = [f"{entry['seconds']:.1f}" for entry in latest]
            print(kind, name, *found, "in", *seconds, "s", flush=True)
        here = [entry for entry in entries if entry["damage"] == kind]
        print(f"{kind} missing: peak signal-to-noise ratio in the missing pixels, in dB")
        table(["picture", *ways], columns(here, "psnr"))
        if options.whole:
            print(f"{kind} missing: the same, of whole pictures")
            table(["picture", *ways], columns(here, "whole"))
    save(options.out, "inpaint", about, options, runs=entries)


if __name__ == "__main__":
    main()
