"""Pictures and patches to learn from, and the three natural-image settings of the paper.

Pictures come with scikit-learn and scikit-image, or from the folder named by the environment
variable ``SMALTO_DATA``. Nothing is ever downloaded.
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
from numpy.typing import ArrayLike, DTypeLike

from smalto.checks import Array, check_finite_number, check_integer
from smalto.image import PatchSource, luminance, read_picture
from smalto.image.checks import check_dtype, check_patch_size

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
"""The environment variable with the folder of the data sets."""

_PHOTOS = ("flower", "china")
_SKIMAGE_PHOTOS = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg")


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Pictures with their names and origin.

    Attributes
    ----------
    images : tuple of ndarray
        RGB pictures (height, width, 3), uint8.
    names : tuple of str
        The name of each picture.
    source : str
        ``"voc2006"`` for PASCAL VOC'06, ``"packaged"`` for pictures from installed packages.

    See Also
    --------
    natural_images : Returns one.
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
        Centered patches of unit norm, from different pictures.
    patch_shape : tuple of int
        ``(8, 8)``, ``(12, 12, 3)`` or ``(16, 16)``.
    n_atoms : int
        The paper's k: 256, 512 or 1024.
    lam : float
        The paper's penalty, 1.2/sqrt(m).
    source : str
        Origin of the pictures, as in `ImageSet`.

    See Also
    --------
    paper_setting : Returns one.
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
        The RGB picture, writable.

    See Also
    --------
    natural_images : Several pictures.
    """
    if name not in _PHOTOS:
        message = f'name must be "flower" or "china", got {name!r}'
        raise ValueError(message)
    from sklearn.datasets import load_sample_image

    return np.array(load_sample_image(f"{name}.jpg"), dtype=np.uint8)


def random_patches(
    images: ArrayLike | Sequence[ArrayLike],
    patch_size: int | tuple[int, int],
    n: int,
    *,
    random_state: int | np.random.Generator | None = None,
    as_gray: bool = False,
    center: bool = True,
    normalize: bool = True,
    min_contrast: float = 0.0,
    dtype: DTypeLike = np.float32,
) -> Array:
    """Draw patches uniformly from all positions in pictures.

    A patch x is centered to ``x - mean(x)`` and scaled to ``x / norm(x)``. Constant patches (zero
    ones with ``center=False``) and those of too little contrast are replaced by other draws.

    Parameters
    ----------
    images : array-like or sequence of array-like
        One or several pictures of any size: (height, width) or (height, width, 3). Unsigned
        integers are divided by the largest value of their type; floats are used as they are.
    patch_size : int or (int, int)
        Height and width of a patch.
    n : int
        Number of patches. Draws are independent, so a patch may be drawn twice.
    random_state : int, numpy.random.Generator or None, default None
        Seed or random number generator.
    as_gray : bool, default False
        Convert color pictures to their luminance. By default pictures keep their channels, and all
        of them must be gray or all RGB.
    center : bool, default True
        Subtract the mean over all pixels and channels of the patch.
    normalize : bool, default True
        Divide by the norm.
    min_contrast : float, default 0
        The smallest root mean square difference of the pixels of a patch from its mean color. Sky
        and blurred backgrounds of photographs are below 0.03; normalization amplifies their noise.
    dtype : dtype, default float32
        float32 or float64.

    Returns
    -------
    ndarray of shape (n, height * width) or (n, height * width * 3)
        One patch per row: its pixels row by row, the channels of a pixel side by side.

    See Also
    --------
    smalto.image.PatchSource : All patches, cut out on demand.
    """
    size = check_patch_size(patch_size)
    n = check_integer("n", n)
    out_dtype = check_dtype(dtype)
    min_contrast = check_finite_number("min_contrast", min_contrast, low=0.0)
    source = PatchSource(
        images,
        size,
        as_gray=as_gray,
        center=center,
        normalize=normalize,
        skip_constant=False,
        dtype=out_dtype,
    )
    rng = np.random.default_rng(random_state)
    numbers = np.empty(n, dtype=np.int64)
    todo = np.arange(n)
    draws, budget = 0, 100 * n + 10_000
    while todo.size:
        if draws > budget:
            what = "constant" if center else "zero"
            if min_contrast > 0.0:
                what += f" or of a contrast below {min_contrast:g}"
            message = (
                f"images must have patches that are not {what}: "
                f"only {n - todo.size} of {draws} draws were usable, and n is {n}"
            )
            raise ValueError(message)
        numbers[todo] = rng.integers(source.n_rows, size=todo.size)
        draws += todo.size
        todo = todo[source.is_dull(numbers[todo], min_contrast)]
    return source.rows(numbers)


def voc2006(folder: str | os.PathLike[str] | None = None) -> ImageSet:
    """Read the pictures of PASCAL VOC'06, from which the paper's experiments draw patches.

    Parameters
    ----------
    folder : path, optional
        A folder with ``natural/voc2006/*.png``. By default the value of the environment variable
        ``SMALTO_DATA``.

    Returns
    -------
    ImageSet
        Sorted by name.

    See Also
    --------
    natural_images : Works without these data, too.
    """
    if folder is None:
        folder = os.environ.get(DATA_VARIABLE)
        if not folder:
            message = (
                f"the environment variable {DATA_VARIABLE} is not set: set it to the folder with "
                "natural/voc2006/*.png, pictures of the PASCAL VOC 2006 challenge"
            )
            raise FileNotFoundError(message)
    place = Path(folder) / "natural" / "voc2006"
    paths = sorted(place.glob("*.png"))
    if not paths:
        message = f"no pictures (*.png) in {place}"
        raise FileNotFoundError(message)
    return ImageSet(tuple(_rgb(p) for p in paths), tuple(p.stem for p in paths), "voc2006")


def natural_images() -> ImageSet:
    """Return natural pictures: those of VOC'06 if available, else some from installed packages.

    Returns
    -------
    ImageSet
        `voc2006` if the environment variable ``SMALTO_DATA`` is set. Otherwise
        (``source="packaged"``) scikit-learn's two photographs and, if scikit-image is installed,
        its four color photographs.

    See Also
    --------
    random_patches : Draws patches from them.
    """
    if os.environ.get(DATA_VARIABLE):
        return voc2006()
    images = [sample_photo("china"), sample_photo("flower")]
    names = ["china", "flower"]
    for path in _skimage_photos():
        images.append(_rgb(path))
        names.append(path.stem)
    return ImageSet(tuple(images), tuple(names), "packaged")


def paper_setting(
    name: Literal["A", "B", "C"],
    n_train: int = 100_000,
    n_test: int = 25_000,
    *,
    random_state: int | np.random.Generator | None = None,
    dtype: DTypeLike = np.float32,
    images: ImageSet | None = None,
) -> PaperSetting:
    """Return training and test patches for one of the paper's settings (Section 6.1).

    ======  ============  ====  =====
    name    patches       m     k
    ======  ============  ====  =====
    A       8 x 8 gray    64    256
    B       12 x 12 RGB   432   512
    C       16 x 16 gray  256   1024
    ======  ============  ====  =====

    Patches are centered and of unit norm, and lam is 1.2/sqrt(m). The paper uses 10**6 patches for
    training and 2.5 * 10**5 for the test.

    Parameters
    ----------
    name : {"A", "B", "C"}
        The setting.
    n_train, n_test : int
        Number of patches for training and for the test. Every fifth picture, starting with the
        first, is for the test.
    random_state : int, numpy.random.Generator or None, default None
        Seed or random number generator. It does not affect which pictures are for the test.
    dtype : dtype, default float32
        float32 or float64.
    images : ImageSet, optional
        At least two RGB pictures; by default `natural_images`.

    Returns
    -------
    PaperSetting

    See Also
    --------
    smalto.datasets.PaperSetting : What it returns.
    """
    if name not in _SETTINGS:
        message = f'name must be "A", "B" or "C", got {name!r}'
        raise ValueError(message)
    if images is None:
        images = natural_images()
    if len(images) < 2:
        message = f"images must have at least two pictures, one for the test, got {len(images)}"
        raise ValueError(message)
    n_train, n_test = check_integer("n_train", n_train), check_integer("n_test", n_test)
    shape, n_atoms = _SETTINGS[name]
    rng = np.random.default_rng(random_state)
    if len(shape) == 3:
        _check_rgb(images)

    def draw(pictures: Sequence[Array], n: int) -> Array:
        return random_patches(
            pictures,
            (shape[0], shape[1]),
            n,
            random_state=rng,
            as_gray=len(shape) == 2,
            dtype=dtype,
        )

    train = draw([picture for i, picture in enumerate(images.images) if i % 5], n_train)
    test = draw(images.images[::5], n_test)
    lam = 1.2 / math.sqrt(math.prod(shape))
    return PaperSetting(name, train, test, shape, n_atoms, lam, images.source)


def _check_rgb(images: ImageSet) -> None:
    for number, picture in enumerate(images.images):
        if np.ndim(picture) != 3:
            message = f"setting B needs RGB pictures, but images.images[{number}] is gray"
            raise ValueError(message)


def _rgb(path: Path) -> Array:
    """Read a picture; repeat the channel of a gray one."""
    pixels = read_picture(path)
    return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)


def _skimage_photos() -> list[Path]:
    """Find the color photographs of scikit-image without importing it."""
    spec = importlib.util.find_spec("skimage")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "data"
    return [folder / name for name in _SKIMAGE_PHOTOS if (folder / name).is_file()]
