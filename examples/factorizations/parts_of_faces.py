"""
Parts of faces
==============

Non-negative matrix factorization writes every face as a sum of parts. Parts can only be added,
never subtracted, so they cannot cancel each other, and many of them become local: an eye, a
forehead, the shadow beside a nose (Lee and Seung 1999; Section 6.2 of Mairal, Bach, Ponce and
Sapiro, JMLR 2010).
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import lfw_subset

from smalto import NMF
from smalto.plot import dictionary_mosaic

faces = lfw_subset()[:100]  # 25 x 25 pixels
X = faces.reshape(100, -1)
X /= np.linalg.norm(X, axis=1, keepdims=True)

# %%
# With a penalty on the codes (``lam > 0``) a face uses fewer parts, and these look more like whole
# faces.

models = {
    "parts": NMF(49, random_state=0),
    "few parts per face (lam = 0.05)": NMF(49, lam=0.05, random_state=0),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    codes = model.fit_transform(X)
    error = model.reconstruction_err_**2 / np.vdot(X, X)
    used = np.count_nonzero(codes) / len(X)
    print(
        f"{name}: {error:.1%} of the faces left over, {used:.0f} of 49 parts per face, "
        f"{np.mean(model.components_ > 0):.0%} of the pixels per part"
    )
    dictionary_mosaic(model.components_, (25, 25), ax=ax)
    ax.set_title(name)
plt.show()

# %%
# A face and its parts
# --------------------
#
# The parts of one face, the largest first, each as bright as it is used.

model = models["parts"]
code = model.transform(X[7:8])[0]
largest = np.argsort(-code)[:6]
tiles = {"face": X[7], "sum of all parts": code @ model.components_}
tiles |= {f"part {j}": code[j] * model.components_[j] for j in largest}
figure, axes = plt.subplots(2, 4, figsize=(9, 4.8), layout="constrained")
for ax, (name, tile) in zip(axes.flat, tiles.items(), strict=True):
    ax.imshow(tile.reshape(25, 25), vmin=0, vmax=X[7].max() / (1 if "part " not in name else 2))
    ax.set_title(name)
    ax.set_axis_off()
plt.show()
