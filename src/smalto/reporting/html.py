"""Pieces of HTML: the one place where text is escaped."""

from __future__ import annotations

import functools
import html
import re
from typing import TypeAlias

_EMPTY = {"br", "img", "input", "meta", "path", "line", "circle", "rect", "use"}
_SPECIAL = re.compile("[&<>\"']")
# Marks that turn the direction of what follows, also of numbers beside a name: shown as a sign.
_TURNING = dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")
LONGEST = 120  # characters of a text that others have chosen, such as a name


class Html(str):
    """Text that is HTML already; every other text is escaped where it enters a page."""

    __slots__ = ()


Child: TypeAlias = "str | int | None"  # `Html` as it is, other text escaped, None left out
Attribute: TypeAlias = "str | float | bool | None"


def element(tag: str, *children: Child, **attributes: Attribute) -> Html:
    """Return an element with its children.

    An underscore in the name of an attribute stands for a hyphen, one at its end for nothing
    (``class_``). Attributes that are None or False are left out.
    """
    given = "".join([_attribute(name, value) for name, value in attributes.items()])
    if tag in _EMPTY:
        return Html(f"<{tag}{given}/>")
    return Html(f"<{tag}{given}>{join(*children)}</{tag}>")


def join(*children: Child) -> Html:
    """Return pieces one after another."""
    return Html("".join([_escaped(child) for child in children if child is not None]))


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return a text without its end if it is too long, with a mark."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _escaped(child: str | int) -> str:
    if isinstance(child, Html):
        return child
    text = str(child)
    if not text.isascii():
        text = text.translate(_TURNING)
    return html.escape(text, quote=True) if _SPECIAL.search(text) else text


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    return f" {_key(name)}" if value is True else f' {_key(name)}="{_escaped(str(value))}"'


@functools.cache
def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-")
