"""``smalto demo``: text over a photograph, and the photograph without it."""

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
    Force,
    Seed,
    Threads,
    fail,
    need_matplotlib,
    plain_errors,
    say_if_compiling,
    write_figure,
    write_picture,
)
from smalto.learning.memory.state import Record

N_TEST = 3_000
MIN_CONTRAST = 0.03  # leaves out blurred backgrounds and sky: there is only noise to be learned
TILE = 48  # every fifth tile of the photograph is held out
NAMES = ("damaged.png", "restored.png", "before-after.png", "dictionary.png", "cost.png")


class Photo(StrEnum):
    """A photograph to learn from."""

    flower = "flower"
    china = "china"


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the pictures.")] = Path("smalto-demo"),
    photo: Annotated[Photo, typer.Option(help="The photograph to write over.")] = Photo.china,
    atoms: Annotated[int, typer.Option(min=2, max=4096, help="How many atoms.")] = 256,
    patch: Annotated[int, typer.Option(min=4, max=24, help="The side of a patch.")] = 10,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="How long to learn.")] = 8.0,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Write text over a photograph, learn from what is left of it, and remove the text.

    The pictures: the damaged photograph, the restored one, both with a piece enlarged, the atoms,
    and the cost of held-out patches as it fell. Ctrl-C ends the learning early; the pictures are
    made from what was learned so far.
    """
    need_matplotlib()
    paths = _paths(out, force)
    from smalto import learn
    from smalto.coders import Lasso
    from smalto.datasets import sample_photo
    from smalto.image import PatchSource, inpaint, text_mask

    original = sample_photo(photo.value)
    mask = text_mask(original.shape[:2])
    damaged = np.where(mask[:, :, None], np.array([226, 20, 30], np.uint8), original)
    write_picture(paths[0], damaged)
    held_out = _tiles(mask.shape, max(TILE, 3 * patch))
    cut: dict[str, Any] = {"min_contrast": MIN_CONTRAST, "n_threads": threads}
    train = PatchSource(damaged, patch, mask=mask | held_out, **cut)
    others = PatchSource(damaged, patch, mask=mask | ~held_out, **cut)
    rng = np.random.default_rng(seed)
    test = others.rows(np.sort(rng.permutation(others.n_rows)[:N_TEST]))
    typer.echo(
        f"{photo.value}: {100 * mask.mean():.0f} % of the pixels lie under text; "
        f"{train.n_rows:,} undamaged patches of {patch} x {patch} RGB to learn from"
    )
    coder = Lasso(1.2 / math.sqrt(train.n_features))
    settings: dict[str, Any] = {"validation": test, "n_threads": threads, "random_state": seed}
    with plain_errors():
        with say_if_compiling():
            warm = learn(train, atoms, coder, max_steps=2, **settings)
        if warm.stopped == "interrupt":
            raise typer.Exit(INTERRUPTED)
        with Bar(seconds=seconds) as bar:
            result = learn(
                train, atoms, coder, max_seconds=seconds, validate_every=_milestones(),
                callbacks=(bar,), **settings,
            )  # fmt: skip
        last = result.history[-1]
        if last.step == 0:  # interrupted before anything was learned
            raise typer.Exit(INTERRUPTED)
        typer.echo("filling in ...", err=True)
        restored = inpaint(
            damaged, mask, dictionary=result.D, patch_size=patch, channel_axis=2, n_threads=threads,
            random_state=seed,
        )  # fmt: skip
        _draw(paths[1:], damaged, restored, original, result, patch)
    first, end = (record.test_cost for record in (result.history[0], last))
    typer.echo(
        f"{atoms} atoms learned in {last.seconds:.1f} s, "
        f"{last.samples / last.seconds:,.0f} patches per second\n"
        f"cost of held-out patches: {first:.4f} with random patches for atoms, {end:.4f} now\n"
        f"the restored pixels: {_psnr(original, restored, mask):.1f} dB (the text: "
        f"{_psnr(original, damaged, mask):.1f} dB)\n"
        f"wrote {', '.join(path.name for path in paths)} to {out}"
    )
    if result.stopped == "interrupt":
        raise typer.Exit(INTERRUPTED)
    other = Photo.china if photo is Photo.flower else Photo.flower
    typer.echo(f"try next: smalto demo --photo {other.value} --out smalto-{other.value}")


def _paths(out: Path, force: bool) -> list[Path]:
    """Where the pictures go, if they can go there."""
    paths = [out / name for name in NAMES]
    existing = [path.name for path in paths if path.exists()]
    if existing and not force:
        there = f"{', '.join(existing)} {'is' if len(existing) == 1 else 'are'} already in {out}"
        fail(f"{there}: give --force, or another folder with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"no pictures can be written to {out}: {error.strerror or error}")
    if not os.access(out, os.W_OK):
        fail(f"no pictures can be written to {out}: it is read-only")
    return paths


def _tiles(shape: tuple[int, ...], side: int) -> Array:
    """Every fifth tile of a picture: what is held out."""
    rows, columns = np.arange(shape[0]) // side, np.arange(shape[1]) // side
    return np.asarray((rows[:, None] + 2 * columns) % 5 == 0)


def _draw(
    paths: Sequence[Path], damaged: Array, restored: Array, original: Array, result: Any, patch: int
) -> None:
    from smalto.cli.common import use_of_atoms
    from smalto.plot import before_after, dictionary_mosaic

    order = np.argsort(-use_of_atoms(result.state), kind="stable")
    costs = [r.test_cost for r in result.history if r.test_cost is not None]
    write_picture(paths[0], restored)
    titles = ("damaged", "restored", "as it was")
    write_figure(paths[1], before_after(damaged, restored, original, titles=titles))
    write_figure(paths[2], dictionary_mosaic(result.D, (patch, patch, 3), order=order))
    write_figure(paths[3], _curve(result.history, costs[0]))


def _psnr(original: Array, other: Array, mask: Array) -> float:
    """Peak signal to noise ratio where the picture was damaged."""
    error = original[mask].astype(np.float64) - other[mask]
    return float(10 * np.log10(255.0**2 / max(float(np.mean(error**2)), 1e-12)))


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
