"""Atoms that need no learning: cosines and constants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smalto.checks import Array


def constant_atoms(size: tuple[int, ...], channels: int, dtype: np.dtype[Any]) -> Array:
    """One atom per channel, constant in it and zero in the others (channels, m)."""
    area = math.prod(size)
    return np.asarray(np.tile(np.eye(channels) / np.sqrt(area), (1, area)), dtype)


def cosine_atoms(size: tuple[int, ...], channels: int, dtype: np.dtype[Any]) -> Array:
    """Products of cosines along all axes, except the constant one (k, m).

    The mean of the channels gets more frequencies than pixels, their differences get fewer.
    """
    parts = []
    for i, mixture in enumerate(_channel_mixtures(channels)):
        counts = [side + 2 if i == 0 else max(side * 2 // 3, 1) for side in size]
        waves = np.ones((1, 1))
        for side, n in zip(size, counts, strict=True):
            along = _cosines(side, n)
            both = np.einsum("ia,jb->ijab", waves, along)
            waves = both.reshape(len(waves) * len(along), waves.shape[1] * side)
        waves = waves[1:]
        atoms = waves[:, :, None] * mixture
        parts.append(atoms.reshape(len(waves), math.prod(size) * channels))
    D = np.concatenate(parts)
    if not len(D):  # patches of a single pixel
        return constant_atoms(size, channels, dtype)
    return np.asarray(D / np.linalg.norm(D, axis=1, keepdims=True), dtype)


def _cosines(side: int, count: int) -> Array:
    """Cosines of ``count`` frequencies at ``side`` points, all but the first with mean zero."""
    waves = np.cos(np.outer(np.arange(count), np.arange(side) + 0.5) * np.pi / count)
    waves[1:] -= waves[1:].mean(axis=1, keepdims=True)
    norms = np.linalg.norm(waves, axis=1, keepdims=True)
    return np.asarray(waves[norms[:, 0] > 1e-6] / norms[norms[:, 0] > 1e-6])


def _channel_mixtures(channels: int) -> Array:
    """Orthogonal mixtures of the channels; the first is their mean (channels, channels)."""
    first = np.ones((channels, 1))
    q, _ = np.linalg.qr(np.hstack([first, np.eye(channels)[:, 1:]]))
    return np.asarray(q.T * np.sign(q[0, 0]))
