"""
How good is a code?
===================

Programs that compute sparse codes stop when they think that it is time. Is the result right? The
*duality gap* answers without trusting anybody: from the signal, the dictionary and the code alone
it computes a number, and no code in the world is better by more than that.
"""

# %%
# One problem, four programs
# --------------------------
#
# The lasso for five hundred signals: by smalto, by two methods of scikit-learn as they come, and
# by a hundred rounds of the textbook method, which is a step along the gradient and a threshold.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import sparse_encode

from smalto import duality_gap, encode
from smalto.coders import Lasso
from smalto.datasets import random_patches, sample_photo

X = random_patches(
    sample_photo("china"), 8, 756, as_gray=True, min_contrast=0.05, random_state=0, dtype=float
)
D, X = X[:256], X[256:]  # patches as atoms
lam = 0.1


def soft_thresholding(rounds):
    """Iterative soft thresholding."""
    codes, step = np.zeros((len(X), len(D))), 1 / np.linalg.norm(D @ D.T, 2)
    for _ in range(rounds):
        codes -= step * (codes @ D - X) @ D.T
        codes = np.sign(codes) * np.maximum(abs(codes) - step * lam, 0)
    return codes


answers = {
    "100 rounds of soft thresholding": soft_thresholding(100),
    "scikit-learn, lasso_cd": sparse_encode(X, D, algorithm="lasso_cd", alpha=lam, max_iter=1000),
    "scikit-learn, lasso_lars": sparse_encode(X, D, algorithm="lasso_lars", alpha=lam),
    "smalto": encode(X, D, Lasso(lam)).toarray(),
}

# %%
# The judgment
# ------------
#
# `duality_gap` takes the codes of any program. The signals have norm 1, and the cost of a code is
# about a quarter.

figure, ax = plt.subplots(figsize=(9, 4.8), layout="constrained")
for name, codes in answers.items():
    gaps = duality_gap(X, D, codes, Lasso(lam))
    cost = 0.5 * np.sum((X - codes @ D) ** 2, axis=1) + lam * abs(codes).sum(axis=1)
    print(f"{name}: mean cost {cost.mean():.6f}, largest gap {gaps.max():.0e}")
    ax.plot(np.sort(gaps.clip(1e-17)), label=name)
assert gaps.max() < 1e-10  # those of smalto, the last ones
ax.set(yscale="log", xlabel="signals, sorted by their gap", ylabel="duality gap", ylim=(1e-18, 1))
ax.legend(loc="center", bbox_to_anchor=(0.5, 0.34))
ax.grid(axis="y")
plt.show()
