"""
Sparse components of digits
===========================

Principal components of small pictures of digits cover the whole picture, and are hard to name.
Sparse ones have a quarter of the pixels each, and show strokes. The price: they explain less of
the variance (Section 5.4 of Mairal, Bach, Ponce and Sapiro, JMLR 2010).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from smalto import SparsePCA
from smalto.plot import dictionary_mosaic

X = load_digits().data  # 1 797 pictures of 8 x 8 pixels
dense = PCA(16).fit(X)
sparse = SparsePCA(16, density=0.25, max_epochs=5, random_state=0).fit(X)

explained = {name: model.explained_variance_ratio_.sum() for name, model in
             [("principal components", dense), ("sparse components", sparse)]}  # fmt: skip
print({name: f"{share:.0%} of the variance" for name, share in explained.items()})
print(f"{sparse.density_:.0%} of the entries of the sparse ones are nonzero")
assert abs(sparse.density_ - 0.25) < 0.03

figure, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
for ax, model, (name, share) in zip(axes, [dense, sparse], explained.items(), strict=True):
    dictionary_mosaic(model.components_, (8, 8), signed=True, ax=ax)
    ax.set_title(f"{name}: {share:.0%} of the variance")
plt.show()

# %%
# A digit needs only some of them
# -------------------------------

codes = sparse.transform(X)
error = np.mean((X - sparse.inverse_transform(codes)) ** 2) / X.var(axis=0).mean()
used = np.count_nonzero(codes) / len(X)
print(f"a digit uses {used:.1f} of 16 components on average, and {error:.0%} of it is left over")

# %%
# Digits as a stream
# ------------------
#
# The digits may also arrive a hundred at a time. They are centered on the way, although their mean
# is known only in the end.

stream = SparsePCA(16, density=0.25, random_state=0)
for first in range(0, len(X), 100):
    stream.partial_fit(X[first : first + 100])
off = abs(stream.mean_ - X.mean(axis=0)).max()
print(f"the mean of the stream is off by {off:.0e}")
assert off < 1e-9
