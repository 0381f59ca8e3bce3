"""
Parts of faces
==============

Parts of faces, found by non-negative matrix factorization.

With non-negative codes and atoms, parts of a face add up and never cancel, so that atoms become
local (Lee and Seung 1999; Section 6.2 of Mairal, Bach, Ponce and Sapiro, JMLR 2010). With a penalty
on the codes each face uses fewer parts, and these look more like whole faces.

The faces are those of CBCL if they are in the folder SMALTO_DATA, otherwise a hundred small ones
from scikit-image.

Run it with ``python examples/parts_of_faces.py [picture.png]``.
"""

import os
import sys
from pathlib import Path

import numpy as np

from smalto import NMF
from smalto.plot import dictionary_mosaic

path = Path(os.environ.get("SMALTO_DATA", "")) / "cbcl_faces" / "cbcl_faces.npz"
if path.is_file():
    faces = np.load(path)["train"]
else:
    from skimage.data import lfw_subset

    faces = lfw_subset()[:100]
shape = faces.shape[1:]
X = faces.reshape(len(faces), -1).astype(np.float32)
X /= np.linalg.norm(X, axis=1, keepdims=True)
k = 49

models = {
    "parts": NMF(k, random_state=0),
    "few parts per face (lam = 0.05)": NMF(k, lam=0.05, random_state=0),
}
for name, model in models.items():
    codes = model.fit_transform(X)
    error = model.reconstruction_err_**2 / np.vdot(X, X)
    used = np.count_nonzero(codes) / len(X)
    print(
        f"{name}: {error:.2%} of the faces left over, {used:.0f} of {k} parts per face, "
        f"{np.mean(model.components_ > 0):.0%} of the pixels per part"
    )

if len(sys.argv) > 1:
    axes = dictionary_mosaic(models["parts"].components_, shape)
    axes.figure.savefig(sys.argv[1])
