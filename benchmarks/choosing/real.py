"""Where the curve of `select` has its lowest point on real tables.

    SMALTO_DATA=folder python -m benchmarks.choosing.real faces
    SMALTO_DATA=folder python -m benchmarks.choosing.real genes

It says whether that is inside the grid. Faces are those of CBCL (every fourth one) for `NMF`, with
runs of neighboring pixels held out; genes those of Chin et al. 2006 (every twentieth one), one
sample per gene, for `DictionaryLearning`. The folder is described in `benchmarks/paper/data.py`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from smalto import NMF, DictionaryLearning, select
from smalto.choosing import Blocks


def faces():
    """Return the choice for pictures of faces."""
    folder = Path(os.environ["SMALTO_DATA"])
    X = np.load(folder / "cbcl_faces" / "cbcl_faces.npz")["train"][::4].reshape(-1, 361) / 255.0
    return select(
        X,
        [5, 10, 20, 40, 60, 80],
        estimator=NMF,
        held_out=Blocks(contiguous=True),
        refit=False,
        random_state=0,
    )


def genes():
    """Return the choice for expression of genes."""
    folder = Path(os.environ["SMALTO_DATA"])
    X = np.load(folder / "breast_chin2006" / "breastdata.npz")["rna_std"][::20]
    return select(
        X,
        [5, 10, 20, 40, 80],
        lam=[1.0, 0.5, 0.25, 0.1],
        estimator=DictionaryLearning,
        refit=False,
        random_state=0,
    )


if __name__ == "__main__":
    choice = {"faces": faces, "genes": genes}[sys.argv[1]]()
    print(choice)
    sizes = [row["n_atoms"] for row in choice.rows]
    lowest = choice.rows[choice.lowest]["n_atoms"]
    print(f"lowest at {lowest} atoms: inside the grid: {min(sizes) < lowest < max(sizes)}")
