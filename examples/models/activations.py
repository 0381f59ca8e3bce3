"""
What a network has learned
==========================

A neuron of a network often answers to several unrelated things. A dictionary with more atoms than
neurons, over which activations have sparse codes, takes these apart: each atom is a direction in
the space of activations, and answers to fewer things.
"""

# %%
# A small network for digits
# --------------------------
#
# The samples are the activations of its hidden layer.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from smalto import encode, learn
from smalto.coders import Lasso
from smalto.learners import Batch

X, y = load_digits(return_X_y=True)
X /= 16
network = MLPClassifier((24,), tol=1e-3, learning_rate_init=0.01, random_state=0).fit(
    X[:1200], y[:1200]
)
print(f"{network.score(X[1200:], y[1200:]):.0%} of new digits are recognized")
activations = np.maximum(X @ network.coefs_[0] + network.intercepts_[0], 0)

# %%
# More atoms than neurons
# -----------------------

result = learn(
    activations, 72, Lasso(lam=1.0, positive=True), learner=Batch(), max_epochs=40, random_state=0
)
codes = encode(activations, result.D, result.coder).toarray()
print(f"{np.count_nonzero(codes) / len(X):.1f} of 72 atoms per digit")

# %%
# One meaning each?
# -----------------
#
# Take the twenty digits for which a neuron, or an atom, is most active. How many of them are of
# the same class?


def purity(values):
    """The share of the most common class among the top twenty of each column."""
    top = y[np.argsort(-values, axis=0)[:20]]
    return np.array([np.bincount(column).max() / 20 for column in top.T])


neurons = activations[:, np.count_nonzero(activations, axis=0) >= 20]  # leave out idle ones
atoms = codes[:, np.count_nonzero(codes, axis=0) >= 20]
of_neurons, of_atoms = purity(neurons), purity(atoms)
print(f"{neurons.shape[1]} neurons and {atoms.shape[1]} atoms are in use")
print(f"same class: {of_neurons.mean():.0%} for neurons, {of_atoms.mean():.0%} for atoms")
assert of_atoms.mean() > of_neurons.mean()

# %%
# Each row shows the digits to which an atom, or a neuron, answers most.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.1), layout="constrained")
for ax, values, name in [(axes[0], neurons, "neurons"), (axes[1], atoms, "atoms")]:
    columns = np.linspace(0, values.shape[1] - 1, 8).astype(int)
    top = np.argsort(-values[:, columns], axis=0)[:10]
    tiles = np.pad(X[top.T].reshape(8, 10, 8, 8), ((0, 0), (0, 0), (1, 1), (1, 1)))
    ax.imshow(tiles.swapaxes(1, 2).reshape(80, 100), cmap="gray_r")
    ax.set_title(f"eight {name}, a row each: {purity(values).mean():.0%} same class")
    ax.set_axis_off()
plt.show()
