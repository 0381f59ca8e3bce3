"""Filters by class of pixels, against slow twins."""

import naive_image as naive
import numpy as np
import pytest

from smalto.image.natural_filters import ANGLES, Classes, classes_of, combine, correct, planes_of

CLASSES = Classes(np.array([0.1, 0.5]), np.array([0.4]))


def test_each_pixel_by_the_filter_of_its_class():
    rng = np.random.default_rng(0)
    estimates = list(rng.normal(0, 20, (3, 9, 70)))
    filters = rng.standard_normal((CLASSES.n_classes, 3, 5, 5))
    out = correct(estimates, 20.0, CLASSES, filters, 2)
    planes, numbers = planes_of(estimates, 20.0), classes_of(estimates[0] / 20.0, CLASSES)
    for i, j in np.ndindex(9, 70):
        window = planes[:, i : i + 5, j : j + 5]
        expected = estimates[0][i, j] + 20.0 * np.sum(filters[numbers[i, j]] * window)
        assert out[i, j] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_array_equal(out, correct(estimates, 20.0, CLASSES, filters, 1))


@pytest.mark.parametrize("turn", range(ANGLES))
def test_classes_of_edges(turn):
    angle = np.pi * turn / ANGLES
    y, x = np.mgrid[:40, :40]
    waves = 3.0 * np.sin((np.cos(angle) * x + np.sin(angle) * y) / 2.0)
    inside = classes_of(waves, CLASSES)[8:-8, 8:-8]
    assert np.all(inside == 5 * ANGLES + turn)  # strong and coherent
    assert np.all(classes_of(np.zeros((9, 9)), CLASSES) < ANGLES)


def test_brightness_is_kept():
    flat = [np.full((12, 13), 1e5)] * 4
    np.testing.assert_allclose(combine(flat, 3.0, 1), 1e5, rtol=1e-12)


def test_units_do_not_matter():
    clean = naive.picture(40, 50)
    rng = np.random.default_rng(0)
    estimates = [clean + rng.normal(0, s, clean.shape) for s in (3, 20, 5, 6)]
    one = combine(estimates, 20.0, 1)
    two = combine([part / 1024 for part in estimates], 20.0 / 1024, 2)
    np.testing.assert_allclose(1024 * two, one, rtol=1e-9)
