"""
Signals that share their atoms
==============================

Several sensors record the same event. Each sees the same few sources, at other strengths, with
noise of its own. One sensor alone is often fooled by the noise. Together they agree on what is
there: a joint coder gives all signals of a group the same atoms.
"""

# %%
# Events and sensors
# ------------------
#
# An event is a sum of four of sixty sources, seen through strong noise.

import matplotlib.pyplot as plt
import numpy as np

from smalto import encode
from smalto.coders import OMP, JointOMP

rng = np.random.default_rng(0)
D = rng.standard_normal((60, 40))
D /= np.linalg.norm(D, axis=1, keepdims=True)


def record(n_events, n_sensors):
    """Return signals of all sensors, their events, and the true sources of each signal."""
    truth = np.zeros((n_events, n_sensors, 60))
    for event in truth:
        event[:, rng.choice(60, 4, replace=False)] = rng.choice([-1, 1], (n_sensors, 4))
    truth = truth.reshape(-1, 60)
    X = truth @ D + 0.35 * rng.standard_normal((len(truth), 40))
    return X, np.repeat(np.arange(n_events), n_sensors), truth != 0


# %%
# One by one, or together
# -----------------------

counts = [1, 2, 3, 4, 6, 8, 12, 16]
shares = {"one by one (OMP)": [], "together (JointOMP)": []}
for n_sensors in counts:
    X, events, true = record(200, n_sensors)
    alone = encode(X, D, OMP(max_nonzeros=4)).toarray() != 0
    together = encode(X, D, JointOMP(max_nonzeros=4), groups=events).toarray() != 0
    for name, found in zip(shares, (alone, together), strict=True):
        shares[name].append(found[true].mean())
    print(
        f"{n_sensors} sensors: {alone[true].mean():.0%} alone, {together[true].mean():.0%} together"
    )
assert shares["together (JointOMP)"][-1] > 0.99 > 1.2 * shares["one by one (OMP)"][-1]

# %%
# On the right the codes of one event: gray bars are the true sources, dots are what was found by
# each of the sixteen sensors.

figure = plt.figure(figsize=(9, 4.4), layout="constrained")
grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.2))
ax = figure.add_subplot(grid[:, 0], xlabel="sensors", ylabel="true sources found")
for (name, share), marker in zip(shares.items(), "os", strict=True):
    ax.plot(counts, share, f"{marker}-", label=name)
ax.yaxis.set_major_formatter("{x:.0%}")
ax.grid(axis="y")
ax.legend()
for row, (name, found) in enumerate(zip(shares, (alone, together), strict=True)):
    ax = figure.add_subplot(grid[row, 1], title=name, ylabel="sensor")
    for source in np.flatnonzero(true[0]):
        ax.axvspan(source - 0.7, source + 0.7, color="0.88", linewidth=0)
    sensor, source = np.nonzero(found[:16])
    ax.plot(source, sensor + 1, "os"[row], color=f"C{row}", markersize=4)
    ax.set_xlim(-1, 60)
ax.set_xlabel("source")
plt.show()
