"""
Genes and copy numbers
======================

Sparse CCA finds genes whose expression follows gains and losses along a chromosome.

The data are, for samples of tissue, the expressions of many genes (X) and the copy numbers of the
DNA at spots along a chromosome (Y). A gain or loss affects a whole stretch of the chromosome, so
the weights of Y should be piecewise constant. Few genes follow it, so the weights of X should be
sparse. Section 6.3 of Mairal,
Bach, Ponce and Sapiro, "Online Learning for Matrix Factorization and Sparse Coding", JMLR 2010.

If the environment variable SMALTO_DATA is set, the breast cancer samples of Chin et al. (2006) are
read from ``breast_chin2006/breastdata.npz`` in that folder (the ``breastdata`` of the R package
PMA), and chromosome 17 is analyzed. Otherwise samples are simulated.

Run it with ``python examples/sparse_cca_of_genomes.py [picture.png]``.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from smalto import SparseCCA


def genomes():
    """Expressions, and copy numbers along one chromosome."""
    folder = os.environ.get("SMALTO_DATA")
    path = Path(folder or ".") / "breast_chin2006" / "breastdata.npz"
    if folder and path.exists():
        data = np.load(path)
        return data["rna_std"].T.astype(float), data["dna"][data["chrom"] == 17].T
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((90, 2000)), rng.standard_normal((90, 80))
    gain = rng.standard_normal((90, 1))
    X[:, :20] += gain  # twenty genes ...
    Y[:, 30:50] += gain  # ... follow this stretch
    return X, Y


X, Y = genomes()
X_train, X_test, Y_train, Y_test = train_test_split(X, Y, test_size=0.25, random_state=0)
model = SparseCCA(max_nonzeros_x=25).fit(X_train, Y_train)
genes, spots = model.x_weights_[:, 0], model.y_weights_[:, 0]
print(f"{np.count_nonzero(genes)} of {len(genes)} genes are related to the copy numbers of")
edges = np.flatnonzero(np.diff(np.concatenate([[0], np.abs(spots) > 1e-6, [0]]).astype(int)))
for first, last in edges.reshape(-1, 2):
    print(f"  spots {first} to {last - 1} of {len(spots)}, weight {spots[first:last].mean():+.3f}")
print(f"correlation {model.correlations_[0]:.2f}, of new samples {model.score(X_test, Y_test):.2f}")

if len(sys.argv) > 1:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 2.5), layout="constrained")
    axes.step(np.arange(len(spots)), spots, where="mid")
    axes.set(xlabel="spot along the chromosome", ylabel="weight")
    figure.savefig(sys.argv[1])
