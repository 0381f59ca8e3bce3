"""Video with missing pixels: filled by groups that follow the content over frames."""

import itertools

import naive_image as naive
import numpy as np
import pytest

from smalto.image import inpaint, inpaint_video
from smalto.image.moving_patches import similar_along_motion
from smalto.image.patch_grid import PatchGrid
from smalto.image.video_filling import FRAMES, REACHES, TOGETHER

SHAPE = (40, 48)


def moving(count, speed=2):
    """A picture with fine random texture that moves to the right, from 0 to 255."""
    height, width = SHAPE
    whole = naive.picture(height, width + speed * count)
    whole += np.random.default_rng(1).normal(0, 12, whole.shape)
    whole = whole.clip(0, 255)
    return [whole[:, speed * t : speed * t + width].copy() for t in range(count)]


def random_masks(count, share=0.6):
    rng = np.random.default_rng(0)
    return [rng.random(SHAPE) < share for _ in range(count)]


def damaged(frames, masks, value=np.nan):
    return [np.where(mask, value, x).astype(x.dtype) for x, mask in zip(frames, masks, strict=True)]


def error(out, frames, masks):
    return np.sqrt(np.mean((np.array(out, float) - frames)[np.array(masks)] ** 2))


@pytest.fixture(scope="module")
def scene():
    clean = moving(7)
    masks = random_masks(7)
    return clean, masks, damaged(clean, masks)


def test_better_than_frame_by_frame_and_than_a_volume(scene):
    clean, masks, given = scene
    out = list(inpaint_video(iter(given), iter(masks)))
    alone = [inpaint(x, mask) for x, mask in zip(given, masks, strict=True)]
    volume = inpaint(np.stack(given), np.stack(masks), random_state=0, max_steps=20, n_atoms=64)
    assert error(out, clean, masks) < 0.6 * error(alone, clean, masks)
    assert error(out, clean, masks) < 0.6 * error(volume, clean, masks)
    for x, y, mask in zip(clean, out, masks, strict=True):
        np.testing.assert_array_equal(y[~mask], x[~mask])


def test_a_moving_hole_is_filled_from_other_frames():
    clean = moving(7)
    masks = np.zeros((7, *SHAPE), bool)
    for t, mask in enumerate(masks):
        mask[10 + 3 * t : 20 + 3 * t, 30 - 3 * t : 40 - 3 * t] = True
    given = damaged(clean, masks)
    out = list(inpaint_video(given, masks))
    alone = [inpaint(x, mask) for x, mask in zip(given, masks, strict=True)]
    assert error(out, clean, masks) < 0.5 * error(alone, clean, masks)


def test_large_holes_are_filled_from_other_frames():
    clean = moving(5, speed=0)
    masks = np.zeros((5, *SHAPE), bool)
    for t, mask in enumerate(masks):
        mask[5:35, 9 * t : 9 * t + 20] = True
    out = list(inpaint_video(damaged(clean, masks), masks))
    assert error(out, clean, masks) < 0.5 * np.std(clean)


def test_threads_do_not_change_a_bit(scene):
    _, masks, given = scene
    one, three = (list(inpaint_video(given, masks, n_threads=n)) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_types_and_channels(dtype):
    gray = [(x * (200 if dtype == np.uint16 else 1)).astype(dtype) for x in moving(3)]
    clean = [np.stack([x, x[::-1], x // 2]).astype(dtype) for x in gray]  # channels first
    mask = random_masks(1)[0]
    given = [np.where(mask, 7, x).astype(dtype) for x in clean]
    before = [x.copy() for x in given]
    out = list(inpaint_video(given, mask, channel_axis=0))  # one mask for all frames
    np.testing.assert_array_equal(given, before)
    assert all(x.dtype == dtype and x.shape == (3, *SHAPE) for x in out)
    for x, y in zip(clean, out, strict=True):
        np.testing.assert_array_equal(y[:, ~mask], x[:, ~mask])
    unit = 200.0 if dtype == np.uint16 else 1.0
    assert error(out, clean, [np.broadcast_to(mask, x.shape) for x in clean]) < 35 * unit
    by_value = np.broadcast_to(mask, clean[0].shape).copy()
    last = [np.moveaxis(x, 0, -1) for x in given]
    again = list(inpaint_video(last, np.moveaxis(by_value, 0, -1), channel_axis=-1))
    np.testing.assert_array_equal(np.moveaxis(again, -1, 1), out)


def test_endless_masks():
    clean, masks = moving(2), random_masks(2)
    out = list(inpaint_video(damaged(clean, masks), itertools.cycle(masks)))
    np.testing.assert_array_equal(out, list(inpaint_video(damaged(clean, masks), masks)))


def test_masked_arrays():
    clean, masks = moving(3), random_masks(3)
    hidden = [np.ma.array(x, mask=mask) for x, mask in zip(clean, masks, strict=True)]
    out = list(inpaint_video(hidden))
    np.testing.assert_array_equal(out, list(inpaint_video(damaged(clean, masks), masks)))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 16])
def test_every_frame_comes_once_and_in_order(count):
    frames = [np.full((9, 10), 10.0 * t) for t in range(count)]
    mask = np.random.default_rng(0).random((9, 10)) < 0.3
    out = list(inpaint_video(damaged(frames, [mask] * count), mask))
    assert len(out) == count
    for t, frame in enumerate(out):
        np.testing.assert_allclose(frame, 10.0 * t, atol=1e-9)


def test_frames_come_out_before_the_stream_ends():
    taken = []

    def endless():
        while True:
            taken.append(len(taken))
            yield np.where(mask, np.nan, np.arange(144.0).reshape(12, 12))

    mask = np.eye(12, dtype=bool)
    run = inpaint_video(endless(), mask)
    next(run)
    delay = FRAMES * len(TOGETHER)
    assert len(taken) == delay + 1
    next(run)
    assert len(taken) == delay + 2
    run.close()


def test_frames_with_nothing_missing_come_back_as_they_were():
    clean, masks = moving(4), random_masks(4)
    masks[2][:] = False
    out = list(inpaint_video(damaged(clean, masks), masks))
    np.testing.assert_array_equal(out[2], clean[2])
    nothing = list(inpaint_video(clean, np.zeros(SHAPE, bool)))
    np.testing.assert_array_equal(nothing, clean)
    assert nothing[0] is not clean[0]


@pytest.mark.parametrize("lost", [[0], [2], [4], [1, 2], [3, 4]])
def test_all_of_some_frames_is_missing(lost):
    clean = moving(5, speed=0)
    masks = random_masks(5, 0.3)
    for t in lost:
        masks[t][:] = True
    out = list(inpaint_video(damaged(clean, masks), masks))
    others = [t for t in range(5) if t not in lost]
    near = [max([t for t in others if t < lost[0]], default=None),
            min([t for t in others if t > lost[-1]], default=None)]  # fmt: skip
    known = np.logical_and.reduce([~masks[t] for t in near if t is not None])
    for t in lost:  # nothing moves: what is known in the nearest frames is known
        np.testing.assert_allclose(out[t][known], clean[t][known], rtol=1e-12)
    assert 500 < known.sum() < known.size
    assert error(out, clean, masks) < 0.6 * np.std(clean[0])


def test_a_lost_frame_is_between_its_neighbors():
    frames = [np.full((12, 12), 10.0 * t) for t in range(4)]
    masks = np.zeros((4, 12, 12), bool)
    masks[1:3] = True
    out = list(inpaint_video(damaged(frames, masks), masks))
    np.testing.assert_allclose(out, frames)


def test_groups_around_given_patches_are_those_of_all():
    frames = np.stack(moving(3))[..., None]
    guide = PatchGrid(frames[None], (1, 7, 7))
    everywhere = np.arange(guide.shape[1] * guide.shape[2])
    groups = similar_along_motion(guide, 1, everywhere, 6, REACHES, 1)
    some = np.array([0, 3, 45, 46, 700])
    found = similar_along_motion(guide, 1, some, 6, REACHES, 2)
    np.testing.assert_array_equal(found, groups[some])
    assert np.all(found[:, 0] == guide.shape[1] * guide.shape[2] + some)


def some_frames(count=3, shape=(12, 13)):
    return [np.ones(shape)] * count


MASK = np.eye(12, 13, dtype=bool)


@pytest.mark.parametrize(("frames", "masks", "kind", "message"), [
    (some_frames(), [MASK, MASK], ValueError, "masks ended after 2, but frames go on"),
    (some_frames(), [MASK] * 4, ValueError, "more masks than frames, of which there are 3"),
    (some_frames(), [MASK, MASK[:5], MASK], ValueError, r"frame 1: mask must have the shape"),
    (some_frames(), MASK.T, ValueError, r"frame 0: mask must have the shape .* \(12, 13\)"),
    (some_frames(), 2 * MASK.astype(int) + MASK[::-1], TypeError, "frame 0: mask must hold booleans"),
    (some_frames(), None, TypeError, "frame 0: pass mask"),
    ([*some_frames(), np.ones((12, 14))], [MASK] * 3 + [np.eye(12, 14, dtype=bool)], ValueError,
     "frame 3 has shape .* those before it .* the same shape"),
    (some_frames(), np.ones((12, 13), bool), ValueError, "nothing is known of any of the 3 frames"),
    (some_frames(9), [MASK] + [MASK | True] * 8, ValueError, "nothing is known of frames 1 to 7"),
    ([np.full((12, 13), np.nan)], MASK, ValueError, "frame 0"),
    (some_frames(1, (12, 13, 3)), MASK, ValueError, "frame 0"),
])  # fmt: skip
def test_wrong_input_is_refused_in_plain_words(frames, masks, kind, message):
    with pytest.raises(kind, match=message):
        list(inpaint_video(frames, masks))
