"""
Appliances behind one meter
===========================

An electricity meter sees the sum of everything that is switched on. Most appliances are either on
or off, so their part of a day is a curve with a few steps. A constraint on the atoms says just
that: the fused lasso ball contains curves that are zero at most times and constant at others.
"""

# %%
# A thousand days of a meter
# --------------------------
#
# A value every quarter of an hour. On some days some appliances run, more or less strongly, and
# small consumers add noise.

import matplotlib.pyplot as plt
import numpy as np

from smalto import learn
from smalto.coders import Lasso
from smalto.constraints import FusedLassoBall, L2Ball

rng = np.random.default_rng(0)
hours = np.arange(96) / 4


def running(*spans):
    """The curve of an appliance that runs between these hours."""
    return sum(((hours >= a) & (hours < b)) * 1.0 for a, b in spans)


appliances = {
    "heating by night": running((0, 6), (22, 24)),
    "cooking": running((6.5, 7.5), (12, 13.5), (18, 19.5)),
    "office": running((8, 17)),
    "television": running((19.5, 23)),
}
truth = np.array(list(appliances.values()))
use = rng.gamma(4, 0.25, (1000, 4)) * (rng.random((1000, 4)) < 0.5)
X = use @ truth + 0.7 * rng.standard_normal((1000, 96))

# %%
# With and without the constraint
# -------------------------------

constraints = {"L2Ball()": L2Ball(), "FusedLassoBall(0.2, 0.4)": FusedLassoBall(0.2, 0.4)}
coder = Lasso(lam=1.0, positive=True)
unit = truth / np.linalg.norm(truth, axis=1, keepdims=True)
figure, axes = plt.subplots(3, 4, figsize=(9, 5), sharex=True, layout="constrained")
for ax, name, curve in zip(axes[0], appliances, unit, strict=True):
    ax.fill_between(hours, curve, step="post", color="0.8")
    ax.set_title(name)
for row, (name, constraint) in zip(axes[1:], constraints.items(), strict=True):
    D = learn(X, 4, coder, constraint, random_state=0).D
    likeness = unit @ D.T / np.linalg.norm(D, axis=1)
    order = likeness.argmax(axis=1)
    jumps = np.count_nonzero(abs(np.diff(D)) > 1e-9, axis=1)
    print(f"{name}: {jumps.mean():.0f} steps per atom, likeness {likeness.max(axis=1).round(2)}")
    assert len(set(order)) == 4
    for column, ax in enumerate(row):
        ax.step(hours, D[order[column]], where="post", color=f"C{column}", linewidth=1.4)
    row[0].set_ylabel(name.split("(")[0])
axes[0, 0].set_ylabel("truth")
for ax in axes.flat:
    ax.set_yticks([])
for ax in axes[-1]:
    ax.set(xlabel="hour", xticks=[0, 6, 12, 18, 24])
assert jumps.mean() < 20
plt.show()
