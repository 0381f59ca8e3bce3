"""Damaged patches from similar ones."""

import naive_image as naive
import numpy as np
import pytest

from smalto.image.checks import as_mask
from smalto.image.joint_inpainting import refill


def slow_refill(filled, mask, side, alike, stride, ridge, reach):
    height, width, channels = filled.shape
    lines, columns = height - side + 1, width - side + 1
    total, weight = np.zeros(filled.shape), np.zeros(filled.shape)
    everywhere = [(r, c) for r in range(lines) for c in range(columns)]

    def patch(picture, place):
        return picture[place[0] : place[0] + side, place[1] : place[1] + side]

    for r, c in everywhere:
        if (r % stride and r < lines - 1) or (c % stride and c < columns - 1):
            continue
        known = ~patch(mask, (r, c))
        if known.all() or not known.any():
            continue
        own = patch(filled, (r, c))
        near = [p for p in everywhere if max(abs(p[0] - r), abs(p[1] - c)) <= reach]
        near.sort(key=lambda p: np.sum((patch(filled, p) - own) ** 2))
        others = [patch(filled, p) for p in near if p != (r, c)][:alike]
        X = np.array([x - x[known].mean(axis=0) for x in others])
        mean = own[known].mean(axis=0)
        K = X[:, known].reshape(len(X), -1)
        G = K @ K.T
        G += ridge * np.trace(G) / len(G) * np.eye(len(G))
        code = np.linalg.solve(G, K @ (own - mean)[known].reshape(-1))
        share = known.mean() ** 2
        total[r : r + side, c : c + side] += share * (mean + np.tensordot(code, X, 1))
        weight[r : r + side, c : c + side] += share
    done = mask & (weight[:, :, 0] > 0)
    out = filled.copy()
    out[done] = total[done] / weight[done]
    return out


@pytest.mark.parametrize("channels", [1, 3])
def test_against_a_slow_twin(channels):
    rng = np.random.default_rng(channels)
    picture = np.stack([naive.picture(18, 22, s) for s in range(channels)], axis=2)
    picture += rng.normal(0, 1, picture.shape)
    mask = as_mask(rng.random((18, 22)) < 0.4, picture.shape)
    kind = {"side": 4, "alike": 5, "stride": 2, "ridge": 0.1, "reach": 6}
    out = refill(picture, mask, n_threads=2, **kind)
    np.testing.assert_allclose(out, slow_refill(picture, mask, **kind), rtol=1e-8)
    np.testing.assert_array_equal(out[~mask], picture[~mask])
    np.testing.assert_array_equal(out, refill(picture, mask, n_threads=1, **kind))
