"""Denoising in rounds: similar patches are combined linearly, and each round keeps less noise."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.image.averaging import PatchAverage
from smalto.image.patch_coding import cut
from smalto.image.patch_grid import PatchGrid
from smalto.image.similar_patches import similar_groups
from smalto.image.stages import follow
from smalto.kernels.image.whitening import whiten
from smalto.threads import run_tasks, single_threaded_blas

_MEMBERS = 40  # patches per group
_SPACING = 3  # between the patches around which groups are formed
_MATCHED = 3  # rounds with the same groups
_KEPT = 0.85  # share of the noise that a round before the first would keep
_LEAST = 0.03  # share of the noise that is always taken to be left
_AT_ONCE = 512  # groups in memory at a time
_TASK = 16  # groups combined as one task


def denoise_in_rounds(
    noisy: Array, clean: Array, sigma: float, side: int, n_rounds: int, n_threads: int
) -> Array:
    """Denoise a picture (height, width, channels), of which ``clean`` is a good estimate.

    A round combines the patches of a picture ``left``, at first the noisy one, with the weights
    that would suit the present estimate. This gives the next estimate, towards which ``left`` moves:
    it has less noise from round to round. Groups of patches with sides of ``side`` pixels are formed
    in ``left``, at first in the estimate.
    """
    size = (min(side, noisy.shape[0]), min(side, noisy.shape[1]))
    left, clean = noisy, clean.astype(noisy.dtype)
    groups = np.empty((0, 0), np.int64)
    for number in follow(range(n_rounds), "denoising in rounds"):
        if number % _MATCHED == 0:
            guide = PatchGrid((left if number else clean)[None], size)
            groups = similar_groups(guide, _MEMBERS, n_threads, stride=_SPACING)
        kept = _KEPT * (1.0 - (number + 1) / n_rounds)
        parts = []
        for channel in range(noisy.shape[2]):
            grids = [
                PatchGrid(np.ascontiguousarray(part[None, :, :, [channel]]), size)
                for part in (noisy, left, clean)
            ]
            parts.append(_average_of_combinations(grids, groups, sigma, kept, n_threads))
        clean = np.concatenate(parts, axis=2).astype(noisy.dtype)
        share = kept / _share_left(noisy - left, sigma, kept, axis=(0, 1))
        left = clean + share.astype(noisy.dtype) * (left - clean)
    return clean


def _share_left(removed: Array, sigma: float, kept: float, axis: tuple[int, int]) -> Array:
    """The share of the noise that is left where this has been removed."""
    return np.asarray(np.maximum(1.0 - removed.std(axis=axis) / sigma, max(kept, _LEAST)))


def _average_of_combinations(
    grids: list[PatchGrid], groups: Array, sigma: float, kept: float, n_threads: int
) -> Array:
    """Average the combined patches of all groups; grids are the noisy one, what is left, the guide.

    Groups weigh more the fewer degrees of freedom they have.
    """
    average = PatchAverage(grids[0].pixels.shape[1:], grids[0].size)
    n, dtype = groups.shape[1], grids[0].pixels.dtype
    with single_threaded_blas():
        for begin in range(0, len(groups), _AT_ONCE):
            members = groups[begin : begin + _AT_ONCE]
            _, rows, columns = grids[0].corners(members.reshape(-1))
            offsets = grids[0].offsets(0, rows, columns)
            Y, Z, X = (
                cut(grid, offsets, dtype, n_threads, center=False)[0].reshape(len(members), n, -1)
                for grid in grids
            )
            weights = np.empty(members.shape)

            def task(
                number: int, Y: Array = Y, Z: Array = Z, X: Array = X, weights: Array = weights
            ) -> None:
                some = slice(number * _TASK, (number + 1) * _TASK)
                noise = sigma * _share_left(Y[some] - Z[some], sigma, kept, axis=(1, 2))
                weights[some] = combine_patches(Z[some], X[some], noise)[:, None]

            run_tasks(task, -(-len(members) // _TASK), n_threads)
            average.add(
                Z.reshape(members.size, -1), rows, columns, patch_weights=weights.reshape(-1)
            )
    return average.image()


def combine_patches(Z: Array, X: Array, noise: Array) -> Array:
    """Replace the patches Z of each group (groups, n, m) by combinations ``ΘZ`` of them, in place.

    ``min_Θ ‖X − ΘX‖² + m σ²‖Θ‖²``, where the weights of each patch sum to one: this has the least
    expected error if Z is X and white noise, whose σ for each group is in ``noise``. Return the
    weight of each group in an average.
    """
    m = X.shape[2]
    means = Z.mean(axis=1, keepdims=True)
    Z -= means
    # With the mean patch subtracted, Θ is 11ᵀ/n + X (XᵀX + m σ² I)⁻¹ Xᵀ.
    W = np.ascontiguousarray((X - X.mean(axis=1, keepdims=True)).transpose(0, 2, 1))
    covariance = W @ W.transpose(0, 2, 1)
    covariance[:, np.arange(m), np.arange(m)] += (m * noise**2)[:, None].astype(X.dtype)
    whiten(covariance, W)  # Θ is now 11ᵀ/n + WᵀW
    np.matmul(W.transpose(0, 2, 1), W @ Z, out=Z)
    Z += means
    return np.asarray(1.0 / (1.0 + np.einsum("gmn,gmn->g", W, W)))
