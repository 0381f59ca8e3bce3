"""Pictures and patches to learn from, and the three natural-image settings of the paper.

Pictures come from scikit-learn and scikit-image, which carry some inside their packages, or from
the folder that the environment variable ``SMALTO_DATA`` names. Nothing is ever downloaded.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, DTypeLike, NDArray
from PIL import Image, UnidentifiedImageError

from smalto.checks import Array, check_integer, check_number

__all__ = [
    "DATA_VARIABLE",
    "ImageSet",
    "PaperSetting",
    "luminance",
    "natural_images",
    "paper_setting",
    "random_patches",
    "sample_photo",
    "voc2006",
]

DATA_VARIABLE = "SMALTO_DATA"
"""The environment variable that names the folder of the data sets."""

_PHOTOS = ("flower", "china")
_SKIMAGE_PHOTOS = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg")
_LUMA = np.array([0.299, 0.587, 0.114])  # Rec. 601, as Pillow has it
_CHUNK = 1 << 14  # patches centred and scaled at a time, in float64
_FLAT = 1e-6  # a patch is constant when centring leaves less than this part of its norm


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Pictures, their names, and where they come from.

    Attributes
    ----------
    images : tuple of ndarray
        RGB pictures (height, width, 3), uint8.
    names : tuple of str
        The name of each picture.
    source : str
        ``"voc2006"`` for PASCAL VOC'06, ``"packaged"`` for those inside installed packages.
    """

    images: tuple[Array, ...]
    names: tuple[str, ...]
    source: str

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True, eq=False)
class PaperSetting:
    """One of the paper's natural-image experiments (Section 6.1), ready to run.

    Attributes
    ----------
    name : str
        ``"A"``, ``"B"`` or ``"C"``.
    train, test : ndarray of shape (n, m)
        Centred patches of unit norm; no picture gives to both.
    patch_shape : tuple of int
        ``(8, 8)``, ``(12, 12, 3)`` or ``(16, 16)``.
    n_atoms : int
        The paper's k: 256, 512 or 1024.
    lam : float
        The paper's penalty, 1.2/sqrt(m).
    source : str
        Where the pictures come from, as in `ImageSet`.
    """

    name: str
    train: Array
    test: Array
    patch_shape: tuple[int, ...]
    n_atoms: int
    lam: float
    source: str


_SETTINGS: dict[str, tuple[tuple[int, ...], int]] = {
    "A": ((8, 8), 256),
    "B": ((12, 12, 3), 512),
    "C": ((16, 16), 1024),
}


def sample_photo(name: Literal["flower", "china"] = "flower") -> Array:
    """Return a photograph that comes with scikit-learn.

    Parameters
    ----------
    name : {"flower", "china"}
        A dahlia, or a temple in Beijing.

    Returns
    -------
    ndarray of shape (427, 640, 3), uint8
        The RGB picture; the caller may write to it.
    """
    if name not in _PHOTOS:
        message = f'name must be "flower" or "china", got {name!r}'
        raise ValueError(message)
    from sklearn.datasets import load_sample_image

    return np.array(load_sample_image(f"{name}.jpg"), dtype=np.uint8)


def luminance(image: ArrayLike) -> Array:
    """Return the luminance of an RGB picture: 0.299 R + 0.587 G + 0.114 B.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        Unsigned integers are divided by the largest value of their type; floats are kept as they
        are, and are taken to lie in [0, 1].

    Returns
    -------
    ndarray of shape (height, width)
        In [0, 1]; float32 if ``image`` is, else float64. A grey picture is only scaled.
    """
    pixels = _check_image(image, "image")
    grey: Array = _grey(pixels)
    return grey.astype(np.float32) if pixels.dtype == np.float32 else grey


def random_patches(
    images: ArrayLike | Sequence[ArrayLike],
    patch_size: int | tuple[int, int],
    n: int,
    *,
    random_state: int | np.random.Generator | None = None,
    colour: bool | None = None,
    center: bool = True,
    normalize: bool = True,
    min_contrast: float = 0.0,
    dtype: DTypeLike = np.float32,
) -> Array:
    """Draw patches from pictures, every place of every picture being equally likely.

    A patch x becomes x - mean(x) and then x / norm(x). One that has no direction (it is constant,
    or with ``center=False`` zero) is dropped and another one drawn in its stead, and so is one
    with too little contrast.

    Parameters
    ----------
    images : array-like or sequence of array-like
        One picture or several, of any sizes: (height, width) or (height, width, 3). Unsigned
        integers are divided by the largest value of their type; floats are kept as they are.
    patch_size : int or (int, int)
        Height and width of a patch.
    n : int
        How many patches. Places are drawn independently: with many patches from a small picture
        some come twice.
    random_state : int, numpy.random.Generator or None
        Seed, or source of randomness.
    colour : bool, optional
        True keeps three channels, False takes the luminance; by default, whatever the pictures
        have (all the same).
    center : bool
        Subtract the mean over all pixels and channels of the patch.
    normalize : bool
        Divide by the norm.
    min_contrast : float
        The least root mean square by which the pixels of a patch differ from its mean colour. Sky
        and blurred backgrounds of photographs are below 0.03, and unit norm blows up their noise.
    dtype : dtype
        float32 or float64.

    Returns
    -------
    ndarray of shape (n, height * width) or (n, height * width * 3)
        One patch per row: its pixels row by row, the channels of a pixel side by side.
    """
    pictures = _check_images(images)
    height, width = _check_size(patch_size)
    n = check_integer("n", n)
    out_dtype = np.dtype(dtype)
    if out_dtype not in (np.float32, np.float64):
        message = f"dtype must be float32 or float64, got {out_dtype}"
        raise ValueError(message)
    min_contrast = check_number("min_contrast", min_contrast, low=0.0)
    keep_colour = _check_colour(pictures, colour)
    for i, picture in enumerate(pictures):
        if picture.shape[0] < height or picture.shape[1] < width:
            message = (
                f"patch_size {height} x {width} does not fit into image {i}, "
                f"which is {picture.shape[0]} x {picture.shape[1]}"
            )
            raise ValueError(message)

    rng = np.random.default_rng(random_state)
    columns = np.array([p.shape[1] - width + 1 for p in pictures])
    ends = np.cumsum([p.shape[0] - height + 1 for p in pictures] * columns)
    out = np.empty((n, height * width * (3 if keep_colour else 1)), dtype=out_dtype)
    todo = np.arange(n)
    draws, budget = 0, 100 * n + 10_000
    while todo.size:
        if draws > budget:
            what = "constant" if center else "zero"
            if min_contrast > 0.0:
                what += f" or of a contrast below {min_contrast:g}"
            message = (
                f"images must hold patches that are not {what}: "
                f"of {draws} drawn only {n - todo.size} were not, and n is {n}"
            )
            raise ValueError(message)
        places = rng.integers(ends[-1], size=todo.size)
        draws += todo.size
        owners = np.searchsorted(ends, places, side="right")
        flat = np.zeros(todo.size, dtype=bool)
        for i in np.unique(owners):
            mine = np.flatnonzero(owners == i)
            rows, cols = np.divmod(places[mine] - (ends[i - 1] if i else 0), columns[i])
            for start in range(0, mine.size, _CHUNK):
                part = slice(start, start + _CHUNK)
                values = _cut(pictures[i], rows[part], cols[part], (height, width), keep_colour)
                if not np.isfinite(values).all():
                    message = f"images must be finite, image {i} holds NaN or infinity"
                    raise ValueError(message)
                here = mine[part]
                flat[here] = _dull(values, keep_colour, min_contrast)
                flat[here] |= _prepare(values, center, normalize)
                out[todo[here]] = values
        todo = todo[flat]
    return out


def voc2006(folder: str | os.PathLike[str] | None = None) -> ImageSet:
    """Read the pictures of PASCAL VOC'06, which the paper's experiments take patches from.

    Parameters
    ----------
    folder : path, optional
        Holds ``natural/voc2006/*.png``. By default, what the environment variable ``SMALTO_DATA``
        names.

    Returns
    -------
    ImageSet
        In the order of their names.
    """
    if folder is None:
        folder = os.environ.get(DATA_VARIABLE)
        if not folder:
            message = (
                f"the environment variable {DATA_VARIABLE} is not set: it names the folder that "
                "holds natural/voc2006/*.png, pictures of the PASCAL VOC 2006 challenge"
            )
            raise FileNotFoundError(message)
    place = Path(folder) / "natural" / "voc2006"
    paths = sorted(place.glob("*.png"))
    if not paths:
        message = f"no pictures (*.png) in {place}"
        raise FileNotFoundError(message)
    return ImageSet(tuple(_read_rgb(p) for p in paths), tuple(p.stem for p in paths), "voc2006")


def natural_images() -> ImageSet:
    """Return natural pictures: those of VOC'06 if they are here, else some out of packages.

    Returns
    -------
    ImageSet
        `voc2006` when the environment variable ``SMALTO_DATA`` is set. Without it
        (``source="packaged"``) scikit-learn's two photographs and, where scikit-image is
        installed, the four colour photographs inside it.
    """
    if os.environ.get(DATA_VARIABLE):
        return voc2006()
    images = [sample_photo("china"), sample_photo("flower")]
    names = ["china", "flower"]
    for path in _skimage_photos():
        images.append(_read_rgb(path))
        names.append(path.stem)
    return ImageSet(tuple(images), tuple(names), "packaged")


def paper_setting(
    name: Literal["A", "B", "C"],
    n_train: int = 100_000,
    n_test: int = 25_000,
    *,
    random_state: int | np.random.Generator | None = 0,
    dtype: DTypeLike = np.float32,
    images: ImageSet | None = None,
) -> PaperSetting:
    """Return training and test patches for one of the paper's settings (Section 6.1).

    ======  ============  ====  =====
    name    patches       m     k
    ======  ============  ====  =====
    A       8 x 8, grey   64    256
    B       12 x 12 RGB   432   512
    C       16 x 16 grey  256   1024
    ======  ============  ====  =====

    Patches are centred and of unit norm, and lam is 1.2/sqrt(m). The paper has 10**6 patches to
    train on and 2.5 * 10**5 for the test.

    Parameters
    ----------
    name : {"A", "B", "C"}
        Which one.
    n_train, n_test : int
        How many patches of each kind. Every fifth picture, from the first on, is for the test.
    random_state : int, numpy.random.Generator or None
        Seed, or source of randomness. Which pictures are for the test does not depend on it.
    dtype : dtype
        float32 or float64.
    images : ImageSet, optional
        The pictures, at least two; by default `natural_images`.

    Returns
    -------
    PaperSetting
    """
    if name not in _SETTINGS:
        message = f'name must be "A", "B" or "C", got {name!r}'
        raise ValueError(message)
    if images is None:
        images = natural_images()
    if len(images) < 2:
        message = f"train and test take two pictures or more, got {len(images)}"
        raise ValueError(message)
    n_train, n_test = check_integer("n_train", n_train), check_integer("n_test", n_test)
    shape, n_atoms = _SETTINGS[name]
    rng = np.random.default_rng(random_state)
    groups = (
        ([picture for i, picture in enumerate(images.images) if i % 5], n_train),
        (list(images.images[::5]), n_test),
    )
    train, test = (
        random_patches(
            pictures,
            (shape[0], shape[1]),
            n,
            random_state=rng,
            colour=len(shape) == 3,
            dtype=dtype,
        )
        for pictures, n in groups
    )
    lam = 1.2 / math.sqrt(math.prod(shape))
    return PaperSetting(name, train, test, shape, n_atoms, lam, images.source)


def _scaled(pixels: Array) -> Array:
    """Pixels as float64, integers scaled to [0, 1]."""
    if pixels.dtype.kind == "u":
        return np.divide(pixels, float(np.iinfo(pixels.dtype).max))
    return pixels.astype(np.float64)


def _grey(pixels: Array) -> Array:
    """Luminance of pixels whose last axis is that of the channels, one or three; float64."""
    values = _scaled(pixels)
    return values[..., 0] if values.shape[-1] == 1 else np.matmul(values, _LUMA)


def _cut(
    picture: Array, rows: Array, cols: Array, size: tuple[int, int], colour: bool
) -> NDArray[np.float64]:
    """Patches with their upper left corners at ``rows`` and ``cols``, one per row; a copy."""
    windows = sliding_window_view(picture, size, axis=(0, 1))[rows, cols]
    patches = np.moveaxis(windows, 1, -1)  # channels last
    values = _scaled(patches) if colour else _grey(patches)
    return values.reshape(len(rows), -1)


def _dull(patches: Array, colour: bool, min_contrast: float) -> NDArray[np.bool_]:
    """Which rows have pixels that differ too little from their mean colour."""
    if min_contrast == 0.0:
        return np.zeros(len(patches), dtype=np.bool_)
    pixels = patches.reshape(len(patches), -1, 3 if colour else 1)
    dull: NDArray[np.bool_] = np.sqrt(pixels.var(axis=1).mean(axis=1)) < min_contrast
    return dull


def _prepare(patches: Array, center: bool, normalize: bool) -> NDArray[np.bool_]:
    """Centre and scale rows in place; tell which have no direction."""
    before = np.linalg.norm(patches, axis=1)
    if center:
        patches -= patches.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(patches, axis=1)
    flat: NDArray[np.bool_] = norms <= _FLAT * before if center else norms == 0.0
    if normalize:
        norms[flat] = 1.0
        patches /= norms[:, None]
    return flat


def _check_image(image: ArrayLike, what: str) -> Array:
    """Return the picture as (height, width, channels), not copied."""
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3) or not pixels.size:
        message = f"{what} must be (height, width) or (height, width, 3), got shape {pixels.shape}"
        raise ValueError(message)
    if pixels.dtype.kind not in "uf":
        message = f"{what} must hold unsigned integers or floats, got {pixels.dtype}"
        raise ValueError(message)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _check_images(images: ArrayLike | Sequence[ArrayLike]) -> list[Array]:
    if isinstance(images, np.ndarray) and images.ndim != 4:
        return [_check_image(images, "images")]
    if not isinstance(images, Sequence | np.ndarray) or len(images) == 0:
        message = f"images must be a picture or a sequence of pictures, got {images!r}"
        raise ValueError(message)
    return [_check_image(image, f"images[{i}]") for i, image in enumerate(images)]


def _check_colour(pictures: list[Array], colour: bool | None) -> bool:
    """Whether patches have three channels."""
    channels = [picture.shape[2] for picture in pictures]
    if colour is None and len(set(channels)) > 1:
        message = "some images are grey and some are RGB: say colour=True or colour=False"
        raise ValueError(message)
    if colour and 1 in channels:
        message = f"colour=True needs RGB pictures, but images[{channels.index(1)}] is grey"
        raise ValueError(message)
    return channels[0] == 3 if colour is None else colour


def _check_size(patch_size: int | tuple[int, int]) -> tuple[int, int]:
    sizes = np.atleast_1d(np.asarray(patch_size))
    if sizes.shape not in ((1,), (2,)) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        message = f"patch_size must be one integer >= 1, or two, got {patch_size!r}"
        raise ValueError(message)
    return int(sizes[0]), int(sizes[-1])


def _read_rgb(path: Path) -> Array:
    try:
        with Image.open(path) as picture:
            return np.array(picture.convert("RGB"))
    except UnidentifiedImageError as error:
        message = f"{path} is not a picture that can be read"
        raise ValueError(message) from error


def _skimage_photos() -> list[Path]:
    """Find the colour photographs in scikit-image's package without importing it."""
    spec = importlib.util.find_spec("skimage")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "data"
    return [folder / name for name in _SKIMAGE_PHOTOS if (folder / name).is_file()]
