"""Denoising or inpainting of a clip: patches over several frames against single frames.

smalto's ``denoise_video``, with patches of one and of several frames and a dictionary that is
updated with each frame, against its ``denoise`` of single frames and scikit-image's non-local
means and, if it is installed, the package ``bm4d``. The measure is the mean over frames of the peak signal-to-noise ratio in decibels.

With ``--inpaint`` pixels are missing instead (at random, under text that stays where it is, and in
holes of 12 x 12 and 30 x 30 pixels that move): smalto's ``inpaint_video`` against its ``inpaint`` of
single frames and of all frames as a volume, and OpenCV's two methods for single frames. Decibels are
those of the missing pixels.

Run it with ``python -m benchmarks.peers.video``. It reads ``video/carphone_pristine.mp4`` in the
folder named by SMALTO_DATA (with OpenCV); without it, it pans over a packaged photograph.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.peers.common import Array, add_common, announce, importable, machine, save, table
from benchmarks.peers.restoration import psnr
from smalto.datasets import DATA_VARIABLE, luminance, sample_photo
from smalto.image import denoise, denoise_video, inpaint, inpaint_video, text_mask

DEPTHS = (1, 3, 5)
DAMAGE = ("50%", "80%", "text", "hole", "large")
Fillings = dict[str, Callable[[list[Array], list[Array]], list[Array]]]


def clip(count: int, quick: bool) -> list[Array]:
    """Return gray frames, float32, from 0 to 255."""
    folder = os.environ.get(DATA_VARIABLE)
    if quick or not folder or not importable("cv2"):
        photo = np.float32(255) * luminance(sample_photo("china")).astype(np.float32)
        return [photo[150:230, 200 + 2 * t : 296 + 2 * t].copy() for t in range(count)]
    import cv2

    video = cv2.VideoCapture(str(Path(folder) / "video" / "carphone_pristine.mp4"))
    frames = []
    while len(frames) < count:
        more, frame = video.read()
        if not more:
            break
        frames.append(cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY).astype(np.float32))
    return frames


def methods(options: argparse.Namespace) -> dict[str, Callable[[list[Array], float], list[Array]]]:
    """Whatever is installed."""
    few = {"max_steps": 20, "n_atoms": 64} if options.quick else {}
    threads = options.threads
    found: dict[str, Callable[[list[Array], float], list[Array]]] = {
        f"denoise_video, depth {depth}": lambda frames, sigma, depth=depth: list(
            denoise_video(frames, sigma, depth=depth, n_threads=threads, random_state=0)
        )
        for depth in DEPTHS
    }
    found["denoise_video, effort=1"] = lambda frames, sigma: list(
        denoise_video(frames, sigma, effort=1, n_threads=threads, random_state=0)
    )
    if importable("bm4d"):
        from bm4d import bm4d

        found["BM4D"] = lambda frames, sigma: list(
            bm4d(np.stack(frames, axis=2), sigma).transpose(2, 0, 1)
        )
    found["denoise, frame by frame"] = lambda frames, sigma: [
        denoise(frame, sigma, n_threads=threads, random_state=0, **few) for frame in frames
    ]
    if importable("skimage"):
        from skimage.restoration import denoise_nl_means

        found["non-local means, frame by frame"] = lambda frames, sigma: [
            denoise_nl_means(y, patch_size=7, patch_distance=10, h=0.6 * sigma, sigma=sigma)
            for y in frames
        ]
    wanted = options.methods or [""]
    return {name: way for name, way in found.items() if any(word in name for word in wanted)}


def damage(kind: str, clean: list[Array]) -> list[Array]:
    """Return masks of the missing pixels, one for each frame."""
    rng, (height, width) = np.random.default_rng(0), clean[0].shape
    if kind.endswith("%"):
        return [rng.random((height, width)) < float(kind[:-1]) / 100 for _ in clean]
    if kind == "text":
        return [text_mask((height, width))] * len(clean)
    masks = np.zeros((len(clean), height, width), np.bool_)
    for t, mask in enumerate(masks):
        if kind == "hole":
            side, row, column = 12, height // 2 - 6 + 2 * t, width // 4 + 4 * t
        else:
            side, row, column = 30, height // 2 - 15, 4 + 10 * t
        mask[row : row + side, column : column + side] = True
    return list(masks)


def fillings(options: argparse.Namespace) -> Fillings:
    """Ways to fill missing pixels: whatever is installed."""
    few = {"max_steps": 20, "n_atoms": 64} if options.quick else {}
    threads = options.threads
    found: Fillings = {
        "inpaint_video": lambda frames, masks: list(
            inpaint_video(frames, masks, n_threads=threads)
        ),
        "inpaint, frame by frame": lambda frames, masks: [
            inpaint(x, mask, n_threads=threads) for x, mask in zip(frames, masks, strict=True)
        ],
        "inpaint, as a volume": lambda frames, masks: list(
            inpaint(np.stack(frames), np.stack(masks), n_threads=threads, random_state=0, **few)
        ),
    }
    if importable("cv2"):
        import cv2

        for name, way in (("NS", cv2.INPAINT_NS), ("Telea", cv2.INPAINT_TELEA)):
            found[f"OpenCV {name}, frame by frame"] = lambda frames, masks, way=way: [
                cv2.inpaint(x.astype(np.uint8), mask.astype(np.uint8), 3, way)
                for x, mask in zip(frames, masks, strict=True)
            ]
    wanted = options.methods or [""]
    return {name: way for name, way in found.items() if any(word in name for word in wanted)}


def compare_fillings(options: argparse.Namespace, clean: list[Array]) -> list[dict[str, object]]:
    """Fill in missing pixels, print decibels and seconds, and return them."""
    entries: list[dict[str, object]] = []
    kinds = ["80%"] if options.quick else options.damage
    damaged = {}
    for kind in kinds:
        masks = damage(kind, clean)
        damaged[kind] = [np.where(m, 0, x) for m, x in zip(masks, clean, strict=True)], masks
    rows = []
    for method, way in fillings(options).items():
        cells = []
        for kind, (frames, masks) in damaged.items():
            busy = time.process_time()
            out = way(frames, masks)
            busy = (time.process_time() - busy) / len(clean)
            pairs = zip(clean, out, masks, strict=True)
            value = float(np.mean([psnr(x[mask], y[mask]) for x, y, mask in pairs]))
            entries.append({"damage": kind, "method": method, "psnr": value, "busy": busy})
            cells += [f"{value:.2f}", f"{busy:.2f}"]
        rows.append([method, *cells])
    table(["method", *(f"{kind}, {what}" for kind in kinds for what in ("dB", "s"))], rows)
    print("s: processor seconds per frame")
    return entries


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("--sigmas", nargs="+", type=float, default=[10.0, 20.0, 40.0])
    parser.add_argument("--inpaint", action="store_true", help="fill missing pixels instead")
    parser.add_argument("--damage", nargs="+", choices=DAMAGE, default=DAMAGE)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--methods", nargs="+", help="only those whose names contain one of these")
    add_common(parser)
    options = parser.parse_args()
    about = machine()
    announce(about)
    clean = clip(5 if options.quick else options.frames, options.quick)
    if options.inpaint:
        print(f"{len(clean)} frames of {clean[0].shape[1]} x {clean[0].shape[0]}")
        entries = compare_fillings(options, clean)
        save(options.out, "video", about, options, runs=entries)
        return
    entries, rows = [], []
    for sigma in options.sigmas[:1] if options.quick else options.sigmas:
        rng = np.random.default_rng(int(10 * sigma))
        noisy = [(x + rng.normal(0.0, sigma, x.shape)).astype(np.float32) for x in clean]
        for method, way in methods(options).items():
            busy = time.process_time()
            out = way(noisy, sigma)
            busy = (time.process_time() - busy) / len(clean)
            value = float(np.mean([psnr(x, y) for x, y in zip(clean, out, strict=True)]))
            entries.append({"sigma": sigma, "method": method, "psnr": value, "busy": busy})
            rows.append([f"{sigma:g}", method, f"{value:.2f}", f"{busy:.2f}"])
    print(f"{len(clean)} frames of {clean[0].shape[1]} x {clean[0].shape[0]}")
    table(["sigma", "method", "dB", "processor seconds per frame"], rows)
    save(options.out, "video", about, options, runs=entries)


if __name__ == "__main__":
    main()
