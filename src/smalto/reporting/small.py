"""A small report for notebooks: a few numbers, the cost and some atoms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smalto.reporting import lines, pictures
from smalto.reporting.atom_facts import atom_facts
from smalto.reporting.charts import sparkline
from smalto.reporting.facts import REASONS, Facts, facts_of
from smalto.reporting.html import Html, element, shortened
from smalto.reporting.number_texts import brief, duration
from smalto.reporting.writing import look_of

_ATOMS = 32
_MUTED = "opacity:.65;font-size:.92em"


def small_report(what: Any) -> str:
    """Return a small report about a result, a state, a model or a fitted estimator, as HTML.

    Parameters
    ----------
    what : Result, State, Model or fitted estimator
        What to report. ``_repr_html_`` of results and models is this.

    Returns
    -------
    str
        HTML without scripts that follows the colors of the page that it is put into.

    See Also
    --------
    write_report : The whole page.
    """
    facts = facts_of(what)
    costs = np.array([r.batch_cost for r in facts.history], np.float64)
    costs = costs[np.isfinite(costs)]
    parts = [
        element("b", type(what).__name__),
        Html(" "),
        element("span", _summary(facts), style=_MUTED),
        element("div", _atoms(facts), style="margin:6px 0"),
        sparkline(costs) if len(costs) > 2 else None,
        None if facts.coder is None else element("div", shortened(repr(facts.coder)), style=_MUTED),
    ]
    return str(element("div", *parts, style="line-height:1.5"))


def _summary(facts: Facts) -> str:
    words, unused = [], 0
    if facts.D is not None:
        k, m = facts.D.shape
        words.append(f"{k:,} atoms of {m:,} features")
        unused = int(atom_facts(facts.D, facts.energy, None).unused.sum())
    if facts.history:
        last = facts.history[-1]
        words.append(f"{last.samples:,} samples in {duration(last.seconds)}")
        held_out = [r.test_cost for r in facts.history if r.test_cost is not None]
        if held_out:
            words.append(f"held-out cost {brief(held_out[-1])}")
        elif math.isfinite(last.batch_cost):
            words.append(f"cost {brief(last.batch_cost)}")
        if math.isfinite(last.mean_nonzeros):
            words.append(f"{last.mean_nonzeros:.1f} nonzeros")
    if unused:
        words.append(f"{unused} unused atoms")
    if facts.stopped is not None:
        words.append(REASONS.get(facts.stopped, facts.stopped))
    return " · ".join(words)


def _atoms(facts: Facts) -> Html | None:
    """Return the most used atoms, as they look best, or as lines; None if it is a log."""
    if facts.D is None:
        return None
    look = look_of(facts, None, None, None)
    order = atom_facts(facts.D, facts.energy, None).order[:_ATOMS]
    some = facts.D[order]
    if look.patch_shape is not None:
        address, height, _ = pictures.sprite(pictures.tiles(some, look.patch_shape))
        zoom = max(1, round(32 / height))
        wide = pictures.sheet_width(look.patch_shape[1]) * zoom
        style = f"image-rendering:pixelated;max-width:100%;width:{wide}px"
        return element("img", src=address, alt="the most used atoms", style=style)
    if look.names is not None:
        from smalto.learning.top_features import words_of_atoms

        words = words_of_atoms(some[:8], list(look.names), 6)
        return element("div", *(element("div", shortened(text)) for text in words))
    paths = [
        element(
            "svg",
            element("path", d=lines.line_path(row, 1), fill="none", stroke="currentColor"),
            viewBox=f"-2 0 {lines.WIDTH + 4} {lines.HEIGHT}",
            width=90,
            style="margin-right:10px;opacity:.8",
        )
        for row in some[:16]
    ]
    return element("div", *paths)
