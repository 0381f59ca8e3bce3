"""Video: groups of patches that follow their content over frames."""

import naive_image as naive
import numpy as np
import pytest

from smalto.image import denoise_video
from smalto.image.moving_patches import (
    REACHES,
    Frame,
    filter_along_motion,
    filter_groups,
    similar_in_frames,
)
from smalto.image.patch_grid import PatchGrid

SIGMA = 20.0


def moving(count, height=48, width=56, speed=3):
    """A picture that moves to the right."""
    whole = naive.picture(height, width + speed * count)
    return [whole[:, speed * t : speed * t + width] for t in range(count)]


def noisy_of(frames, seed=0):
    rng = np.random.default_rng(seed)
    return [x + rng.normal(0, SIGMA, x.shape) for x in frames]


def psnr(a, b):
    return 10 * np.log10(255**2 / np.mean((np.asarray(a, float) - b) ** 2))


def slow_groups(frames, number, size, most, stride):
    """As `similar_in_frames`, one distance after the other."""
    _, rows, columns = (own - side + 1 for own, side in zip(frames.shape, (1, *size), strict=False))

    def patch(t, r, c):
        return frames[t, r : r + size[0], c : c + size[1]].astype(float)

    def around(here, t, center, reach):
        places = [
            (r, c)
            for r in range(max(center[0] - reach, 0), min(center[0] + reach + 1, rows))
            for c in range(max(center[1] - reach, 0), min(center[1] + reach + 1, columns))
        ]
        return [(((patch(t, *p) - here) ** 2).sum(), (t * rows + p[0]) * columns + p[1], p)
                for p in places]  # fmt: skip

    found = []
    for r in sorted({*range(0, rows, stride), rows - 1}):
        for c in sorted({*range(0, columns, stride), columns - 1}):
            here = patch(number, r, c)
            near = around(here, number, (r, c), REACHES[0])
            for way in (-1, 1):
                before, center, t = (r, c), (r, c), number + way
                while 0 <= t < len(frames):
                    some = around(here, t, center, REACHES[1])
                    near += some
                    best = min(some, key=lambda one: one[0])[2] if some else center
                    center = 2 * best[0] - before[0], 2 * best[1] - before[1]
                    before, t = best, t + way
            near.sort(key=lambda one: one[0])
            found.append([place for _, place, _ in near[: min(most, len(near))]])
    return np.array(found)


@pytest.mark.parametrize("channels", [1, 2])
def test_groups_are_those_of_the_slow_twin(channels):
    frames = np.random.default_rng(0).random((5, 20, 22, channels))
    guide = PatchGrid(frames[None], (1, 6, 6))
    for number in (0, 2, 4):
        expected = slow_groups(frames, number, (6, 6), 12, 4)
        for n_threads in (1, 2):
            assert np.array_equal(similar_in_frames(guide, number, 12, n_threads), expected)


def test_groups_follow_the_motion():
    frames = np.stack(moving(7, speed=4))[..., None]
    frames += np.random.default_rng(0).normal(0, 1e-3, frames.shape)
    guide = PatchGrid(frames[None], (1, 8, 8))
    _, times, rows, columns = guide.corners(similar_in_frames(guide, 3, 7, 1))
    inside = (columns[:, 0] > 14) & (columns[:, 0] < 34)
    same = columns + 4 * (times - times[:, :1]) == columns[:, :1]
    same &= rows == rows[:, :1]
    assert same[inside].mean() > 0.95  # 12 columns away, farther than one search reaches


def test_filters_are_those_of_the_slow_twin():
    rng = np.random.default_rng(0)
    noisy, guide = rng.random((2, 3, 14, 15, 2))
    grids = [PatchGrid(part[None], (1, 4, 4)) for part in (noisy, guide)]
    groups = similar_in_frames(grids[1], 1, 10, 1)
    found = filter_groups(*grids, groups, 0.3, 2)
    total, weight = np.zeros(noisy.shape), np.zeros(noisy.shape)
    for group in groups:
        places = np.unravel_index(group, grids[0].shape)
        Y, X = (
            np.array([part[t, r : r + 4, c : c + 4] for t, r, c in zip(*places, strict=True)])
            for part in (noisy, guide)
        )
        color = Y.mean(axis=(0, 1, 2))
        y, x = ((P - P.mean(axis=(0, 1, 2))).reshape(len(group), -1) for P in (Y, X))
        values, V = np.linalg.eigh(x.T @ x / len(group))
        shrink = np.maximum(values, 0) / (np.maximum(values, 0) + 0.3**2)
        out = (y @ V * shrink @ V.T).reshape(Y.shape) + color
        for one, t, r, c in zip(out, *places, strict=True):
            total[t, r : r + 4, c : c + 4] += one / (1 + shrink.sum())
            weight[t, r : r + 4, c : c + 4] += 1 / (1 + shrink.sum())
    np.testing.assert_allclose(found.weight, weight, rtol=1e-9)
    covered = weight > 0
    np.testing.assert_allclose(found.image()[covered], total[covered] / weight[covered], rtol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 4, 7, 9])
def test_every_frame_comes_once_and_in_order(count):
    frames = [Frame(np.full((12, 13, 1), 10.0 * t), np.full((12, 13, 1), 10.0 * t), 1.0)
              for t in range(count)]  # fmt: skip
    out = list(filter_along_motion(frames, 1))
    for t, frame in enumerate(out):
        assert np.abs(frame.guide - 10.0 * t).max() < 30  # others are similar, too
        assert frame.noisy is frames[t].noisy
    assert len(out) == count


def test_joint_video_is_better():
    clean = moving(8)
    noisy = noisy_of(clean)
    quick = {"n_atoms": 48, "steps_per_frame": 2, "random_state": 0}
    alone = list(denoise_video(iter(noisy), SIGMA, **quick))
    outs = [list(denoise_video(noisy, SIGMA, effort=1, n_threads=n, **quick)) for n in (1, 2)]
    assert np.array_equal(*outs)
    assert psnr(outs[0], clean) > psnr(alone, clean) + 0.5
    color = [
        np.stack([x, x[::-1], 255 - x], axis=2).clip(0, 255).astype(np.uint8) for x in noisy[:3]
    ]
    out = list(denoise_video(color, SIGMA, effort=1, channel_axis=2, **quick))
    assert [x.shape for x in out] == [(48, 56, 3)] * 3
    assert out[0].dtype == np.uint8
    exact = list(denoise_video(noisy[:4], 0.0, effort=1, **quick))
    np.testing.assert_allclose(exact, noisy[:4])
