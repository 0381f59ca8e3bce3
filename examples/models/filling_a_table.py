"""
Filling the gaps of a table
===========================

Measurements are missing, a fifth of all, each patient's in other columns. Columns depend on each
other, so what is known of a patient says something about the rest. A dictionary learned from the
known entries fills in the others.
"""

# %%
# A table with gaps
# -----------------
#
# Thirty measurements of 569 patients, standardized. NaN marks what is missing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.preprocessing import StandardScaler

from smalto import DictionaryLearning
from smalto.coders import Lasso

X = StandardScaler().fit_transform(load_breast_cancer().data)
rng = np.random.default_rng(0)
missing = rng.random(X.shape) < 0.2
table = np.where(missing, np.nan, X)

# %%
# Fill it
# -------
#
# The code of a patient is that of the known entries, and code times dictionary is a whole row.

model = DictionaryLearning(15, coder=Lasso(lam=0.3), missing="nan", random_state=0)
rows = model.inverse_transform(model.fit_transform(table))
tables = {
    "the mean of each column": SimpleImputer().fit_transform(table),
    "five similar patients": KNNImputer(n_neighbors=5).fit_transform(table),
    "a dictionary": np.where(missing, rows, table),
}
errors = {}
for name, filled in tables.items():
    errors[name] = np.sqrt(np.mean((filled - X)[missing] ** 2))
    print(f"{name}: off by {errors[name]:.2f} standard deviations")
assert errors["a dictionary"] < min(
    errors["the mean of each column"], errors["five similar patients"]
)

# %%

figure, axes = plt.subplots(1, 3, figsize=(9, 3.6), sharex=True, sharey=True, layout="constrained")
for ax, (name, filled) in zip(axes, tables.items(), strict=True):
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1)
    ax.plot(X[missing], filled[missing], ".", markersize=3, alpha=0.35)
    ax.set(title=f"{name}\nerror {errors[name]:.2f}", xlabel="true value", xlim=(-3, 5))
    ax.set_aspect("equal")
axes[0].set(ylabel="filled in", ylim=(-3, 5))
plt.show()
