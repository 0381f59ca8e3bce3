"""``smalto warmup``: compile everything now."""

from __future__ import annotations

from typing import Annotated

import typer

from smalto.cli.errors import fail, plain_errors


def warmup(
    processes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes that compile at the same time.", show_default="all cores"
        ),
    ] = None,
) -> None:
    """Compile all kernels now, so that no later command has to wait.

    They are kept in the user's folder for caches, or in NUMBA_CACHE_DIR. Once is enough for a
    machine, a container image or a cluster with a common home.

    For example:

      smalto warmup --processes 2
    """
    from smalto.warming_up import warmup as run

    with plain_errors("stopped: the kernels compiled so far are kept"):
        done = run(processes)
    if done.compiled or done.loaded:
        typer.echo(
            f"{done.compiled} kernels compiled, {done.loaded} loaded in {done.seconds:.0f} s"
        )
    if done.folder is not None:
        typer.echo(f"{done.n_files} files, {done.size / 1e6:.1f} MB in {done.folder}")
    elif not done.loaded:
        fail("nothing was compiled, because it could not have been kept")
