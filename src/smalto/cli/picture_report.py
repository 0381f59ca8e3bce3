"""A page of pictures before and after restoration: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import io
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from smalto.checks import Array
from smalto.plot.before_after import busiest_square
from smalto.reporting.html import Html, element, join
from smalto.reporting.whole_files import write_text

TITLE = "Pictures before and after"
_SIDE = 640  # of a picture in the page, at most
_ZOOM = 96  # side of the enlarged detail
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1360px; margin: 0 auto; padding: 24px; }
h1 { font-size: 22px; } h2 { font-size: 16px; margin: 36px 0 2px; overflow-wrap: anywhere; }
p { margin: 2px 0 10px; opacity: .75; } .bad { color: #b3261e; opacity: 1; }
.row { display: grid; grid-template-columns: 3fr 3fr 2fr 2fr; gap: 8px; align-items: start; }
figure { margin: 0; } figcaption { font-size: 12px; opacity: .7; }
img { width: 100%; display: block; } .zoom { image-rendering: pixelated; }
@media (max-width: 760px) { .row { grid-template-columns: 1fr 1fr; } }
"""


class Shown(NamedTuple):
    """A restored picture as a page shows it."""

    name: str
    about: str
    images: list[tuple[str, str]]  # titles and addresses


def show(name: str, about: str, before: Array, after: Array) -> Shown:
    """Return a picture before and after restoration, uint8, as a page shows it."""
    top, left, side = busiest_square(before, after, _ZOOM)
    detail = (slice(top, top + side), slice(left, left + side))
    images = [
        ("before", _address(before, "JPEG")),
        ("after", _address(after, "JPEG")),
        ("detail before", _address(before[detail], "PNG")),
        ("detail after", _address(after[detail], "PNG")),
    ]
    return Shown(name, about, images)


def write_page(path: Path, shown: list[Shown], failed: dict[Path, str]) -> None:
    """Write a page with all restored pictures, and why others could not be restored."""
    parts = [_section(one) for one in sorted(shown, key=lambda one: one.name)]
    parts += [
        join(element("h2", str(source)), element("p", why, class_="bad"))
        for source, why in sorted(failed.items())
    ]
    head = join(
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", TITLE),
        element("style", Html(_STYLE)),
    )
    count = f"{len(shown)} restored" + (f", {len(failed)} not" if failed else "")
    written = f"{count}. Written by smalto on {time.strftime('%Y-%m-%d %H:%M:%S %Z')}."
    body = join(element("h1", TITLE), element("p", written), *parts)
    html = element("html", element("head", head), element("body", body), lang="en")
    write_text(path, f"<!doctype html>\n{html}\n")


def _section(one: Shown) -> Html:
    figures = [
        element(
            "figure",
            element("img", src=address, alt=title, class_="zoom" if "detail" in title else None),
            element("figcaption", title),
        )
        for title, address in one.images
    ]
    row = element("div", *figures, class_="row")
    return join(element("h2", one.name), element("p", one.about), row)


def _address(pixels: Array, kind: str) -> str:
    """Return a picture, reduced if it is large, as an address that contains all of it."""
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    if max(picture.size) > _SIDE:
        picture.thumbnail((_SIDE, _SIDE), Image.Resampling.BOX)
    held = io.BytesIO()
    picture.save(held, kind, **({"quality": 85} if kind == "JPEG" else {}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(held.getvalue()).decode()}"
