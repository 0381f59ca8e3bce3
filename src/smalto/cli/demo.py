"""``smalto demo``: a demonstration that leaves pictures."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from smalto.checks import Array
from smalto.cli.common import (
    INTERRUPTED,
    Bar,
    fail,
    need_matplotlib,
    say_if_compiling,
    write_figure,
)
from smalto.learning.state import Record

N_TRAIN, N_TEST = 60_000, 3_000
MIN_CONTRAST = 0.03  # leaves out blurred backgrounds and sky: there is only noise to be learned
TILE = 48  # every fifth tile of the photograph is held out
NAMES = ("dictionary.png", "cost.png")


class Photo(StrEnum):
    """A photograph to learn from."""

    flower = "flower"
    china = "china"


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the pictures.")] = Path("smalto-demo"),
    photo: Annotated[Photo, typer.Option(help="The photograph to learn from.")] = Photo.flower,
    atoms: Annotated[int, typer.Option(min=2, max=4096, help="How many atoms.")] = 256,
    patch: Annotated[int, typer.Option(min=2, max=32, help="The side of a patch.")] = 8,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="How long to learn.")] = 10.0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="How many threads.", show_default="all cores")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of all randomness.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite pictures.")] = False,
) -> None:
    """Learn a dictionary from a photograph and draw it.

    Ctrl-C ends the learning early; the pictures of what was learned so far are written still.
    """
    need_matplotlib()
    paths = [out / name for name in NAMES]
    existing = [str(path) for path in paths if path.exists()]
    if existing and not force:
        fail(f"{' and '.join(existing)} already there: give --force, or another folder with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"no pictures can be written to {out}: {error.strerror or error}")
    if not os.access(out, os.W_OK):
        fail(f"no pictures can be written to {out}: it is read-only")

    from smalto import encode, learn
    from smalto.coders import Lasso
    from smalto.plot import dictionary_mosaic

    train, test = _patches(photo, patch, seed)
    coder = Lasso(1.2 / math.sqrt(train.shape[1]))
    settings: dict[str, Any] = {"validation": test, "n_threads": threads, "random_state": seed}
    typer.echo(
        f"{photo.value}: {len(train):,} patches of {patch} x {patch} RGB to learn from, "
        f"{len(test):,} from other parts of the photograph to test on"
    )
    with say_if_compiling():
        warm = learn(train, atoms, coder, max_steps=2, **settings)
    if warm.stopped == "interrupt":
        raise typer.Exit(INTERRUPTED)
    with Bar(seconds=seconds) as bar:
        result = learn(
            train,
            atoms,
            coder,
            max_seconds=seconds,
            validate_every=_milestones(),
            callbacks=(bar,),
            **settings,
        )
    last = result.history[-1]
    if last.step == 0:  # interrupted before anything was learned
        raise typer.Exit(INTERRUPTED)
    codes = encode(test, result.D, result.coder, n_threads=threads)
    costs = [record.test_cost for record in result.history if record.test_cost is not None]
    use = np.bincount(codes.indices, weights=np.abs(codes.data), minlength=atoms)
    tiles = dictionary_mosaic(result.D, (patch, patch, 3), order=np.argsort(-use, kind="stable"))
    for path, axes in zip(paths, (tiles, _curve(result.history, costs[0])), strict=True):
        write_figure(path, axes)
    typer.echo(
        f"{atoms} atoms learned in {last.seconds:.1f} s, "
        f"{last.samples / last.seconds:,.0f} patches per second\n"
        f"cost of held-out patches: {costs[0]:.4f} with random patches for atoms, "
        f"{costs[-1]:.4f} now; {codes.nnz / len(test):.1f} atoms per patch\n"
        f"wrote {' and '.join(map(str, paths))}"
    )
    if result.stopped == "interrupt":
        raise typer.Exit(INTERRUPTED)
    other = Photo.china if photo is Photo.flower else Photo.flower
    typer.echo(f"try next: smalto demo --photo {other.value} --patch 12 --out smalto-{other.value}")


def _patches(photo: Photo, patch: int, seed: int) -> tuple[Array, Array]:
    """Patches to learn from and patches to test on, which share no pixel."""
    from smalto.datasets import random_patches, sample_photo

    picture = sample_photo(photo.value)
    side = max(TILE, 3 * patch)
    groups: tuple[list[Array], list[Array]] = ([], [])
    for i, strip in enumerate(np.array_split(picture, picture.shape[0] // side, axis=0)):
        for j, tile in enumerate(np.array_split(strip, picture.shape[1] // side, axis=1)):
            groups[(i + 2 * j) % 5 == 0].append(tile)
    rng = np.random.default_rng(seed)
    train, test = (
        random_patches(tiles, patch, n, random_state=rng, min_contrast=MIN_CONTRAST)
        for tiles, n in zip(groups, (N_TRAIN, N_TEST), strict=True)
    )
    return train, test


def _curve(history: Sequence[Record], before: float) -> Any:
    """Draw the cost of held-out patches, and where it was before anything was learned."""
    from smalto.plot import cost_curve

    ax = cost_curve(history)
    ax.set_ylabel("cost of held-out patches")
    ax.axhline(before, color="0.6", linestyle="--", linewidth=1.2)
    ax.annotate(
        "random patches for atoms",
        (1.0, before),
        xycoords=ax.get_yaxis_transform(),
        xytext=(-4, -5),
        textcoords="offset points",
        color="0.4",
        ha="right",
        va="top",
    )
    return ax


def _milestones() -> Sequence[int]:
    """At which steps to look at the test cost: at each one first, then ever an eighth later."""
    return sorted({round(1.125**i) for i in range(160)})
