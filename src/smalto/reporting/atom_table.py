"""The table of atoms, which can be sorted and searched."""

from __future__ import annotations

from collections.abc import Iterator

from smalto.checks import Array
from smalto.reporting.atom_facts import AtomFacts
from smalto.reporting.atom_views import AtomView
from smalto.reporting.html import Html, element
from smalto.reporting.look import Look
from smalto.reporting.number_texts import percent

DUPLICATE = 0.999  # absolute cosine above which atoms are marked, as in `Replacement`


def atom_table(facts: AtomFacts, view: AtomView, uses: Array | None, look: Look) -> Html:
    """Return a table with a row for each atom; ``uses`` are the shares of samples that use it."""
    columns = [("atom", False), (_picture_name(look), False)]
    if facts.energy is not None:
        columns.append(("energy", True))
    if uses is not None:
        columns.append(("samples", True))
    if facts.last_used is not None:
        columns.append(("last used", False))
    columns += [("nearest", True), ("entries", True), ("notes", True)]
    head = [
        element("th", element("button", name, type="button", data_falling=falling), scope="col")
        for name, falling in columns
    ]
    top = None if facts.energy is None else float(facts.energy.max()) or 1.0
    unused = facts.unused
    rows = [
        element("tr", *_cells(j, facts, view, uses, top, unused[j]), id=f"atom-{j}")
        for j in facts.order.tolist()
    ]
    return element(
        "table",
        element("thead", element("tr", *head)),
        element("tbody", *rows),
        class_="atoms",
    )


def _picture_name(look: Look) -> str:
    return {"pictures": "picture", "lines": "line", "features": "features"}[look.kind]


def _cells(
    j: int, facts: AtomFacts, view: AtomView, uses: Array | None, top: float | None, unused: bool
) -> Iterator[Html]:
    yield element("td", j, data_v=str(j))
    yield element("td", view.one(j))
    if facts.energy is not None and top is not None:
        share = float(facts.energy[j])
        bar = element("i", style=f"width:{100 * share / top:.1f}%")
        meter = element("span", bar, class_="meter")
        yield element("td", meter, percent(share), data_v=f"{share:.6g}")
    if uses is not None:
        yield element("td", percent(float(uses[j])), data_v=f"{uses[j]:.6g}")
    if facts.last_used is not None:
        ago = int(facts.last_used[j])
        text = "in the last step" if ago == 0 else f"{ago:,} samples ago"
        yield element("td", text, data_v=str(ago))
    near = int(facts.nearest[j])
    link = element("a", near, href=f"#atom-{near}")
    cosine = float(facts.cosine[j])
    yield element("td", f"{cosine:.3f} with ", link, data_v=f"{cosine:.6f}")
    yield element("td", percent(float(facts.entries[j])), data_v=f"{facts.entries[j]:.6g}")
    marks = [element("span", "unused", class_="mark")] if unused else []
    if cosine > DUPLICATE:
        marks.append(element("span", "duplicate", class_="mark"))
    yield element("td", *marks, data_v=str(len(marks)))
