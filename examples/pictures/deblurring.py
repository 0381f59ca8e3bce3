"""
A sharp picture from a blurred one
==================================

`denoise` knows what pictures look like. That knowledge helps with other damage, too: take turns
between explaining the measurement and removing what does not look like a picture. This is called
plug-and-play reconstruction, and any denoiser can be plugged in.
"""

# %%
# The measurement
# ---------------
#
# The camera was out of focus: every pixel is the mean over a disk, plus a little noise. Blur is a
# product in the Fourier domain, so undoing it is a division. But where the factor is nearly zero,
# a division returns enormous noise.

import matplotlib.pyplot as plt
import numpy as np
from numpy.fft import fft2, ifft2
from skimage import data

from smalto import learn
from smalto.coders import Lasso
from smalto.image import PatchSource, denoise

clean = data.camera()[80:272, 120:376] / 255
rows, columns = (np.minimum(np.arange(n), n - np.arange(n)) for n in clean.shape)
disk = (rows[:, None] ** 2 + columns**2 < 3.5**2).astype(float)
blur = fft2(disk / disk.sum())
sigma = 0.005
blurred = ifft2(blur * fft2(clean)).real
blurred += np.random.default_rng(0).normal(0, sigma, clean.shape)


def decibels(picture):
    """The peak signal-to-noise ratio."""
    return -10 * np.log10(np.mean((picture - clean) ** 2))


# %%
# What pictures look like
# -----------------------
#
# A dictionary of other photographs. It knows nothing of this one.

photos = [data.coffee(), data.chelsea(), data.astronaut()]
patches = PatchSource(photos, 8, as_gray=True, min_contrast=0.03)
D = learn(patches, 256, Lasso(lam=0.15), max_steps=80, random_state=0).D

# %%
# Taking turns
# ------------
#
# In each round ``x`` explains the blurred picture while staying near ``z``, and ``z`` is ``x``
# denoised. The assumed noise falls from round to round. A ``gain`` below 1 leaves some noise: it is
# better to be careful, as there are more rounds to come.


def sharpened(z, level):
    """Minimize ``|blur x − blurred|² / sigma² + |x − z|² / level²``, in the Fourier domain."""
    weight = (sigma / level) ** 2
    top = blur.conj() * fft2(blurred) + weight * fft2(z)
    return ifft2(top / (abs(blur) ** 2 + weight)).real


z = blurred
for level in np.geomspace(0.2, 0.02, 12):
    x = sharpened(z, level)
    z = denoise(x, level, effort=0, D=D, patch_size=8, gain=0.7)
print(f"blurred {decibels(blurred):.1f} dB, restored {decibels(z):.1f} dB")

# %%
# For comparison the Wiener filter: one division with the noise in mind, at the best of its levels.

gray = np.full_like(clean, blurred.mean())
wiener = max((sharpened(gray, level) for level in np.geomspace(0.01, 0.5, 20)), key=decibels)
assert decibels(z) > decibels(wiener) + 3

figure, axes = plt.subplots(2, 2, figsize=(9, 7.2), layout="constrained")
pictures = {"blurred": blurred, "Wiener filter": wiener, "plug and play": z, "original": clean}
for ax, (name, picture) in zip(axes.flat, pictures.items(), strict=True):
    ax.imshow(picture, vmin=0, vmax=1)
    ax.set_title(name if name == "original" else f"{name}, {decibels(picture):.1f} dB")
    ax.set_axis_off()
plt.show()
