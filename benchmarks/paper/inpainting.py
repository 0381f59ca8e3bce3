"""Figure 7: text removed from a photograph of twelve megapixels.

A dictionary of 256 atoms is learned from the undamaged 12×12 color patches of the whole picture in
two epochs, and the patches damaged by the text are restored with it. This experiment uses all
cores, and its seconds are those on the wall. The paper: about 7·10⁶ patches in about 8 minutes on
eight cores of 2.4 GHz.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

from benchmarks.paper.frame import Claim, Key, Part, Study, Task, Verdict
from benchmarks.peers.common import Array
from smalto.image import inpaint, text_mask

TITLE = "Figure 7: text removed from a photograph"
SIDE = 12
PER_STEP = 1024  # patches that inpaint learns from at each step
WIDEST = 800  # side of a picture in the figure, in pixels
PAPER_MINUTES, PAPER_CORES = 8.0, 8

CLAIMS = (
    Claim(
        "text",
        "The text is removed from the photograph.",
        "PSNR in the damaged pixels rises by over 20 dB and is above 30 dB; the other pixels are as "
        "they were.",
    ),
    Claim(
        "minutes",
        "Learning from about 7·10⁶ undamaged patches in two epochs takes about 8 minutes on 8 cores.",
        "Here it takes at most 8 minutes, on at most 8 cores.",
    ),
)


def picture(study: Study) -> tuple[Array, str]:
    """Return the photograph, or a small piece of it."""
    photo, source = study.data.photo()
    return (piece(photo, 96 * 128) if study.quick else photo), source


def tasks(study: Study) -> dict[Key, Task]:
    """Return the only part."""
    image, source = picture(study)
    atoms, epochs = (32, 1) if study.quick else (256, 2)
    settings = {"shape": list(image.shape), "source": source, "atoms": atoms, "epochs": epochs,
                "cores": os.cpu_count()}  # fmt: skip
    mask = text_mask(image.shape[:2])
    return {
        ("all",): Task("inpainting", settings, lambda: restore(image, mask, atoms, epochs), 8.0)
    }


def report(study: Study, parts: dict[Key, Part]) -> None:
    """Judge the claims, draw the figure, write the table."""
    image, source = picture(study)
    mask, part = text_mask(image.shape[:2]), parts["all",]
    damaged = image.copy()
    damaged[mask] = RED
    restored = part["restored"]
    before, after = psnr(image, damaged, mask), psnr(image, restored, mask)
    untouched = bool((restored[~mask] == image[~mask]).all())
    cores, pixels = os.cpu_count() or 1, image.shape[0] * image.shape[1] / 1e6
    row = [
        f"{image.shape[1]} x {image.shape[0]}", f"{pixels:.2f}", f"{100 * mask.mean():.1f} %",
        f"{part['undamaged']:,}", f"{part['learning']:.1f}", f"{part['seconds'] - part['learning']:.1f}",
        f"{part['processor']:.1f}", f"{before:.2f}", f"{after:.2f}",
    ]  # fmt: skip
    header = ("picture", "megapixels", "damaged", "undamaged patches", "s learning", "s restoring",
              "processor s in all", "dB damaged", "dB restored")  # fmt: skip
    verdicts = {
        "text": Verdict.of(
            after > max(30.0, before + 20.0) and untouched,
            f"PSNR in the damaged pixels {after:.1f} dB (with the text {before:.1f}); the others are "
            f"{'as they were' if untouched else 'changed'}",
        ),
        "minutes": Verdict.of(
            part["learning"] <= 60 * PAPER_MINUTES and cores <= PAPER_CORES,
            f"{part['undamaged']:,} patches, two epochs: {part['learning'] / 60:.1f} minutes on {cores} "
            f"cores, against {PAPER_MINUTES:g} on {PAPER_CORES} in 2010",
        ),
    }
    results = {**{k: v for k, v in part.items() if k != "restored"}, "shape": image.shape,
               "damaged": float(mask.mean()), "psnr_before": before, "psnr": after}  # fmt: skip
    notes = [f"{source}; {cores} threads, times on the wall."]
    study.finish(sys.modules[__name__], figure(image, damaged, restored, verdicts["minutes"].evidence), header, [row], verdicts,
                 parts, results, notes)  # fmt: skip


RED = (200, 20, 30)


def restore(image: Array, mask: Array, atoms: int, epochs: int) -> Part:
    """Learn from the undamaged patches, and fill in the damaged pixels."""
    damaged = image.copy()
    damaged[mask] = 0
    clean = undamaged(mask, SIDE)
    learned = 0.0

    def watch(state: Any, record: Any) -> None:
        nonlocal learned
        learned = record.seconds

    begin, used = time.perf_counter(), time.process_time()
    restored = inpaint(
        damaged, mask, channel_axis=-1, effort=0, patch_size=SIDE, n_atoms=atoms,
        max_steps=max(1, round(epochs * clean / PER_STEP)), callbacks=[watch], random_state=0,
    )  # fmt: skip
    return {
        "restored": restored, "seconds": time.perf_counter() - begin, "learning": learned,
        "processor": time.process_time() - used, "undamaged": clean,
    }  # fmt: skip


def undamaged(mask: Array, side: int) -> int:
    """Return the number of square patches without a damaged pixel."""
    sums = np.pad(mask.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    inside = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    return int((inside == 0).sum())


def piece(photo: Array, pixels: float) -> Array:
    """Cut a piece of about this many pixels from the middle, with the proportions of the whole."""
    share = min(1.0, (pixels / (photo.shape[0] * photo.shape[1])) ** 0.5)
    height, width = (max(64, round(share * side)) for side in photo.shape[:2])
    top, left = (photo.shape[0] - height) // 2, (photo.shape[1] - width) // 2
    return np.ascontiguousarray(photo[top : top + height, left : left + width])


def psnr(image: Array, other: Array, mask: Array) -> float:
    """Return the peak signal-to-noise ratio in the damaged pixels."""
    error = image[mask].astype(np.float64) - other[mask]
    return float(10 * np.log10(255.0**2 / np.mean(error**2)))


def figure(image: Array, damaged: Array, restored: Array, heading: str) -> Any:
    """Draw the damaged and the restored picture, with zooms and the original below."""
    from matplotlib.figure import Figure

    result = Figure(figsize=(10.0, 7.6), dpi=100, layout="constrained")
    result.suptitle(heading, fontsize=11)
    above, below = result.subfigures(2, 1, height_ratios=(1.0, 0.95))
    for ax, picture, title in zip(
        above.subplots(1, 2), (damaged, restored), ("damaged", "restored"), strict=True
    ):
        ax.imshow(smaller(picture))
        ax.set_title(title, fontsize=11)
        ax.set_axis_off()
    side = min(160, *image.shape[:2])
    top, left = busiest(image, side)
    window = slice(top, top + side), slice(left, left + side)
    for ax, picture, title in zip(
        below.subplots(1, 3), (damaged, restored, image),
        ("zoom: damaged", "restored", "as it was"), strict=True,
    ):  # fmt: skip
        ax.imshow(picture[window])
        ax.set_title(title, fontsize=11)
        ax.set_axis_off()
    return result


def smaller(picture: Array) -> Array:
    """Average over squares of pixels, for display."""
    by = -(-max(picture.shape[:2]) // WIDEST)
    height, width = picture.shape[0] // by, picture.shape[1] // by
    cut = picture[: height * by, : width * by].reshape(height, by, width, by, 3)
    return cut.mean(axis=(1, 3)).astype(np.uint8)


def busiest(image: Array, side: int) -> tuple[int, int]:
    """Return the corner of the square with the most detail, which is the hardest to restore."""
    detail = np.abs(np.diff(image.mean(axis=2), axis=0, append=0.0))
    detail[-1] = 0.0
    corners = [
        (top, left)
        for top in range(0, image.shape[0] - side + 1, max(1, side // 2))
        for left in range(0, image.shape[1] - side + 1, max(1, side // 2))
    ]
    return max(corners, key=lambda c: float(detail[c[0] : c[0] + side, c[1] : c[1] + side].sum()))
