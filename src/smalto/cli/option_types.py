"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Threads: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Number of threads.", show_default="all cores")
]
Seed: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Random seed, fixed by default so that runs can be repeated.")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]

# Of the commands that restore a picture.
PictureFile: TypeAlias = Annotated[
    Path, typer.Argument(help="The picture, or - for the standard input.")
]
RestoredFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Where to write the result, or - for the standard output.",
        show_default="NAME-restored.png",
    ),
]
Compare: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Also plot before and after, with an enlarged detail (.png, .svg or .pdf).",
        show_default=False,
    ),
]
ModelFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--model",
        help="Use the dictionary of this model.",
        show_default="learn one from the picture",
    ),
]
Atoms: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Number of atoms to learn.", show_default=False)
]
Patch: TypeAlias = Annotated[
    int | None, typer.Option(min=2, help="Side of a patch, in pixels.", show_default=False)
]
