"""Charts as SVG, which take their colors from the page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from smalto.checks import Array
from smalto.reporting.html import Html, element, join
from smalto.reporting.number_texts import brief, compact, log_ticks, ticks

WIDTH, HEIGHT = 370, 205
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 8, 34
_POINTS = 160  # of a curve; more are averaged


@dataclass(frozen=True)
class Series:
    """A curve: its name, its points, and how it looks ("a", "b" or "c"; with dots or without)."""

    name: str
    x: Array
    y: Array
    look: str = "a"
    dots: bool = False


@dataclass(frozen=True)
class Scale:
    """A map from values to places on an axis."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, values: Array) -> Array:
        """Return the places of values."""
        low, high = self._as(np.array([self.low, self.high]))
        share = (self._as(np.asarray(values, np.float64)) - low) / ((high - low) or 1.0)
        return np.asarray(self.start + share * (self.end - self.start))

    def _as(self, values: Array) -> Array:
        return np.log10(values) if self.log else values

    def ticks(self, about: int) -> list[float]:
        """Return round values."""
        if self.log:
            return log_ticks(self.low, self.high, about + 1)
        return ticks(self.low, self.high, about)


def line_chart(
    title: str, series: Sequence[Series], x_label: str, *, log_x: bool = False, zero: bool = False
) -> Html | None:
    """Return a chart of curves; None if there is nothing to draw. ``zero`` begins at 0."""
    curves = [curve for one in series if (curve := _drawable(one, log_x)) is not None]
    if not curves:
        return None
    every_x = np.concatenate([curve.x for curve in curves])
    every_y = np.concatenate([curve.y for curve in curves])
    x = Scale(*_range(every_x, log_x), _LEFT, WIDTH - _RIGHT, log_x)
    y = Scale(*_padded(every_y, zero), HEIGHT - _BOTTOM, _TOP)
    parts = [_grid(x, y, x_label)]
    points: list[list[float | str]] = []
    for curve in curves:
        places = np.column_stack([x(curve.x), y(curve.y)])
        parts.append(element("path", d=_path(places), class_=f"curve {curve.look}"))
        if curve.dots and len(places) <= 60:
            parts += [
                element("circle", cx=f"{px:.1f}", cy=f"{py:.1f}", r=2.6, class_=f"dot {curve.look}")
                for px, py in places
            ]
        for (px, py), at, value in zip(places, curve.x, curve.y, strict=True):
            about = f"{curve.name}: {brief(float(value))} at {compact(float(at))}"
            points.append([round(float(px), 1), round(float(py), 1), about])
    legend = [] if len(curves) == 1 else [(curve.name, curve.look) for curve in curves]
    return _figure(title, parts, legend, points)


def step_chart(title: str, values: Array, x_label: str, name: Callable[[int], str]) -> Html | None:
    """Return a chart of values as steps from 0, one after another; ``name(i)`` is shown for each."""
    values = np.asarray(values, np.float64)
    if not len(values) or not np.isfinite(values).all():
        return None
    x = Scale(0, len(values), _LEFT, WIDTH - _RIGHT)
    y = Scale(*_padded(values, zero=True), HEIGHT - _BOTTOM, _TOP)
    edges, heights = x(np.arange(len(values) + 1)), y(values)
    bottom = float(y(np.zeros(1))[0])
    d = f"M{edges[0]:.1f} {bottom:.1f}" + "".join(
        f"V{height:.1f}H{edge:.1f}" for height, edge in zip(heights, edges[1:], strict=True)
    )
    parts = [
        _grid(x, y, x_label),
        element("path", d=f"{d}V{bottom:.1f}Z", class_="area a"),
        element("path", d=d, class_="curve a"),
    ]
    middles = 0.5 * (edges[1:] + edges[:-1])
    points: list[list[float | str]] = [
        [round(float(px), 1), round(float(py), 1), name(i)]
        for i, (px, py) in enumerate(zip(middles, heights, strict=True))
    ]
    return _figure(title, parts, [], points)


def histogram(
    title: str, values: Array, x_label: str, *, log_x: bool = False, low: float | None = None
) -> Html | None:
    """Return a histogram of the finite values; None if there are none."""
    values = np.asarray(values, np.float64).ravel()
    values = values[np.isfinite(values) & ((values > 0) if log_x else True)]
    if not len(values):
        return None
    start, end = _range(values, log_x)
    if low is not None and not log_x:
        start = min(low, start)
    bins = 40
    integers = not log_x and (values == np.round(values)).all() and end - start <= 60
    if integers:
        edges = np.arange(math.floor(start), math.ceil(end) + 2) - 0.5
    else:
        edges = np.geomspace(start, end, bins + 1) if log_x else np.linspace(start, end, bins + 1)
    counts = np.histogram(values, edges)[0]
    x = Scale(float(edges[0]), float(edges[-1]), _LEFT, WIDTH - _RIGHT, log_x)
    y = Scale(*_padded(counts.astype(float), zero=True), HEIGHT - _BOTTOM, _TOP)
    places, tops = x(edges), y(counts.astype(float))
    bottom = float(y(np.zeros(1))[0])
    bars = "".join(
        f"M{a + 0.6:.1f} {bottom:.1f}V{top:.1f}H{b - 0.6:.1f}V{bottom:.1f}Z"
        for a, b, top in zip(places[:-1], places[1:], tops, strict=True)
        if top < bottom
    )
    points: list[list[float | str]] = []
    for a, b, top, count, left, right in zip(
        places[:-1], places[1:], tops, counts, edges[:-1], edges[1:], strict=True
    ):
        where = compact((left + right) / 2) if integers else f"{compact(left)} – {compact(right)}"
        points.append([round((a + b) / 2, 1), round(float(top), 1), f"{count:,} at {where}"])
    parts = [_grid(x, y, x_label), element("path", d=bars, class_="bar a")]
    return _figure(title, parts, [], points)


def sparkline(values: Array, width: int = 160, height: int = 36) -> Html:
    """Return a curve without axes, for a line of text or a small report."""
    values = np.asarray(values, np.float64)
    values = _averaged(np.arange(len(values), dtype=float), values, 80)[1]
    x = Scale(0, max(len(values) - 1, 1), 1, width - 1)
    y = Scale(float(values.min()), float(values.max()), height - 2, 2)
    d = _path(np.column_stack([x(np.arange(len(values))), y(values)]))
    return element(
        "svg",
        element("path", d=d, fill="none", stroke="currentColor", stroke_width=1.5),
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label="cost",
    )


def _drawable(series: Series, log_x: bool) -> Series | None:
    """Return the points that can be drawn, averaged if there are many; None if there are none."""
    x, y = np.asarray(series.x, np.float64), np.asarray(series.y, np.float64)
    good = np.isfinite(x) & np.isfinite(y)
    if log_x:
        good &= x > 0
    x, y = x[good], y[good]
    if not len(x):
        return None
    if not series.dots:
        x, y = _averaged(np.log10(x) if log_x else x, y, _POINTS)
        x = 10.0**x if log_x else x
    return Series(series.name, x, y, series.look, series.dots)


def _averaged(x: Array, y: Array, count: int) -> tuple[Array, Array]:
    """Return means over ``count`` equal parts of the x axis, if there are more points."""
    if len(x) <= count:
        return x, y
    edges = np.linspace(x.min(), x.max(), count + 1)[1:-1]
    part = np.searchsorted(edges, x)
    sizes = np.bincount(part, minlength=count)
    some = sizes > 0
    sums = (np.bincount(part, weights=values, minlength=count)[some] for values in (x, y))
    x, y = (total / sizes[some] for total in sums)
    return x, y


def _range(values: Array, log: bool) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if high > low:
        return low, high
    if log:
        return low / 2, high * 2
    pad = abs(low) / 2 or 0.5
    return low - pad, high + pad


def _padded(values: Array, zero: bool) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if zero:
        return min(0.0, low), (high * 1.06 if high > 0 else 1.0)
    low, high = _range(np.array([low, high]), log=False)
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def _path(places: Array) -> str:
    if len(places) == 1:  # a dot, by the round end of a line
        return f"M{places[0, 0]:.1f} {places[0, 1]:.1f}h0"
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _grid(x: Scale, y: Scale, x_label: str) -> Html:
    """Return the lines behind a chart, and the numbers at its axes."""
    parts: list[Html] = []
    for value, at in zip(y.ticks(4), y(np.array(y.ticks(4))), strict=True):
        d = f"M{_LEFT} {at:.1f}H{WIDTH - _RIGHT}"
        parts.append(element("path", d=d, class_="rule"))
        label = compact(value)
        parts.append(element("text", label, x=_LEFT - 7, y=f"{at + 4:.1f}", class_="at end"))
    for value, at in zip(x.ticks(5), x(np.array(x.ticks(5))), strict=True):
        label = compact(value)
        place = HEIGHT - _BOTTOM + 15
        parts.append(element("text", label, x=f"{at:.1f}", y=place, class_="at middle"))
    d = f"M{_LEFT} {HEIGHT - _BOTTOM}H{WIDTH - _RIGHT}"
    parts.append(element("path", d=d, class_="axis"))
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(element("text", x_label, x=middle, y=HEIGHT - 3, class_="label middle"))
    return join(*parts)


def _figure(
    title: str,
    parts: Sequence[Html],
    legend: Sequence[tuple[str, str]],
    points: Sequence[Sequence[float | str]],
) -> Html:
    names = [
        element("span", element("i", class_=f"key {look}"), name, class_="named")
        for name, look in legend
    ]
    svg = element(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=title,
        data_points=json.dumps(points, separators=(",", ":"), ensure_ascii=False),
    )
    head = element("figcaption", element("b", title), element("output"))
    key = element("div", *names, class_="legend") if names else None
    return element("figure", head, key, svg, class_="chart card")
