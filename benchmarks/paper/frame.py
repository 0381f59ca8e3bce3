"""Code shared by the experiments: resumable parts, and the output of results."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.data import Data
from benchmarks.peers.common import cell, machine

Part = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """A statement of the paper, whether it held in this run, and the figures behind it."""

    claim: str
    held: bool
    evidence: str


@dataclass
class Study:
    """One run of one experiment.

    Attributes
    ----------
    name : str
        The experiment, and the name of its files.
    quick : bool
        Whether to run small problems, only to check that it runs.
    minutes : float
        Approximate time limit.
    data : Data
        The data sets; it notes those that are missing.
    out : Path
        The folder of the results. ``out/parts`` keeps completed parts.
    """

    name: str
    quick: bool
    minutes: float
    data: Data
    out: Path
    about: dict[str, Any] = field(default_factory=machine)
    loads: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The time limit in seconds."""
        return 60.0 * self.minutes

    def part(self, what: str, settings: dict[str, Any], compute: Callable[[], Part]) -> Part:
        """Return the result of ``compute``, or that of an earlier run with the same settings.

        ``settings`` are all inputs of the part. A part consists of numbers, strings, lists of
        them and arrays; it is written to disk at once, and atomically.
        """
        key = json.dumps([what, self.data.fingerprint(), settings], sort_keys=True)
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        path = self.out / "parts" / f"{what}-{digest}.npz"
        if path.is_file():
            kept = _read(path)
            self.loads += kept.pop("load")
            return kept
        begin = time.perf_counter()
        print(f"  {what} {_short(settings)}", end="", flush=True)
        before = _load()
        found = compute()
        _write(path, {**found, "load": [before, _load()]}, settings)
        self.loads += [before, _load()]
        print(f"  [{time.perf_counter() - begin:.1f} s]", flush=True)
        return found

    def finish(
        self,
        title: str,
        figure: Any,
        header: Sequence[str],
        rows: Sequence[Sequence[Any]],
        verdicts: Sequence[Verdict],
        results: Any,
        notes: Sequence[str] = (),
    ) -> None:
        """Write the figure (PNG, SVG), numbers (JSON) and table (Markdown); print the table."""
        self.out.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.out / f"{self.name}.png")
        figure.savefig(self.out / f"{self.name}.svg")
        load = {"least": min(self.loads), "most": max(self.loads)} if self.loads else None
        content = {
            "experiment": self.name,
            "title": title,
            "machine": {**self.about, "load_average": load},
            "quick": self.quick,
            "minutes": self.minutes,
            "missing": self.data.missing,
            "notes": list(notes),
            "verdicts": [asdict(verdict) for verdict in verdicts],
            "results": results,
        }
        text = json.dumps(_plain(content), indent=1, allow_nan=False)
        (self.out / f"{self.name}.json").write_text(text + "\n")
        lines = [markdown(header, rows), ""]
        lines += [f"- {note}" for note in notes]
        for verdict in verdicts:
            mark = "held" if verdict.held else "did not hold"
            lines.append(f"- *{verdict.claim}* **{mark}**: {verdict.evidence}")
        page = "\n".join(lines) + "\n"
        (self.out / f"{self.name}.md").write_text(page)
        print(f"\n{title}\n\n{page}")
        for ending in ("png", "svg", "json", "md"):
            print(f"written: {self.out / self.name}.{ending}")


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table with aligned columns."""
    cells = [list(header), *([cell(value) for value in row] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(header))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def new_figure(columns: int, rows: int = 1, *, size: tuple[float, float] = (4.0, 3.1)) -> Any:
    """Return a figure that needs no display, and its axes as an array (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] * columns, size[1] * rows), dpi=110, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    return figure, axes


def _short(settings: dict[str, Any]) -> str:
    """Return the settings in one line."""
    text = ", ".join(f"{key}={value}" for key, value in settings.items())
    return text if len(text) <= 100 else text[:97] + "..."


def _load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _write(path: Path, part: Part, settings: dict[str, Any]) -> None:
    arrays = {key: value for key, value in part.items() if isinstance(value, np.ndarray)}
    rest = {key: value for key, value in part.items() if key not in arrays}
    header = json.dumps(_plain({"part": rest, "settings": settings}))
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".half")
    with half.open("wb") as file:
        np.savez(file, header=np.array(header), **{f"array_{k}": v for k, v in arrays.items()})
    half.replace(path)


def _read(path: Path) -> Part:
    with np.load(path) as file:
        part: Part = json.loads(str(file["header"]))["part"]
        for key in file.files:
            if key.startswith("array_"):
                part[key.removeprefix("array_")] = file[key]
    return part


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: arrays as lists, NaN and infinity as None."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
