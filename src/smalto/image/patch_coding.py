"""Codes of the overlapping patches of a picture, and the average of what they encode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Coder
from smalto.coders.codes import Codes
from smalto.coders.coding import code_rows
from smalto.coders.preparing import prepare
from smalto.coders.signals import Signals
from smalto.image.averaging import PatchAverage
from smalto.image.patch_grid import PatchGrid, flat_mask
from smalto.image.stages import follow
from smalto.kernels.image.patch_gathering import decode
from smalto.threads import run_tasks, single_threaded_blas

_AT_ONCE = 1 << 13  # patches in memory at a time, approximately
_SLACK = 0.3  # share of λ by which codes of damaged patches may violate optimality
_WHAT = "coding patches"
_TASK = 1024  # patches cut or composed as one task


def average_of_codes(
    grid: PatchGrid, D: Array, coder: Coder, *, stride: int, n_threads: int
) -> PatchAverage:
    """Code the centered patches of a picture over D and average the patches αD."""
    average = PatchAverage(grid.pixels.shape[1:], grid.size)
    with single_threaded_blas():
        prepared = prepare(D, coder, n_threads)
        for corners in blocks(grid.strided(stride)):
            X, means = cut(grid, grid.offsets(0, *corners), D.dtype, n_threads)
            codes = code_rows(Signals(X), prepared, None, n_threads, measured=False).codes
            compose(codes, D, X, n_threads)
            average.add(X, *corners, means=means, n_threads=n_threads)
    return average


def average_of_known(
    grid: PatchGrid, mask: Array, D: Array, coder: Coder, positions: Array, n_threads: int
) -> PatchAverage:
    """Code the known pixels of the patches at these positions and average the patches αD.

    Patches of which more is known weigh more. Codes may violate optimality by `_SLACK`.
    """
    average = PatchAverage(grid.pixels.shape[1:], grid.size)
    with single_threaded_blas():
        prepared = prepare(D, coder, n_threads, _SLACK)
        for begin in follow(range(0, len(positions), _AT_ONCE), _WHAT):
            _, *corners = grid.corners(positions[begin : begin + _AT_ONCE])
            offsets = grid.offsets(0, *corners)
            X, means, missing = _cut_known(grid, mask, offsets, D.dtype, n_threads)
            codes = code_rows(Signals(X, missing), prepared, None, n_threads, measured=False).codes
            compose(codes, D, X, n_threads)
            known = 1.0 - missing.mean(axis=1)
            average.add(X, *corners, means=means, patch_weights=known * known, n_threads=n_threads)
    return average


def cut(
    grid: PatchGrid,
    offsets: Array,
    dtype: np.dtype[np.floating],
    n_threads: int,
    *,
    center: bool = True,
) -> tuple[Array, Array]:
    """Cut out the patches at these offsets; return them and their means by channel."""
    groups = grid.channels if center else 0
    X = np.empty((len(offsets), grid.n_features), dtype)
    means = np.empty((len(offsets), groups))

    def task(number: int) -> None:
        some = slice(number * _TASK, (number + 1) * _TASK)
        grid.gather(offsets[some], X[some], means[some], groups=groups)

    run_tasks(task, -(-len(offsets) // _TASK), n_threads)
    return X, means


def _cut_known(
    grid: PatchGrid, mask: Array, offsets: Array, dtype: np.dtype[np.floating], n_threads: int
) -> tuple[Array, Array, Array]:
    """As `cut`, with zeros for missing pixels; return also which ones are missing (n, m)."""
    X = np.empty((len(offsets), grid.n_features), dtype)
    means, missing = np.empty((len(offsets), grid.channels)), np.empty(X.shape, np.bool_)
    marks = flat_mask(mask)

    def task(number: int) -> None:
        some = slice(number * _TASK, (number + 1) * _TASK)
        outputs = X[some], means[some], missing[some]
        grid.gather_known(offsets[some], marks, outputs, groups=grid.channels)

    run_tasks(task, -(-len(offsets) // _TASK), n_threads)
    return X, means, missing


def compose(codes: Codes, D: Array, out: Array, n_threads: int) -> None:
    """Write the signals αD of codes α."""

    def task(number: int) -> None:
        some = slice(number * _TASK, min((number + 1) * _TASK, len(out)))
        decode(codes.indptr[some.start : some.stop + 1], *codes[1:], D, out[some])

    run_tasks(task, -(-len(out) // _TASK), n_threads)


def blocks(places: tuple[Array, ...]) -> Iterator[tuple[Array, ...]]:
    """Corners of all patches at these places along each axis, several lines of them at a time."""
    last = places[-1]
    lines = np.meshgrid(*places[:-1], indexing="ij")
    outer = [axis.reshape(-1) for axis in lines]
    count = len(outer[0]) if outer else 1
    at_once = max(1, _AT_ONCE // len(last))
    for begin in follow(range(0, count, at_once), _WHAT):
        some = [np.repeat(axis[begin : begin + at_once], len(last)) for axis in outer]
        yield *some, np.tile(last, min(at_once, count - begin))
