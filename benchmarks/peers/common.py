"""Code shared by the comparisons: data, evaluation, timing, printed tables."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from smalto import encode
from smalto.coders import Lasso
from smalto.datasets import ImageSet, natural_images, paper_setting

Array = np.ndarray[Any, Any]

DTYPES = ("float32", "float64")
QUICK_ATOMS = 64
PACKAGES = ("smalto", "numpy", "numba", "scipy", "scikit-learn", "skglm", "spams-bin", "nmf-torch")


@dataclass(frozen=True, eq=False)
class Problem:
    """Training patches, test patches, an initial dictionary, and the penalty."""

    name: str
    train: Array
    test: Array
    D0: Array
    lam: float
    patch_shape: tuple[int, ...]
    source: str

    @property
    def dtype(self) -> str:
        """The dtype of all arrays."""
        return str(self.train.dtype)

    def as_dtype(self, dtype: str) -> Problem:
        """Return the same problem in another dtype."""
        return Problem(
            self.name,
            self.train.astype(dtype),
            self.test.astype(dtype),
            self.D0.astype(dtype),
            self.lam,
            self.patch_shape,
            self.source,
        )

    def title(self) -> str:
        """Return a description in one line."""
        (k, m), shape = self.D0.shape, "x".join(map(str, self.patch_shape))
        return (
            f"Setting {self.name}: {shape} patches (m = {m}) out of {self.source} pictures, "
            f"k = {k}, lam = {self.lam:.4f}"
        )


def load(
    name: str,
    n_train: int,
    n_test: int,
    *,
    quick: bool = False,
    seed: int = 0,
    images: ImageSet | None = None,
) -> Problem:
    """Return one of the paper's settings in float32, with random patches as initial dictionary.

    ``quick`` takes fewer atoms, to try a script out. ``images`` are the pictures to take patches
    from, by default those of `smalto.datasets`.
    """
    images = _pictures() if images is None else images
    setting = paper_setting(name, n_train, n_test, random_state=seed, images=images)
    k = QUICK_ATOMS if quick else setting.n_atoms
    chosen = np.random.default_rng(seed).permutation(n_train)[:k]
    return Problem(
        name,
        setting.train,
        setting.test,
        setting.train[chosen],
        setting.lam,
        setting.patch_shape,
        setting.source,
    )


@cache
def _pictures() -> ImageSet:
    """Read the pictures; cached."""
    return natural_images()


class Yardstick:
    """Mean cost of the test signals over a dictionary, evaluated the same way for all methods.

    The cost is ``½‖x − αD‖² + lam ‖α‖₁`` with exact codes, in float64 for every method.
    """

    def __init__(self, problem: Problem) -> None:
        self._test = problem.test.astype(np.float64)
        self._lam = problem.lam
        self._known: dict[bytes, float] = {}

    def __call__(self, D: Array) -> float:
        """Return the mean cost over D (k, m); cached."""
        D = np.ascontiguousarray(D, dtype=np.float64)
        key = hashlib.sha256(D.tobytes()).digest()
        if key not in self._known:
            codes = encode(self._test, D, Lasso(self._lam))
            self._known[key] = float(costs(self._test, D, codes, self._lam).mean())
        return self._known[key]


def costs(X: Array, D: Array, codes: Any, lam: float) -> Array:
    """Return ``½‖x − αD‖² + lam ‖α‖₁`` of each row, in float64."""
    X, D = X.astype(np.float64), D.astype(np.float64)
    codes = codes.astype(np.float64)
    residuals = X - codes @ D
    return 0.5 * np.sum(residuals * residuals, axis=1) + lam * np.asarray(
        abs(codes).sum(axis=1)
    ).reshape(-1)


def spaced(last: int, ratio: float) -> list[int]:
    """Return 1, 2, 3, ..., then each about ``ratio`` times the one before, up to ``last``."""
    steps = [1]
    while steps[-1] < last:
        steps.append(min(last, max(steps[-1] + 1, round(steps[-1] * ratio))))
    return steps


def timed(
    call: Callable[..., Any],
    *given: Any,
    clock: Callable[[], float] = time.perf_counter,
    **settings: Any,
) -> tuple[float, Any]:
    """Return the seconds that ``call(*given, **settings)`` took, and its result."""
    begin = clock()
    value = call(*given, **settings)
    return clock() - begin, value


def add_clock(parser: argparse.ArgumentParser) -> None:
    """Add the option to count processor seconds."""
    parser.add_argument(
        "--cpu", action="store_true", help="count processor seconds: for a busy machine, one thread"
    )


def clock_of(options: argparse.Namespace) -> Callable[[], float]:
    """Return the clock to use."""
    return time.process_time if options.cpu else time.perf_counter


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Limit the BLAS libraries of all packages to this many threads."""
    with threadpool_limits(count, user_api="blas"):
        yield


def importable(*modules: str) -> bool:
    """Return whether all of these are installed."""
    return all(importlib.util.find_spec(module) is not None for module in modules)


def parser(description: str, *, n: int | None = None, repeats: int = 3) -> argparse.ArgumentParser:
    """Return a parser with the options that the comparisons share."""
    result = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = result.add_argument
    add("--settings", nargs="+", choices="ABC", default=list("ABC"), help="settings of the paper")
    add("--threads", nargs="+", type=int, default=[1, 2])
    add("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    if n is not None:
        add("--n", type=int, default=n, help="number of training patches")
    add("--repeats", type=int, default=repeats, help="number of repeats, of which the best counts")
    add_common(result)
    return result


def add_common(result: argparse.ArgumentParser) -> None:
    """Add the options that every script has."""
    result.add_argument(
        "--quick", action="store_true", help="a small problem, to check that the script runs"
    )
    result.add_argument(
        "--out", type=Path, default=Path("benchmarks/results"), help="folder of the results"
    )


def machine() -> dict[str, Any]:
    """Return the machine and the versions with which the figures were measured."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    load_average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average_at_start": load_average,
        "python": platform.python_version(),
        "packages": found,
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY"),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def announce(about: dict[str, Any]) -> None:
    """Print what `machine` found."""
    names = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    print(f"{about['processor']}, {about['cores']} cores; Python {about['python']}, {names}")
    average = about["load_average_at_start"]
    if average is not None and average > 0.5:
        print(
            f"The machine is busy (load average {average:.1f}): seconds are too long, ratios rough."
        )


def save(out: Path, name: str, about: dict[str, Any], options: Any, **data: Any) -> None:
    """Write ``out/name.json``."""
    out.mkdir(parents=True, exist_ok=True)
    settings = {
        key: value if not isinstance(value, Path) else None for key, value in vars(options).items()
    }
    settings.pop("out", None)
    path = out / f"{name}.json"
    content = {"machine": about, "options": settings, **data}
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    print(f"written: {path}")


def parts_of(path: Path, *names: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the runs in a file of `save`, by the values of some of their fields; none without it."""
    if not path.exists():
        return {}
    runs = json.loads(path.read_text())["runs"]
    return {tuple(run[name] for name in names): run for run in runs}


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table: text aligned left, numbers aligned right."""
    cells = [[cell(value) for value in row] for row in rows]
    columns = list(zip(header, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    words = [not any(_is_number(cell) for cell in column[1:]) for column in columns]

    def line(values: Sequence[str]) -> str:
        fitted = [
            value.ljust(width) if is_word else value.rjust(width)
            for value, width, is_word in zip(values, widths, words, strict=True)
        ]
        return "  ".join(fitted).rstrip()

    print(line(header))
    print("  ".join("-" * width for width in widths))
    for row in cells:
        print(line(row))
    print(flush=True)


def cell(value: Any) -> str:
    """Return a value formatted for a table."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_number(text: str) -> bool:
    return text.lstrip("<> -").replace(".", "").replace(",", "")[:1].isdigit()
