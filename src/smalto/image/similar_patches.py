"""Coding together the patches that look alike: over shared atoms, then over one another."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.coders import JointOMP
from smalto.coders.coding import code_rows, prepare
from smalto.coders.signals import Signals
from smalto.image.coding import Grid, compose, cut
from smalto.image.overlap import PatchAverage
from smalto.image.stack import Stack
from smalto.kernels.image.patch_matching import nearest_alike
from smalto.threads import run_tasks, single_threaded_blas

STEP = 4  # groups are formed around every so many patches, in rows and columns
REACH = 24  # how far, in rows or columns, members of a group may be from its first
_AT_ONCE = 256  # groups held at a time
_TASK = 16  # groups filtered as one task


def groups_alike(
    guide: Stack, most: int, n_threads: int, *, step: int = STEP, reach: int = REACH
) -> Array:
    """Groups of patches that look alike in a picture, as numbers of places (groups, members).

    Each is a patch, one of every ``step`` in both directions, and those that are nearest to it
    (by squared distance); as many as everywhere can be found, ``most`` at best.
    """
    lines, columns = guide.grid
    grid = Grid.of(guide, step)
    members = min(most, min(lines, reach + 1) * min(columns, reach + 1))
    found = np.empty((len(grid.rows), len(grid.columns), members), np.int64)
    span = guide.size[1] * guide.channels

    def task(number: int) -> None:
        nearest_alike(
            guide.flat, guide.line, guide.channels, guide.size[0], span, lines, columns,
            int(grid.rows[number]), grid.columns, reach, np.empty(members), found[number],
        )  # fmt: skip

    run_tasks(task, len(grid.rows), n_threads)
    return found.reshape(-1, members)


def share_atoms(
    stack: Stack, groups: Array, D: Array, coder: JointOMP, n_threads: int
) -> PatchAverage:
    """The mean of what the codes of centred patches say, those of a group over the same atoms."""
    average = PatchAverage(stack.pixels.shape[1:], stack.size)
    with single_threaded_blas():
        prepared = prepare(D, coder, n_threads)
        for begin in range(0, len(groups), _AT_ONCE):
            some = groups[begin : begin + _AT_ONCE]
            _, rows, columns = stack.corner(some.reshape(-1))
            X, means = cut(stack, stack.offsets(0, rows, columns), D.dtype, n_threads)
            ends = np.arange(0, some.size + 1, some.shape[1])
            signals = Signals(X, groups=ends)
            codes = code_rows(signals, prepared, None, n_threads, measured=False).codes
            compose(codes, D, X, n_threads)
            average.add(X, rows, columns, means=means)
    return average


def code_over_each_other(
    stack: Stack, guide: Stack, groups: Array, sigma: float, n_threads: int
) -> PatchAverage:
    """The mean of what the noisy patches Y of each group are over its patches X in the guide.

    With the mean colours of the group taken away, ``min_A ‖Y − AX‖² + n σ²‖A‖²`` for the n
    patches of a group: Wiener's filter, for patches whose covariance is that of the group in the
    guide. The fewer degrees of freedom this leaves to a group, the more it counts.
    """
    average = PatchAverage(stack.pixels.shape[1:], stack.size)
    n, channels = groups.shape[1], stack.channels
    ridge = n * sigma**2 * np.eye(n)
    with single_threaded_blas():
        for begin in range(0, len(groups), _AT_ONCE):
            members = groups[begin : begin + _AT_ONCE]
            _, rows, columns = stack.corner(members.reshape(-1))
            corners = stack.offsets(0, rows, columns)
            Y, X = (_together(pictures, corners, n, n_threads) for pictures in (stack, guide))
            weights = np.empty(members.shape)

            def task(number: int, Y: Array = Y, X: Array = X, weights: Array = weights) -> None:
                some = slice(number * _TASK, (number + 1) * _TASK)
                weights[some] = _filter(Y[some], X[some], ridge, channels)[:, None]

            run_tasks(task, -(-len(members) // _TASK), n_threads)
            average.add(Y.reshape(members.size, -1), rows, columns, weights=weights.reshape(-1))
    return average


def _together(stack: Stack, corners: Array, n: int, n_threads: int) -> Array:
    """The patches at these corners in groups of n (groups, n, m), float64."""
    X, _ = cut(stack, corners, np.dtype(np.float64), n_threads, center=False)
    return X.reshape(-1, n, X.shape[1])


def _filter(Y: Array, X: Array, ridge: Array, channels: int) -> Array:
    """Write the filtered patches to Y, the centred ones to X; returns the weights of the groups."""
    colours = Y.reshape(len(Y), -1, channels).mean(axis=1, keepdims=True)
    for part in (Y, X):
        by_colour = part.reshape(len(part), -1, channels)
        by_colour -= by_colour.mean(axis=1, keepdims=True)
    turned = X.transpose(0, 2, 1)
    back = np.linalg.solve(X @ turned + ridge, X)
    freedom = np.einsum("gnm,gnm->g", back, X)
    np.matmul(Y @ turned, back, out=Y)
    Y.reshape(len(Y), -1, channels)[...] += colours
    return np.asarray(1.0 / (1.0 + freedom))
