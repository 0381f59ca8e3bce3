"""The page: facts as one HTML file that needs nothing else."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from smalto.reporting.atom_facts import AtomFacts, atom_facts
from smalto.reporting.atom_table import atom_table
from smalto.reporting.atom_views import AtomView, view_of
from smalto.reporting.charts import histogram, step_chart
from smalto.reporting.curves import curves_of
from smalto.reporting.data_facts import Coded, Samples
from smalto.reporting.facts import REASONS, Facts, peak_memory, versions
from smalto.reporting.html import Html, element, join, shortened
from smalto.reporting.look import Look
from smalto.reporting.number_texts import brief, compact, duration, percent

# Nothing is loaded from anywhere, and nothing is sent.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_HERE = Path(__file__).parent


class Running(NamedTuple):
    """How far a run is that goes on."""

    every_seconds: float  # until the page is written again, and loads itself again
    share: float | None = None  # that is done
    left: float | None = None  # seconds


class Page(NamedTuple):
    """Everything that a page is made of."""

    title: str
    facts: Facts
    look: Look
    samples: Samples | None = None
    coded: Coded | str | None = None
    running: Running | None = None


def page_html(page: Page) -> str:
    """Return the page as HTML."""
    facts, style = page.facts, ""
    coded = page.coded if isinstance(page.coded, Coded) else None
    atoms, sections = None, Html("")
    if facts.D is not None:
        atoms = atom_facts(facts.D, facts.energy, facts.last_used)
        view = view_of(facts.D, page.look)
        style = view.style
        sections = join(
            _dictionary_section(atoms, view),
            _table_section(atoms, view, coded, page.look),
            _samples_section(page, view, coded),
        )
    body = join(
        _header(page),
        _key_numbers(facts, atoms, coded),
        _run_section(facts),
        sections,
        _facts_section(page),
        element("footer", f"Written by smalto on {time.strftime('%Y-%m-%d %H:%M:%S %Z')}."),
    )
    head = join(
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _refresh(page.running),
        element("title", page.title),
        element("style", Html((_HERE / "page.css").read_text(encoding="utf-8") + style)),
    )
    attributes = {
        "data_written": f"{time.time():.0f}",
        "data_every": None if page.running is None else f"{page.running.every_seconds:g}",
    }
    script = element("script", Html((_HERE / "page.js").read_text(encoding="utf-8")))
    html = element(
        "html", element("head", head), element("body", body, script, **attributes), lang="en"
    )
    return f"<!doctype html>\n{html}\n"


def _refresh(running: Running | None) -> Html | None:
    if running is None:
        return None
    seconds = max(1, math.ceil(running.every_seconds))
    return element("meta", http_equiv="refresh", content=str(seconds))


def _header(page: Page) -> Html:
    facts = page.facts
    parts: list[Html | None] = []
    if page.running is not None:
        label, look = "running", "busy"
        share, left = page.running.share, page.running.left
        why = "The page loads itself again until the run has ended."
        if left is not None:
            why = f"About {duration(left)} left. {why}"
        if share is not None:
            parts.append(element("progress", max=1, value=f"{share:.4f}"))
    elif facts.failure is not None:
        label, look, why = "failed", "bad", facts.failure
    elif facts.stopped == "interrupt":
        label, look, why = "interrupted", "bad", _because(facts.stopped)
    elif facts.stopped is not None:
        label, look, why = "ended", "good", _because(facts.stopped)
    else:
        empty = "The log has no steps yet." if facts.D is None and not facts.history else ""
        return join(element("header", element("h1", page.title)), element("p", empty, class_="why"))
    status = element("span", label, class_=f"status {look}", id="status")
    text = element("p", why, class_=f"why {look}" if look == "bad" else "why")
    return join(element("header", element("h1", page.title), status), text, *parts)


def _because(stopped: str) -> str:
    return f"The run has ended: {REASONS.get(stopped, stopped)}."


def _key_numbers(facts: Facts, atoms: AtomFacts | None, coded: Coded | None) -> Html:
    """Return the numbers that matter most, in a row of tiles."""
    found: list[tuple[str, str, str]] = []
    if facts.D is not None:
        k, m = facts.D.shape
        found.append(("atoms", f"{k:,}", f"of {m:,} features"))
    if facts.history:
        last = facts.history[-1]
        found.append(("samples", _large(last.samples), f"{last.step:,} steps"))
        speed = last.samples / last.seconds if last.seconds > 0 else math.nan
        found.append(("learning", duration(last.seconds), f"{_large(speed)}/s"))
        held_out = [r.test_cost for r in facts.history if r.test_cost is not None]
        if held_out:
            found.append(("held-out", brief(held_out[-1]), "mean cost"))
        costs = [r.batch_cost for r in facts.history[-20:] if math.isfinite(r.batch_cost)]
        if costs:
            found.append(("batches", brief(float(np.mean(costs))), "mean cost"))
        if math.isfinite(last.mean_nonzeros):
            found.append(("nonzeros", f"{last.mean_nonzeros:.1f}", "per sample"))
        replaced = sum(record.replaced for record in facts.history)
        found.append(("replaced", f"{replaced:,}", "atoms"))
    if coded is not None:
        found.append(("R²", percent(coded.r2), f"{coded.n:,} samples"))
    if atoms is not None:
        found.append(("unused", f"{int(atoms.unused.sum()):,}", "atoms"))
    if atoms is not None and len(atoms.cosine) > 1:
        found.append(("coherence", f"{float(atoms.cosine.max()):.3f}", "at most"))
    tiles = [
        element("div", element("dt", name), element("dd", value, " ", element("small", more)))
        for name, value, more in found
    ]
    return element("dl", *tiles, class_="tiles")


def _large(value: float) -> str:
    return compact(float(f"{value:.3g}")) if math.isfinite(value) else "–"


def _run_section(facts: Facts) -> Html | None:
    charts = curves_of(facts.history)
    return _section("How it went", None, element("div", *charts, class_="grid")) if charts else None


def _dictionary_section(atoms: AtomFacts, view: AtomView) -> Html | None:
    charts: list[Html | None] = []
    if atoms.energy is not None:
        order, energy = atoms.order, atoms.energy

        def about(i: int) -> str:
            return f"atom {order[i]}: {percent(float(energy[order[i]]))}"

        charts.append(
            step_chart(
                "Use of atoms", 100 * energy[order], "atoms, most used first (% of energy)", about
            )
        )
    if len(atoms.cosine) > 1:
        charts.append(
            histogram("Coherence", atoms.cosine, "absolute cosine with the nearest atom", low=0.0)
        )
    drawn = view.all(atoms)
    parts = [
        None if drawn is None else element("div", drawn, class_="card scroll"),
        element("div", *charts, class_="grid", style="margin-top:12px") if any(charts) else None,
    ]
    if not any(parts):
        return None
    order_text = "most used first" if atoms.energy is not None else None
    return _section("Dictionary", order_text, *parts)


def _table_section(atoms: AtomFacts, view: AtomView, coded: Coded | None, look: Look) -> Html:
    uses = None if coded is None else coded.uses
    search = element(
        "div",
        element(
            "input",
            type="search",
            id="search",
            placeholder="A number, unused, duplicate"
            + (", or names" if look.kind == "features" else ""),
            aria_label="Search the atoms",
        ),
        element("span", f"{len(atoms.order):,} atoms", id="found", class_="named"),
        class_="search",
    )
    table = element("div", atom_table(atoms, view, uses, look), class_="table card")
    return _section(
        "Atoms", "click a column to sort; commas between words to search for", search, table
    )


def _samples_section(page: Page, view: AtomView, coded: Coded | None) -> Html | None:
    if page.coded is None:
        return None
    if coded is None:
        return _section("Codes of samples", None, element("p", str(page.coded), class_="why"))
    assert page.samples is not None
    charts = [
        histogram("Nonzeros", coded.nonzeros, "nonzeros of a code", low=0.0),
        histogram("Error", 100 * coded.errors, "squared error, % of the squared norm", low=0.0),
    ]
    if coded.gaps is not None:
        charts.append(histogram("Duality gaps", coded.gaps, "gap as a share of ½‖x‖²", log_x=True))
    worst_gap = None if coded.gaps is None else float(coded.gaps.max(initial=0.0))
    certificate = "" if worst_gap is None else f", largest gap {worst_gap:.1e} of ½‖x‖²"
    about = f"{coded.n:,} of {page.samples.n_rows:,}, mean cost {brief(coded.cost)}{certificate}"
    wide = "samples" if page.look.kind == "pictures" else "samples wide"
    groups = []
    for name, some in (("Worst coded", coded.worst), ("Best coded", coded.best)):
        cards = [
            element(
                "div",
                view.sample(before, after),
                element("p", f"sample {number:,}: error {percent(error)}"),
                class_="card",
            )
            for number, error, before, after in some
        ]
        if cards:
            groups += [element("h2", name, element("small", _key(page.look))),
                       element("div", *cards, class_=wide)]  # fmt: skip
    return join(
        _section("Codes of samples", about, element("div", *charts, class_="grid")), *groups
    )


def _key(look: Look) -> str:
    if look.kind == "lines":
        return "gray before, orange after"
    return "left before, right after" if look.kind == "pictures" else ""


def _facts_section(page: Page) -> Html:
    facts = page.facts
    memory = dict(facts.memory)
    if page.running is not None or facts.last_used is not None:
        peak = peak_memory()
        if peak is not None:
            memory["this process, at most"] = peak
    groups = {
        "Settings": facts.settings,
        "Data": {} if page.samples is None else page.samples.about,
        "Time": facts.timings,
        "Memory": memory,
        "Versions": versions(),
    }
    tables = [
        element(
            "table",
            element("caption", name),
            element("tbody", *(_row(key, value) for key, value in rows.items())),
        )
        for name, rows in groups.items()
        if rows
    ]
    cards = [element("div", table, class_="card") for table in tables]
    return _section("Settings and versions", None, element("div", *cards, class_="facts"))


def _row(name: str, value: str) -> Html:
    return element("tr", element("th", shortened(name)), element("td", shortened(value, 400)))


def _section(title: str, about: str | None, *parts: Html | None) -> Html:
    head = element("h2", title, None if about is None else element("small", about))
    return element("section", head, *parts)
