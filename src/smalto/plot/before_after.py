"""Pictures before and after restoration, with an enlarged detail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from smalto.checks import Array, check_integer
from smalto.plot.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_SIDE = 1200  # larger pictures are reduced by averaging


def before_after(
    before: ArrayLike,
    after: ArrayLike,
    original: ArrayLike | None = None,
    *,
    window: tuple[int, int] | None = None,
    side: int | None = None,
    titles: tuple[str, ...] = ("before", "after", "original"),
) -> Figure:
    """Plot a picture before and after restoration, with an enlarged detail of each below.

    Parameters
    ----------
    before, after : array (height, width) or (height, width, 3)
        Unsigned integers, or floats from 0 to 1.
    original : array, optional
        The true picture, shown beside them.
    window : (int, int), optional
        Row and column of the upper left corner of the detail, a square. By default a region with
        large changes and much structure.
    side : int, optional
        Side of the detail. By default an eighth of the longer side of the picture, at least 48.
    titles : tuple of str
        One title per picture.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    smalto.image.denoise : Removes noise.
    smalto.image.inpaint : Fills in missing pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.plot import before_after
    >>> len(before_after(np.zeros((64, 96)), np.ones((64, 96))).axes)
    4
    """
    pictures = [_pixels(before), _pixels(after)]
    if original is not None:
        pictures.append(_pixels(original))
    shape = pictures[0].shape[:2]
    for number, picture in enumerate(pictures):
        if picture.shape[:2] != shape:
            message = f"all pictures must have the same size, got {shape} and {picture.shape[:2]}"
            raise ValueError(message)
        if number >= len(titles):
            message = (
                f"titles must have one title for each of {len(pictures)} pictures, got {titles}"
            )
            raise ValueError(message)
    side = max(48, max(shape) // 8) if side is None else check_integer("side", side)
    side = min(side, *shape)
    top, left = busiest_square(pictures[0], pictures[1], side)[:2] if window is None else window
    if not (0 <= top <= shape[0] - side and 0 <= left <= shape[1] - side):
        message = f"a square of {side} at {(top, left)} does not lie in a picture of {shape}"
        raise ValueError(message)
    n, ratio = len(pictures), shape[0] / shape[1]
    width = 4.2 * n
    figure = new_figure(
        figsize=(width, width / n * (ratio + 1.0) + 0.5), dpi=130, layout="constrained"
    )
    grid = figure.add_gridspec(2, n, height_ratios=(ratio, 1.0))
    zoom = (slice(top, top + side), slice(left, left + side))
    for column, (picture, title) in enumerate(zip(pictures, titles, strict=False)):
        above, below = figure.add_subplot(grid[0, column]), figure.add_subplot(grid[1, column])
        by = -(-max(shape) // _MAX_SIDE)
        _show(above, _averaged(picture, by))
        above.set_title(title, fontsize=11)
        corners = (left / by - 0.5, top / by - 0.5)
        above.add_patch(_square(corners, side / by))
        _show(below, picture[zoom])
    return figure


def _pixels(image: ArrayLike) -> Array:
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3):
        message = f"pictures must be (height, width) or (height, width, 3), got {pixels.shape}"
        raise ValueError(message)
    if pixels.dtype.kind == "u":
        return np.asarray(pixels / np.float32(np.iinfo(pixels.dtype).max))
    return np.asarray(np.clip(pixels, 0.0, 1.0), np.float32)


def busiest_square(before: Array, after: Array, side: int) -> tuple[int, int, int]:
    """Row, column and side of the square with the most change times structure.

    It is smaller than ``side`` if the pictures are.
    """
    side = min(side, *before.shape[:2])
    old, new = (np.asarray(p if p.ndim == 2 else p.mean(axis=2), float) for p in (before, after))
    detail = np.abs(np.diff(new, axis=0, append=new[-1:]))
    detail += np.abs(np.diff(new, axis=1, append=new[:, -1:]))
    inside = _sums(np.abs(new - old), side) * _sums(detail, side)
    top, left = np.unravel_index(int(np.argmax(inside)), inside.shape)
    return int(top), int(left), side


def _sums(values: Array, side: int) -> Array:
    """Sums over all squares of this side."""
    sums = np.cumsum(np.cumsum(values, axis=0, dtype=np.float64), axis=1)
    sums = np.pad(sums, ((1, 0), (1, 0)))
    below, above = sums[side:], sums[:-side]
    return np.asarray(below[:, side:] - above[:, side:] - below[:, :-side] + above[:, :-side])


def _averaged(picture: Array, by: int) -> Array:
    """Means over squares of ``by`` x ``by`` pixels."""
    if by == 1:
        return picture
    height, width = (side // by * by for side in picture.shape[:2])
    cut = picture[:height, :width]
    return np.asarray(cut.reshape(height // by, by, width // by, by, *cut.shape[2:]).mean((1, 3)))


def _show(ax: Any, picture: Array) -> None:
    ax.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
    ax.set_axis_off()


def _square(corner: tuple[float, float], side: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, side, side, fill=False, edgecolor="#ff3b30", linewidth=1.4)
