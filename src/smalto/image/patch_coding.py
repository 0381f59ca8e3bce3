"""Code all overlapping patches of a picture and average what the codes say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Coder, Codes
from smalto.coders.coding import code_rows, prepare
from smalto.coders.signals import Signals
from smalto.image.overlap import PatchAverage
from smalto.image.stack import Stack
from smalto.kernels.image.patch_gathering import decode, gather
from smalto.threads import run_tasks, single_threaded_blas

_AT_ONCE = 1 << 13  # patches held at a time, about
_TASK = 1024  # patches cut or composed as one task


@dataclass(frozen=True)
class Grid:
    """Every ``stride``-th place of the patches of a picture, and always the last ones."""

    rows: Array
    columns: Array

    @classmethod
    def of(cls, stack: Stack, stride: int) -> Grid:
        """The places in a stack's pictures."""
        rows, columns = (_every(count, stride) for count in stack.grid)
        return cls(rows, columns)

    def blocks(self) -> list[tuple[Array, Array]]:
        """Rows and columns of all places, some lines at a time."""
        lines = max(1, _AT_ONCE // len(self.columns))
        return [
            (np.repeat(rows, len(self.columns)), np.tile(self.columns, len(rows)))
            for rows in np.split(self.rows, range(lines, len(self.rows), lines))
        ]


def cut(
    stack: Stack,
    corners: Array,
    dtype: np.dtype[np.floating],
    n_threads: int,
    *,
    center: bool = True,
) -> tuple[Array, Array]:
    """Patches that begin at these places of ``stack.flat``, and the means taken from them."""
    groups = stack.channels if center else 0
    span = stack.size[1] * stack.channels
    X = np.empty((len(corners), stack.size[0] * span), dtype)
    means = np.empty((len(corners), groups))

    def task(number: int) -> None:
        some = slice(number * _TASK, (number + 1) * _TASK)
        gather(
            stack.flat, corners[some], stack.line, stack.size[0], span, stack.scale, groups, False,
            X[some], means[some],
        )  # fmt: skip

    run_tasks(task, -(-len(corners) // _TASK), n_threads)
    return X, means


def compose(codes: Codes, D: Array, out: Array, n_threads: int) -> None:
    """Write the signals αD of codes α."""

    def task(number: int) -> None:
        some = slice(number * _TASK, min((number + 1) * _TASK, len(out)))
        decode(codes.indptr[some.start : some.stop + 1], *codes[1:], D, out[some])

    run_tasks(task, -(-len(out) // _TASK), n_threads)


def average_of_codes(
    stack: Stack,
    D: Array,
    coder: Coder,
    *,
    stride: int,
    n_threads: int,
) -> PatchAverage:
    """Code the centred patches of a picture over D, and average the patches they make."""
    shape = stack.pixels.shape[1:]
    average = PatchAverage(shape, stack.size)
    with single_threaded_blas():
        prepared = prepare(D, coder, n_threads)
        for rows, columns in Grid.of(stack, stride).blocks():
            X, means = cut(stack, stack.offsets(0, rows, columns), D.dtype, n_threads)
            codes = code_rows(Signals(X), prepared, None, n_threads, measured=False).codes
            compose(codes, D, X, n_threads)
            average.add(X, rows, columns, means=means)
    return average


def _every(count: int, stride: int) -> Array:
    places = np.arange(0, count, stride)
    return places if places[-1] == count - 1 else np.append(places, count - 1)
