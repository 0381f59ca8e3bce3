"""Simultaneous coding: patches that look alike share their atoms."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.coders import JointOMP
from smalto.coders.encoding import code_rows, prepare
from smalto.coders.signals import Signals
from smalto.image.coding import compose, cut
from smalto.image.overlap import PatchAverage
from smalto.image.stack import Stack
from smalto.kernels.matching import group_alike
from smalto.threads import run_tasks, single_threaded_blas

LINES = (24, 37, 48)  # lines of places in which groups are formed, in each pass over the picture
REACH = 16  # how far apart, in rows or columns, members of a group may be from the first
MOST = 16  # how many members a group may have


def group_bands(
    guide: Array,
    size: tuple[int, int],
    bound: float,
    lines: int,
    n_threads: int,
    reach: int = REACH,
    most: int = MOST,
) -> list[Array]:
    """Labels of groups of patches that look alike, for bands of so many lines of places.

    ``guide`` (height, width, channels) is a picture that tells how alike patches are: two are
    when their squared distance is at most ``bound``. Groups do not reach from band to band.
    """
    stack = Stack(np.ascontiguousarray(guide)[None], size)
    rows, columns = stack.grid
    starts = range(0, rows, lines)
    labels = [np.empty((min(lines, rows - first), columns), np.int64) for first in starts]

    def task(number: int) -> None:
        group_alike(
            stack.flat, stack.line, stack.channels, size[0], size[1] * stack.channels,
            starts[number], len(labels[number]), columns, reach, bound, most,
            np.empty(most), np.empty(most, np.int64), labels[number],
        )  # fmt: skip

    run_tasks(task, len(labels), n_threads)
    return labels


def add_joint_codes(
    average: PatchAverage,
    stack: Stack,
    guide: Array,
    D: Array,
    coder: JointOMP,
    bound: float,
    lines: int,
    n_threads: int,
) -> None:
    """Code the centred patches of a picture, those that look alike together, and add them."""
    labels = group_bands(guide.astype(D.dtype), stack.size, bound, lines, n_threads)
    columns = stack.grid[1]
    with single_threaded_blas():
        prepared = prepare(D, coder, n_threads)
        first = 0
        for band in labels:
            order = np.argsort(band, axis=None, kind="stable")
            counts = np.bincount(band.reshape(-1))
            groups = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            row, column = np.divmod(order, columns)
            corners = stack.offsets(0, first + row, column)
            X, means = cut(stack, corners, True, D.dtype, n_threads)
            signals = Signals(X, groups=groups)
            codes = code_rows(signals, prepared, None, n_threads, measured=False).codes
            compose(codes, D, X, n_threads)
            average.add(X, first + row, column, means=means)
            first += len(band)
