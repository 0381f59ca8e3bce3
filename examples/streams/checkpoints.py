"""
A run that survives a crash
===========================

Long runs are interrupted: by a crash, a power cut, or the end of a time slot. A checkpoint holds
all that a run knows, so that it goes on as if nothing had happened, to the last bit.
"""

# %%
# A run that fails
# ----------------
#
# `Checkpoint` saves the state every five steps. After 23 steps something goes wrong: here, a
# callback that raises.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from smalto import State, learn
from smalto.coders import Lasso
from smalto.datasets import random_patches, sample_photo
from smalto.learners import Online
from smalto.learning import Checkpoint

X = random_patches(sample_photo("flower"), 8, 20_000, as_gray=True, random_state=0)
X, held_out = X[1000:], X[:1000]
path = Path(tempfile.mkdtemp()) / "run.safetensors"
settings = {"coder": Lasso(lam=0.15), "learner": Online(batch_size=500), "random_state": 0}
settings |= {"max_epochs": 2, "validation": held_out, "validate_every": 2}


def power_cut(state, record):
    """End the run the hard way."""
    if record.step == 23:
        raise OSError("the power is gone")


try:
    learn(X, 64, callbacks=[Checkpoint(path, every_steps=5), power_cut], **settings)
except OSError as error:
    print(f"after 23 steps: {error}")

# %%
# Go on
# -----
#
# The last checkpoint is from step 20. The settings are in it, and need not be given again.

state = State.load(path)
print(f"{path.stat().st_size / 1000:.0f} kB: {state.step} steps, {state.samples} samples")
resumed = learn(X, 64, state=state, max_epochs=2, validation=held_out, validate_every=2)

# %%
# Is the result the same as that of a run without the power cut? Every bit of it.

at_once = learn(X, 64, **settings)
assert np.array_equal(resumed.D, at_once.D)
print("the same bits:", np.array_equal(resumed.D, at_once.D))

figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
for run, first, last, style, name in [
    (at_once, 1, 76, {"color": "0.85", "linewidth": 9}, "without interruption"),
    (resumed, 1, 20, {"color": "C0"}, "before the power cut"),
    (resumed, 20, 76, {"color": "C2"}, "resumed from the checkpoint"),
]:
    points = [r for r in run.history if r.test_cost is not None and first <= r.step <= last]
    ax.plot([r.step for r in points], [r.test_cost for r in points], label=name, **style)
ax.axvline(20, color="0.6", linestyle="--", linewidth=1)
ax.text(20.5, ax.get_ylim()[1], "the last checkpoint", va="top", color="0.4")
ax.set(xlabel="step", ylabel="cost of held-out patches")
ax.legend()
plt.show()
