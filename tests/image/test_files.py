"""Picture files: what goes in comes out."""

import io
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps, TiffImagePlugin
from PIL.PngImagePlugin import PngInfo

from smalto.image import read_picture
from smalto.image.files.metadata import Metadata
from smalto.image.files.picture_file import (
    PictureFile,
    RefusedError,
    open_picture_file,
    turned,
    turned_back,
)
from smalto.image.files.writing import KINDS, as_shown, fit_to, kind_of, write_picture_file

tifffile = pytest.importorskip("tifffile")

SHAPE = (19, 21)
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>a title</x:xmpmeta>"
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
CAPTIONS = b"8BIM\x04\x04\0\0\0\0\0\x0a\x1c\x02\x78\0\x05hello"


def exif_block(orientation=6):
    exif = Image.Exif()
    exif[0x010F], exif[0x0112] = "A maker", orientation
    exif.get_ifd(0x8769)[0x9003] = "2026:01:02 03:04:05"
    exif.get_ifd(0x8825)[1] = "N"
    return exif.tobytes().removeprefix(b"Exif\0\0")


ALL = Metadata(icc=ICC, exif=exif_block(), xmp=XMP, captions=CAPTIONS, dpi=(300.0, 200.0))


def pixels(channels, dtype, seed=0):
    values = np.random.default_rng(seed).random((*SHAPE, channels))
    values = values if np.dtype(dtype).kind == "f" else values * np.iinfo(dtype).max
    values = values.astype(dtype)
    return values if channels > 1 else values[:, :, 0]


def picture(channels, dtype, metadata=ALL):
    """A picture of 1 to 4 channels; the second or fourth one is alpha."""
    values = pixels(channels, dtype)
    if channels in (1, 3):
        return PictureFile(values, None, metadata)
    return PictureFile(values[:, :, 0 if channels == 2 else slice(3)], values[:, :, -1], metadata)


def written(given, kind):
    held = io.BytesIO()
    write_picture_file(held, fit_to(given, kind))
    return held.getvalue()


def again(given, kind):
    return open_picture_file(written(given, kind))


def same_pixels(one, two):
    assert one.pixels.dtype == two.pixels.dtype
    np.testing.assert_array_equal(one.pixels, two.pixels)
    assert (one.alpha is None) == (two.alpha is None)
    if one.alpha is not None:
        np.testing.assert_array_equal(one.alpha, two.alpha)


def tags_of(exif):
    """All tags of EXIF, with those of its parts."""
    return {**exif, 0x8769: exif.get_ifd(0x8769), 0x8825: exif.get_ifd(0x8825)}


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("PNG", np.uint8),
        ("PNG", np.uint16),
        ("WEBP", np.uint8),
        ("TIFF", np.uint8),
        ("TIFF", np.uint16),
        ("TIFF", np.uint32),
        ("TIFF", np.float16),
        ("TIFF", np.float32),
        ("TIFF", np.float64),
    ],
)
def test_pixels_and_metadata_come_back(kind, dtype, channels):
    given = picture(channels, dtype)
    back = again(given, kind)
    if kind == "WEBP" and channels < 3:  # has no gray
        np.testing.assert_array_equal(back.pixels, np.repeat(given.pixels[:, :, None], 3, axis=2))
    else:
        same_pixels(back, given)
    kept = back.metadata
    assert (kept.icc, kept.xmp) == (ICC, XMP)
    exif = Image.Exif()
    exif.load(b"Exif\0\0" + kept.exif)
    tags = tags_of(exif)
    assert tags[0x010F] == "A maker"
    assert tags[0x8769] == {0x9003: "2026:01:02 03:04:05"}
    assert tags[0x8825][1] == "N"
    assert kept.orientation == 6
    if kind != "WEBP":
        np.testing.assert_allclose(kept.dpi, (300, 200), atol=0.02)
    assert kept.captions == (CAPTIONS if kind == "TIFF" else b"")
    twice = again(back, kind)  # nothing is lost on the way, or added
    same_pixels(twice, back)
    assert twice.metadata == back.metadata


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg(channels):
    smooth = np.linspace(0, 200, SHAPE[0] * SHAPE[1] * channels).reshape(*SHAPE, channels)
    smooth = smooth.astype(np.uint8)
    given = PictureFile(smooth if channels == 3 else smooth[:, :, 0], None, ALL)
    back = again(given, "JPEG")
    assert back.is_lossy
    assert np.abs(back.pixels.astype(int) - given.pixels).max() < 12
    assert back.metadata == ALL
    assert again(back, "WEBP").is_lossy  # no need to keep what JPEG has lost
    assert not again(given, "WEBP").is_lossy


def test_jpeg_with_a_comment_and_without_anything():
    held = io.BytesIO()
    Image.fromarray(pixels(3, np.uint8)).save(held, "JPEG", comment=b"hello")
    back = open_picture_file(held.getvalue())
    assert back.metadata.comment == b"hello"
    assert again(back, "JPEG").metadata.comment == b"hello"
    plain = again(PictureFile(pixels(3, np.uint8)), "JPEG").metadata
    assert plain == Metadata(dpi=plain.dpi)


def test_png_says_how_bright_it_is():
    info = PngInfo()
    info.add(b"gAMA", struct.pack(">I", 45455))
    info.add(b"cHRM", struct.pack(">8I", *range(31270, 31278)))
    info.add_text("Title", "a title")
    held = io.BytesIO()
    Image.fromarray(pixels(3, np.uint8)).save(held, "PNG", pnginfo=info)
    for dtype in (np.uint8, np.uint16):
        back = open_picture_file(held.getvalue())
        data = written(replace(back, pixels=pixels(3, dtype)), "PNG")
        with Image.open(io.BytesIO(data)) as opened:
            assert opened.info["gamma"] == pytest.approx(0.45455)
            assert opened.info["chromaticity"][1] == pytest.approx(0.31271)
            assert opened.text["Title"] == "a title"


# --- others read and write the same


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_deep_png_by_opencv(channels, tmp_path):
    cv2 = pytest.importorskip("cv2")
    order = [0] if channels == 1 else [2, 1, 0, 3][:channels]
    given = picture(channels, np.uint16)
    values = pixels(channels, np.uint16).reshape(*SHAPE, channels)
    cv2.imwrite(str(tmp_path / "a.png"), values[:, :, order])
    same_pixels(open_picture_file(tmp_path / "a.png"), given)
    (tmp_path / "b.png").write_bytes(written(given, "PNG"))
    theirs = cv2.imread(
        str(tmp_path / "b.png"), cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION
    )
    assert theirs.dtype == np.uint16
    np.testing.assert_array_equal(theirs.reshape(values.shape), values[:, :, order])


def interlaced_png(values):
    """A PNG of uint16 in the seven passes of Adam7, each without a filter."""
    height, width, channels = values.shape
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2)]
    passes.append((1, 0, 2, 1))
    rows = b""
    for top, left, down, right in passes:
        part = values[top::down, left::right]
        if part.size:
            rows += b"".join(b"\0" + row.astype(">u2").tobytes() for row in part)
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    out = b"\x89PNG\r\n\x1a\n"
    for name, data in (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 1)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ):
        out += struct.pack(">I", len(data)) + name + data
        out += struct.pack(">I", zlib.crc32(name + data))
    return out


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_deep_png_in_passes(channels):
    values = pixels(channels, np.uint16).reshape(*SHAPE, channels)
    same_pixels(open_picture_file(interlaced_png(values)), picture(channels, np.uint16))


def test_a_transparent_color_of_a_deep_png():
    values = pixels(3, np.uint16)
    data = written(PictureFile(values), "PNG")
    body = struct.pack(">3H", *values[4, 5])
    chunk = struct.pack(">I", 6) + b"tRNS" + body + struct.pack(">I", zlib.crc32(b"tRNS" + body))
    back = open_picture_file(data[:33] + chunk + data[33:])
    np.testing.assert_array_equal(back.pixels, values)
    assert back.alpha[4, 5] == 0
    assert (back.alpha == 65535).sum() == back.alpha.size - 1


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"byteorder": ">"},
        {"compression": "zlib", "rowsperstrip": 4},
        {"compression": "lzma"},
        {"tile": (16, 16)},
        {"bigtiff": True},
        {"planarconfig": "separate"},
    ],
    ids=lambda settings: "-".join(map(str, settings)) or "plain",
)
def test_deep_tiff_by_tifffile(dtype, channels, settings, tmp_path):
    given = picture(channels, dtype, Metadata())
    values = pixels(channels, dtype)
    if "planarconfig" in settings and channels > 1:
        values = np.moveaxis(values, 2, 0)
    tifffile.imwrite(
        tmp_path / "a.tif",
        np.ascontiguousarray(values),
        photometric="minisblack" if channels == 1 else "rgb",
        extrasamples=["unassalpha"] if channels == 4 else None,
        resolution=(300, 200),
        resolutionunit=2,
        metadata=None,
        **({} if channels == 1 and "planarconfig" in settings else settings),
    )
    back = open_picture_file(tmp_path / "a.tif")
    same_pixels(back, given)
    np.testing.assert_allclose(back.metadata.dpi, (300, 200))
    (tmp_path / "b.tif").write_bytes(written(back, "TIFF"))
    with tifffile.TiffFile(tmp_path / "b.tif") as theirs:
        found = theirs.asarray()
        assert theirs.pages[0].tags["XResolution"].value == (300, 1)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, pixels(channels, dtype))


@pytest.mark.parametrize(
    ("compression", "predictor"), [(5, 1), (5, 2), (5, 3), (8, 2), (8, 3), (32773, 1)]
)
@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_deep_tiff_by_opencv(compression, predictor, dtype, tmp_path):
    cv2 = pytest.importorskip("cv2")
    if predictor == 3 and dtype == np.uint16:
        pytest.skip("of floats")
    values = pixels(3, dtype)
    values[5:9] = values[4]  # to be compressed
    settings = [cv2.IMWRITE_TIFF_COMPRESSION, compression, cv2.IMWRITE_TIFF_PREDICTOR, predictor]
    cv2.imwrite(str(tmp_path / "a.tif"), values[:, :, ::-1], settings)
    with tifffile.TiffFile(tmp_path / "a.tif") as theirs:
        assert int(theirs.pages[0].compression) == compression
    np.testing.assert_array_equal(open_picture_file(tmp_path / "a.tif").pixels, values)


def test_zero_is_white_in_some_tiff_files(tmp_path):
    values = pixels(1, np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", values, photometric="miniswhite")
    np.testing.assert_array_equal(open_picture_file(tmp_path / "a.tif").pixels, 65535 - values)


def test_alpha_that_colors_were_multiplied_by(tmp_path):
    values = pixels(4, np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", values, photometric="rgb", extrasamples=["assocalpha"])
    back = open_picture_file(tmp_path / "a.tif")
    (tmp_path / "b.tif").write_bytes(written(back, "TIFF"))
    with tifffile.TiffFile(tmp_path / "b.tif") as theirs:
        assert theirs.pages[0].extrasamples == (1,)
        np.testing.assert_array_equal(theirs.asarray(), values)


def test_truths_are_black_and_white(tmp_path):
    marks = np.eye(5, dtype=np.bool_)
    np.save(tmp_path / "mask.npy", marks)
    assert np.array_equal(
        open_picture_file(tmp_path / "mask.npy").pixels, 255 * marks.astype(np.uint8)
    )


def test_numpy_files(tmp_path):
    for values in (pixels(1, np.float64) * 900 - 40, pixels(3, np.uint16), pixels(1, np.uint8)):
        np.save(tmp_path / "a.npy", values)
        back = again(open_picture_file(tmp_path / "a.npy"), "NPY")
        same_pixels(back, PictureFile(values))
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 5)))
    with pytest.raises(ValueError, match=r"has the shape \(3, 4, 5\), but a picture is"):
        open_picture_file(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.zeros((3, 4), int))
    with pytest.raises(ValueError, match=r"holds int64, but pixels must be unsigned"):
        open_picture_file(tmp_path / "a.npy")


# --- what a format cannot hold


@pytest.mark.parametrize(
    ("values", "kind", "dtype", "range_"),
    [
        (pixels(3, np.float32), "PNG", np.uint16, (0, 1)),
        (pixels(3, np.float32), "JPEG", np.uint8, (0, 1)),
        (pixels(3, np.float64) * 5000 - 700, "WEBP", np.uint8, None),
        (pixels(1, np.float64) * 1e-9, "PNG", np.uint16, (0, 1)),
        (pixels(1, np.uint16), "JPEG", np.uint8, (0, 65535)),
        (pixels(3, np.uint16), "BMP", np.uint8, (0, 65535)),
        (pixels(1, np.uint16), "PPM", np.uint16, (0, 65535)),
        (pixels(1, np.uint32), "PNG", np.uint16, (0, 2**32 - 1)),
    ],
)
def test_values_become_those_of_the_format_by_their_range(values, kind, dtype, range_):
    fitted = fit_to(PictureFile(values), kind)
    assert fitted.pixels.dtype == dtype
    low, high = range_ or (values.min(), values.max())
    expected = (values.astype(float) - low) / (high - low) * np.iinfo(dtype).max
    assert np.abs(fitted.pixels - expected).max() <= 0.5 + 1e-6
    if values.dtype != dtype:
        (note,) = fitted.notes
        assert (
            note
            == f"values from {low:.6g} to {high:.6g} become 0 to {np.iinfo(dtype).max} in {kind}"
        )
    else:
        assert fitted.notes == ()


def test_what_a_format_does_not_keep_is_said():
    given = picture(4, np.uint8)
    notes = fit_to(given, "BMP").notes
    assert notes[0] == "the picture is turned upright, since BMP cannot say that it is not"
    assert notes[1] == "alpha is left out, since BMP has none"
    assert notes[2] == "BMP does not keep color profile and EXIF and XMP and IPTC captions"
    np.testing.assert_array_equal(again(given, "BMP").pixels, np.rot90(given.pixels, -1))
    assert fit_to(given, "TIFF").notes == ()
    assert fit_to(given, "PNG").notes == ("PNG does not keep IPTC captions",)
    long = replace(given, metadata=Metadata(xmp=b"x" * 70_000))
    assert "JPEG does not keep XMP" in fit_to(long, "JPEG").notes
    assert again(long, "JPEG").metadata.xmp == b""


@pytest.mark.parametrize("orientation", range(1, 9))
def test_turned_as_by_pillow(orientation):
    given = picture(3, np.uint8, Metadata(exif=exif_block(orientation)))
    with Image.open(io.BytesIO(written(given, "PNG"))) as opened:
        expected = np.asarray(ImageOps.exif_transpose(opened))
    upright = given.upright()
    np.testing.assert_array_equal(upright.pixels, expected)
    np.testing.assert_array_equal(as_shown(given), expected)
    assert upright.metadata.orientation == 1
    np.testing.assert_array_equal(turned_back(expected, orientation), given.pixels)
    np.testing.assert_array_equal(turned(given.pixels, orientation), expected)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "jpeg"])
def test_tiff_files_are_not_turned(tmp_path, orientation, compression):
    given = picture(3, np.uint8)
    options = {"compression": compression, "tiffinfo": {0x0112: orientation}}
    path = tmp_path / "a.tif"
    Image.fromarray(given.pixels).save(path, "TIFF", **options)
    back = open_picture_file(path)
    assert back.metadata.orientation == orientation
    assert back.pixels.shape == given.pixels.shape
    if compression != "jpeg":
        np.testing.assert_array_equal(back.pixels, given.pixels)
        np.testing.assert_array_equal(read_picture(path), given.pixels)
        with Image.open(path) as opened:  # Pillow turns it
            np.testing.assert_array_equal(back.upright().pixels, np.asarray(opened))
    Image.fromarray(given.pixels).convert("CMYK").save(path, "TIFF", tiffinfo={0x0112: orientation})
    np.testing.assert_allclose(read_picture(path), given.pixels, atol=1)


@pytest.mark.parametrize("name", ["a.xyz", "a", "a.gif", "a.doc"])
def test_endings_that_cannot_be_written(tmp_path, name):
    with pytest.raises(ValueError, match=r"is not a format in which .* use one of \.png, "):
        kind_of(tmp_path / name)
    assert kind_of(tmp_path / "A.JPG") == "JPEG"
    assert set(KINDS.values()) == {"PNG", "JPEG", "TIFF", "WEBP", "BMP", "PPM", "NPY"}


# --- odd files


def saved(image, kind, **settings):
    held = io.BytesIO()
    image.save(held, kind, **settings)
    return held.getvalue()


def test_palettes_and_one_bit_are_converted_and_said():
    colors = Image.fromarray(pixels(3, np.uint8)).convert("P")
    back = open_picture_file(saved(colors, "PNG"))
    assert back.notes == ("a palette becomes RGB",)
    np.testing.assert_array_equal(back.pixels, np.asarray(colors.convert("RGB")))
    assert back.alpha is None
    clear = open_picture_file(saved(colors, "GIF", transparency=0))
    assert (clear.alpha == 0).sum() == (np.asarray(colors) == 0).sum()
    bits = Image.fromarray(pixels(1, np.uint8) > 99)
    back = open_picture_file(saved(bits, "PNG"))
    assert back.notes == ("black and white (1 bit) becomes gray (8 bits)",)
    np.testing.assert_array_equal(back.pixels, 255 * (pixels(1, np.uint8) > 99))


def test_pictures_that_cannot_be_written_back_are_refused_but_can_be_read(tmp_path):
    frames = [Image.fromarray(pixels(1, np.uint8, seed)) for seed in range(3)]
    more = {"save_all": True, "append_images": frames[1:]}
    rgb = Image.fromarray(pixels(3, np.uint8))
    for name, data, why in (
        ("a.gif", saved(frames[0], "GIF", **more), "moves (3 frames): save each"),
        ("a.tif", saved(frames[0], "TIFF", **more), "has 3 pages: save each"),
        ("b.jpg", saved(rgb.convert("CMYK"), "JPEG"), "is a CMYK picture: convert it to RGB"),
        ("b.tif", saved(rgb.convert("LAB"), "TIFF"), "is a Lab picture: convert it to RGB"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(RefusedError) as refused:
            open_picture_file(path)
        assert str(refused.value).startswith(f"{path} {why}")
        assert read_picture(path).shape[:2] == SHAPE


def test_previews_and_raw_files(tmp_path):
    values = pixels(3, np.uint16)
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(values, photometric="rgb", metadata=None)
        file.write(values[::4, ::4], photometric="rgb", subfiletype=1, metadata=None)
    back = open_picture_file(tmp_path / "a.tif")
    np.testing.assert_array_equal(back.pixels, values)
    assert back.notes == ("a preview in the file is left out",)
    with tifffile.TiffWriter(tmp_path / "raw.tif") as file:
        file.write(values[::4, ::4], photometric="rgb", subfiletype=1, metadata=None)
        file.write(values, photometric="rgb", metadata=None)
    with pytest.raises(ValueError, match=r"raw\.tif is a raw file of a camera: develop it"):
        open_picture_file(tmp_path / "raw.tif")


def test_kinds_of_tiff_that_are_refused(tmp_path):
    values = pixels(3, np.uint16)
    for given, settings, why in (
        (values.astype(np.int16), {"photometric": "rgb"}, r"16 bits \(signed\): convert"),
        (pixels(4, np.uint16), {"photometric": "separated"}, "must be gray or RGB, .* 4 channels"),
        (values[..., 0].astype(np.complex64), {}, r"64 bits \(complex\): convert"),
    ):
        tifffile.imwrite(tmp_path / "a.tif", given, metadata=None, **settings)
        with pytest.raises(ValueError, match=why):
            open_picture_file(tmp_path / "a.tif")


def test_bombs_are_not_unpacked(tmp_path, monkeypatch):
    tifffile.imwrite(tmp_path / "a.tif", pixels(3, np.uint16), photometric="rgb")
    (tmp_path / "a.png").write_bytes(written(picture(3, np.uint16), "PNG"))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    for name in ("a.tif", "a.png"):
        with pytest.raises(ValueError, match=rf"{name} was not read: .* too many pixels"):
            open_picture_file(tmp_path / name)


MAKERS = {
    "png": lambda: written(picture(3, np.uint8), "PNG"),
    "deep.png": lambda: written(picture(4, np.uint16), "PNG"),
    "jpg": lambda: written(picture(3, np.uint8), "JPEG"),
    "webp": lambda: written(picture(3, np.uint8), "WEBP"),
    "tif": lambda: written(picture(3, np.uint8), "TIFF"),
    "deep.tif": lambda: written(picture(3, np.uint16), "TIFF"),
    "float.tif": lambda: written(picture(1, np.float32), "TIFF"),
    "npy": lambda: written(picture(1, np.float32), "NPY"),
}


@pytest.mark.filterwarnings("ignore")  # Pillow warns of what it can do without
@pytest.mark.parametrize("kind", MAKERS)
def test_damaged_files_are_one_sentence(kind):
    """Whatever bytes are lost or wrong, the file is read, or one sentence says why not."""
    rng = np.random.default_rng(0)
    whole = MAKERS[kind]()
    refusals = []
    for trial in range(60):
        data = bytearray(whole)
        if trial % 2:
            del data[rng.integers(len(data)) :]
        else:
            for place in rng.integers(0, min(len(data), 600), 4):
                data[place] = rng.integers(256)
        try:
            open_picture_file(bytes(data), "a file")
        except ValueError as error:
            refusals.append(str(error))
    assert len(refusals) > 10
    for words in refusals:
        assert words.startswith("a file ")
        assert "\n" not in words


def test_a_directory_that_names_itself():
    page = TiffImagePlugin.ImageFileDirectory_v2(prefix=b"II")
    page[256] = 5
    held = io.BytesIO()
    page.save(held)
    data = bytearray(held.getvalue())
    data[-4:] = struct.pack("<I", 8)  # the next page is this one
    with pytest.raises(ValueError, match="the standard input"):
        open_picture_file(bytes(data), "the standard input")


@pytest.mark.parametrize(
    ("low", "high", "sigma", "expected"),
    [
        (0.1, 0.9, 0.1, (0, 1)),
        (0.2, 0.8, 0.12, (0, 1)),
        (0.0, 1.0, 0.0, (0, 1)),
        (0.0, 1.5, 0.0, None),  # many are beyond
        (-0.2, 0.8, 0.01, None),
        (0.01, 0.02, 0.005, None),  # dark, but not for 0 to 1
        (0.0, 255.0, 10.0, None),
    ],
)
def test_floats_with_noise_were_made_for_0_to_1(low, high, sigma, expected):
    rng = np.random.default_rng(0)
    values = np.linspace(low, high, 300 * 300).reshape(300, 300)
    values += rng.normal(0, sigma, values.shape)
    given = PictureFile(values)
    extremes = (values.min(), values.max())
    assert given.range == (extremes if expected is None else expected)
    assert given.limits[0] <= extremes[0]
    assert given.limits[1] >= extremes[1]
    highlight = values.copy()
    highlight[150, 150] = 500.0
    assert PictureFile(highlight).range == (extremes[0], 500.0)
    assert replace(given, given_range=(-2.0, 3.0)).range == (-2.0, 3.0)
