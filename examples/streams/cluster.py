"""
A cluster on one machine
========================

If the samples do not fit on one machine, the workers of a Dask cluster can code them. The
algorithm stays the same, and so does the result. Here the cluster is a small one, in this process;
the address of a large one is all that would change.
"""

# %%
# Samples that exist only when they are needed
# --------------------------------------------
#
# A lazy array: each block of patches is cut out when a worker asks for it.

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client

from smalto import distributed, learn
from smalto.coders import Lasso
from smalto.datasets import sample_photo
from smalto.image import PatchSource
from smalto.learners import Online
from smalto.plot import dictionary_mosaic

patches = PatchSource(sample_photo("flower"), 10, as_gray=True, min_contrast=0.02)
X = da.map_blocks(
    lambda block_info: patches.rows(np.arange(*block_info[None]["array-location"][0])),
    chunks=((4000,) * 8, (100,)),
    dtype=np.float32,
)
print(X)

# %%
# Learn and encode with workers
# -----------------------------

settings = {"coder": Lasso(lam=0.12), "learner": Online(batch_size=2000), "random_state": 0}
with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    result = distributed.learn(X, 64, client=client, max_epochs=2, **settings)
    codes = distributed.encode(X, result.D, result.coder)
    use = (codes != 0).mean(axis=0).compute()
print(f"{use.sum():.1f} of 64 atoms per patch")

# %%
# The same as alone
# -----------------
#
# How the work is divided depends on the data, not on the workers. With all of the samples in
# memory, one machine finds the same dictionary, up to rounding.

alone = learn(X.compute(), 64, max_epochs=2, **settings)
difference = abs(result.D - alone.D).max()
print(f"largest difference between the dictionaries: {difference:.0e}")
assert difference < 1e-4

figure, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
for ax, D, name in zip(axes, [result.D, alone.D], ["two workers", "one machine"], strict=True):
    dictionary_mosaic(D, order=np.argsort(-use), ax=ax)
    ax.set_title(name)
plt.show()
