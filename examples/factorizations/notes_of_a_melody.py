"""
Notes of a melody
=================

The spectrogram of a piano piece says how loud each frequency is at each moment. It has no negative
entries, and sounds add up. So non-negative matrix factorization takes it apart: each atom is the
spectrum of a note, and its codes say when the note is played.
"""

# %%
# A tune for two hands
# --------------------
#
# Every note is a tone with overtones that fades away. Two of them often sound at once.

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import stft

from smalto import NMF

RATE = 8000
NAMES = {"C3": 48, "G3": 55, "C4": 60, "D4": 62, "E4": 64, "F4": 65, "G4": 67}
TUNE = "E E F G G F E D C C D E E D D D"
BASS = "C C C C G G G G G C C C G G C G"


def tone(name, seconds=0.5):
    """The sound of a key that is held for a moment."""
    t = np.arange(int(RATE * seconds)) / RATE
    pitch = 440 * 2 ** ((NAMES[name] - 69) / 12)
    waves = [np.sin(2 * np.pi * pitch * n * t) / n**1.5 for n in range(1, 7)]
    return sum(waves) * np.exp(-4 * t) * np.minimum(1, t / 0.01)


notes = [(a + "4", b + "3") for a, b in zip(TUNE.split(), BASS.split(), strict=True)]
sound = np.concatenate([tone(a) + tone(b) for a, b in notes])
sound += 0.01 * np.random.default_rng(0).standard_normal(len(sound))
frequencies, times, spectrum = stft(sound, RATE, nperseg=1024, noverlap=768)
X = abs(spectrum.T)  # rows are moments
print(f"{X.shape[0]} moments, {X.shape[1]} frequencies")

# %%
# Seven atoms for seven notes
# ---------------------------
#
# A small penalty on the codes has each moment explained by few notes. The pitch of an atom is its
# lowest strong frequency.

model = NMF(7, lam=0.002, init="nndsvd", random_state=0)
codes = model.fit_transform(X)
strong = model.components_ > 0.4 * model.components_.max(axis=1, keepdims=True)
pitches = 69 + 12 * np.log2(frequencies[np.argmax(strong, axis=1)] / 440)
names = np.array(list(NAMES))[np.argmin(abs(pitches[:, None] - list(NAMES.values())), axis=1)]
order = np.argsort(pitches)
print("notes found:", *names[order])
assert set(names) == set(NAMES)

# %%

figure, axes = plt.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
low = frequencies < 1600
axes[0].pcolormesh(times, frequencies[low], np.log10(X.T[low] + 1e-3), cmap="magma")
axes[0].set(ylabel="frequency in Hz", title="spectrogram")
scores = codes.T[order] / codes.max(axis=0)[order, None]
axes[1].pcolormesh(times, np.arange(7), scores, cmap="GnBu")
axes[1].set_yticks(range(7), names[order])
axes[1].set(xlabel="seconds", title="codes: when each note is played")
plt.show()
