"""
Atoms of photographs
====================

What are photographs made of? Let us cut small patches out of some of them, and look for a
dictionary over which every patch is a combination of a few atoms.
"""

# %%
# The patches
# -----------
#
# :class:`~smalto.image.PatchSource` stands for all patches of all pictures, and cuts them out only
# when they are drawn. Patches are centered and scaled to norm 1. Those with little contrast, such
# as sky, are left out.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

from smalto import encode, learn
from smalto.coders import Lasso
from smalto.datasets import sample_photo
from smalto.image import PatchSource
from smalto.plot import dictionary_mosaic

photos = [sample_photo("china"), sample_photo("flower"), data.coffee(), data.chelsea()]
patches = PatchSource(photos, 12, min_contrast=0.03)
print(f"{patches.n_rows} patches of 12 x 12 pixels in {len(photos)} photographs")

# %%
# The atoms
# ---------
#
# The online algorithm needs only some of the patches to find good atoms: edges and stripes in all
# directions, and the colors of the photographs. The atoms that are used most come first.

result = learn(patches, 150, Lasso(lam=0.08), max_steps=120, random_state=0)
print(f"{result.state.samples} of them were looked at")

figure, axes = plt.subplots(figsize=(9, 6.1), layout="constrained")
codes = encode(patches.rows(np.arange(0, patches.n_rows, 97)), result.D, result.coder)
by_use = np.argsort(-np.bincount(codes.indices, minlength=150))
dictionary_mosaic(result.D, (12, 12, 3), order=by_use, ax=axes)
plt.show()

# %%
# A patch from a few atoms
# ------------------------
#
# Now a patch is a short list: the numbers of some atoms, and how much of each.

print(f"{codes.nnz / codes.shape[0]:.1f} of 150 atoms per patch")

X = patches.rows(np.array([60_000, 190_000, 330_000, 450_000]))
codes = encode(X, result.D, result.coder)
figure, rows = plt.subplots(4, 7, figsize=(9, 5), layout="constrained")
for row, x, code in zip(rows, X, codes.toarray(), strict=True):
    largest = np.argsort(-abs(code))[:5]
    tiles = [x, code @ result.D, *(np.sign(code[j]) * result.D[j] for j in largest)]
    titles = ["patch", "its code", *(f"{abs(code[j]):.2f} ×" for j in largest)]
    for axes, tile, title in zip(row, tiles, titles, strict=True):
        span = abs(tile).max()
        axes.imshow((tile.reshape(12, 12, 3) / span + 1) / 2)
        axes.set_title(title, fontsize=9)
        axes.set_axis_off()
plt.show()
