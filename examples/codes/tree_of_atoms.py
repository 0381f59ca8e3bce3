"""
A tree of atoms
===============

Atoms can be arranged in a tree, such that an atom may be used only together with its parent. The
first atoms then become general, the later ones special: learning sorts them by itself
(Jenatton, Mairal, Obozinski and Bach, JMLR 2011).
"""

# %%
# The tree
# --------
#
# One root, four children, and three children of each of these. The parent of every atom is all
# that `TreeLasso` needs.

import matplotlib.pyplot as plt
import numpy as np

from smalto import encode, learn
from smalto.coders import TreeLasso
from smalto.datasets import random_patches, sample_photo

parents = [-1] + [0] * 4 + [1 + i // 3 for i in range(12)]
X = random_patches(sample_photo("china"), 10, 8000, as_gray=True, min_contrast=0.03, random_state=0)
result = learn(X, 17, TreeLasso(lam=0.12, parents=parents), max_epochs=8, random_state=0)
codes = encode(X, result.D, result.coder).toarray()

# %%
# No atom without its parent
# --------------------------

used = codes != 0
for child, parent in enumerate(parents[1:], 1):
    assert not np.any(used[:, child] & ~used[:, parent])
use = used.mean(axis=0)
print(f"the root is used by {use[0]:.0%} of the patches, its children by {use[1:5].round(2)},")
print(f"their children by {use[5:].mean():.0%} on average")
assert use[0] > use[1:5].mean() > use[5:].mean()

# %%

places = {0: (0.5, 0.84)}
places |= {1 + i: (0.125 + 0.25 * i, 0.5) for i in range(4)}
places |= {5 + i: ((i + 0.5) / 12, 0.16) for i in range(12)}
figure = plt.figure(figsize=(9, 5))
background = figure.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(0, 1))
background.set_axis_off()
for atom, (x, y) in places.items():
    if parents[atom] >= 0:
        background.plot(*zip((x, y), places[parents[atom]], strict=True), color="0.75", zorder=0)
    size = [0.26, 0.19, 0.125][round((0.84 - y) / 0.34)]
    ax = figure.add_axes((x - size * 5 / 18, y - size / 2, size * 5 / 9, size))
    ax.imshow(result.D[atom].reshape(10, 10))
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color="0.75")
    background.text(x, y - size / 2 - 0.045, f"{use[atom]:.0%}", ha="center", color="0.3",
                    bbox={"color": "w", "pad": 1})  # fmt: skip
plt.show()
