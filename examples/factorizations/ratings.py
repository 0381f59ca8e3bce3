"""
Ratings nobody gave
===================

Viewers have rated a few films each. What would they say about the others? If tastes are sums of a
few preferences, the table of ratings is a product of two small ones, and the known entries
determine both. Unknown ratings are not zeros: they are left out of the sum of errors.
"""

# %%
# A table with holes
# ------------------
#
# Ratings from 1 to 5, made from three preferences, rounded, and with moods. Ninety percent are
# unknown, which is NaN in the table.

import matplotlib.pyplot as plt
import numpy as np

from smalto import NMF

rng = np.random.default_rng(0)
viewers = rng.dirichlet([0.4] * 3, 1200)  # most have one favorite kind of film
films = rng.beta(0.6, 0.8, (3, 200))
opinions = 1 + 4 * viewers @ films + 0.3 * rng.standard_normal((1200, 200))
opinions = opinions.round().clip(1, 5)
known = rng.random(opinions.shape) < 0.1
ratings = np.where(known, opinions, np.nan)
print(f"{known.sum(axis=1).mean():.0f} ratings per viewer, of {ratings.shape[1]} films")

# %%
# Guess the rest
# --------------
#
# What to compare with? The mean of all ratings, and the mean of each film, which is what everybody
# thinks of it.

model = NMF(4, missing="nan", random_state=0).fit(ratings)
guesses = {
    "the mean of all": np.full_like(opinions, np.nanmean(ratings)),
    "the mean of each film": np.tile(np.nanmean(ratings, axis=0), (1200, 1)),
    "NMF": model.inverse_transform(model.transform(ratings)).clip(1, 5),
}
errors = {
    name: np.sqrt(np.mean((guess - opinions)[~known] ** 2)) for name, guess in guesses.items()
}
for name, error in errors.items():
    print(f"{name}: off by {error:.2f} stars")
assert errors["NMF"] < 0.8 * min(errors["the mean of all"], errors["the mean of each film"])

# %%
# Forty viewers, sorted by taste, and the films, sorted by the viewers of one taste.

rows = np.argsort(viewers.argmax(axis=1) - viewers.max(axis=1))[::30]
columns = np.argsort(films[0] - films[1])
figure, axes = plt.subplots(3, 1, figsize=(9, 6.4), layout="constrained")
tables = {"known ratings": ratings, "guesses": guesses["NMF"], "what they would say": opinions}
for ax, (name, table) in zip(axes, tables.items(), strict=True):
    picture = ax.imshow(table[rows][:, columns], cmap="GnBu", vmin=1, vmax=5, aspect="auto")
    ax.set(title=name, ylabel="viewers", xticks=[], yticks=[])
axes[-1].set_xlabel("films")
figure.colorbar(picture, ax=axes, label="stars", shrink=0.6)
plt.show()
