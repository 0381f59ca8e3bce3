"""
How many atoms?
===============

More atoms always fit better what they have seen. So hold out entries, and see which number predicts
them best: ``select`` does that. ``consensus`` asks another question: which atoms are found again
from every start?
"""

# %%
# A table with seven parts
# ------------------------
#
# Each sample is a sum of seven bumps, in different amounts, with noise.

import matplotlib.pyplot as plt
import numpy as np

from smalto import NMF, consensus, select
from smalto.choosing import matched_similarity

rng = np.random.default_rng(0)
places = np.linspace(0, 1, 80)
parts = np.exp(-(((places - np.linspace(0.08, 0.92, 7)[:, None]) / 0.07) ** 2))
X = rng.gamma(0.4, size=(300, 7)) @ parts
X = rng.gamma(np.maximum(X / 0.2, 1e-6)) * 0.2  # noise whose variance grows with the signal

# %%
# Held-out entries
# ----------------
#
# Samples and features are cut into folds. A model that has not seen a sample codes it from some of
# its features, and predicts the others. The simplest model within one standard error of the lowest
# error is chosen.

numbers = [3, 4, 5, 6, 7, 8, 9, 11]
choice = select(X, numbers, estimator=NMF, random_state=0)
print(choice)
assert choice.best_params == {"n_components": 7}

# %%
# Starts that agree
# -----------------
#
# Atoms of ten starts are matched one to one. Where there are too many, each start splits the
# parts differently.

found = consensus(X, numbers, n_starts=10, random_state=0)
print(found)
assert found.best.stability.min() > 0.9
assert found.agreements[11].stability.mean() < found.agreements[7].stability.mean()

# %%
# The parts themselves
# --------------------

D = choice.best_model.components_
print(f"similarity to the planted parts: {matched_similarity(parts, [D]).min():.3f} or more")
assert matched_similarity(parts, [D]).min() > 0.95

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
choice.plot(axes[0])
found.plot(axes[1])
for atom in D[np.argsort(D.argmax(axis=1))]:
    axes[2].plot(places, atom / atom.max())
axes[2].set_title("the seven atoms chosen")
plt.show()
