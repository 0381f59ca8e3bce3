"""
Genes and copy numbers
======================

In a tumor, stretches of a chromosome are lost or copied, and some genes follow: more copies, more
activity. Which genes go with which stretch? Sparse canonical correlation analysis looks for a few
genes and a piecewise constant pattern along the chromosome whose sums are correlated
(Section 6.3 of Mairal, Bach, Ponce and Sapiro, JMLR 2010).
"""

# %%
# Two tables of the same samples
# ------------------------------
#
# The data are made here, so that the answer is known: twenty of two thousand genes follow a gain
# of the spots 30 to 49 of the chromosome.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from smalto import SparseCCA

rng = np.random.default_rng(0)
genes = rng.standard_normal((90, 2000))  # activity
spots = rng.standard_normal((90, 80))  # numbers of copies along the chromosome
gain = rng.standard_normal((90, 1))
true = np.sort(rng.choice(2000, 20, replace=False))
genes[:, true] += gain
spots[:, 30:50] += gain

# %%
# The model
# ---------
#
# At most 25 genes may have a weight. The weights of the spots are sparse and piecewise constant,
# which is the default for the second table.

X, X_test, Y, Y_test = train_test_split(genes, spots, test_size=0.25, random_state=0)
model = SparseCCA(max_nonzeros_x=25).fit(X, Y)
of_genes, of_spots = model.x_weights_[:, 0], model.y_weights_[:, 0]
chosen = np.flatnonzero(of_genes)
print(f"{np.isin(true, chosen).sum()} of the 20 true genes, {len(chosen)} chosen")
print(f"spots {np.flatnonzero(of_spots).min()} to {np.flatnonzero(of_spots).max()}")
print(f"correlation {model.correlations_[0]:.2f}, of new samples {model.score(X_test, Y_test):.2f}")
assert np.isin(true, chosen).sum() >= 18

# %%
figure, axes = plt.subplots(2, 1, figsize=(9, 5), layout="constrained")
axes[0].vlines(true, 0, 0.27, "C1", alpha=0.35, linewidth=4, label="the true genes")
axes[0].vlines(chosen, 0, abs(of_genes[chosen]), "C0", label="weights")
axes[0].legend(ncols=2, loc="upper right")
axes[0].set(xlabel="gene", ylabel="weight", title="few genes", xlim=(-20, 2000), ylim=(0, 0.36))
axes[1].axvspan(29.5, 49.5, color="C1", alpha=0.25, linewidth=0, label="the true gain")
axes[1].step(np.arange(80), abs(of_spots), where="mid", label="weights")
axes[1].set(xlabel="spot along the chromosome", ylabel="weight", title="one stretch")
axes[1].legend()
plt.show()
