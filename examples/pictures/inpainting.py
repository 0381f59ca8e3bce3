"""
Seven of ten pixels are missing
===============================

Similar patches of a picture have their gaps at different places: what is missing in one of them is
known in others. So a picture can be restored from a fraction of its pixels.
"""

# %%
# A picture with holes
# --------------------

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import griddata

from smalto.datasets import sample_photo
from smalto.image import inpaint

photo = sample_photo("china")[60:220, 200:420]
rng = np.random.default_rng(0)
missing = rng.random(photo.shape[:2]) < 0.7
damaged = photo.copy()
damaged[missing] = 0
print(f"{missing.mean():.0%} of the pixels are missing")

# %%
# Fill them in
# ------------
#
# The picture is first filled smoothly. Then, in a few rounds, groups of similar patches are formed, and
# the gaps of each patch are filled from what is known of it, as a combination of the patches of its
# group. Known pixels never change.

filled = inpaint(damaged, missing, channel_axis=-1)
assert np.array_equal(filled[~missing], photo[~missing])

# %%
# ``effort=0`` does without groups: what is known of a patch determines which of the atoms of a
# dictionary it is made of, and these say what belongs into the gaps. There is no undamaged patch to
# learn from. So the picture is first filled with smooth waves, then atoms are learned from the filled
# picture, and it is filled again with these.

coded = inpaint(
    damaged, missing, channel_axis=-1, effort=0, patch_size=8, n_atoms=128, max_steps=100,
    n_rounds=2, random_state=0,
)  # fmt: skip

# %%
# Is that better than drawing straight lines between the known pixels?

known, gaps = np.argwhere(~missing), np.argwhere(missing)
lines = photo.astype(float)
lines[missing] = griddata(known, photo[~missing], gaps, fill_value=128)


def decibels(picture):
    """The peak signal-to-noise ratio of the missing pixels."""
    error = np.mean((picture[missing].astype(float) - photo[missing]) ** 2.0)
    return 10 * np.log10(255**2 / error)


print(f"groups: {decibels(filled):.1f} dB, codes: {decibels(coded):.1f} dB, ", end="")
print(f"linear interpolation: {decibels(lines):.1f} dB")
assert decibels(filled) > decibels(coded) > decibels(lines) + 1

figure, axes = plt.subplots(2, 2, figsize=(9, 6.8), layout="constrained")
titles = {
    "what is known": damaged,
    f"groups, {decibels(filled):.1f} dB": filled,
    f"codes, {decibels(coded):.1f} dB": coded,
    "original": photo,
}
for ax, (title, picture) in zip(axes.flat, titles.items(), strict=True):
    ax.imshow(picture.astype(np.uint8))
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
