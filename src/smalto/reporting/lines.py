"""Atoms and samples as lines, one for each channel: paths of SVG in whole numbers."""

from __future__ import annotations

import itertools

import numpy as np

from smalto.checks import Array

WIDTH, HEIGHT = 120, 40  # of one channel
_POINTS = 96  # of a line; longer ones are drawn by the range of each part
_ALL = 120_000  # points of all atoms together, about


def points_per_line(n_lines: int) -> int:
    """Return how many points each of so many lines may have, so that pages stay small."""
    return int(np.clip(_ALL // max(n_lines, 1), 24, _POINTS))


def line_path(
    row: Array, n_channels: int, points: int = _POINTS, span: tuple[float, float] | None = None
) -> str:
    """Return a vector as a path, its channels below one another, in its own range or the given."""
    row = np.nan_to_num(np.asarray(row, np.float64))
    low, high = (float(row.min()), float(row.max())) if span is None else span
    size = (high - low) or 1.0
    pieces = []
    for number, channel in enumerate(row.reshape(n_channels, -1)):
        at, values = _reduced(channel, points)
        x = np.round(at * WIDTH / max(len(channel) - 1, 1)).astype(int)
        share = np.clip((values - low) / size, 0.0, 1.0)
        y = np.round((number + 1) * HEIGHT - 2 - share * (HEIGHT - 4)).astype(int)
        steps = zip(np.diff(x).tolist(), np.diff(y).tolist(), strict=True)
        rest = " ".join(f"{dx} {dy}" for dx, dy in steps)
        pieces.append(f"M{x[0]} {y[0]}" + (f"l{rest}" if rest else "h0"))
    return "".join(pieces).replace(" -", "-")


def _reduced(channel: Array, points: int) -> tuple[Array, Array]:
    """Return at most so many points: the smallest and the largest of each part, in their order."""
    if len(channel) <= points:
        return np.arange(len(channel)), channel
    edges = np.linspace(0, len(channel), points // 2 + 1).astype(int)
    kept = []
    for start, end in itertools.pairwise(edges.tolist()):
        part = channel[start:end]
        kept += sorted({start + int(part.argmin()), start + int(part.argmax())})
    at = np.array(kept)
    return at, channel[at]
