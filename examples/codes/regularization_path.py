"""
The path of the penalty
=======================

How many atoms does a signal need? The lasso answers for every penalty at once. From a large
``lam``, where all coefficients are zero, down to zero they change along straight lines, and the
exact places where atoms enter or leave are known.
"""

# %%
# Which substances are in the sample?
# -----------------------------------
#
# A library has the spectra of fifty substances, each with a few lines. The sample is a mixture of
# four of them, measured with noise.

import matplotlib.pyplot as plt
import numpy as np

from smalto import encode, lasso_path
from smalto.coders import Lasso
from smalto.plot import path_curve

rng = np.random.default_rng(2)
grid = np.arange(200)
lines = rng.uniform(0, 200, (50, 6))
heights = rng.uniform(0.2, 1, (50, 6))
library = (heights[:, :, None] * np.exp(-(((grid - lines[:, :, None]) / 3) ** 2))).sum(axis=1)
library /= np.linalg.norm(library, axis=1, keepdims=True)
truth = np.zeros(50)
truth[[5, 17, 28, 41]] = [3.0, 2.2, 1.5, 0.9]
sample = truth @ library + 0.06 * rng.standard_normal(200)

# %%
# All solutions
# -------------
#
# The largest correlation of noise with k atoms is about ``sigma sqrt(2 log k)``. A penalty of that
# size keeps nearly all of it out: the four true substances are found, and one with a tiny amount.

path = lasso_path(sample, library)
lam = 0.06 * np.sqrt(2 * np.log(50))
found = np.flatnonzero(path.at(lam))
print(f"{len(path.lams)} kinks from lam = {path.lams[0]:.2f} down to {path.lams[-1]:.2f}")
print(f"at lam = {lam:.2f}: substances {found}")
assert set(found) >= {5, 17, 28, 41}

# %%
# Any point of the path is the code that `encode` computes for its ``lam``:

code = encode(sample[None], library, Lasso(lam)).toarray()[0]
assert np.allclose(code, path.at(lam))

figure, axes = plt.subplots(2, 1, figsize=(9, 6.6), layout="constrained", height_ratios=(1.6, 1))
path_curve(path, n_labels=4, ax=axes[0])
axes[0].axvline(lam, color="0.4", linestyle="--", linewidth=1)
axes[0].set_title("coefficients of fifty substances, and the chosen penalty")
axes[1].plot(grid, sample, ".", color="0.6", markersize=4, label="sample")
for j in (5, 17, 28, 41):
    axes[1].plot(grid, code[j] * library[j], linewidth=1.3, label=f"substance {j}")
axes[1].set(xlabel="wavelength", ylabel="intensity", title="the sample, taken apart")
axes[1].legend(ncols=5, fontsize=8)
plt.show()
