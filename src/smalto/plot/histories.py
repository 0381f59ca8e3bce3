"""Histories to plot: from results, states, models, estimators, logs and lists of records."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from smalto.learning.callbacks.log import Log
from smalto.learning.memory.record import Record

if TYPE_CHECKING:
    from smalto.learning._learn import Result
    from smalto.learning.files.model import Model
    from smalto.learning.memory.state import State

# An estimator has the attribute `history_`.
History: TypeAlias = (
    "Sequence[Record] | Result | State | Model | Log | str | os.PathLike[str] | Any"
)
Histories: TypeAlias = "History | Sequence[History] | Mapping[str, History]"


def check_histories(
    histories: Histories, labels: Sequence[str] | None
) -> tuple[list[Sequence[Record]], Sequence[str | None]]:
    """Return the histories as lists of records, and one label for each."""
    names: Sequence[str | None] | None = labels
    runs: list[History]
    if isinstance(histories, Mapping):
        runs = list(histories.values())
        names = list(histories) if labels is None else labels
    elif _is_one(histories):
        runs = [histories]
    else:
        runs = list(cast("Sequence[History]", histories))
    if not runs:
        message = f"histories must contain at least one history, got {histories!r}"
        raise ValueError(message)
    if names is None:
        names = [None] if len(runs) == 1 else [f"run {i + 1}" for i in range(len(runs))]
    if len(names) != len(runs):
        message = f"labels must be one per history, got {len(names)} for {len(runs)}"
        raise ValueError(message)
    return [records_of(run) for run in runs], names


def records_of(run: History) -> Sequence[Record]:
    """Return the records of a run."""
    if isinstance(run, Log):
        return read_log(run.path)
    if isinstance(run, str | os.PathLike):
        path = Path(run)
        return _saved(path) if path.suffix == ".safetensors" else read_log(path)
    for name in ("history", "history_"):
        found: Sequence[Record] | None = getattr(run, name, None)
        if found is not None:
            return found
    if isinstance(run, Sequence) and all(hasattr(record, "batch_cost") for record in run):
        return cast("Sequence[Record]", run)
    message = (
        "a history must be a result, a state, a model, a fitted estimator, the path of a log or of "
        f"a model, or a list of records, got {type(run).__name__}"
    )
    raise TypeError(message)


def _saved(path: Path) -> Sequence[Record]:
    """Return the records in the file of a model or of a state."""
    from smalto.learning.files.container import read_file
    from smalto.learning.files.model import Model
    from smalto.learning.memory.state import State

    kind, _, _ = read_file(path, ("model", "state"))
    return Model.load(path).history if kind == "model" else State.load(path).history


def read_log(path: Path) -> list[Record]:
    """Return the records that `Log` has written to a file, also while a run goes on."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix == ".csv":
                reader = csv.DictReader(file)
                rows = [_from_csv(row) for row in reader]
                if "step" not in (reader.fieldnames or ()):
                    raise ValueError("it has no column step")  # noqa: EM101, TRY301
            else:
                rows = [json.loads(line) for line in file if line.endswith("\n")]
        return [_record(row) for row in rows]
    except (AttributeError, TypeError, KeyError, ValueError, csv.Error) as error:
        message = f"{path} is not the log of a run, as Log writes it (.jsonl or .csv): {error}"
        raise ValueError(message) from error


def _from_csv(row: Mapping[str, str | None]) -> dict[str, Any]:
    return {name: json.loads(value) if value else None for name, value in row.items()}


def _record(row: dict[str, Any]) -> Record:
    """Return a record; NaN in place of None where a number is expected."""
    for field in fields(Record):
        if field.type == "float" and row.get(field.name) is None:
            row[field.name] = float("nan")
    return Record(**row)


def _is_one(histories: Any) -> bool:
    """Return whether this is a single history."""
    if isinstance(histories, str | os.PathLike) or not isinstance(histories, Sequence):
        return True
    return len(histories) > 0 and hasattr(histories[0], "batch_cost")
