"""Which pixels of pictures and films are damaged: by a mask, by their color or by transparency."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from smalto.checks import Array
from smalto.cli.errors import fail
from smalto.cli.films import frames_of, has_alpha, is_film
from smalto.cli.inputs import open_picture

if TYPE_CHECKING:
    from smalto.image.files.picture_file import PictureFile


WHERE = "say where the damage is: with one of --mask, --mask-color and --mask-alpha"
_MOST = 0.5  # share of a picture that masks seldom have
_DEEP = 4  # pixels from all undamaged ones
_LARGE = 0.25  # share of the damaged pixels that are that deep in large parts


class Color(NamedTuple):
    """A color that damaged pixels have, red, green and blue from 0 to 255."""

    name: str
    levels: Array
    tolerance: float

    def marks(self, pixels: Array, low: float, high: float) -> Array:
        """A mask of the pixels, black at ``low`` and white at ``high``, that have it."""
        colors = pixels if pixels.ndim == 3 else pixels[:, :, None]
        levels = (colors.astype(np.float64) - low) * (255.0 / ((high - low) or 1.0))
        return np.asarray((np.abs(levels - self.levels) <= self.tolerance + 1e-6).all(axis=2))

    def not_found(self) -> str:
        """What to say if no pixel has it."""
        return f"no pixel has the color {self.name}: try a larger --mask-tolerance"


def named_color(text: str, tolerance: float) -> Color:
    """Return a color by its name."""
    from PIL import ImageColor

    try:
        return Color(text, np.array(ImageColor.getrgb(text)[:3]), tolerance)
    except ValueError:
        fail(f"--mask-color must be a color such as red or '#ff0000', got {text!r}")


def read_mask(path: Path, picture: PictureFile, source: Path) -> Array:
    """Read the mask of a picture, for its pixels as they are stored."""
    from smalto.image.files.picture_file import turned_back

    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.stem == source.stem)
        if not found:
            message = f"{source}: there is no mask {source.stem}.* in {path}"
            raise ValueError(message)
        path = found[0]
    damaged = _marks(path)
    _check_shape(path, damaged, picture.upright().pixels, "picture")
    return turned_back(damaged, picture.metadata.orientation)


def grown(damaged: Array, pixels: int) -> Array:
    """A mask with all pixels that are at most so many rows and columns away from its own."""
    from scipy import ndimage

    return np.asarray(ndimage.maximum_filter(damaged, 2 * pixels + 1)) if pixels else damaged


def has_color(picture: PictureFile, color: Color) -> Array:
    """A mask of the pixels that have a color."""
    damaged = color.marks(picture.pixels, *picture.range)
    if not damaged.any():
        raise ValueError(color.not_found())
    return damaged


def is_transparent(picture: PictureFile, source: Path) -> Array:
    """A mask of the pixels that are not opaque."""
    if picture.alpha is None:
        message = f"{source} has no alpha channel: use --mask or --mask-color"
        raise ValueError(message)
    return np.asarray(picture.alpha < opaque(picture.alpha))


def is_nan(picture: PictureFile) -> Array:
    """A mask of the pixels that are no numbers."""
    pixels = picture.pixels.reshape(*picture.pixels.shape[:2], -1)
    damaged = np.asarray(np.isnan(pixels).any(axis=2))
    if not damaged.any():
        raise ValueError(WHERE)
    return damaged


def opaque(alpha: Array | None) -> Array | None:
    """The opacity of a picture that is opaque everywhere."""
    if alpha is None:
        return None
    return np.full_like(alpha, 1 if alpha.dtype.kind == "f" else np.iinfo(alpha.dtype).max)


def looks_inverted(damaged: Array) -> bool:
    """Whether a mask has most of its picture, in large parts: then it may mark what is undamaged.

    Pixels that are missing here and there leave no large parts, even if they are most.
    """
    from scipy import ndimage

    if damaged.all() or damaged.mean() <= _MOST:
        return bool(damaged.all())
    depth = ndimage.distance_transform_cdt(damaged, "chessboard")
    return bool(np.mean(depth[damaged] > _DEEP) > _LARGE)


def mask_of_frames(
    source: Path, mask: Path | None, color: Color | None
) -> Callable[[Array], Array]:
    """A function that is called with one frame (height, width, 4) of a film after another.

    It returns what is damaged: where a mask says so, or pixels of a color or, without both, those
    that are not opaque.
    """
    if mask is not None:
        return _mask_of_frames(mask)
    if color is not None:
        return lambda frame: color.marks(frame[:, :, :3], 0.0, 255.0)
    if not has_alpha(source):
        message = f"{source} has no alpha channel: use --mask or --mask-color"
        raise ValueError(message)
    return lambda frame: frame[:, :, 3] < 255


def _mask_of_frames(path: Path) -> Callable[[Array], Array]:
    if path.is_dir():
        message = f"{path} is a folder, but the mask of a film is a picture or a film"
        raise ValueError(message)
    # Black is hardly ever exact in a film.
    masks = (
        (frame > 127 for frame in frames_of(path, "gray"))
        if is_film(path)
        else repeat(_marks(path))
    )

    def mark(frame: Array) -> Array:
        damaged = next(masks, None)
        if damaged is None:
            message = f"{path} has fewer frames than the film"
            raise ValueError(message)
        _check_shape(path, damaged, frame, "film")
        return damaged

    return mark


def _marks(path: Path) -> Array:
    """A mask as it is to be seen, True where it is neither black nor clear.

    Black is not exact in files with loss: there, True where it is brighter than middle gray.
    """
    picture = open_picture(path).upright()
    marks = picture.pixels.reshape(*picture.pixels.shape[:2], -1)
    damaged = (marks > 127 if picture.is_lossy else marks != 0).any(axis=2)
    return np.asarray(damaged if picture.alpha is None else damaged & (picture.alpha > 0))


def _check_shape(path: Path, damaged: Array, pixels: Array, what: str) -> None:
    height, width = pixels.shape[:2]
    if damaged.shape != (height, width):
        message = (
            f"{path} is {damaged.shape[1]} x {damaged.shape[0]}, the {what} {width} x {height}: "
            "they must have the same size"
        )
        raise ValueError(message)
