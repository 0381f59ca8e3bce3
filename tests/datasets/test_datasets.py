"""Pictures, sets of pictures, and the paper's settings."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from pictures import noise
from PIL import Image

from smalto import datasets
from smalto.datasets import (
    ImageSet,
    luminance,
    natural_images,
    paper_setting,
    sample_photo,
    voc2006,
)


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    folder = tmp_path / "natural" / "voc2006"
    folder.mkdir(parents=True)
    for i in reversed(range(7)):
        pixels = (255 * noise(20 + i, 24, 3, seed=i)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i:06d}.png")
    monkeypatch.setenv("SMALTO_DATA", str(tmp_path))
    return tmp_path


# --- pictures


@pytest.mark.parametrize("name", ["flower", "china"])
def test_sample_photo_is_a_picture_of_ones_own(name):
    photo = sample_photo(name)
    assert photo.shape == (427, 640, 3)
    assert photo.dtype == np.uint8
    assert photo.std() > 20
    photo[:] = 0
    assert sample_photo(name).any()


def test_sample_photos_differ():
    assert (sample_photo("flower") != sample_photo("china")).any()


def test_sample_photo_of_an_unknown_name():
    with pytest.raises(ValueError, match="got 'lena'"):
        sample_photo("lena")


def test_scikit_learn_is_imported_only_when_needed():
    code = "import sys, smalto.datasets; sys.exit('sklearn.datasets' in sys.modules)"
    env = {k: v for k, v in os.environ.items() if k != "SMALTO_DATA"}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 0


def test_luminance_weighs_the_channels():
    picture = np.zeros((2, 4, 3), dtype=np.uint8)
    picture[0, 0] = 255
    picture[0, 1, 0] = picture[0, 2, 1] = picture[0, 3, 2] = 255
    gray = luminance(picture)
    np.testing.assert_allclose(gray[0], [1.0, 0.299, 0.587, 0.114])
    np.testing.assert_array_equal(gray[1], 0.0)


def test_luminance_agrees_with_pillow():
    photo = sample_photo("china")
    np.testing.assert_allclose(
        255 * luminance(photo), np.asarray(Image.fromarray(photo).convert("L")), atol=1.0
    )


def test_luminance_of_gray_pictures_and_of_floats():
    gray = noise(5, 6)
    np.testing.assert_array_equal(luminance(gray), gray)
    assert luminance(gray) is not gray
    assert luminance(np.float32(noise(5, 6, 3))).dtype == np.float32
    np.testing.assert_allclose(luminance(np.full((2, 2), 65535, np.uint16)), 1.0)


# --- sets of pictures


def test_voc2006_is_read_in_the_order_of_names(data_folder):
    images = natural_images()
    assert images.source == "voc2006"
    assert images.names == tuple(f"{i:06d}" for i in range(7))
    assert len(images) == 7
    for i, picture in enumerate(images.images):
        np.testing.assert_array_equal(
            picture, (255 * noise(20 + i, 24, 3, seed=i)).astype(np.uint8)
        )
    assert voc2006(data_folder).names == images.names


def test_packaged_pictures_without_the_folder(monkeypatch):
    monkeypatch.delenv("SMALTO_DATA", raising=False)
    images = natural_images()
    assert images.source == "packaged"
    assert images.names[:2] == ("china", "flower")
    assert all(p.ndim == 3 and p.shape[2] == 3 and p.dtype == np.uint8 for p in images.images)
    assert len(images.images) == len(images.names)


def test_scikit_image_is_optional(monkeypatch):
    monkeypatch.delenv("SMALTO_DATA", raising=False)
    monkeypatch.setattr(datasets.importlib.util, "find_spec", lambda name: None)
    assert natural_images().names == ("china", "flower")


def test_pictures_of_scikit_image_are_found_where_it_is_installed(monkeypatch):
    pytest.importorskip("skimage")
    monkeypatch.delenv("SMALTO_DATA", raising=False)
    assert {"astronaut", "chelsea", "coffee", "rocket"} & set(natural_images().names)


def test_missing_data(tmp_path, monkeypatch):
    monkeypatch.delenv("SMALTO_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="SMALTO_DATA is not set"):
        voc2006()
    monkeypatch.setenv("SMALTO_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no pictures"):
        natural_images()


def test_a_file_that_is_no_picture(data_folder):
    (data_folder / "natural" / "voc2006" / "000009.png").write_bytes(b"not a picture")
    with pytest.raises(ValueError, match=r"000009\.png is not a picture"):
        natural_images()


# --- the paper's settings


@pytest.mark.parametrize(
    ("name", "shape", "n_atoms"),
    [("A", (8, 8), 256), ("B", (12, 12, 3), 512), ("C", (16, 16), 1024)],
)
def test_paper_settings(name, shape, n_atoms, data_folder):
    setting = paper_setting(name, 60, 30, random_state=0)
    m = math.prod(shape)
    assert (setting.name, setting.patch_shape, setting.n_atoms) == (name, shape, n_atoms)
    assert setting.lam == pytest.approx(1.2 / math.sqrt(m))
    assert setting.train.shape == (60, m)
    assert setting.test.shape == (30, m)
    assert setting.train.dtype == setting.test.dtype == np.float32
    assert setting.source == "voc2006"
    for X in (setting.train, setting.test):
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(X.mean(axis=1), 0.0, atol=1e-6)


@pytest.mark.parametrize("count", [2, 7])
def test_no_picture_gives_to_both_train_and_test(count):
    # each picture is one pattern of its own, at all places
    patterns = [np.tile(noise(1, 40, seed=i), (40, 1)) for i in range(count)]
    pictures = tuple(np.stack([p] * 3, axis=2) for p in patterns)
    setting = paper_setting(
        "A",
        300,
        300,
        random_state=0,
        dtype=np.float64,
        images=ImageSet(pictures, ("",) * count, "made"),
    )

    def owners(X):
        found = set()
        for i, pattern in enumerate(patterns):
            windows = np.lib.stride_tricks.sliding_window_view(pattern[0], 8)
            units = windows - windows.mean(axis=1, keepdims=True)
            units = np.tile(units / np.linalg.norm(units, axis=1, keepdims=True), (1, 8))
            if np.any(X @ units.T / math.sqrt(8) > 1 - 1e-9):
                found.add(i)
        return found

    assert owners(setting.test) == set(range(0, count, 5))
    assert owners(setting.train) == set(range(count)) - set(range(0, count, 5))
    assert setting.source == "made"


def test_paper_setting_is_reproducible_and_train_differs_from_test(data_folder):
    one, two = (paper_setting("A", 20, 20, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(one.train, two.train)
    np.testing.assert_array_equal(one.test, two.test)
    assert (paper_setting("A", 20, 20, random_state=1).train != one.train).any()
    with pytest.raises(AttributeError):
        one.lam = 1.0


def test_paper_setting_bad_input():
    with pytest.raises(ValueError, match="got 'D'"):
        paper_setting("D", 10, 10)
    with pytest.raises(ValueError, match="got 1"):
        paper_setting("A", 10, 10, images=ImageSet((noise(9, 9, 3),), ("x",), "made"))
    two = ImageSet((noise(9, 9, 3), noise(9, 9, 3)), ("x", "y"), "made")
    with pytest.raises(ValueError, match="n_train must be >= 1, got -1"):
        paper_setting("A", -1, 10, images=two)
    with pytest.raises(ValueError, match="n_test must be >= 1, got 0"):
        paper_setting("A", 10, 0, images=two)
    gray = ImageSet((noise(20, 20, 3), noise(20, 20)), ("x", "y"), "made")
    with pytest.raises(ValueError, match=r"images\.images\[1\] is gray"):
        paper_setting("B", 10, 10, images=gray)
