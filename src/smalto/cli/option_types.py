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
PictureFiles: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        help="Pictures, folders of pictures or patterns such as 'photos/*.jpg'; or - for the "
        "standard input.",
        show_default=False,
    ),
]
RestoredFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Where to write the result: a picture (its ending chooses the format), - for the "
        "standard output or, for several pictures, a folder. Pictures that are there already are "
        "skipped in a folder.",
        show_default="NAME-restored",
    ),
]
Compare: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Also plot before and after, with an enlarged detail (.png, .svg, .pdf or .jpg); for "
        "several pictures, a folder of such plots.",
        show_default=False,
    ),
]
ReportFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Also write a page with all pictures before and after (.html).",
        show_default=False,
    ),
]
Range: TypeAlias = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--range",
        metavar="LOW HIGH",
        help="Values of black and white where values become integers of fewer bits, and in plots; "
        "others are clipped.",
        show_default="of the type; 0 1 for floats, or their extremes",
    ),
]
Jobs: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Number of pictures at a time, which share the threads.")
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
