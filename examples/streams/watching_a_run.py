"""
Watching a run, and a page about it
===================================

How far is it, does the cost still fall, are all atoms used? A log and a page are written while a run
goes on; afterwards the same page has everything that came of it, in one file.
"""

# %%
# A run that is watched
# ---------------------
#
# `Log` writes a line for each step, `Report` a page every 30 seconds: open it in a browser, and it
# loads itself again until the run has ended. `EarlyStopping` ends it.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from smalto import learn
from smalto.coders import Lasso
from smalto.datasets import random_patches, sample_photo
from smalto.learners import Online
from smalto.learning import EarlyStopping, Log
from smalto.plot import cost_curve, use_curve
from smalto.reporting import Report

folder = Path(tempfile.mkdtemp())
X = random_patches(sample_photo("flower"), 8, 10_000, as_gray=True, random_state=0)
X, held_out = X[1000:], X[:1000]
watch = [
    Log(folder / "run.jsonl"),
    Report(folder / "run.html", patch_shape=(8, 8)),
    EarlyStopping(patience=2, tol=1e-3),
]
result = learn(
    X, 128, Lasso(0.3), learner=Online(100), max_epochs=20, validation=held_out, callbacks=watch,
    random_state=0,
)  # fmt: skip
print(f"{result.history[-1].step} steps, {result.history[-1].samples:,} samples: {result.stopped}")
assert result.stopped == "callback"

# %%
# Curves from the log
# -------------------
#
# They can be drawn from the result, a model, an estimator, or from the log of a run that still goes
# on. The hundred patches of a step use most of the atoms, and very few had to be replaced.

log = folder / "run.jsonl"
assert sum(record.replaced for record in result.history) < 10
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
cost_curve(log, "samples", ax=axes[0])
axes[0].set_title("costs of held-out patches")
use_curve(log, "samples", ax=axes[1])
axes[1].set_title("atoms")
plt.show()

# %%
# The page
# --------
#
# With samples, it also has the quality of their codes: R², duality gaps, and the patches that are
# coded best and worst. It is one file, and needs no network.

page = result.report(folder / "report.html", held_out, patch_shape=(8, 8), title="Flower")
print(f"{page.stat().st_size / 1000:.0f} kB")
assert page.stat().st_size < 1_000_000
