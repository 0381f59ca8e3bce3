"""Atoms in a page: all of them side by side, and each in its row of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from smalto.checks import Array
from smalto.learning.top_features import largest_features
from smalto.reporting import lines, pictures
from smalto.reporting.atom_facts import AtomFacts
from smalto.reporting.html import Html, element, join, shortened
from smalto.reporting.look import Look
from smalto.reporting.number_texts import brief, percent

_FEATURES = 8  # of an atom that are named
_NAME = 48  # characters of a name
_SIDE = 48  # of a picture on the screen, about


class AtomView(ABC):
    """Abstract: how atoms are drawn in a page."""

    style: str = ""  # CSS that the drawings need

    def all(self, facts: AtomFacts) -> Html | None:
        """Return all atoms side by side, in their order; None if they are only in the table."""
        return None

    @abstractmethod
    def one(self, number: int) -> Html:
        """Return one atom, for its row of the table."""

    @abstractmethod
    def sample(self, before: Array, after: Array) -> Html:
        """Return a sample before and after coding."""


def view_of(D: Array, look: Look) -> AtomView:
    """Return the view of a dictionary."""
    if look.patch_shape is not None:
        return PictureView(D, look.patch_shape)
    return LineView(D, look.n_channels) if look.names is None else FeatureView(D, look.names)


class PictureView(AtomView):
    """Atoms as pictures, all of them in one PNG."""

    def __init__(self, D: Array, shape: tuple[int, ...]) -> None:
        self.shape = shape
        address, self.height, self.width = pictures.sprite(pictures.tiles(D, shape))
        self.zoom = max(1, round(_SIDE / max(self.height, self.width)))
        wide = pictures.sheet_width(self.width) * self.zoom
        self.style = (
            f".tile{{width:{self.width * self.zoom}px;height:{self.height * self.zoom}px;"
            f"background:url({address});background-size:{wide}px}}"
        )

    def all(self, facts: AtomFacts) -> Html:
        """Return the pictures, each with a link to its row."""
        drawn = [
            element(
                "a", class_="tile", href=f"#atom-{j}", style=self._at(j), title=_about(facts, j)
            )
            for j in facts.order.tolist()
        ]
        return element("div", *drawn, class_="mosaic")

    def one(self, number: int) -> Html:
        """Return a picture."""
        return element("i", class_="tile", style=self._at(number))

    def sample(self, before: Array, after: Array) -> Html:
        """Return two pictures, in one range of values."""
        pair = pictures.in_one_range(np.stack([before, after]), self.shape)
        names = ("before", "after")
        drawn = [
            element("img", src=pictures.address(one), alt=name, title=name, class_="pixels")
            for one, name in zip(pair, names, strict=True)
        ]
        return element("div", *drawn, class_="pair")

    def _at(self, number: int) -> str:
        left, top = pictures.place(number, self.height, self.width)
        return f"background-position:-{left * self.zoom}px -{top * self.zoom}px"


class LineView(AtomView):
    """Atoms as lines, one for each channel."""

    def __init__(self, D: Array, n_channels: int) -> None:
        self.n_channels, self.size = n_channels, lines.HEIGHT * n_channels
        points = lines.points_per_line(len(D) * n_channels)
        self.paths = [lines.line_path(atom, n_channels, points) for atom in D]
        self.drawn = False  # whether paths are in the page already, to be used again

    def all(self, facts: AtomFacts) -> Html:
        """Return the lines, each with a link to its row."""
        self.drawn = True
        return element(
            "div",
            *(
                element(
                    "a",
                    self._svg(element("path", id=f"line-{j}", d=self.paths[j])),
                    element("small", j),
                    href=f"#atom-{j}",
                    title=_about(facts, j),
                )
                for j in facts.order.tolist()
            ),
            class_="mosaic of-lines",
        )

    def one(self, number: int) -> Html:
        """Return the lines of an atom."""
        if self.drawn:
            return self._svg(element("use", href=f"#line-{number}"))
        return self._svg(element("path", d=self.paths[number]))

    def sample(self, before: Array, after: Array) -> Html:
        """Return two lines in one range."""
        both = np.concatenate([before, after])
        span = (float(np.nanmin(both)), float(np.nanmax(both)))
        paths = [
            element("path", d=lines.line_path(row, self.n_channels, span=span), class_=name)
            for row, name in ((before, "before"), (after, "after"))
        ]
        return self._svg(*paths)

    def _svg(self, *parts: Html) -> Html:
        box = f"-2 0 {lines.WIDTH + 4} {self.size}"
        return element("svg", *parts, viewBox=box, class_="line", aria_hidden="true")


class FeatureView(AtomView):
    """Atoms by the names of their features of largest weight."""

    def __init__(self, D: Array, names: Array) -> None:
        self.names = names
        self.features, self.weights = largest_features(D, _FEATURES)

    def one(self, number: int) -> Html:
        """Return the names of the largest features, with their weights."""
        return self._chips(self.features[number], self.weights[number])

    def sample(self, before: Array, after: Array) -> Html:
        """Return the largest features of a sample before coding, and their values after it."""
        before = np.nan_to_num(before)
        largest, values = largest_features(before[None], _FEATURES)
        rows = [
            element(
                "tr",
                element("td", self._name(j)),
                element("td", brief(float(value), 3)),
                element("td", brief(float(after[j]), 3)),
            )
            for j, value in zip(largest[0].tolist(), values[0], strict=True)
            if value != 0
        ]
        head = element(
            "tr", element("th", "feature"), element("th", "before"), element("th", "after")
        )
        return element("table", element("tbody", head, *rows), class_="features")

    def _chips(self, features: Array, weights: Array) -> Html:
        found = [
            element("span", self._name(j), element("small", brief(float(weight), 2)))
            for j, weight in zip(features.tolist(), weights, strict=True)
            if weight != 0
        ]
        return element("div", *found, class_="chips") if found else join("no features")

    def _name(self, number: int) -> str:
        return shortened(str(self.names[number]), _NAME)


def _about(facts: AtomFacts, number: int) -> str:
    use = "" if facts.energy is None else f", {percent(float(facts.energy[number]))} of the energy"
    return f"atom {number}{use}"
