"""
Online or batch?
================

`Batch` codes all samples before it changes the dictionary. `Online` changes it after every few
hundred samples, with what it remembers of all the others. With many samples the second has a good
dictionary before the first has made a single step.
"""

# %%
# Patches to learn from, and others to judge by
# ---------------------------------------------

import matplotlib.pyplot as plt

from smalto import learn
from smalto.coders import Lasso
from smalto.datasets import random_patches, sample_photo
from smalto.learners import Batch, Online
from smalto.plot import cost_curve, mosaic

photo = sample_photo("china")
options = {"as_gray": True, "min_contrast": 0.03}
X = random_patches(photo, 10, 20_000, random_state=0, **options)
held_out = random_patches(photo, 10, 2_000, random_state=1, **options)

# %%
# The same number of samples for both
# -----------------------------------
#
# After each step the cost of the held-out patches is recorded. A callback keeps a copy of the
# dictionary on the way.

stages = {}


def keep(state, record):
    """Keep the dictionary after some steps."""
    if record.step in (1, 4, 16, 64):
        stages[record.samples] = state.D.copy()


common = {"coder": Lasso(lam=0.12), "max_epochs": 4, "validation": held_out, "random_state": 0}
online = learn(X, 64, learner=Online(batch_size=512), callbacks=[keep], **common)
batch = learn(X, 64, learner=Batch(), **common)
costs = {"Online": online.history[-1].test_cost, "Batch": batch.history[-1].test_cost}
print({name: f"{cost:.4f}" for name, cost in costs.items()})
assert costs["Online"] < costs["Batch"]
first_step = next(record.test_cost for record in batch.history if record.step == 1)
first_pass = [r.test_cost for r in online.history if r.test_cost and r.samples <= len(X)]
print(f"after one pass: Online {first_pass[-1]:.4f}, Batch {first_step:.4f}")
assert first_pass[-1] < first_step

# %%
# Below the curves: the dictionary of `Online` after 1, 4, 16 and 64 steps. It begins with patches
# of the photograph, and ends with edges.

figure = plt.figure(figsize=(9, 6), layout="constrained")
grid = figure.add_gridspec(2, 4, height_ratios=(1, 0.85))
ax = figure.add_subplot(grid[0, :])
cost_curve({"Online(batch_size=512)": online, "Batch()": batch}, x="samples", ax=ax)
for column, (samples, D) in enumerate(stages.items()):
    ax = figure.add_subplot(grid[1, column], title=f"after {samples} samples")
    ax.imshow(mosaic(D, zoom=2))
    ax.set_axis_off()
plt.show()
