"""
Something is wrong with this wall
=================================

Nobody can collect examples of everything that may go wrong. But it is easy to collect examples of
what is right, and to learn a dictionary from them. What cannot be coded well over it is unusual.
"""

# %%
# Learn what is usual
# -------------------
#
# A dictionary of a brick wall, from its left part.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data
from skimage.draw import ellipse, line

from smalto import encode, learn
from smalto.coders import OMP
from smalto.image import PatchSource, reconstruct

SIDE = 12
wall = data.brick() / 255
options = {"center": True, "normalize": False, "skip_constant": False}
usual = PatchSource(wall[:, :256], SIDE, **options)
coder = OMP(max_nonzeros=3)
D = learn(usual, 100, coder, max_steps=60, random_state=0).D

# %%
# Look at what is new
# -------------------
#
# The right part gets a scratch, a repaired spot and a weed.

test = wall[150:350, 256:].copy()
defects = np.zeros(test.shape, bool)
for shift in range(3):
    defects[line(30, 20 + shift, 110, 70 + shift)] = True
test[defects] += 0.25
spot, weed = ellipse(150, 90, 16, 24), ellipse(60, 190, 22, 14)
test[spot] = data.gravel()[:200, :256][spot] / 255 * 0.6 + 0.25
test[weed] = data.grass()[:200, :256][weed] / 255 * 0.6 + 0.25
defects[spot] = defects[weed] = True

patches = PatchSource(test, SIDE, **options)
X = patches.rows(np.arange(patches.n_rows))
errors = np.sum((X - encode(X, D, coder) @ D) ** 2, axis=1)
surprise = reconstruct(np.repeat(errors[:, None], SIDE**2, axis=1), test.shape, SIDE)

# %%
# The limit comes from the usual part alone: a thousandth of its patches is above it. Patches beside
# the damage contain some of it, so there is some alarm around it.

Y = usual.rows(np.arange(0, usual.n_rows, 20))
limit = np.quantile(np.sum((Y - encode(Y, D, coder) @ D) ** 2, axis=1), 0.999)
alarm = surprise > limit
print(
    f"alarm at {alarm[defects].mean():.0%} of the damage, {alarm[~defects].mean():.1%} of the rest"
)
assert alarm[defects].mean() > 0.5
assert alarm[~defects].mean() < 0.05

figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
axes[0].imshow(test)
axes[0].set_title("a wall")
axes[1].imshow(surprise, cmap="magma")
axes[1].set_title("error of the codes")
axes[2].imshow(test)
axes[2].contourf(alarm, [0.5, 1], colors=["C2"], alpha=0.5)
axes[2].set_title("alarm")
for ax in axes:
    ax.set_axis_off()
plt.show()
