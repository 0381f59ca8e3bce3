"""
Brick, grass or gravel?
=======================

A dictionary is a good description of what it was learned from, and a bad one of everything else.
That makes a classifier: learn one dictionary for each texture, and give a patch to the one that
codes it best.
"""

# %%
# One dictionary per texture
# --------------------------
#
# Learned from the upper halves of three photographs. All patches are centered and of norm 1, so
# brightness and contrast do not help.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from skimage import data

from smalto import encode, learn
from smalto.coders import OMP
from smalto.image import PatchSource
from smalto.plot import mosaic

SIDE = 16
textures = {"brick": data.brick(), "grass": data.grass(), "gravel": data.gravel()}
coder = OMP(max_nonzeros=4)
dictionaries = {
    name: learn(PatchSource(photo[:256], SIDE), 64, coder, max_steps=40, random_state=0).D
    for name, photo in textures.items()
}

# %%
# Whose patch is it?
# ------------------
#
# The test picture is cut together from the lower halves. A single patch says little, so the errors
# are averaged over a neighborhood.

rows, columns = np.mgrid[:256, :384]
region = (columns + 30 * np.sin(rows / 30) > 128).astype(int)
region += columns + 30 * np.sin(rows / 30 + 2) > 256
lower = np.array([photo[256:, 64:448] for photo in textures.values()])
puzzle = np.take_along_axis(lower, region[None], axis=0)[0]

patches = PatchSource(puzzle, SIDE, skip_constant=False)
X = patches.rows(np.arange(patches.n_rows))
errors = []
for D in dictionaries.values():
    error = np.sum((X - encode(X, D, coder) @ D) ** 2, axis=1)
    errors.append(gaussian_filter(error.reshape(256 - SIDE + 1, -1), 12))
found = np.argmin(errors, axis=0)
true = region[SIDE // 2 :, SIDE // 2 :][: found.shape[0], : found.shape[1]]
right = np.mean(found == true)
print(f"{right:.0%} of the pixels are given to the right texture")
assert right > 0.8

# %%

figure, axes = plt.subplots(2, 3, figsize=(9, 4.7), layout="constrained")
for ax, (name, D) in zip(axes[0], dictionaries.items(), strict=True):
    ax.imshow(mosaic(D[:24], zoom=2))
    ax.set_title(f"atoms of {name}")
colors = np.array([[200, 69, 47], [122, 154, 58], [59, 74, 143]])
for ax, picture, title in zip(
    axes[1],
    [puzzle, colors[found], colors[true]],
    ["a picture of all three", f"found, {right:.0%} right", "truth"],
    strict=True,
):
    ax.imshow(picture)
    ax.set_title(title)
for ax in axes.flat:
    ax.set_axis_off()
plt.show()
