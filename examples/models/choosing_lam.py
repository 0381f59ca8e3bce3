"""
Choosing the penalty by hiding entries
======================================

The cost cannot choose ``lam``: it is the lower the smaller ``lam`` is. So hide a tenth of the
entries, learn from the rest, and see which ``lam`` predicts the hidden ones best. That needs no
clean data, no labels, and no knowledge of the noise.
"""

# %%
# Noisy digits with hidden pixels
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from smalto import encode, learn
from smalto.coders import Lasso

clean = load_digits().data / 16
rng = np.random.default_rng(0)
noisy = clean + 0.25 * rng.standard_normal(clean.shape)
hidden = rng.random(clean.shape) < 0.1
shown = np.where(hidden, np.nan, noisy)

# %%
# Try them all
# ------------
#
# Here the clean digits are known, so the choice can be judged: the second error is that of all
# pixels against the truth.

lams = np.geomspace(0.05, 2, 9)
of_hidden, of_clean = [], []
for lam in lams:
    D = learn(shown, 50, Lasso(lam), missing="nan", max_epochs=5, random_state=0).D
    restored = encode(shown, D, Lasso(lam), missing="nan") @ D
    of_hidden.append(np.sqrt(np.mean((restored - noisy)[hidden] ** 2)))
    of_clean.append(np.sqrt(np.mean((restored - clean) ** 2)))
chosen, best = np.argmin(of_hidden), np.argmin(of_clean)
print(f"hidden entries choose lam = {lams[chosen]:.2f}, the truth would be {lams[best]:.2f}")
print(f"error {of_clean[chosen]:.3f} with the choice, {of_clean[best]:.3f} at best")
assert of_clean[chosen] < 1.05 * of_clean[best]

# %%

D = learn(noisy, 50, Lasso(lams[chosen]), max_epochs=5, random_state=0).D
restored = encode(noisy, D, Lasso(lams[chosen])) @ D
figure = plt.figure(figsize=(9, 4.4), layout="constrained")
grid = figure.add_gridspec(3, 2, width_ratios=(1.3, 1))
ax = figure.add_subplot(grid[:, 0], xscale="log", xlabel="lam", ylabel="error")
ax.plot(lams, of_hidden, "o-", label="hidden entries: what you can measure")
ax.plot(lams, of_clean, "s-", label="clean digits: what you want to know")
ax.axvline(lams[chosen], color="0.6", linestyle="--", linewidth=1)
ax.legend()
for row, (name, X) in enumerate({"noisy": noisy, "restored": restored, "clean": clean}.items()):
    ax = figure.add_subplot(grid[row, 1], title=name)
    ax.imshow(np.hstack(X[:6].reshape(6, 8, 8)), cmap="gray_r", vmin=0, vmax=1)
    ax.set_axis_off()
plt.show()
