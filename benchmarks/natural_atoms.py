"""Learn the atoms of natural pictures that ship with smalto.

Square patches of several sizes, of the first eighty photographs (in gray) of ``natural/voc2006`` in
the folder named by SMALTO_DATA, with white Gaussian noise as strong as patches of that size are
used for; codes are no more exact than the noise allows, as in ``denoise``.

Run it with ``python -m benchmarks.natural_atoms``: it writes ``src/smalto/image/natural_atoms.npz``,
one array of signed bytes (atoms, pixels) for each size.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from smalto import learn
from smalto.coders import ErrorBound
from smalto.datasets import DATA_VARIABLE
from smalto.image import PatchSource, read_picture
from smalto.image.noise import rms_of_noise
from smalto.learners import Online

LUMA = np.array([0.299, 0.587, 0.114])
NOISE = {8: 12.0, 10: 20.0, 12: 35.0, 16: 50.0}  # standard deviation for patches of each side


def main() -> None:
    """Learn and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--atoms", type=int, default=256)
    parser.add_argument("--steps", type=int, default=1500, help="of 1024 patches each")
    parser.add_argument("--pictures", type=int, default=80)
    parser.add_argument("--sides", nargs="+", type=int, default=list(NOISE))
    parser.add_argument("--out", type=Path, default=Path("src/smalto/image/natural_atoms.npz"))
    options = parser.parse_args()
    paths = sorted((Path(os.environ[DATA_VARIABLE]) / "natural" / "voc2006").glob("*.png"))[
        : options.pictures
    ]
    photos = [np.rint(read_picture(path) @ LUMA) for path in paths]
    found = {}
    for side in options.sides:
        sigma = NOISE[side]
        m = side * side
        noisy = []
        for number, photo in enumerate(photos):
            noise = np.random.default_rng([number, side]).normal(0, sigma, photo.shape)
            noisy.append((photo + noise).astype(np.float32))
        error = sigma * rms_of_noise(m, 1.1)
        source = PatchSource(noisy, side, normalize=False, min_contrast=error, dtype=np.float32)
        D = learn(
            source,
            options.atoms,
            ErrorBound(m * error**2),
            learner=Online(batch_size=1024),
            max_steps=options.steps,
            random_state=0,
        ).D
        found[f"side{side}"] = np.rint(127 * D / np.abs(D).max(axis=1, keepdims=True)).astype(
            np.int8
        )
        print(f"{side} x {side}: {len(D)} atoms from {source.n_rows} patches", flush=True)
    np.savez_compressed(options.out, **found)


if __name__ == "__main__":
    main()
