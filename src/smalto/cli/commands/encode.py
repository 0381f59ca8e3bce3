"""``smalto encode``: sparse codes of a table over a model."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy
import typer

from smalto.cli.errors import fail, plain_errors
from smalto.cli.inputs import open_samples
from smalto.cli.option_types import Force, Threads
from smalto.cli.outputs import STREAM, check_output, write_whole

_ROWS = 1 << 15  # rows read and coded at a time


def encode(
    model: Annotated[Path, typer.Argument(help="A model written by smalto learn.")],
    data: Annotated[
        Path,
        typer.Argument(
            help="A table with one sample per row, in any format of smalto learn, or -; or, for "
            "a model of patches, a picture or a folder of pictures."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="The codes to write: .npz (sparse) or .npy (dense), or - for .npz."
        ),
    ] = Path("codes.npz"),
    missing: Annotated[
        bool, typer.Option("--missing", help="Treat NaN in the table as missing entries.")
    ] = False,
    threads: Threads = None,
    force: Force = False,
) -> None:
    """Compute sparse codes of a table or of pictures.

    Each row of the table, or each patch of the pictures, has a code.

    The dictionary and the coder are those of the model. Load a .npz file with
    scipy.sparse.load_npz and a .npy file with numpy.load.

    For example:

      smalto encode model.safetensors samples.npy -o codes.npz

      smalto encode model.safetensors - -o - < samples.npy > codes.npz
    """
    from smalto import Model
    from smalto.learning import Progress

    check_output(out, force, (".npz", ".npy"))
    with plain_errors():
        learned = Model.load(model)
        source = open_samples(data, missing, learned)
        if source.n_features != learned.D.shape[1]:
            fail(
                f"{data} has {source.n_features} numbers per row, but the atoms of {model} have "
                f"{learned.D.shape[1]}"
            )
        kind: dict[str, Any] = {"missing": "nan" if missing else None, "n_threads": threads}
        parts = []
        with contextlib.closing(Progress(label="coding")) as progress:
            for first in range(0, source.n_rows, _ROWS):
                rows = np.arange(first, min(first + _ROWS, source.n_rows))
                parts.append(learned.encode(source.rows(rows), **kind))
                done = first + len(rows)
                progress.show(done / source.n_rows, f"{done:,} of {source.n_rows:,} samples")
        codes = scipy.sparse.csr_array(scipy.sparse.vstack(parts, format="csr"))
        if out.suffix.lower() == ".npy":
            write_whole(out, lambda file: np.save(file, codes.toarray()))
        else:
            write_whole(out, lambda file: scipy.sparse.save_npz(file, codes))
    if out != STREAM:
        typer.echo(
            f"{codes.shape[0]:,} codes with {codes.nnz / max(codes.shape[0], 1):.1f} nonzeros "
            f"on average; wrote {out}"
        )
