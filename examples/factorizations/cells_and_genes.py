"""
Programs of cells
=================

A table of cells and genes counts molecules: which genes were active in which cell. Most entries
are zero. Genes are switched on in programs, and a cell runs a few of them. The data here are made,
with programs that are known; a real table (``adata.X`` of an AnnData object) is the same kind of
sparse matrix.
"""

# %%
# A sparse table of counts
# ------------------------

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from scipy.optimize import linear_sum_assignment

from smalto import NMF

rng = np.random.default_rng(0)
n_cells, n_genes, n_programs = 3000, 1500, 6
programs = rng.gamma(0.05, size=(n_programs, n_genes))
programs /= programs.sum(axis=1, keepdims=True)
kinds = rng.integers(n_programs, size=n_cells)
activity = 0.9 * np.eye(n_programs)[kinds] + 0.1 * rng.dirichlet(np.ones(n_programs), n_cells)
depths = rng.lognormal(7, 0.4, n_cells)  # molecules found per cell
counts = scipy.sparse.csr_array(rng.poisson(depths[:, None] * (activity @ programs)))
print(f"{counts.shape} counts, {counts.nnz / np.prod(counts.shape):.0%} of them not zero")

# %%
# Prepare without losing zeros
# ----------------------------
#
# Cells are scaled to the same number of molecules, and counts are replaced by their square roots,
# so that the few loudest genes do not drown all others. Zeros stay zeros, and the table stays
# sparse.

scale = scipy.sparse.diags_array(1e3 / counts.sum(axis=1))
X = scipy.sparse.csr_array(scale @ counts).sqrt()
model = NMF(n_programs, random_state=0)
usage = model.fit_transform(X)

# %%
# Each program found is matched with a true one, and the cells are judged by their largest code.

true = np.sqrt(programs)
_, match = linear_sum_assignment(-(true @ model.components_.T))
right = np.mean(match[kinds] == usage.argmax(axis=1))
print(f"{right:.1%} of the cells are given their true kind")
assert right > 0.95

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
cells = np.argsort(kinds, kind="stable")
axes[0].imshow(usage[cells][:, match], cmap="GnBu", aspect="auto")
axes[0].set(xlabel="program", ylabel="cells, sorted by their true kind", yticks=[])
axes[0].set_title("which program runs in which cell")
genes = np.concatenate([np.argsort(-programs[j])[:8] for j in range(n_programs)])
picture = model.components_[match][:, genes]
axes[1].imshow(picture.T, cmap="GnBu", aspect="auto")
axes[1].set(xlabel="program", ylabel="the 8 top genes of each true program", yticks=[])
axes[1].set_title("which genes belong to which program")
plt.show()
