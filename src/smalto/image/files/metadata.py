"""What a picture file says beside its pixels: color profile, EXIF, XMP, captions, resolution."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from PIL import Image, TiffTags
from PIL.PngImagePlugin import PngInfo
from PIL.TiffImagePlugin import ImageFileDirectory_v2 as Directory

_EXIF_HEAD = b"Exif\0\0"
_PHOTOSHOP_HEAD = b"Photoshop 3.0\0"
ORIENTATION = 0x0112
_IN_A_SEGMENT = 65_000  # bytes that fit into one segment of a JPEG file
_ICC, _XMP, _IPTC, _PHOTOSHOP = 34675, 700, 33723, 34377  # tags of TIFF

# Tags of TIFF that say how pixels are stored, or that are kept apart from EXIF.
_STORAGE = (
    *range(254, 260), 262, 263, 264, 265, 266, 273, *range(277, 282), 284, 317, 320,
    *range(322, 326), 330, 338, 339, 340, 341, 347, *range(512, 522), *range(529, 533),
    _ICC, _XMP, _IPTC, _PHOTOSHOP, 37724,
)  # fmt: skip
_NAMES = {
    "icc": "color profile",
    "exif": "EXIF",
    "xmp": "XMP",
    "captions": "IPTC captions",
    "dpi": "dpi",
}


@dataclass(frozen=True)
class Metadata:
    """What a file says beside its pixels; empty where it says nothing."""

    icc: bytes = b""
    exif: bytes = b""  # without the head that it has in JPEG
    xmp: bytes = b""
    captions: bytes = b""  # resources of Photoshop, which contain IPTC
    dpi: tuple[float, float] | None = None
    comment: bytes = b""
    chunks: tuple[
        tuple[bytes, bytes], ...
    ] = ()  # of PNG: gamma, primaries, rendering intent, texts

    @property
    def orientation(self) -> int:
        """How the picture is to be turned when it is shown, 1 to 8; 1 is as it is stored."""
        value = _exif_of(self.exif).get(ORIENTATION, 1) if self.exif else 1
        return value if value in range(1, 9) else 1

    def upright(self) -> Metadata:
        """The same for pixels that have been turned."""
        if self.orientation == 1:
            return self
        exif = _exif_of(self.exif)
        exif[ORIENTATION] = 1
        return replace(self, exif=exif.tobytes().removeprefix(_EXIF_HEAD))


NO_METADATA = Metadata()


def metadata_of(picture: Image.Image) -> Metadata:
    """Return the metadata of a picture that Pillow has read."""
    info: dict[Any, Any] = dict(picture.info)
    if picture.format == "TIFF":
        found = _from_tags(picture.getexif())
    else:
        found = Metadata(
            exif=bytes(info.get("exif") or b"").removeprefix(_EXIF_HEAD),
            xmp=_bytes(info.get("xmp") or info.get("XML:com.adobe.xmp")),
        )
    segments = [data for name, data in getattr(picture, "applist", ()) if name == "APP13"]
    captions = b"".join(s.removeprefix(_PHOTOSHOP_HEAD) for s in segments)
    dpi = None if picture.format == "TIFF" else info.get("dpi")  # Pillow makes one up for TIFF
    return replace(
        found,
        icc=_bytes(info.get("icc_profile")) or found.icc,
        captions=captions or found.captions,
        dpi=found.dpi if dpi is None or not all(dpi) else (float(dpi[0]), float(dpi[1])),
        comment=_bytes(info.get("comment")) if picture.format in ("JPEG", "MPO") else b"",
        chunks=_chunks(picture) if picture.format == "PNG" else (),
    )


def metadata_of_tiff(file: BinaryIO, page: Directory) -> Metadata:
    """Return the metadata of the first page of a TIFF file, which Pillow need not understand."""
    exif = Image.Exif()
    file.seek(2)
    if b"+" in file.read(
        2
    ):  # a file with 64-bit places, in which Pillow finds no other directories
        exif.update({key: page[key] for key in page if key not in TiffTags.TAGS_V2_GROUPS})
    else:
        file.seek(0)
        exif.load_from_fp(file)
        for key in TiffTags.TAGS_V2_GROUPS:
            if key in exif:
                exif.get_ifd(key)
    return _from_tags(exif)


def save_settings(metadata: Metadata, kind: str) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments of Pillow's ``save`` for a format, and what this format cannot keep."""
    kept = {
        "JPEG": ("icc", "exif", "xmp", "captions", "dpi"),
        "PNG": ("icc", "exif", "xmp", "dpi"),
        "TIFF": ("icc", "exif", "xmp", "captions", "dpi"),
        "WEBP": ("icc", "exif", "xmp"),
        "BMP": ("dpi",),
    }.get(kind, ())
    held = {name: getattr(metadata, name) for name in _NAMES if getattr(metadata, name)}
    lost = [name for name in held if name not in kept or _is_too_long(held[name], name, kind)]
    held = {name: value for name, value in held.items() if name not in lost}
    if kind == "WEBP" and "exif" in held and "dpi" in lost:
        lost.remove("dpi")  # is in EXIF
    settings: dict[str, Any] = {}
    for name, argument in (("icc", "icc_profile"), ("exif", "exif"), ("dpi", "dpi")):
        if name in held:
            settings[argument] = held[name]
    if kind == "JPEG":
        settings["exif"] = _EXIF_HEAD + held["exif"] if "exif" in held else b""
        settings["extra"] = _segments(held)
        settings["comment"] = metadata.comment
    elif kind == "PNG":
        settings["pnginfo"] = _png_info(held.get("xmp"), metadata.chunks)
    elif "xmp" in held:
        settings["xmp"] = held["xmp"]
    return settings, [_NAMES[name] for name in lost]


def tiff_tags(metadata: Metadata) -> dict[int, Any]:
    """Return metadata as tags of a TIFF file."""
    exif = _exif_of(metadata.exif)
    tags: dict[int, Any] = {}
    for key in exif:
        if key not in _STORAGE:
            tags[key] = exif.get_ifd(key) if key in TiffTags.TAGS_V2_GROUPS else exif[key]
    parts = {_ICC: metadata.icc, _XMP: metadata.xmp, _PHOTOSHOP: metadata.captions}
    tags |= {key: value for key, value in parts.items() if value}
    if metadata.dpi is not None:
        tags |= {282: metadata.dpi[0], 283: metadata.dpi[1], 296: 2}
    return tags


def _exif_of(block: bytes) -> Image.Exif:
    exif = Image.Exif()
    if block:
        exif.load(_EXIF_HEAD + block)
    return exif


def _from_tags(exif: Image.Exif) -> Metadata:
    """Return the tags of a TIFF file as metadata, without those of storage."""
    icc, xmp, captions = (_bytes(exif.get(tag)) for tag in (_ICC, _XMP, _PHOTOSHOP))
    unit = {2: 1.0, 3: 2.54}.get(exif.get(296, 2), 0.0)
    dpi = (unit * float(exif.get(282, 0)), unit * float(exif.get(283, 0)))
    for tag in _STORAGE:
        if tag in exif:
            del exif[tag]
    block = exif.tobytes().removeprefix(_EXIF_HEAD) if len(exif) else b""
    return Metadata(icc, block, xmp, captions, dpi if all(dpi) else None)


def _bytes(value: Any) -> bytes:
    if isinstance(value, tuple):
        return b"".join(map(_bytes, value))
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, bytes | bytearray) else b""


def _is_too_long(value: Any, name: str, kind: str) -> bool:
    single = kind == "JPEG" and name in ("exif", "xmp", "captions")
    return single and len(value) > _IN_A_SEGMENT


def _segments(held: dict[str, Any]) -> bytes:
    """XMP and captions as segments of a JPEG file."""
    found = b""
    for name, marker, head in (
        ("xmp", b"\xff\xe1", b"http://ns.adobe.com/xap/1.0/\0"),
        ("captions", b"\xff\xed", _PHOTOSHOP_HEAD),
    ):
        if name in held:
            data = head + held[name]
            found += marker + struct.pack(">H", len(data) + 2) + data
    return found


def _chunks(picture: Image.Image) -> tuple[tuple[bytes, bytes], ...]:
    """Gamma, primaries, rendering intent and texts of a PNG picture, as chunks."""
    found = []
    if "gamma" in picture.info:
        found.append((b"gAMA", struct.pack(">I", round(picture.info["gamma"] * 1e5))))
    if "chromaticity" in picture.info:
        values = [round(value * 1e5) for value in picture.info["chromaticity"]]
        found.append((b"cHRM", struct.pack(">8I", *values)))
    if "srgb" in picture.info:
        found.append((b"sRGB", bytes([picture.info["srgb"]])))
    texts = PngInfo()
    for name, text in getattr(picture, "text", {}).items():
        if name not in ("XML:com.adobe.xmp", "xmp"):
            texts.add_itxt(name, str(text))
    return (*found, *((chunk[0], chunk[1]) for chunk in texts.chunks))


def _png_info(xmp: bytes | None, chunks: tuple[tuple[bytes, bytes], ...]) -> PngInfo:
    info = PngInfo()
    for name, data in chunks:
        info.add(name, data)
    if xmp:
        info.add_itxt("XML:com.adobe.xmp", xmp.decode("utf-8", "replace"))
    return info
