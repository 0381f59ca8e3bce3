"""The paper's data sets, where to get them, and what replaces those that are missing.

Data sets A to F of Section 6, the genomic data and the large photograph, in the folder given by
``--data`` or by the environment variable ``SMALTO_DATA``. A missing data set is reported and
replaced by data of the installed packages, or by simulated data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.genomes import PLACE, Genomes, made_up, read
from benchmarks.peers.common import Array
from smalto.datasets import ImageSet, random_patches, sample_photo, voc2006

PLACES = {
    "voc2006": (
        "natural/voc2006/*.png",
        "38 MB, 100 of the 5 304 pictures of the PASCAL VOC 2006 challenge",
        "scikit-learn's two photographs",
    ),
    "cbcl": (
        "cbcl_faces/cbcl_faces.npz",
        "1 MB, the 2 429 faces of 19 x 19 of MIT-CBCL Face Database #1 as array 'train'",
        "scikit-learn's 1 797 digits of 8 x 8",
    ),
    "yale": (
        "yale_b/yaleb_cropped_192x168.npz",
        "52 MB, the 2 414 cropped faces of 192 x 168 of Extended Yale B as array 'images'",
        "scikit-learn's digits, enlarged to 24 x 21",
    ),
    "breast": (
        PLACE,
        "8 MB, Chin et al. 2006 as in the R package PMA (breastdata): arrays rna_std, dna, chrom",
        "made-up pairs of expression and copy number",
    ),
    "photo": (
        "big_photo/dragonfly_4224x3168.jpg",
        "1.5 MB, 13 megapixels, in Debian's lomiri-wallpapers-16.04",
        "scikit-learn's flower",
    ),
}


@dataclass(eq=False)
class Data:
    """The data sets in a folder; ``missing`` describes those that were requested but not found."""

    folder: Path | None
    missing: list[str] = field(default_factory=list)

    def fingerprint(self) -> str:
        """A string that tells folders apart by the data sets they contain."""
        return ",".join(name for name in PLACES if self._find(name) is not None)

    @cached_property
    def pictures(self) -> ImageSet:
        """Return natural pictures, for data sets A, B, C and F."""
        if self._known("voc2006") is not None:
            return voc2006(self.folder)
        photos = (sample_photo("china"), sample_photo("flower"))
        return ImageSet(photos, ("china", "flower"), "packaged")

    def vectors(self, name: str, n: int, *, center: bool) -> tuple[Array, tuple[int, int], str]:
        """Return data set D, E or F: rows of unit norm, the shape of a row, and its origin.

        There are at most n rows, each centered by its own mean if ``center``.
        """
        if name == "F":
            X = random_patches(
                self.pictures.images, 16, n, random_state=0, as_gray=True, center=center
            )
            return X, (16, 16), f"{len(self.pictures)} {self.pictures.source} pictures"
        images, source = self._faces(name)
        chosen = np.sort(np.random.default_rng(0).permutation(len(images))[:n])
        shape = (images.shape[1], images.shape[2])
        X = images[chosen].reshape(len(chosen), -1).astype(np.float32)
        if center:
            X -= X.mean(axis=1, keepdims=True)
        norms = np.linalg.norm(X, axis=1)
        if not norms.all():  # a constant picture is zero after centering
            X, norms = X[norms > 0], norms[norms > 0]
        X /= norms[:, None]
        return X, shape, source

    def _faces(self, name: str) -> tuple[Array, str]:
        kind, key = {"D": ("cbcl", "train"), "E": ("yale", "images")}[name]
        place = self._known(kind)
        if place is not None:
            with np.load(place) as file:
                return file[key], {"D": "MIT-CBCL faces", "E": "Extended Yale B faces"}[name]
        from sklearn.datasets import load_digits

        digits = load_digits().images
        if name == "E":
            return digits.repeat(3, axis=1).repeat(3, axis=2)[:, :, :21], "digits, enlarged"
        return digits, "digits"

    def genomes(self) -> Genomes:
        """Return expression and copy number of the same tumors."""
        place = self._known("breast")
        return made_up(300, 3) if place is None else read(place)

    def photo(self) -> tuple[Array, str]:
        """Return the photograph to write on, uint8 RGB."""
        place = self._known("photo")
        if place is None:
            return sample_photo("flower"), "flower"
        with Image.open(place) as image:
            return np.asarray(image.convert("RGB")), place.stem

    def _find(self, name: str) -> Path | None:
        if self.folder is None:
            return None
        return next(iter(sorted(self.folder.glob(PLACES[name][0]))), None)

    def _known(self, name: str) -> Path | None:
        """Return the path of a data set; if it is missing, note that and return None.

        Without a data folder nothing is printed about missing data sets.
        """
        found = self._find(name)
        pattern, what, instead = PLACES[name]
        line = f"{pattern} ({what}); {instead} in its stead"
        if found is None and line not in self.missing:
            self.missing.append(line)
            where = f"in {self.folder}" if self.folder else "(no --data, and no SMALTO_DATA)"
            print(f"missing {where}: {line}")
        return found
