"""Options that several functions of this module share: choices by name, threads, refusals."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn

from smalto.checks import check_integer
from smalto.threads import available_cores


def n_threads(n_jobs: int | None) -> int | None:
    """Return smalto's number of threads: None, for every core, if ``n_jobs`` is None or -1."""
    if n_jobs is None or n_jobs == -1:
        return None
    number = check_integer("n_jobs", n_jobs, low=-(2**31))
    if number == 0:
        message = "n_jobs must be None, -1 or another integer but 0, got 0"
        raise ValueError(message)
    return number if number > 0 else max(1, available_cores() + 1 + number)


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise ValueError unless ``value`` is one of the choices."""
    if not any(value is choice or value == choice for choice in choices):
        message = f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
        raise ValueError(message)


def check_positive_codes(method: str, positive: bool) -> None:
    """Raise ValueError if non-negative codes are asked of a method that has none."""
    if positive and method in ("lars", "omp"):
        message = (
            f"Positive constraint not supported for '{method}' coding method. "
            "Use 'cd', 'lasso_cd' or 'lasso_lars'"
        )
        raise ValueError(message)


def refuse(what: str, way_out: str) -> NoReturn:
    """Raise NotImplementedError that names the way out."""
    message = f"{what} is not available in smalto.compat.sklearn: {way_out}"
    raise NotImplementedError(message)
