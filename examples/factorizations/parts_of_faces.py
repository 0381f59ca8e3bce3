"""
Parts of faces
==============

Non-negative matrix factorization writes every face as a sum of parts. Parts can only be added,
never subtracted, so they cannot cancel each other (Lee and Seung 1999; Section 6.2 of Mairal,
Bach, Ponce and Sapiro, JMLR 2010). On few faces its parts are still large. A constraint makes them
smaller.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import lfw_subset

from smalto import NMF
from smalto.constraints import ElasticNetBall
from smalto.plot import dictionary_mosaic

X = lfw_subset()[:100].reshape(100, -1)  # faces of 25 x 25 pixels
X /= np.linalg.norm(X, axis=1, keepdims=True)

# %%
# Large parts and small parts
# ---------------------------
#
# The elastic net ball prefers atoms with many zeros: a forehead, a row of eyes, a bright corner.
# The small penalty ``lam`` gives the ball its effect; without it, atoms could shrink and codes grow
# at no cost. Faces are approximated a little less well.

small = ElasticNetBall(gamma=4.0, positive=True)
models = {
    "non-negative parts": NMF(25, random_state=0),
    "non-negative and sparse parts": NMF(25, lam=0.001, constraint=small, random_state=0),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X)
    error = model.reconstruction_err_**2 / np.vdot(X, X)
    lit = np.mean(model.components_ > 0)
    print(f"{name}: {lit:.0%} of the pixels per part, {error:.1%} of the faces left over")
    dictionary_mosaic(model.components_, (25, 25), ax=ax)
    ax.set_title(name)
assert lit < 0.45
plt.show()

# %%
# A face, part by part
# --------------------
#
# The sum grows from left to right, the largest parts first.

code = model.transform(X[7:8])[0]
order = np.argsort(-code * model.components_.sum(axis=1))
figure, axes = plt.subplots(1, 6, figsize=(9, 2), layout="constrained")
for ax, count in zip(axes, [1, 2, 4, 8, 25], strict=False):
    some = order[:count]
    ax.imshow((code[some] @ model.components_[some]).reshape(25, 25), vmin=0, vmax=X[7].max())
    ax.set_title(f"{count} part{'s' * (count > 1)}")
axes[-1].imshow(X[7].reshape(25, 25), vmin=0, vmax=X[7].max())
axes[-1].set_title("the face")
for ax in axes:
    ax.set_axis_off()
plt.show()
