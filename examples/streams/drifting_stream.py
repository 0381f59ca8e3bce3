"""
A stream that changes
=====================

Samples arrive without end, and what they are made of changes. A dictionary that forgets nothing
is held back by a past that is over. How fast it forgets is the number ``rho`` of `Online`.
"""

# %%
# Two seasons
# -----------
#
# Every sample is a sum of three of thirty atoms and noise. At batch 80 all of these atoms are
# replaced by others.

import matplotlib.pyplot as plt
import numpy as np

from smalto import DictionaryLearning
from smalto.coders import Lasso
from smalto.learners import Online


def stream():
    """Yield 180 batches of 200 samples."""
    rng = np.random.default_rng(0)
    seasons = rng.standard_normal((2, 30, 40))
    seasons /= np.linalg.norm(seasons, axis=2, keepdims=True)
    for number in range(180):
        codes = rng.standard_normal((200, 30)) * (rng.random((200, 30)) < 0.1)
        yield codes @ seasons[int(number >= 80)] + 0.05 * rng.standard_normal((200, 40))


# %%
# Test, then learn
# ----------------
#
# Each batch is first coded with the dictionary as it is, which shows how well that is up to date,
# and then learned from. ``partial_fit`` keeps no sample.

costs = {}
for rho in (0, 2, 10):
    model = DictionaryLearning(30, coder=Lasso(lam=0.1), learner=Online(rho=rho), random_state=0)
    costs[rho] = []
    for batch in stream():
        if hasattr(model, "components_"):
            costs[rho].append(-model.score(batch))
        model.partial_fit(batch)
    print(f"rho = {rho}: mean cost after the change {np.mean(costs[rho][85:]):.3f}")
assert np.mean(costs[0][85:]) > np.mean(costs[2][85:]) > np.mean(costs[10][85:])

# %%

figure, ax = plt.subplots(figsize=(9, 4.6), layout="constrained")
ax.axvspan(79, 180, color="C1", alpha=0.08, linewidth=0)
for rho, name in {0: "forgets nothing", 2: "forgets slowly", 10: "forgets fast"}.items():
    ax.plot(range(1, 180), costs[rho], label=f"rho = {rho}: {name}")
ax.set(xlabel="batch", ylabel="cost of a new batch", xlim=(0, 180), ylim=(0, None))
ax.text(178, 0.03, "other atoms", ha="right", va="bottom", color="0.4")
ax.text(78, 0.03, "one set of atoms", ha="right", va="bottom", color="0.4")
ax.legend(loc="upper left")
plt.show()
