"""
Waveforms in a recording
========================

An electrode on the scalp records a few waveforms again and again, buried in the noise of
everything else. Nobody says what they look like, nor when they come. The recording is made here,
with three waveforms that are known, to see whether they are found.
"""

# %%
# Five minutes of recording
# -------------------------

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import find_peaks

from smalto import encode, learn
from smalto.coders import OMP

RATE = 100  # values per second
rng = np.random.default_rng(0)
t = np.arange(-50, 50) / RATE
waveforms = np.array([
    np.exp(-((t / 0.15) ** 2)) * np.cos(2 * np.pi * 12 * t),  # a spindle
    np.exp(-((t / 0.03) ** 2)) - 0.5 * np.exp(-(((t - 0.15) / 0.1) ** 2)),  # a spike and a wave
    np.exp(-((t / 0.12) ** 2)) - 0.8 * np.exp(-(((t - 0.28) / 0.12) ** 2)),  # a slow complex
])  # fmt: skip
recording = 0.12 * np.convolve(rng.standard_normal(5 * 60 * RATE), [0.2, 0.4, 0.6, 0.8, 1], "same")
events = np.arange(200, len(recording) - 200, 120) + rng.integers(-20, 20, 247)
kinds = rng.integers(3, size=len(events))
for event, kind in zip(events, kinds, strict=True):
    recording[event - 50 : event + 50] += rng.uniform(0.7, 1.5) * waveforms[kind]

# %%
# Windows around peaks
# --------------------
#
# Wherever the recording is high, a window of a second is cut out with the peak in its middle. A
# window is one waveform at some strength: a code with a single nonzero. With so few atoms the start
# matters, as in clustering; so take the best of five.

peaks, _ = find_peaks(recording, height=0.5, distance=60)
peaks = peaks[(peaks > 50) & (peaks < len(recording) - 50)]
windows = recording[peaks[:, None] + np.arange(-50, 50)]
print(f"{len(windows)} windows for {len(events)} events")

runs = [learn(windows, 3, OMP(max_nonzeros=1), random_state=seed) for seed in range(5)]
result = min(runs, key=lambda run: run.history[-1].batch_cost)
truth = waveforms / np.linalg.norm(waveforms, axis=1, keepdims=True)
likeness = abs(truth @ result.D.T)
order = likeness.argmax(axis=1)
print("correlation with the true waveforms:", likeness.max(axis=1).round(3))
assert len(set(order)) == 3
assert likeness.max(axis=1).min() > 0.95

# %%
# Now every peak has a name: the atom of its code.

codes = encode(windows, result.D, result.coder)
figure = plt.figure(figsize=(9, 5), layout="constrained")
grid = figure.add_gridspec(2, 3)
for column, name in enumerate(["spindle", "spike and wave", "slow complex"]):
    ax = figure.add_subplot(grid[1, column], xlabel="seconds", title=name)
    atom = result.D[order[column]]
    ax.plot(t, truth[column], color="0.8", linewidth=5, label="planted")
    ax.plot(t, atom * np.sign(atom @ truth[column]), color=f"C{column}", label="found")
    ax.set_yticks([])
    ax.legend(fontsize=8)
ax = figure.add_subplot(grid[0, :], xlabel="seconds", title="twelve seconds of the recording")
ax.plot(np.arange(1200) / RATE, recording[:1200], color="0.5", linewidth=1)
for peak, atom in zip(peaks, codes.indices, strict=True):
    if peak < 1200:
        ax.axvspan((peak - 40) / RATE, (peak + 40) / RATE, alpha=0.2, linewidth=0,
                   color=f"C{list(order).index(atom)}")  # fmt: skip
ax.set(yticks=[], xlim=(0, 12))
plt.show()
