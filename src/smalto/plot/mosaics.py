"""Mosaics of the atoms of a dictionary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from smalto.checks import Array, check_integer
from smalto.plot.figures import atoms_of, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DPI = 100  # of a new figure
_WIDTH = 900  # approximate width of a mosaic in a new figure, in dots
_WHITE, _GRAY = 1.0, 0.75  # lines around atoms; gray if white stands for zero


def mosaic(
    D: ArrayLike,
    patch_shape: tuple[int, ...] | None = None,
    *,
    signed: bool = False,
    order: ArrayLike | None = None,
    zoom: int = 1,
    gap: int = 1,
) -> Array:
    """Arrange the atoms of a dictionary in one picture.

    Parameters
    ----------
    D : array-like of shape (k, m)
        One atom per row.
    patch_shape : (height, width) or (height, width, 3), optional
        The shape of an atom. By default a square, gray if m = p² and RGB if m = 3p².
    signed : bool, default False
        False scales each atom from its smallest value (black) to its largest (white), all channels
        alike. True shows zero in white, positive values in red and negative ones in blue; the
        largest magnitude of each atom has the full color.
    order : sequence of int, optional
        Atoms to show, in this order, row by row; all of them by default.
    zoom : int, default 1
        Side of the square drawn for each value.
    gap : int, default 1
        Width of the lines around atoms: white, or gray if ``signed``.

    Returns
    -------
    ndarray of shape (height, width, 3), float32
        An RGB picture in [0, 1].

    See Also
    --------
    dictionary_mosaic : Plots it.
    """
    atoms = _check_atoms(D, order)
    zoom, gap = check_integer("zoom", zoom), check_integer("gap", gap, low=0)
    shape = check_shape(patch_shape, atoms.shape[1])
    if signed and len(shape) == 3:
        message = f"signed=True needs atoms of one channel, got patch_shape {shape}"
        raise ValueError(message)
    colors = signed_colors(atoms) if signed else own_range(atoms)
    tiles = colors.reshape(len(atoms), shape[0], shape[1], -1)
    tiles = tiles.repeat(zoom, axis=1).repeat(zoom, axis=2)

    n_rows, n_columns = _grid(len(atoms))
    line = _GRAY if signed else _WHITE
    height, width = tiles.shape[1] + gap, tiles.shape[2] + gap
    picture = np.full((n_rows * height + gap, n_columns * width + gap, 3), line, np.float32)
    for i, tile in enumerate(tiles):
        row, column = divmod(i, n_columns)
        top, left = row * height + gap, column * width + gap
        picture[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
    return picture


def dictionary_mosaic(
    D: ArrayLike,
    patch_shape: tuple[int, ...] | None = None,
    *,
    signed: bool = False,
    order: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the atoms of a dictionary in a mosaic.

    Parameters
    ----------
    D : array-like of shape (k, m)
        One atom per row.
    patch_shape : (height, width) or (height, width, 3), optional
        The shape of an atom. By default a square, gray if m = p² and RGB if m = 3p².
    signed : bool, default False
        False scales each atom over its own range; True shows positive values in red, negative ones
        in blue and zero in white. See `mosaic`.
    order : sequence of int, optional
        Atoms to show, in this order, row by row; all of them by default.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default a new figure of exactly the size of the mosaic.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    mosaic : The picture as an array.
    """
    atoms = _check_atoms(D, order)
    shape = check_shape(patch_shape, atoms.shape[1])
    zoom = min(max(round(_WIDTH / (_grid(len(atoms))[1] * shape[1])), 1), 12)
    picture = mosaic(atoms, shape, signed=signed, zoom=zoom, gap=max(zoom // 2, 1))
    if ax is None:
        size = (picture.shape[1] / _DPI, picture.shape[0] / _DPI)
        ax = new_figure(figsize=size, dpi=_DPI).add_axes((0.0, 0.0, 1.0, 1.0))
    ax.imshow(picture)
    ax.set_axis_off()
    return ax


def _grid(count: int) -> tuple[int, int]:
    """Rows and columns for ``count`` tiles: a full grid if one is not too wide."""
    for n_rows in range(math.isqrt(count), 0, -1):
        if count % n_rows == 0 and count // n_rows <= 2 * n_rows:
            return n_rows, count // n_rows
    n_columns = math.ceil(math.sqrt(count))
    return math.ceil(count / n_columns), n_columns


def own_range(atoms: Array) -> Array:
    """Scale each atom to [0, 1]; a constant one is mid-gray."""
    low = atoms.min(axis=1, keepdims=True)
    span = atoms.max(axis=1, keepdims=True) - low
    flat = span == 0.0
    return np.where(flat, 0.5, (atoms - low) / np.where(flat, 1.0, span))


def signed_colors(atoms: Array) -> Array:
    """Red where positive, blue where negative, white where zero: (k, m, 3)."""
    largest = np.abs(atoms).max(axis=1, keepdims=True)
    share = atoms / np.where(largest == 0.0, 1.0, largest)
    red = 1.0 + np.minimum(share, 0.0)
    blue = 1.0 - np.maximum(share, 0.0)
    return np.stack([red, 1.0 - np.abs(share), blue], axis=2)


def check_shape(patch_shape: Sequence[int] | None, m: int) -> tuple[int, ...]:
    """Return the shape of atoms of m values, by default a square; raise ValueError if it is none."""
    if patch_shape is None:
        side = math.isqrt(m)
        if side * side == m:
            return side, side
        side = math.isqrt(m // 3)
        if 3 * side * side == m:
            return side, side, 3
        message = f"atoms of {m} values are neither p x p nor p x p x 3: pass patch_shape"
        raise ValueError(message)
    given: Any = patch_shape
    sides = [given] if isinstance(given, str) or not np.iterable(given) else given
    shape = tuple(check_integer("patch_shape", side) for side in sides)
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] != 3):
        message = f"patch_shape must be (height, width) or (height, width, 3), got {patch_shape}"
        raise ValueError(message)
    if math.prod(shape) != m:
        message = f"patch_shape {patch_shape} has {math.prod(shape)} values, an atom of D has {m}"
        raise ValueError(message)
    return shape


def _check_atoms(D: ArrayLike, order: ArrayLike | None) -> Array:
    """Return the atoms to show as float64."""
    atoms = atoms_of(D)
    if order is None:
        return atoms
    numbers = np.asarray(order)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or numbers.size == 0:
        message = f"order must be a sequence of atom numbers, got {order!r}"
        raise ValueError(message)
    outside = numbers[(numbers < 0) | (numbers >= len(atoms))]
    if outside.size:
        message = f"order must have numbers from 0 to {len(atoms) - 1}, got {outside[0]}"
        raise ValueError(message)
    return np.take(atoms, numbers, axis=0)
