"""Numbers as people read them, and round numbers for the axes of charts."""

from __future__ import annotations

import math


def brief(value: float | None, digits: int = 4) -> str:
    """Return a number in few characters: 0.01234, 12.34, 1,234,567."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1e-4 <= abs(value) < 1e5:
        return f"{value:.{digits}g}"
    return f"{value:.{max(digits - 2, 1)}e}"


def compact(value: float) -> str:
    """Return a number for an axis: 0.02, 500, 20k, 3M."""
    if value == 0:
        return "0"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size and (letter != "k" or abs(value) >= 1e4):
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}" if abs(value) >= 1e-3 else f"{value:.0e}".replace("e-0", "e-")


def percent(share: float | None) -> str:
    """Return a share in percent."""
    if share is None or not math.isfinite(share):
        return "–"
    number = 100.0 * share
    digits = 0 if number >= 99.95 or number == 0 else 1 if number >= 1 else 2
    return f"{number:.{digits}f} %"


def duration(seconds: float) -> str:
    """Return a time span: 12.3 s, 4:05 min, 2:03:04 h."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    minutes, hours = whole // 60 % 60, whole // 3600
    if not hours:
        return f"{minutes}:{whole % 60:02} min"
    return f"{hours}:{minutes:02}:{whole % 60:02} h"


def in_bytes(count: float) -> str:
    """Return a number of bytes: 12 kB, 3.4 MB."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return round numbers from low to high."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / max(about, 1)
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers from low to high for a logarithmic axis; both must be positive."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [f * 10.0**power for power in range(first, last + 1) for f in factors]
        found = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if len(found) <= most and found:
            return found
    powers = [10.0**power for power in range(first, last + 1)]
    inside = [value for value in powers if low * 0.999 <= value <= high * 1.001]
    step = max(1, -(-len(inside) // most))
    return inside[::step] or [low, high]
