"""``smalto demo``: remove text from a photograph."""

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
from smalto.cli.ctrl_c import INTERRUPTED
from smalto.cli.errors import fail, plain_errors
from smalto.cli.model_files import by_energy
from smalto.cli.option_types import Force, Seed, Threads
from smalto.cli.outputs import need_matplotlib, write_figure, write_picture
from smalto.learning.memory.record import Record

FILES = ("damaged.png", "restored.png", "before-after.png", "dictionary.png", "cost.png")
_N_TEST = 3_000
_MIN_CONTRAST = 0.03  # leaves out sky and blurred backgrounds, which are mostly noise
_TILE = 48  # side of the tiles of which every fifth is held out, at least
_RED = np.array([226, 20, 30], np.uint8)  # of the text


class Photo(StrEnum):
    """A photograph to learn from."""

    flower = "flower"
    china = "china"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("smalto-demo"),
    photo: Annotated[Photo, typer.Option(help="The photograph.")] = Photo.china,
    atoms: Annotated[int, typer.Option(min=2, max=4096, help="Number of atoms.")] = 256,
    patch: Annotated[int, typer.Option(min=4, max=24, help="Side of a patch, in pixels.")] = 10,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds of learning.")] = 5.0,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Remove text from a photograph.

    Writes text over a photograph, learns a dictionary from the undamaged patches, and fills in the
    pixels under the text. The output is the damaged and the restored photograph, a comparison
    with an enlarged detail, the atoms, and a plot of the cost on held-out patches. Ctrl-C ends
    learning early; the text is then removed with the dictionary learned so far.
    """
    need_matplotlib()
    paths = _check_folder(out, force)
    from smalto import learn
    from smalto.coders import Lasso
    from smalto.datasets import sample_photo
    from smalto.image import PatchSource, inpaint, text_mask
    from smalto.learning import Progress

    original = sample_photo(photo.value)
    mask = text_mask(original.shape[:2])
    damaged = np.where(mask[:, :, None], _RED, original)
    write_picture(paths[0], damaged)
    held_out = _every_fifth_tile(mask.shape, max(_TILE, 3 * patch))
    kind: dict[str, Any] = {"min_contrast": _MIN_CONTRAST, "n_threads": threads}
    train = PatchSource(damaged, patch, mask=mask | held_out, **kind)
    others = PatchSource(damaged, patch, mask=mask | ~held_out, **kind)
    rng = np.random.default_rng(seed)
    test = others.rows(np.sort(rng.permutation(others.n_rows)[:_N_TEST]))
    typer.echo(
        f"{photo.value}: text covers {100 * mask.mean():.0f} % of the pixels; learning from "
        f"{train.n_rows:,} undamaged patches of {patch} x {patch} RGB pixels"
    )
    coder = Lasso(1.2 / math.sqrt(train.n_features))
    settings: dict[str, Any] = {"validation": test, "n_threads": threads, "random_state": seed}
    with plain_errors():
        result = learn(
            train,
            atoms,
            coder,
            max_seconds=seconds,
            validate_every=_milestones(),
            callbacks=(Progress(),),
            **settings,
        )
        last = result.history[-1]
        if last.step == 0:
            raise KeyboardInterrupt  # before the first step
        typer.echo("removing the text ...", err=True)
        restored = inpaint(
            damaged,
            mask,
            effort=0,
            D=result.D,
            patch_size=patch,
            channel_axis=2,
            n_threads=threads,
        )
        write_picture(paths[1], restored)
        _plot(paths[2:], (damaged, restored, original), result, patch)
    first, end = (record.test_cost for record in (result.history[0], last))
    typer.echo(
        f"{atoms} atoms learned in {last.seconds:.1f} s, "
        f"{last.samples / last.seconds:,.0f} patches per second\n"
        f"cost on held-out patches: {first:.4f} with random patches as atoms, {end:.4f} now\n"
        f"restored pixels: {_psnr(original, restored, mask):.1f} dB (with the text: "
        f"{_psnr(original, damaged, mask):.1f} dB)\n"
        f"wrote {', '.join(path.name for path in paths)} to {out}"
    )
    if result.stopped == "interrupt":
        raise typer.Exit(INTERRUPTED)
    other = Photo.china if photo is Photo.flower else Photo.flower
    typer.echo(f"try next: smalto demo --photo {other.value} --out smalto-{other.value}")


def _check_folder(out: Path, force: bool) -> list[Path]:
    """Create the folder; return the paths of the pictures, or fail if they cannot be written."""
    paths = [out / name for name in FILES]
    existing = [path.name for path in paths if path.exists()]
    if existing and not force:
        verb = "exists" if len(existing) == 1 else "exist"
        fail(
            f"{', '.join(existing)} already {verb} in {out}: use --force to overwrite, or another "
            "folder with --out"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"no pictures can be written to {out}: {error.strerror or error}")
    if not os.access(out, os.W_OK):
        fail(f"no pictures can be written to {out}: it is read-only")
    return paths


def _every_fifth_tile(shape: tuple[int, ...], side: int) -> Array:
    """A mask of every fifth tile of a picture."""
    rows, columns = np.arange(shape[0]) // side, np.arange(shape[1]) // side
    return np.asarray((rows[:, None] + 2 * columns) % 5 == 0)


def _plot(
    paths: Sequence[Path], pictures: tuple[Array, Array, Array], result: Any, patch: int
) -> None:
    """Plot the comparison, the atoms and the cost."""
    from smalto.plot import before_after, dictionary_mosaic

    comparison = before_after(*pictures, titles=("damaged", "restored", "original"))
    order = by_energy(result.state.energy())
    first = next(r.test_cost for r in result.history if r.test_cost is not None)
    write_figure(paths[0], comparison)
    write_figure(paths[1], dictionary_mosaic(result.D, (patch, patch, 3), order=order))
    write_figure(paths[2], _plot_cost(result.history, first))


def _plot_cost(history: Sequence[Record], first: float) -> Any:
    """Plot the cost on held-out patches, with a line at the cost before learning."""
    from smalto.plot import cost_curve

    ax = cost_curve(history)
    ax.set_ylabel("cost on held-out patches")
    ax.axhline(first, color="0.6", linestyle="--", linewidth=1.2)
    ax.annotate(
        "random patches as atoms",
        (1.0, first),
        xycoords=ax.get_yaxis_transform(),
        xytext=(-4, -5),
        textcoords="offset points",
        color="0.4",
        ha="right",
        va="top",
    )
    return ax


def _psnr(original: Array, other: Array, mask: Array) -> float:
    """Peak signal-to-noise ratio of the masked pixels."""
    error = original[mask].astype(np.float64) - other[mask]
    return float(10 * np.log10(255.0**2 / max(float(np.mean(error**2)), 1e-12)))


def _milestones() -> Sequence[int]:
    """The steps at which to measure the test cost: all at first, then 12.5 % more each time."""
    return sorted({round(1.125**i) for i in range(160)})
