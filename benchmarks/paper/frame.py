"""Code shared by the experiments: claims and verdicts, resumable parts, the output of results."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.data import Data
from benchmarks.peers.common import cell, machine

Part = dict[str, Any]
Key = tuple[Any, ...]
HELD, IN_PART, NOT_HELD = "held", "held in part", "not held"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, and the rule by which a run judges it.

    A rule is fixed before the long run. One that is changed afterwards is listed on the page, with
    what it said before.
    """

    key: str
    said: str
    rule: str


@dataclass(frozen=True)
class Verdict:
    """Whether a claim held in a run, and the figures behind that."""

    state: str
    evidence: str

    @classmethod
    def of(cls, held: Any, evidence: str, in_part: Any = False) -> Verdict:
        """Return "held", else "held in part", else "not held"."""
        return cls(HELD if held else IN_PART if in_part else NOT_HELD, evidence)


@dataclass(frozen=True, eq=False)
class Task:
    """A part of an experiment that is computed at once and then kept.

    ``settings`` are all inputs. A result consists of numbers, strings, lists of them and arrays.
    ``minutes`` is how long it is expected to take on one core.
    """

    what: str
    settings: dict[str, Any]
    compute: Callable[[], Part]
    minutes: float = 0.0


@dataclass
class Study:
    """One run of one experiment.

    Attributes
    ----------
    name : str
        The experiment, and the name of its files.
    quick : bool
        Whether to run small problems, only to check that it runs.
    data : Data
        The data sets; it notes those that are missing.
    out : Path
        The folder of the results. ``out/parts`` keeps completed parts.
    """

    name: str
    quick: bool
    data: Data
    out: Path
    about: dict[str, Any] = field(default_factory=machine)

    def _path(self, task: Task) -> Path:
        key = json.dumps([task.what, self.data.fingerprint(), task.settings], sort_keys=True)
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        return self.out / "parts" / f"{task.what}-{digest}.npz"

    def is_done(self, task: Task) -> bool:
        """Return whether the result of a part is known."""
        return self._path(task).is_file()

    def part(self, task: Task) -> Part:
        """Return the result of a part: compute it, unless an earlier run did.

        It is written to disk at once, and atomically, with its settings, its seconds, and the load
        average before and after.
        """
        path = self._path(task)
        if not path.is_file():
            begin, before = time.perf_counter(), _load()
            print(f"  {task.what} {_short(task.settings)}", end="", flush=True)
            found = task.compute()
            seconds = time.perf_counter() - begin
            print(f"  [{seconds:.1f} s]", flush=True)
            _write(path, {**found, "wall": seconds, "load": [before, _load()]}, task.settings)
        return _read(path)

    def work(self, tasks: Sequence[Task], until: float) -> list[Task]:
        """Compute the parts that nobody has computed or is computing; return those that are left.

        None is begun that would be expected to end after the time ``until``, but one always is.
        """
        computed = False
        for task in tasks:
            late = time.monotonic() + 60.0 * task.minutes > until
            if self.is_done(task) or (late and computed):
                continue
            with _claim(self._path(task)) as mine:
                if mine and not self.is_done(task):
                    self.part(task)
                    computed = True
        return [task for task in tasks if not self.is_done(task)]

    def finish(
        self,
        module: Any,
        figure: Any,
        header: Sequence[str],
        rows: Sequence[Sequence[Any]],
        verdicts: Mapping[str, Verdict],
        parts: Mapping[Key, Part],
        results: Any,
        notes: Sequence[str] = (),
    ) -> None:
        """Write the figure (PNG, SVG) and everything that the page shows (JSON); print the table."""
        self.out.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.out / f"{self.name}.png")
        figure.savefig(self.out / f"{self.name}.svg")
        claims = {claim.key: claim for claim in module.CLAIMS}
        if not self.quick and set(claims) != set(verdicts):
            message = f"claims {sorted(claims)} got verdicts {sorted(verdicts)}"
            raise ValueError(message)
        verdicts = {key: verdict for key, verdict in verdicts.items() if key in claims}
        loads = [load for part in parts.values() for load in part["load"]]
        content = {
            "experiment": self.name,
            "title": module.TITLE,
            "quick": self.quick,
            "machine": {**self.about, "load_average": [min(loads), max(loads)]},
            "minutes": sum(part["wall"] for part in parts.values()) / 60.0,
            "longest_part": max(part["wall"] for part in parts.values()) / 60.0,
            "missing": self.data.missing,
            "notes": list(notes),
            "verdicts": [
                {"key": key, "said": claims[key].said, "rule": claims[key].rule, **vars(verdict)}
                for key, verdict in verdicts.items()
            ],
            "header": list(header),
            "rows": [[cell(value) for value in row] for row in rows],
            "results": results,
        }
        (self.out / f"{self.name}.json").write_text(as_text(content))
        print(f"\n{module.TITLE}\n\n{markdown(header, rows)}\n")
        for key, verdict in verdicts.items():
            print(f"- {claims[key].said} {verdict.state.upper()}: {verdict.evidence}")
        for ending in ("png", "svg", "json"):
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


def as_text(content: Any) -> str:
    """Return JSON with six digits, and one line for each list of numbers."""
    text = json.dumps(_plain(content), indent=1, allow_nan=False, ensure_ascii=False)
    numbers = re.compile(r"\[[^][{}\"]*\]")
    return numbers.sub(lambda found: " ".join(found[0].split()), text) + "\n"


def new_figure(columns: int, rows: int = 1, *, height: float = 3.3) -> Any:
    """Return a figure as wide as a page, and its axes as an array (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, height * rows), dpi=120, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=9)
        ax.grid(visible=True, color="0.92")
    return figure, axes


def label(ax: Any, title: str, x: str, y: str) -> None:
    """Set the title and the labels of the axes."""
    ax.set_title(title, fontsize=11)
    ax.set_xlabel(x, fontsize=10)
    ax.set_ylabel(y, fontsize=10)


def legend(figure: Any, axes: Any, columns: int = 5) -> None:
    """Draw one legend for all panels, below them."""
    known: dict[str, Any] = {}
    for ax in axes.flat:
        for line, text in zip(*ax.get_legend_handles_labels(), strict=True):
            known.setdefault(text, line)
    figure.legend(
        known.values(), known, loc="outside lower center", ncols=columns, fontsize=9, frameon=False
    )


@contextmanager
def _claim(path: Path) -> Iterator[bool]:
    """Yield whether this process may compute a part; another one may be at it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_suffix(".lock")
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released when the process ends
        except BlockingIOError:
            yield False
            return
        yield True
        lock.unlink(missing_ok=True)


def _short(settings: dict[str, Any]) -> str:
    """Return the settings in one line."""
    text = ", ".join(f"{key}={value}" for key, value in settings.items())
    return text if len(text) <= 100 else text[:97] + "..."


def _load() -> float:
    return os.getloadavg()[0]


def _write(path: Path, part: Part, settings: dict[str, Any]) -> None:
    arrays = {key: value for key, value in part.items() if isinstance(value, np.ndarray)}
    rest = {key: value for key, value in part.items() if key not in arrays}
    header = json.dumps(_plain({"part": rest, "settings": settings}, None))
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}.half")
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


def _plain(value: Any, digits: int | None = 6) -> Any:
    """Return a value that JSON can hold: arrays as lists, NaN and infinity as None."""
    if isinstance(value, dict):
        return {str(key): _plain(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, digits) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist(), digits)
    if isinstance(value, float):
        if not np.isfinite(value):
            return None
        return value if digits is None else float(f"{value:.{digits}g}")
    return value
