"""Pictures before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from smalto.checks import Array, check_integer
from smalto.plot.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def before_after(
    before: ArrayLike,
    after: ArrayLike,
    *,
    zoom: tuple[int, int, int, int] | None = None,
    titles: tuple[str, str] = ("before", "after"),
    axes: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """Draw a picture before and after, and below both the same part enlarged.

    Parameters
    ----------
    before, after : array-like (height, width) or (height, width, 3)
        Pictures of one size, in the same units: unsigned integers, or floats (shown on the range
        of both, or on [0, 1] where they lie within).
    zoom : (top, left, height, width), optional
        The part that is enlarged. By default that where the pictures differ most.
    titles : (str, str)
        What stands above them.
    axes : four matplotlib.axes.Axes, optional
        Where to draw: before, after, and their parts. By default a new figure.

    Returns
    -------
    sequence of matplotlib.axes.Axes
    """
    pictures = [_check_picture(before, "before"), _check_picture(after, "after")]
    if pictures[0].shape[:2] != pictures[1].shape[:2]:
        message = (
            f"before and after must have one size, got {pictures[0].shape} and {pictures[1].shape}"
        )
        raise ValueError(message)
    height, width = pictures[0].shape[:2]
    part = _where_they_differ(*pictures) if zoom is None else _check_zoom(zoom, height, width)
    low, high = _range_of(pictures)
    if axes is None:
        ratio = height / width
        figure = new_figure(figsize=(9.0, 9.0 * ratio * 1.05 + 0.4), dpi=150, layout="constrained")
        axes = list(figure.subplots(2, 2).flat)
    if len(axes) != 4:
        message = f"axes must be four: before, after, and their parts, got {len(axes)}"
        raise ValueError(message)
    top, left, h, w = part
    for i, picture in enumerate(pictures):
        shown = np.clip((picture - low) / (high - low), 0.0, 1.0)
        for ax, pixels, smooth in (
            (axes[i], shown, "antialiased"),
            (axes[i + 2], shown[top : top + h, left : left + w], "nearest"),
        ):
            ax.imshow(pixels, cmap="gray", vmin=0.0, vmax=1.0, interpolation=smooth)
            ax.set_xticks([])
            ax.set_yticks([])
        axes[i].set_title(titles[i])
        axes[i].add_patch(_rectangle(left, top, w, h))
        for spine in axes[i + 2].spines.values():
            spine.set_edgecolor("C1")
            spine.set_linewidth(1.5)
    return axes


def _check_picture(image: ArrayLike, what: str) -> Array:
    pixels = np.asarray(image)
    colour = pixels.ndim == 3 and pixels.shape[2] == 3
    if not (pixels.ndim == 2 or colour) or not pixels.size or pixels.dtype.kind not in "uf":
        message = (
            f"{what} must be a picture (height, width) or (height, width, 3) of unsigned integers "
            f"or floats, got shape {pixels.shape} of {pixels.dtype}"
        )
        raise ValueError(message)
    scale = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0
    return np.nan_to_num(pixels.astype(np.float64) / scale)


def _range_of(pictures: list[Array]) -> tuple[float, float]:
    low = min(float(picture.min()) for picture in pictures)
    high = max(float(picture.max()) for picture in pictures)
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    return low, high if high > low else low + 1.0


def _where_they_differ(before: Array, after: Array) -> tuple[int, int, int, int]:
    """A quarter of the sides of the picture, where the difference has the most energy."""
    height, width = before.shape[:2]
    h, w = max(height // 4, 1), max(width // 4, 1)
    a, b = (p if p.ndim == 2 else p.mean(axis=2) for p in (before, after))
    sums = np.zeros((height + 1, width + 1))
    sums[1:, 1:] = np.cumsum(np.cumsum((a - b) ** 2, axis=0), axis=1)
    energy = sums[h:, w:] - sums[:-h, w:] - sums[h:, :-w] + sums[:-h, :-w]
    top, left = np.unravel_index(int(np.argmax(energy)), energy.shape)
    return int(top), int(left), h, w


def _check_zoom(zoom: Sequence[int], height: int, width: int) -> tuple[int, int, int, int]:
    top, left, h, w = (check_integer("zoom", value, low=0) for value in zoom)
    if h < 1 or w < 1 or top + h > height or left + w > width:
        message = (
            f"zoom must be (top, left, height, width) within {height} x {width} pixels, got "
            f"{tuple(zoom)}"
        )
        raise ValueError(message)
    return top, left, h, w


def _rectangle(left: int, top: int, width: int, height: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(
        (left - 0.5, top - 0.5), width, height, fill=False, edgecolor="C1", linewidth=1.5
    )
