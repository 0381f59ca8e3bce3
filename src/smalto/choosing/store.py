"""A folder that keeps what is done, so that a choice can go on, or be extended."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from smalto.checks import Rows
from smalto.choosing.grid import Grid, Point
from smalto.choosing.path import Fit, Job, Problem
from smalto.choosing.prediction import Predicted
from smalto.learning.files.as_json import from_json, to_json
from smalto.learning.files.container import clear_leftovers, read_file, write_file
from smalto.sources import is_dask

_KIND = "fit"
_ABOUT = "choice.safetensors"
_ABOUT_KIND = "choice"
# They change neither what is computed nor its bits.
_WITHOUT_EFFECT = ("n_components", "n_threads", "callbacks", "random_state", "sparse_output")


class Store:
    """The fits of a choice, one file each, in a folder that belongs to this choice alone."""

    def __init__(self, folder: Path, grid: Grid) -> None:
        self.folder, self.grid = folder, grid

    @classmethod
    def open(
        cls, path: Any, grid: Grid, about: dict[str, Any], seed: int | None
    ) -> tuple[Store, int | None]:
        """Open a folder, or begin it; return it with the seed that it was begun with.

        Raise ValueError if it was begun for something else.
        """
        folder = Path(path)
        if folder.exists() and not folder.is_dir():
            message = f"store must be a folder, {folder} is a file: give another name"
            raise NotADirectoryError(message)
        folder.mkdir(parents=True, exist_ok=True)
        store, file = cls(folder, grid), folder / _ABOUT
        if file.exists():
            _, had, _ = read_file(file, (_ABOUT_KIND,))
            seed = store._check(had, about, seed)
        elif any(folder.iterdir()):
            message = f"{folder} is neither empty nor a store of fits: give a folder of its own"
            raise ValueError(message)
        return store, seed

    def begin(self, about: dict[str, Any], seed: int) -> None:
        """Write what the folder is for, if that is not written yet."""
        if not (self.folder / _ABOUT).exists():
            write_file(self.folder / _ABOUT, _ABOUT_KIND, {**about, "seed": str(seed)}, {})

    def _check(self, had: dict[str, str], about: dict[str, str], seed: int | None) -> int:
        kept = int(had["seed"])
        for name, value in about.items():
            if had.get(name) != value:
                message = (
                    f"{self.folder} keeps the fits of another choice: its {name} was "
                    f"{had.get(name)!s:.100}, now it is {value!s:.100}. Give another folder"
                )
                raise ValueError(message)
        if seed is not None and seed != kept:
            message = (
                f"{self.folder} was begun with random_state={kept}, now it is {seed}: give the same "
                "one, or another folder"
            )
            raise ValueError(message)
        return kept

    def _file(self, job: Job, point: Point) -> Path:
        name = f"round{job.round}-start{job.start}-{self.grid.key(point)}-atoms{point.n_atoms}"
        return self.folder / f"{name}.safetensors"

    def write(self, job: Job, point: Point, fit: Fit) -> None:
        """Keep a fit."""
        settings = {
            "predicted": to_json(tuple(fit.predicted), {}, ""),
            "cost": to_json(fit.cost, {}, ""),
            "misfit": to_json(fit.misfit, {}, ""),
            "seconds": fit.seconds,
            "share": fit.share,
            "may_be_short": fit.may_be_short,
        }
        path = self._file(job, point)
        clear_leftovers(path)
        write_file(path, _KIND, settings, {"D": fit.D, "A": fit.A})

    def read(self, job: Job, point: Point) -> Fit | None:
        """Return a fit; None if it is not there yet."""
        path = self._file(job, point)
        if not path.exists():
            return None
        _, settings, arrays = read_file(path, (_KIND,))
        try:
            squares, total, entries, nonzeros = from_json(settings["predicted"], {})
            predicted = Predicted(float(squares), float(total), int(entries), float(nonzeros))
            cost, misfit = (float(from_json(settings[key], {})) for key in ("cost", "misfit"))
            atoms = arrays["D"].reshape(point.n_atoms, -1)
            seconds, share = float(settings["seconds"]), float(settings["share"])
            products = arrays["A"].reshape(point.n_atoms, point.n_atoms)
            short = bool(settings["may_be_short"])
            return Fit(predicted, cost, misfit, seconds, share, short, atoms, products)
        except (KeyError, TypeError, ValueError) as error:
            message = f"{path} does not hold a fit: {error}. Remove it, and it is made again"
            raise ValueError(message) from error


def about(problem: Problem, X: Rows) -> dict[str, str]:
    """Return what a store of fits must agree on, as short texts; the grid may become larger."""
    params = problem.template.get_params(deep=False)
    params = {key: params[key] for key in sorted(params) if key not in _WITHOUT_EFFECT}
    return {
        "data": fingerprint(X),
        "estimator": type(problem.template).__name__,
        "parameters": repr({key: _exact(value) for key, value in params.items()}),
        "held_out": repr(problem.held_out),
        "warm_effort": repr(problem.effort),
    }


def _exact(value: Any) -> Any:
    """Return a value whose repr says all of it."""
    return fingerprint(value) if isinstance(value, np.ndarray) else value


def fingerprint(X: Rows) -> str:
    """Return a checksum of data; of a Dask array that of its name."""
    if is_dask(X):
        return f"{X.shape} {X.dtype} {X.name}"
    digest = hashlib.sha256()
    if scipy.sparse.issparse(X):
        parts = [X.data, X.indices, X.indptr]
    elif isinstance(X, np.ma.MaskedArray):
        parts = [X.data, np.ma.getmaskarray(X)]
    else:
        parts = [X]
    for part in parts:
        for first in range(0, len(part), 1 << 16):
            digest.update(np.ascontiguousarray(part[first : first + (1 << 16)]).tobytes())
    return f"{X.shape} {X.dtype} {digest.hexdigest()[:32]}"
