"""
What is in a pixel
==================

A camera with a hundred colors sees the spectrum of every pixel. On the ground a pixel covers
several materials, so its spectrum is a mixture. Unmixing finds the spectra of the materials, and
how much of each is in every pixel.
"""

# %%
# A made landscape
# ----------------
#
# Four materials with smooth spectra. Each has its own regions, with soft borders where materials
# mix, and the camera adds noise.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment

from smalto import NMF

rng = np.random.default_rng(3)
side, bands = 80, 100
wavelengths = np.linspace(400, 2400, bands)
materials = ["water", "plants", "soil", "roofs"]
centers = [[480], [780, 1300], [1700, 2200], [1050, 600]]
spectra = np.array(
    [sum(np.exp(-(((wavelengths - c) / 170) ** 2)) for c in group) for group in centers]
)
landscape = np.array([gaussian_filter(rng.standard_normal((side, side)), 6) for _ in materials])
shares = np.exp(130 * landscape)
shares /= shares.sum(axis=0)
X = shares.reshape(4, -1).T @ spectra + 0.05 * rng.standard_normal((side * side, bands))
X = X.clip(0)  # a camera sees no negative light

# %%
# Two tables from one
# -------------------
#
# ``NMF`` gets the pixels in no order. That the maps of its codes are smooth regions is found, not
# told. The penalty prefers pixels of few materials.

model = NMF(4, lam=0.3, random_state=0)
codes = model.fit_transform(X)
truth = spectra / np.linalg.norm(spectra, axis=1, keepdims=True)
cosines = truth @ model.components_.T
_, order = linear_sum_assignment(-cosines)
for name, cosine in zip(materials, cosines[np.arange(4), order], strict=True):
    print(
        f"{name}: the spectrum is right up to {np.degrees(np.arccos(min(cosine, 1))):.1f} degrees"
    )
assert cosines[np.arange(4), order].min() > 0.98

# %%

figure, axes = plt.subplots(3, 4, figsize=(9, 6.2), layout="constrained")
for j, name in enumerate(materials):
    axes[0, j].imshow(shares[j], cmap="GnBu", vmin=0, vmax=1)
    axes[1, j].imshow(codes[:, order[j]].reshape(side, side), cmap="GnBu", vmin=0)
    axes[2, j].plot(wavelengths, truth[j], color="0.8", linewidth=5)
    axes[2, j].plot(wavelengths, model.components_[order[j]], linewidth=1.3)
    axes[0, j].set_title(name)
    axes[2, j].set(xlabel="wavelength in nm", ylim=(0, None), yticks=[])
for ax in axes[:2].flat:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
for ax, name in zip(axes[:, 0], ["true share", "found share", "spectrum"], strict=True):
    ax.set_ylabel(name)
plt.show()
