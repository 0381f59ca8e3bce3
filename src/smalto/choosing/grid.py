"""The settings to choose from, and the order in which they are fitted."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from smalto.checks import check_integer, check_number, check_role
from smalto.coders.base import Coder
from smalto.coders.lasso import Lasso
from smalto.estimators.base import Factorization


class Point(NamedTuple):
    """One setting of the grid: a number of atoms, and the number of a penalty or coder."""

    n_atoms: int
    problem: int


class Visit(NamedTuple):
    """A fit of a path: its setting, and the one whose atoms it starts from (None: from none)."""

    point: Point
    parent: Point | None


@dataclass(frozen=True)
class Grid:
    """Numbers of atoms, and penalties or coders; each pair is a setting.

    ``name`` is "lam" or "coder", and ``values`` are what that is set to; (None,) leaves it as it
    is in the estimator.
    """

    n_atoms: tuple[int, ...]  # increasing
    name: str
    values: tuple[Any, ...]  # values of lam decrease

    @classmethod
    def of(cls, n_atoms: Any, lam: Any, coder: Any) -> Grid:
        """Check what a user gives."""
        counts = sorted({check_integer("n_atoms", k) for k in _items("n_atoms", n_atoms)})
        if lam is not None and coder is not None:
            message = "give lam or coder, not both: a coder has its own lam"
            raise ValueError(message)
        if coder is not None:
            coders = tuple(_items("coder", coder))
            for value in coders:
                check_role("coder", value, Coder, "Lasso(lam=0.1)")
                _check_single(value)
            return cls(tuple(counts), "coder", coders)
        if lam is None:
            return cls(tuple(counts), "lam", (None,))
        lams = {check_number("lam", value, low=0) for value in _items("lam", lam)}
        return cls(tuple(counts), "lam", tuple(sorted(lams, reverse=True)))

    @property
    def points(self) -> list[Point]:
        """All settings: atoms vary first."""
        return [Point(k, p) for p in range(len(self.values)) for k in self.n_atoms]

    def path(self) -> list[Visit]:
        """Return all settings in the order in which they are fitted.

        The largest number of atoms comes first, for each penalty in turn; then atoms are merged.
        Among more atoms than needed those that are needed are found more easily.
        """
        visits = []
        for p in range(len(self.values)):
            top = Point(self.n_atoms[-1], p)
            visits.append(Visit(top, None if p == 0 else Point(self.n_atoms[-1], p - 1)))
            parent = top
            for k in reversed(self.n_atoms[:-1]):
                visits.append(Visit(Point(k, p), parent))
                parent = Point(k, p)
        return visits

    def estimator(self, template: Factorization, point: Point) -> Factorization:
        """Return a new estimator with the settings of a point."""
        model: Factorization = clone(template)
        model.set_params(**self.params(template, point))
        return model

    def params(self, template: Factorization, point: Point) -> dict[str, Any]:
        """Return the settings of a point as parameters of the estimator."""
        value, params = self.values[point.problem], {"n_components": point.n_atoms}
        if value is None:
            return params
        if self.name == "lam" and not hasattr(template.coder or Lasso(), "lam"):
            message = f"{template.coder!r} has no lam to choose: give coder=[...] instead"
            raise ValueError(message)
        if self.name == "lam" and (template.coder is not None or not hasattr(template, "lam")):
            return {**params, "coder__lam": value}
        return {**params, self.name: value}

    def key(self, point: Point) -> str:
        """Return a short name of the penalty or coder of a point, whatever else is in the grid."""
        value = self.values[point.problem]
        if value is None or self.name == "lam":
            return f"lam{value}"
        with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
            return f"coder{hashlib.sha256(repr(value).encode()).hexdigest()[:16]}"

    def describe(self, point: Point) -> dict[str, Any]:
        """Return the settings of a point as columns of a table."""
        value = self.values[point.problem]
        columns: dict[str, Any] = {"n_atoms": point.n_atoms}
        if value is not None:
            columns[self.name] = value if self.name == "lam" else repr(value)
        return columns


def doubling(X: Any) -> list[int]:
    """Return 2, 4, 8, ..., up to half the number of samples or features of X."""
    shape = np.shape(X) if isinstance(X, list | tuple) else getattr(X, "shape", ())
    most = min(shape, default=0) // 2
    return [1 << power for power in range(1, max(most, 2).bit_length())]


def as_template(estimator: Any, default: type[Factorization]) -> Factorization:
    """Return the estimator to fit, from an instance, a class or None."""
    if estimator is None:
        estimator = default
    if isinstance(estimator, type) and issubclass(estimator, Factorization):
        return estimator(1)
    if not isinstance(estimator, Factorization):
        message = (
            "estimator must be DictionaryLearning, NMF or SparsePCA, or one of these with "
            f"parameters, such as NMF(1, tol=1e-4), got {estimator!r}"
        )
        raise TypeError(message)
    if estimator.coder is not None:
        _check_single(estimator.coder)
    return clone(estimator)  # type: ignore[no-any-return]


def _items(name: str, values: Any) -> Sequence[Any]:
    """Return the values that a user gives as a list; a single one is a list of one."""
    if isinstance(values, str) or not np.iterable(values):
        return [values]
    items = list(values)
    if not items:
        message = f"{name} must have at least one value, got {values!r}"
        raise ValueError(message)
    return items


def _check_single(coder: Coder) -> None:
    if "groups" in coder.takes:
        message = f"coders of groups of signals are not supported here, got {coder!r}"
        raise ValueError(message)
