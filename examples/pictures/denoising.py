"""
Removing noise
==============

A patch of a picture is a combination of a few atoms, noise is not. So code every patch only as
exactly as the noise allows: the picture stays, the noise is left over.
"""

# %%
# A noisy picture
# ---------------

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

from smalto.image import denoise, estimate_noise

clean = data.camera()[60:300, 100:340] / 255
rng = np.random.default_rng(0)
noisy = clean + rng.normal(0, 0.1, clean.shape)
print(f"the noise is estimated as {estimate_noise(noisy):.3f}, and is {0.1:.3f}")

# %%
# One call
# --------
#
# The strength of the noise is estimated. ``effort`` is quality against time: with 0, patches are
# coded one by one over atoms that suit most photographs. By default the atoms are adapted to the
# picture, and similar patches are coded together.

quick = denoise(noisy, effort=0)
restored = denoise(noisy, random_state=0)


def decibels(picture):
    """The peak signal-to-noise ratio: 10 more means a tenth of the squared error."""
    return -10 * np.log10(np.mean((picture - clean) ** 2))


pictures = {"noisy": noisy, "effort=0": quick, "denoised": restored}
for name, picture in pictures.items():
    print(f"{name}: {decibels(picture):.1f} dB")
assert decibels(restored) > decibels(quick) > decibels(noisy) + 8

figure, axes = plt.subplots(1, 2, figsize=(9, 4.7), layout="constrained")
for ax, (name, picture) in zip(axes, [("noisy", noisy), ("denoised", restored)], strict=True):
    ax.imshow(picture, vmin=0, vmax=1)
    ax.set_title(f"{name}, {decibels(picture):.1f} dB")
    ax.set_axis_off()
plt.show()

# %%
# What was removed
# ----------------
#
# The difference of the two pictures should be noise and nothing else: no edges, no shapes.

removed = noisy - restored
print(f"standard deviation of what was removed: {removed.std():.3f}")
assert abs(removed.std() - 0.1) < 0.01

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
detail = (slice(20, 110), slice(70, 160))
for ax, picture, name in zip(
    axes,
    [clean, restored, removed + 0.5],
    ["original", "denoised", "what was removed"],
    strict=True,
):
    ax.imshow(picture[detail], vmin=0, vmax=1)
    ax.set_title(name)
    ax.set_axis_off()
plt.show()
