"""``smalto learn``: a dictionary from pictures or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from smalto.cli.ctrl_c import INTERRUPTED
from smalto.cli.errors import fail, plain_errors
from smalto.cli.inputs import is_picture, names_of_columns, open_table
from smalto.cli.model_files import about_run
from smalto.cli.option_types import Force, Seed, Threads
from smalto.cli.outputs import STREAM, check_output
from smalto.data_frames import check_names

_HELD_OUT = 10_000  # samples of --validation that are used, at most


def learn(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Pictures or folders of pictures, to learn from their patches; or one table "
            "with one sample per row: .npy, .npz, .csv, .parquet, .zarr, .h5 (file.h5::name for "
            "one of several arrays), or - for a .npy file on the standard input. A .csv file may begin "
            "with a line of names (numbers among them in quotes); a first column without a name, "
            "such as the index that pandas writes, is left out.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model to write.")] = Path(
        "model.safetensors"
    ),
    atoms: Annotated[int, typer.Option(min=1, help="Number of atoms.")] = 256,
    patch: Annotated[int, typer.Option(min=1, help="Side of a patch, in pixels.")] = 8,
    gray: Annotated[
        bool, typer.Option("--gray", help="Convert pictures to their luminance.")
    ] = False,
    lam: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Penalty on the l1 norm of the codes.",
            show_default="1.2/sqrt(m) times the rms norm of the samples",
        ),
    ] = None,
    mean_nonzeros: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Alternatively, choose the penalty for codes with about this many nonzeros.",
            show_default=False,
        ),
    ] = None,
    density: Annotated[
        float | None,
        typer.Option(
            help="Learn sparse atoms with about this share of nonzeros.", show_default=False
        ),
    ] = None,
    positive: Annotated[
        bool, typer.Option("--positive", help="Restrict codes and atoms to be non-negative.")
    ] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="Treat NaN in the table as missing entries.")
    ] = False,
    max_epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after this many passes over the data.", show_default="1"),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Stop after this many seconds of learning.", show_default=False),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Samples per step.", show_default="2 per atom")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was stopped.")
    ] = False,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds between checkpoints.")
    ] = 30.0,
    validation: Annotated[
        list[Path] | None,
        typer.Option(
            help="A table of held-out samples, or held-out pictures (may be given several times), "
            "whose cost is measured now and then.",
            show_default=False,
        ),
    ] = None,
    early_stopping: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop after this many measurements of the cost without an improvement; the cost "
            "is that of the held-out samples if there are some.",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="Write a record of each step to this file: .jsonl or .csv."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Write a page about the run to this file (.html), every 30 seconds while it goes "
            "on.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")
    ] = False,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Learn a dictionary and write it to a model file.

    During the run its state is saved to a checkpoint beside the model (model.state.safetensors).
    After Ctrl-C, a crash or a power cut, --resume with the same data continues from the last
    checkpoint as if the run had never stopped. A complete run removes its checkpoint.

    For example:

      smalto learn photo.jpg --patch 12 -o photo.safetensors

      smalto learn samples.npy --atoms 100 --mean-nonzeros 10 --max-epochs 5

      smalto learn samples.npy --max-epochs 5 --resume

      smalto learn photos/ --max-epochs 50 --validation other.jpg --early-stopping 3 --log run.csv

      smalto learn samples.npy --max-epochs 100 --report run.html
    """
    from smalto import Model
    from smalto import learn as run
    from smalto.coders import Lasso
    from smalto.learners import Online
    from smalto.learning import Callback, Checkpoint, EarlyStopping, Log, Progress

    check_output(out, force or resume, (".safetensors",))
    checkpoint = out.with_suffix(".state.safetensors")
    _check_checkpoint(checkpoint, resume, force)
    if lam is not None and mean_nonzeros is not None:
        fail("give either --lam or --mean-nonzeros")
    if log is not None:
        check_output(log, force or resume, (".jsonl", ".csv"))
    if report is not None:
        check_output(report, force or resume, (".html",))
    if max_epochs is None and max_seconds is None:
        max_epochs = 1
    say = _nothing if quiet else typer.echo
    with plain_errors():
        source, about = _open_data(data, patch, gray, missing)
        held_out = None
        if validation:
            others, about_them = _open_data(validation, patch, gray, missing)
            names = about_them.get("names"), about.get("names")
            check_names("the held-out samples", *names, "the data")
            held_out = _some_rows(others)
        if resume:
            problem = _saved_problem(checkpoint)
            say(_where(problem["state"]))
        else:
            problem = {
                "n_atoms": atoms,
                "coder": Lasso(lam, positive=positive, mean_nonzeros=mean_nonzeros),
                "constraint": _constraint(density, positive),
                "learner": Online(batch),
                "random_state": seed,
            }
        callbacks: list[Callback] = [
            Checkpoint(checkpoint, every_seconds=checkpoint_seconds, keep=1)
        ]
        if log is not None:
            callbacks.append(Log(log))
        if report is not None:
            callbacks.append(_report(report, data, source, about))
        if early_stopping is not None:
            callbacks.append(EarlyStopping(early_stopping))
        if not quiet:
            callbacks.append(Progress())
        n = getattr(source, "n_rows", None)
        if n is not None:
            say(f"{n:,} samples of {source.n_features} numbers, {problem['n_atoms']} atoms")
        result = run(
            source,
            max_epochs=max_epochs,
            max_seconds=max_seconds,
            callbacks=callbacks,
            validation=held_out,
            missing="nan" if missing else None,
            n_threads=threads,
            **problem,
        )
        if result.state.step:
            about |= about_run(result, data)
            Model.of(result.state, about).save(out)
    if result.stopped == "interrupt":
        say(_summary(result, out))
        typer.echo(f"stopped: continue from {checkpoint} with --resume", err=True)
        raise typer.Exit(INTERRUPTED)
    checkpoint.unlink(missing_ok=True)
    if not result.state.step:
        limit = "" if max_seconds is None else f": give more than --max-seconds {max_seconds:g}"
        fail(f"nothing was learned, and {out} was not written{limit}")
    say(_summary(result, out))


def _check_checkpoint(checkpoint: Path, resume: bool, force: bool) -> None:
    """Fail if there is no run to resume, or if a new one would discard a stopped one."""
    if resume and not checkpoint.exists():
        fail(f"there is no run to resume: {checkpoint} does not exist")
    if checkpoint.exists() and not (resume or force):
        fail(
            f"{checkpoint} is the checkpoint of a stopped run: continue it with --resume, or "
            "discard it with --force"
        )


def _open_data(
    data: list[Path], patch: int, gray: bool, missing: bool
) -> tuple[Any, dict[str, Any]]:
    """Return the source to learn from, and what the model records about it."""
    from smalto.image import PatchSource
    from smalto.image.reading import as_pictures

    pictures = [path != STREAM and is_picture(path) for path in data]
    if not any(pictures):
        if len(data) > 1:
            fail(f"only one table can be read, got {', '.join(map(str, data))}")
        names = names_of_columns(data[0])
        return open_table(data[0], missing=missing), {} if names is None else {"names": names}
    if not all(pictures):
        fail(f"{data[pictures.index(False)]} is not a picture, but other files are: use one kind")
    found = [picture for path in data for picture in as_pictures(path)]
    source = PatchSource(found, patch, as_gray=gray)
    return source, {"patch": list(source.patch_shape), "centered": True}


def _report(path: Path, data: list[Path], source: Any, about: dict[str, Any]) -> Any:
    """Return the callback that writes a page about the run."""
    from smalto.reporting import Report

    return Report(
        path,
        X=source if getattr(source, "n_rows", None) is not None else None,
        patch_shape=about.get("patch"),
        names=about.get("names"),
        title=", ".join(one.name for one in data),
    )


def _constraint(density: float | None, positive: bool) -> Any:
    """The set of atoms: sparse ones if a density is given."""
    from smalto.constraints import ElasticNetBall, L2Ball

    if density is not None:
        return ElasticNetBall(density=density, positive=positive)
    return L2Ball(positive=positive)


def _saved_problem(checkpoint: Path) -> dict[str, Any]:
    """The state of a stopped run, as arguments of `smalto.learn`."""
    from smalto import State

    state = State.load(checkpoint)
    return {"n_atoms": len(state.D), "state": state}


def _where(state: Any) -> str:
    """Say where a resumed run goes on."""
    return f"continuing after {state.samples:,} samples, in epoch {state.epoch + 1}"


def _some_rows(source: Any) -> Any:
    """Return samples of a source to measure the cost of, spread evenly if there are too many."""
    n = source.n_rows
    return source.rows(np.unique(np.linspace(0, n - 1, min(n, _HELD_OUT)).astype(np.int64)))


def _nothing(text: str) -> None:
    """Do not print."""


def _summary(result: Any, out: Path) -> str:
    """Return a summary of the run."""
    last = result.history[-1] if result.history else None
    if last is None or not last.step:
        return "nothing was learned"
    lam = "" if last.lam is None else f", lam {last.lam:.4g}"
    held_out = "" if last.test_cost is None else f", held-out cost {last.test_cost:.4f}"
    why = ", stopped early" if result.stopped == "callback" else ""
    text = (
        f"{len(result.D)} atoms from {last.samples:,} samples in {last.seconds:.1f} s "
        f"({last.samples / max(last.seconds, 1e-9):,.0f} per second){why}; cost "
        f"{last.batch_cost:.4f}{held_out}, {last.mean_nonzeros:.1f} nonzeros per sample{lam}\n"
        f"wrote {out}"
    )
    density = float(np.mean(result.D != 0))
    if density < 0.99:
        text += f"\n{100 * density:.1f} % of the entries of the atoms are nonzero"
    return text
