"""
A video, frame by frame
=======================

Frames of a video resemble those before them. A patch that extends over three frames therefore has
three noisy views of the same thing, and its code averages over them. The dictionary follows the
scene: with every frame it forgets a little of the old ones.
"""

# %%
# Frames that arrive one by one
# -----------------------------
#
# The camera moves over a photograph, and every frame is noisy. A generator yields one frame after
# the other, as a camera would.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

from smalto.image import denoise_video

scene = data.coffee().mean(axis=2) / 255
clean = [scene[150 + i : 278 + i, 150 + 3 * i : 342 + 3 * i] for i in range(12)]


def camera():
    """Yield noisy frames."""
    rng = np.random.default_rng(0)
    for frame in clean:
        yield frame + rng.normal(0, 0.12, frame.shape)


# %%
# With depth 1 every frame is denoised by itself. With depth 3 patches are three frames deep, and
# each frame comes out two frames later than it went in.

options = {"n_atoms": 128, "random_state": 0}
alone = list(denoise_video(camera(), 0.12, depth=1, **options))
together = list(denoise_video(camera(), 0.12, depth=3, **options))


def decibels(frames):
    """The peak signal-to-noise ratio of every frame."""
    return [
        -10 * np.log10(np.mean((frame - truth) ** 2))
        for frame, truth in zip(frames, clean, strict=True)
    ]


noisy = list(camera())
for name, frames in [("noisy", noisy), ("depth 1", alone), ("depth 3", together)]:
    print(f"{name}: {np.mean(decibels(frames)):.1f} dB")
assert np.mean(decibels(together)) > np.mean(decibels(alone))

# %%

figure = plt.figure(figsize=(9, 5.2), layout="constrained")
grid = figure.add_gridspec(2, 3, height_ratios=(1, 0.8))
for column, (name, frames) in enumerate({"frame 8": noisy, "depth 3": together}.items()):
    ax = figure.add_subplot(grid[0, column])
    ax.imshow(frames[8], vmin=0, vmax=1)
    ax.set_title(name)
    ax.set_axis_off()
ax = figure.add_subplot(grid[0, 2])
ax.imshow(clean[8], vmin=0, vmax=1)
ax.set_title("original")
ax.set_axis_off()
ax = figure.add_subplot(grid[1, :], xlabel="frame", ylabel="dB")
for name, frames in {"depth 3": together, "depth 1": alone, "noisy": noisy}.items():
    ax.plot(decibels(frames), "o-", label=name)
ax.legend(ncols=3, loc="center right")
plt.show()
