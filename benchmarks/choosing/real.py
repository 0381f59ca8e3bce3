"""Where the curve of `select` has its lowest point on real tables.

    SMALTO_DATA=folder python -m benchmarks.choosing.real faces
    SMALTO_DATA=folder python -m benchmarks.choosing.real bands
    SMALTO_DATA=folder python -m benchmarks.choosing.real genes

It says whether that is inside the grid: 2, 4, 8 and so on, up to half the number of features, as by
default, and for ``faces`` 64 up to that number, in three rounds. Faces are those of CBCL (every fourth one) for `NMF`,
with random pixels held out, as by default, or bands of neighboring pixels; genes those of Chin et
al. 2006 (every twentieth one), one sample per gene, for `DictionaryLearning`, with its default λ
times 4, 2, 1, 1/2 and 1/4. The folder is described in `benchmarks/paper/data.py`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from smalto import NMF, select
from smalto.choosing import Blocks


def _faces():
    folder = Path(os.environ["SMALTO_DATA"])
    return np.load(folder / "cbcl_faces" / "cbcl_faces.npz")["train"][::4].reshape(-1, 361) / 255.0


def faces():
    """Return the choice for pictures of faces, with random pixels held out."""
    numbers, held_out = [64, 128, 181, 256, 361], Blocks(n_row_folds=3)
    return select(_faces(), numbers, estimator=NMF, held_out=held_out, refit=False, random_state=0)


def bands():
    """Return the choice for pictures of faces, with bands of neighboring pixels held out."""
    held_out = Blocks(contiguous=True)
    return select(_faces(), estimator=NMF, held_out=held_out, refit=False, random_state=0)


def genes():
    """Return the choice for expression of genes."""
    folder = Path(os.environ["SMALTO_DATA"])
    X = np.load(folder / "breast_chin2006" / "breastdata.npz")["rna_std"][::20]
    lam = 1.2 * float(np.sqrt(np.mean(X**2)))  # the default
    lams = [round(lam * factor, 3) for factor in (4, 2, 1, 0.5, 0.25)]
    return select(X, lam=lams, refit=False, random_state=0)


if __name__ == "__main__":
    choice = {"faces": faces, "bands": bands, "genes": genes}[sys.argv[1]]()
    print(choice)
    sizes = [row["n_atoms"] for row in choice.rows]
    lowest = choice.rows[choice.lowest]["n_atoms"]
    print(f"lowest at {lowest} atoms: inside the grid: {min(sizes) < lowest < max(sizes)}")
