"""
Rhythms of unknown phase
========================

A tide, a heartbeat, a season: a rhythm has a frequency, a strength and a phase. A wave of any
phase is a sum of a sine and a cosine, so these two atoms belong together. `GroupLasso` uses groups
of atoms as a whole or not at all, and keeps the phase. The lasso drops one half of many pairs.
"""

# %%
# A dictionary of pairs
# ---------------------
#
# Forty frequencies, with a sine and a cosine for each. Every signal has three rhythms, of random
# phases, and noise.

import matplotlib.pyplot as plt
import numpy as np

from smalto import encode
from smalto.coders import GroupLasso, Lasso

rng = np.random.default_rng(1)
t = np.arange(150) / 150
angles = 2 * np.pi * np.arange(2, 42)[:, None] * t
D = np.stack([np.sin(angles), np.cos(angles)], axis=1).reshape(80, 150)
D /= np.linalg.norm(D, axis=1, keepdims=True)

true = np.zeros((400, 40), bool)
for row in true:
    row[rng.choice(40, 3, replace=False)] = True
phases = rng.uniform(0, 2 * np.pi, (400, 40))
pairs = 4 * np.stack([np.cos(phases), np.sin(phases)], axis=2) * true[:, :, None]
X = pairs.reshape(400, 80) @ D + 0.4 * rng.standard_normal((400, 150))

# %%
# Pairs or single atoms
# ---------------------
#
# The penalty is as large as it must be to keep noise out.

coders = {
    "lasso, atom by atom": Lasso(lam=1.5),
    "group lasso, pair by pair": GroupLasso(lam=1.5, atom_groups=np.arange(80) // 2),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
for ax, color, (name, coder) in zip(axes, ["C1", "C0"], coders.items(), strict=True):
    found = encode(X, D, coder).toarray().reshape(400, 40, 2)
    here = true & found.any(axis=2)
    phase = np.arctan2(found[here][:, 1], found[here][:, 0]) % (2 * np.pi)
    off = np.degrees(abs((phase - phases[here] + np.pi) % (2 * np.pi) - np.pi))
    half = np.mean((found[here] == 0).any(axis=1))
    print(
        f"{name}: {here.sum() / true.sum():.0%} of the rhythms found, {half:.0%} of them by half; "
        f"phase off by {off.mean():.0f} degrees"
    )
    ax.plot(np.degrees(phases[here]), np.degrees(phase), ".", color=color, markersize=4, alpha=0.6)
    ax.set(title=f"{name}: off by {off.mean():.0f}°", xlabel="true phase", aspect="equal")
    ax.set(xticks=range(0, 361, 90), yticks=range(0, 361, 90))
    ax.grid()
axes[0].set_ylabel("phase of the code")
assert half == 0
plt.show()
