"""``smalto report``: a page about a model or a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from smalto.cli.errors import fail, plain_errors
from smalto.cli.inputs import names_of_columns, open_samples
from smalto.cli.model_files import load_model
from smalto.cli.option_types import Force
from smalto.cli.outputs import STREAM, check_output


def report(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model, the checkpoint of a run, or its log (.jsonl or .csv).",
            metavar="MODEL|RUN",
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Argument(
            help="Samples to code, such as those that were learned from: a table in any format of "
            "smalto learn, or -; or, for a model of patches, a picture or a folder of pictures.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write (.html).")] = Path(
        "report.html"
    ),
    patch: Annotated[
        str | None,
        typer.Option(
            help="Show atoms as pictures of this shape, as 8x8 or 8x8x3.",
            show_default="as learned",
        ),
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(min=1, help="Show atoms as lines, one for each channel.", show_default=False),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help="A text file with the name of a feature in each line: show atoms by names.",
            show_default="the first line of a table of text",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="The title.", show_default="the name of the model")
    ] = None,
    force: Force = False,
) -> None:
    """Write a page about a model or a run.

    It is one HTML file that needs no network: settings and versions, costs against time and
    samples, the use of atoms, the dictionary, and a table of atoms that can be sorted and searched.
    With data, it also has the quality of codes, with the samples that are coded best and worst.
    NaN in the data means a missing entry.

    For example:

      smalto report model.safetensors samples.npy -o report.html

      smalto report model.state.safetensors

      smalto report run.jsonl -o run.html
    """
    check_output(out, force, (".html",))
    if out == STREAM:
        fail("a report is a file: give its name with --out")
    with plain_errors():
        from smalto.learning.callbacks.log import LOG_SUFFIXES
        from smalto.reporting import write_report

        title = model.name if title is None else title
        if model.suffix in LOG_SUFFIXES:
            if data is not None:
                fail(f"{model} is a log, without atoms to code {data} with: give the model")
            given = {"--patch": patch, "--channels": channels, "--names": names}
            for option, value in given.items():
                if value is not None:
                    fail(f"{model} is a log, without atoms to show by {option}: give the model")
            if not model.exists():
                fail(f"there is no file {model}")
            write_report(model, out, title=title)
        else:
            learned, state = load_model(model)
            samples = None if data is None else open_samples(data, True, learned)
            look = _look(patch, channels, names, data, learned)
            what = learned if state is None else state
            write_report(what, out, samples, title=title, **look)
    typer.echo(f"wrote {out}")


def _look(
    patch: str | None, channels: int | None, names: Path | None, data: Path | None, learned: Any
) -> dict[str, Any]:
    """Return how to show atoms, as arguments of `write_report`."""
    found: dict[str, Any] = {"n_channels": channels}
    if patch is not None:
        try:
            found["patch_shape"] = tuple(int(side) for side in patch.lower().split("x"))
        except ValueError:
            fail(f"--patch must be as 8x8 or 8x8x3, got {patch}")
    if names is not None:
        try:
            found["names"] = names.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError:
            fail(f"--names must be a text file with a name in each line, {names} is none")
    elif patch is None and channels is None and data is not None and "patch" not in learned.info:
        found["names"] = names_of_columns(data)
    return found
