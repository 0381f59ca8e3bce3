"""
Sparse components of digits
===========================

Principal components of small pictures of digits cover the whole picture. Sparse ones have only a
quarter of the pixels each, which shows the strokes that vary together, but they explain less of the
variance. Section 5.4 of Mairal, Bach, Ponce and Sapiro, "Online Learning for
Matrix Factorization and Sparse Coding", JMLR 2010.

Run it with ``python examples/sparse_components_of_digits.py [picture.png]``.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from smalto import SparsePCA
from smalto.plot import dictionary_mosaic

X = load_digits().data  # 1 797 pictures of 8 x 8
k = 16
dense = PCA(k).fit(X)

sparse = SparsePCA(k, density=0.25, max_epochs=5, random_state=0).fit(X)
print(f"principal components explain {dense.explained_variance_ratio_.sum():.0%} of the variance")
print(
    f"sparse ones {sparse.explained_variance_ratio_.sum():.0%} (adjusted for not being orthogonal), "
    f"with {sparse.density_:.0%} of the entries nonzero"
)
codes = sparse.transform(X)
error = np.mean((X - sparse.inverse_transform(codes)) ** 2) / X.var(axis=0).mean()
used = np.count_nonzero(codes) / len(X)
print(f"a digit uses {used:.1f} components on average, and {error:.0%} of it is left over")

# The digits may also arrive as a stream, a hundred at a time, and are centered on the way.
stream = SparsePCA(k, density=0.25, random_state=0)
for first in range(0, len(X), 100):
    stream.partial_fit(X[first : first + 100])
print(f"the mean of the stream is off by {np.abs(stream.mean_ - X.mean(axis=0)).max():.0e}")

if len(sys.argv) > 1:
    axes = dictionary_mosaic(sparse.components_, (8, 8), signed=True)
    axes.figure.savefig(sys.argv[1])
