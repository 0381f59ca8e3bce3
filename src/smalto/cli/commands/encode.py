"""``smalto encode``: sparse codes of a table, over a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy import sparse

from smalto.cli.common import (
    STREAM,
    Force,
    Threads,
    check_output,
    fail,
    plain_errors,
    say_if_compiling,
    write_whole,
)
from smalto.cli.tables import open_table

_ROWS = 1 << 15  # read and coded at once


def encode(
    model: Annotated[Path, typer.Argument(help="A model that smalto learn has written.")],
    data: Annotated[
        Path, typer.Argument(help="A table with a sample in each row, as for smalto learn, or -.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The codes to write: .npz (sparse), .npy (dense), or -."),
    ] = Path("codes.npz"),
    missing: Annotated[
        bool, typer.Option("--missing", help="NaN in the table means that an entry is missing.")
    ] = False,
    threads: Threads = None,
    force: Force = False,
) -> None:
    """Code the rows of a table over the atoms of a model, by the problem it was learned for.

    A .npz file is read back by scipy.sparse.load_npz, a .npy file by numpy.load.

    Examples
    --------
      smalto encode model.safetensors samples.npy -o codes.npz

      smalto encode model.safetensors - -o - < samples.npy > codes.npz
    """
    from tqdm import tqdm

    from smalto import Model

    check_output(out, force, (".npz", ".npy"))
    with plain_errors():
        learned = Model.load(model)
        source: Any = open_table(data, missing=missing)
        if source.n_features != learned.D.shape[1]:
            fail(
                f"{data} has {source.n_features} numbers in a row, the atoms of {model} have "
                f"{learned.D.shape[1]}"
            )
        parts = []
        with say_if_compiling(), tqdm(total=source.n_rows, desc="coding", unit_scale=True) as bar:
            for first in range(0, source.n_rows, _ROWS):
                rows = np.arange(first, min(first + _ROWS, source.n_rows))
                parts.append(
                    learned.encode(
                        source.rows(rows), missing="nan" if missing else None, n_threads=threads
                    )
                )
                bar.update(len(rows))
        codes = sparse.csr_array(sparse.vstack(parts, format="csr"))
        if out.suffix.lower() == ".npy":
            write_whole(out, lambda file: np.save(file, codes.toarray()))
        else:
            write_whole(out, lambda file: sparse.save_npz(file, codes))
    if out != STREAM:
        typer.echo(
            f"{codes.shape[0]:,} codes, {codes.nnz / max(codes.shape[0], 1):.1f} nonzeros each; "
            f"wrote {out}"
        )
