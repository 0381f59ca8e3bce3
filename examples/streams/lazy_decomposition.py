"""
A spectrum image from a file
============================

An electron microscope records a spectrum of X-rays at every place of a sample. Such a file may be
larger than memory. ``partial_fit`` takes it piece by piece. Programs for lazy data can use any
model that has this method.
"""

# %%
# A file
# ------
#
# Made here, a row of the picture at a time: three materials with their own lines, and the counting
# noise of few photons.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from skimage import data

from smalto import NMF

rng = np.random.default_rng(0)
energy = np.linspace(0, 10, 300)
spectra = np.array([
    sum(h * np.exp(-(((energy - c) / 0.15) ** 2)) for c, h in lines) + 0.3 * np.exp(-energy / 3)
    for lines in ([(1.5, 4)], [(6.4, 3), (7.1, 1)], [(0.5, 2), (4.5, 3), (4.9, 1)])
])  # fmt: skip
cells = data.cell()[200:440:2, 180:420:2]
shares = np.eye(3)[np.digitize(cells, np.quantile(cells, [0.4, 0.75]))]
path = Path(tempfile.mkdtemp()) / "spectrum_image.npy"
image = np.lib.format.open_memmap(path, "w+", np.float32, (120, 120, 300))
for row in range(120):
    image[row] = rng.poisson(3 * shares[row] @ spectra)
image.flush()
print(f"{path.stat().st_size / 1e6:.0f} MB, {image.mean():.2f} counts per channel")

# %%
# Piece by piece
# --------------
#
# Twelve rows of the picture at a time, in three passes. No more than that is ever in memory.

image = np.load(path, mmap_mode="r")
model = NMF(3, lam=0.1, random_state=0)
pieces = [image[first : first + 12].reshape(-1, 300) for first in range(0, 120, 12)]
for _ in range(3):
    for piece in rng.permutation(len(pieces)):
        model.partial_fit(pieces[piece])
maps = np.concatenate([model.transform(piece) for piece in pieces]).reshape(120, 120, 3)

unit = spectra / np.linalg.norm(spectra, axis=1, keepdims=True)
likeness = unit @ model.components_.T / np.linalg.norm(model.components_, axis=1)
_, order = linear_sum_assignment(-likeness)
print("cosines with the true spectra:", likeness[np.arange(3), order].round(3))
assert likeness[np.arange(3), order].min() > 0.98

# %%

figure, axes = plt.subplots(2, 4, figsize=(9, 4.8), layout="constrained")
axes[0, 0].imshow(image.sum(axis=2))
axes[0, 0].set_title("all photons")
pixel = image[60, 60]
axes[1, 0].plot(energy, pixel, color="0.4", linewidth=0.8)
axes[1, 0].set(title="one pixel", xlabel="energy in keV", yticks=[])
for j in range(3):
    axes[0, j + 1].imshow(maps[:, :, order[j]], cmap="magma")
    axes[0, j + 1].set_title(f"material {j + 1}")
    axes[1, j + 1].plot(energy, unit[j], color="0.8", linewidth=5)
    axes[1, j + 1].plot(energy, model.components_[order[j]], color=f"C{j}", linewidth=1.2)
    axes[1, j + 1].set(xlabel="energy in keV", yticks=[])
for ax in axes[0]:
    ax.set_axis_off()
plt.show()
