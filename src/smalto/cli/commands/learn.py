"""``smalto learn``: a dictionary from pictures or tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from smalto.cli.common import (
    INTERRUPTED,
    STREAM,
    Bar,
    Force,
    Seed,
    Threads,
    check_output,
    fail,
    plain_errors,
    say_if_compiling,
    use_of_atoms,
)
from smalto.cli.tables import is_picture, open_table


def learn(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Pictures or folders of pictures, of which patches are learned; or one table "
            "with a sample in each row: .npy, .npz, .csv, .parquet, .zarr, .h5 (file.h5::name for "
            "one of several), or - for a .npy on the standard input.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model to write.")] = Path(
        "model.safetensors"
    ),
    atoms: Annotated[int, typer.Option(min=1, help="How many atoms.")] = 256,
    patch: Annotated[int, typer.Option(min=1, help="The side of a patch of a picture.")] = 8,
    grey: Annotated[bool, typer.Option("--grey", help="Learn from the luminance alone.")] = False,
    lam: Annotated[
        float | None,
        typer.Option(
            min=0, help="The weight of the l1 norm of a code.", show_default="1.2/sqrt(m) rms norms"
        ),
    ] = None,
    nonzeros: Annotated[
        float | None,
        typer.Option(
            min=0, help="Instead: about how many nonzeros a code has.", show_default=False
        ),
    ] = None,
    density: Annotated[
        float | None,
        typer.Option(help="The wanted share of nonzeros in the atoms.", show_default=False),
    ] = None,
    positive: Annotated[
        bool, typer.Option("--positive", help="Non-negative codes and atoms.")
    ] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="NaN in a table means that an entry is missing.")
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data.", show_default="1")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="How long to learn at most.", show_default=False)
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Samples per step.", show_default="2 per atom")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped.")
    ] = False,
    every: Annotated[float, typer.Option(min=0, help="Seconds between two checkpoints.")] = 30.0,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Learn a dictionary and write it to a model file.

    While it runs, the state is kept in a checkpoint beside the model (model.state.safetensors).
    Ctrl-C, a crash or a power cut lose nothing that is in it: with --resume, and the same data,
    the run goes on as if it had never stopped. When the run is complete the checkpoint is removed.

    Examples
    --------
      smalto learn photo.jpg --patch 12 -o photo.safetensors

      smalto learn samples.npy --atoms 100 --nonzeros 10 --epochs 5

      smalto learn samples.npy --epochs 5 --resume
    """
    from smalto import Model, State
    from smalto import learn as run
    from smalto.coders import Lasso
    from smalto.constraints import ElasticNetBall, L2Ball
    from smalto.learners import Online
    from smalto.learning import Checkpoint

    check_output(out, force or resume, (".safetensors",))
    checkpoint = out.with_suffix(".state.safetensors")
    if lam is not None and nonzeros is not None:
        fail("give either --lam or --nonzeros")
    if checkpoint.exists() and not (resume or force):
        fail(f"{checkpoint} is left of a run that was stopped: --resume it, or --force a new one")
    with plain_errors():
        state = None
        if resume:
            if not checkpoint.exists():
                fail(f"there is no run to resume: {checkpoint} does not exist")
            state = State.load(checkpoint)
        source, about = _open(data, patch, grey, missing)
        if state is None:
            density_set = None
            if density is not None:
                density_set = ElasticNetBall(density=density, positive=positive)
            problem: dict[str, Any] = {
                "coder": Lasso(lam, positive=positive, mean_nonzeros=nonzeros),
                "constraint": density_set or L2Ball(positive=positive),
                "learner": Online(batch),
                "random_state": seed,
            }
        else:
            atoms, problem = len(state.D), {"state": state}
            typer.echo(f"going on after {state.samples:,} samples, in epoch {state.epoch + 1}")
        if epochs is None and seconds is None:
            epochs = 1
        n = getattr(source, "n_rows", None)
        samples = None if n is None or epochs is None else n * epochs
        if n is not None:
            typer.echo(f"{n:,} samples of {source.n_features} numbers, {atoms} atoms")
        keep = Checkpoint(checkpoint, every_seconds=every, keep=1)
        with (
            say_if_compiling(),
            Bar(seconds=seconds if samples is None else None, samples=samples) as bar,
        ):
            result = run(
                source, atoms, max_epochs=epochs, max_seconds=seconds, callbacks=(keep, bar),
                missing="nan" if missing else None, n_threads=threads, **problem,
            )  # fmt: skip
        about |= {"use": use_of_atoms(result.state).tolist(), "samples": result.state.samples}
        if result.state.step:
            Model.of(result.state, about).save(out)
    _tell(result, out)
    if result.stopped == "interrupt":
        typer.echo(f"stopped: --resume goes on from {checkpoint}", err=True)
        raise typer.Exit(INTERRUPTED)
    checkpoint.unlink(missing_ok=True)


def _open(data: list[Path], patch: int, grey: bool, missing: bool) -> tuple[Any, dict[str, Any]]:
    """What to learn from, and what a model should remember of it."""
    from smalto.image import PatchSource

    pictures = [path != STREAM and is_picture(path) for path in data]
    if not any(pictures):
        if len(data) > 1:
            fail(f"one table at a time: got {', '.join(map(str, data))}")
        return open_table(data[0], missing=missing), {}
    if not all(pictures):
        fail(f"{data[pictures.index(False)]} is no picture, others are: give one kind of data")
    from smalto.image.pictures import as_pictures

    found = [picture for path in data for picture in as_pictures(path)]
    source = PatchSource(found, patch, colour=False if grey else None)
    colour = source.n_features == 3 * patch * patch
    shape = [patch, patch, 3] if colour else [patch, patch]
    return source, {"patch": shape, "centred": True}


def _tell(result: Any, out: Path) -> None:
    last = result.history[-1] if result.history else None
    if last is None or not last.step:
        typer.echo("nothing was learned")
        return
    cost = next((r.batch_cost for r in reversed(result.history)), math.nan)
    lam = "" if last.lam is None else f", lam {last.lam:.4g}"
    typer.echo(
        f"{len(result.D)} atoms from {last.samples:,} samples in {last.seconds:.1f} s "
        f"({last.samples / max(last.seconds, 1e-9):,.0f} per second); cost {cost:.4f}, "
        f"{last.mean_nonzeros:.1f} nonzeros per sample{lam}\nwrote {out}"
    )
    dense = float(np.mean(result.D != 0))
    if dense < 0.99:
        typer.echo(f"{100 * dense:.1f} % of the entries of the atoms are nonzero")
