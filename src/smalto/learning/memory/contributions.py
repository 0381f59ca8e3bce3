"""Coded samples, ready to be added to the statistics of the past."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.coders.coded import Coded
from smalto.coders.codes import Codes
from smalto.coders.scaling import number_exponent, shifted, squared_norms_of_any_size
from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.learning.sums import (
    Users,
    add_to_gram,
    add_to_products,
    add_to_sums,
    list_users,
)
from smalto.learning.memory.statistics import Stats
from smalto.threads import run_tasks

ATOMS = 32  # rows of A and B that one task fills ...
DENSE_ATOMS = 64  # ... by matrix products
FEATURES = 512  # columns of B that one task fills, if codes are dense
DENSE = 0.1  # share of nonzeros above which dense matrix products are faster
_FARTHEST = 480  # exponent of a unit's root, at most: float64 has room for the sums then
WORST = 8  # badly coded samples of a block that are considered as new atoms


class Addition(Protocol):
    """Coded samples as learners use them: a `Contribution` or a `Summary`."""

    @property
    def uses(self) -> Array:
        """The number of samples that use each atom."""

    def add_to(self, stats: Stats, weight: float, n_threads: int) -> None:
        """Add these samples to the statistics, each with this weight."""

    def weighted_costs(self) -> Array:
        """Return the costs of the samples, times their weights."""

    def total_weight(self) -> float:
        """Return the sum of the weights."""

    def worst(self) -> tuple[Rows, Array]:
        """Return the few samples with the largest weighted costs, and these costs."""


class Part(NamedTuple):
    """One coded block of the samples of a step."""

    numbers: Array
    new: Addition
    nonzeros: int
    short: int  # samples for which the coder's bound on the error was out of reach


@dataclass(frozen=True)
class Contribution:
    """Coded samples, sorted by atom, ready to be added to the statistics."""

    codes: Codes
    X: Rows
    norms: Array  # ‖x‖²
    costs: Array  # ½‖x − αD‖² + ψ(α)
    penalties: Array  # ψ(α)
    weights: Array | None  # of the samples, float64
    atom_ptr: Array
    rows: Array
    places: Array

    @classmethod
    def of(
        cls, coded: Coded, X: Rows, n_atoms: int, penalties: Array, weights: Array | None,
        *, filled: bool,
    ) -> Contribution:  # fmt: skip
        """Return the contribution of coded rows X, in which missing entries are filled."""
        # The surrogate is that of the filled rows, so their norms include filled entries.
        norms = squared_norms_of_any_size(X) if filled else coded.norms
        return cls.listed(coded.codes, X, n_atoms, norms, coded.fit + penalties, penalties, weights)

    @classmethod
    def listed(
        cls, codes: Codes, X: Rows, n_atoms: int, norms: Array, costs: Array, penalties: Array,
        weights: Array | None,
    ) -> Contribution:  # fmt: skip
        """Return the contribution of the rows of X, with their codes sorted by atom."""
        atom_ptr = np.empty(n_atoms + 1, np.int64)
        rows, places = np.empty((2, len(codes.indices)), np.int32)
        list_users(SparseRows(*codes), n_atoms, Users(atom_ptr, rows, places))
        return cls(codes, X, norms, costs, penalties, weights, atom_ptr, rows, places)

    def weighted_costs(self) -> Array:
        """Return the costs of the samples, times their weights."""
        return self.costs if self.weights is None else self.costs * self.weights

    def total_weight(self) -> float:
        """Return the sum of the weights."""
        return float(len(self.costs) if self.weights is None else self.weights.sum())

    def worst(self) -> tuple[Rows, Array]:
        """Return the few samples with the largest weighted costs, and these costs."""
        costs = self.weighted_costs()
        few = min(WORST, len(costs))
        rows = np.argpartition(costs, len(costs) - few)[len(costs) - few :]
        return self.X[rows], costs[rows]

    @property
    def uses(self) -> Array:
        """The number of samples that use each atom."""
        return self.atom_ptr[1:] - self.atom_ptr[:-1]

    def add_to(self, stats: Stats, weight: float, n_threads: int) -> None:
        """Add these samples to the statistics with this weight; a negative one removes them."""
        codes, X, unit = self._of_ordinary_size()
        if unit != 1.0:  # A of very many atoms, whose squares float32 has no room for
            stats.A = stats.A.astype(np.float64, copy=False)
            stats.make_room(unit)
        n_atoms, scaled = len(stats.A), weight / stats.scale
        rows, users = SparseRows(*codes), Users(self.atom_ptr, self.rows, self.places)
        is_sparse = scipy.sparse.issparse(X)
        if not is_sparse and len(codes.indices) > DENSE * len(self.costs) * n_atoms:
            self._add_dense(codes, X, stats, scaled, unit, n_threads)
            self._add_sums(stats, scaled)
            return

        size = ATOMS if n_threads > 1 else n_atoms  # rows of A and B are sums of their own

        def task(number: int) -> None:
            if number == 0:
                self._add_sums(stats, scaled)
                return
            first, last = (number - 1) * size, min(number * size, n_atoms)
            add_to_gram(rows, users, self.weights, scaled * unit, first, last, stats.A)
            if not is_sparse:
                add_to_products(
                    codes.values, users, self.weights, X, scaled * unit, first, last, stats.B
                )

        run_tasks(task, 1 + -(-n_atoms // size), n_threads)
        if is_sparse:
            left: Any = codes.as_csr(n_atoms)
            if self.weights is not None:
                left = scipy.sparse.diags_array(self.weights) @ left
            products: Any = left.T @ X
            coordinates = products.tocoo()
            data = scaled * coordinates.data
            stats.B[coordinates.row, coordinates.col] += _in_units(data, unit)

    def _of_ordinary_size(self) -> tuple[Codes, Rows, float]:
        """Return codes and samples whose products fit into their dtype, and the unit of these.

        The unit is 1, for ordinary samples, or the square of the power of two that they are divided by.
        """
        exponent = number_exponent(math.sqrt(float(self.norms.max(initial=0.0))))
        exponent = max(-_FARTHEST, min(exponent, _FARTHEST))
        if not exponent:
            return self.codes, self.X, 1.0
        values = np.ldexp(self.codes.values, -exponent)
        return self.codes._replace(values=values), shifted(self.X, -exponent), 4.0**exponent

    def _add_dense(
        self, codes: Codes, X: Array, stats: Stats, scaled: float, unit: float, n_threads: int
    ) -> None:
        """Add to A and B by dense matrix products, which are faster for dense codes."""
        n_atoms = len(stats.A)
        dense = codes.as_csr(n_atoms).toarray().astype(np.float64, copy=False)
        weighted = (
            scaled * dense if self.weights is None else scaled * self.weights[:, None] * dense
        )

        def task(number: int) -> None:
            atoms = slice(number * DENSE_ATOMS, min((number + 1) * DENSE_ATOMS, n_atoms))
            stats.A[atoms] += _in_units(weighted[:, atoms].T @ dense, unit)

        run_tasks(task, -(-n_atoms // DENSE_ATOMS), n_threads)
        add_dense(np.ascontiguousarray(weighted.T), X, stats.B, unit, n_threads)

    def _add_sums(self, stats: Stats, scaled: float) -> None:
        """Add to the sums of codes, samples, constants and weights."""
        codes, constants = self.codes, 0.5 * self.norms + self.penalties
        if scipy.sparse.issparse(self.X):
            values = codes.values
            if self.weights is not None:
                values = values * np.repeat(self.weights, np.diff(codes.indptr))
            stats.code_sum += scaled * np.bincount(codes.indices, values, len(stats.A))
            stats.sample_sum += scaled * _column_sums(self.X, self.weights)
        else:
            users = Users(self.atom_ptr, self.rows, self.places)
            rows, sums = SparseRows(*codes), (stats.code_sum, stats.sample_sum)
            add_to_sums(rows, users, self.weights, self.X, scaled, *sums)
        total = constants.sum() if self.weights is None else self.weights @ constants
        stats.constant += scaled * float(total)
        stats.weight += scaled * self.total_weight()


def add_dense(left: Array, X: Array, B: Array, unit: float, n_threads: int) -> None:
    """Add ``unit left X`` to B, one slice of the features per task."""
    left = left.astype(X.dtype, copy=False)

    def task(number: int) -> None:
        features = slice(number * FEATURES, (number + 1) * FEATURES)
        B[:, features] += _in_units(left @ X[:, features], unit)

    run_tasks(task, -(-X.shape[1] // FEATURES), n_threads)


def _in_units(values: Array, unit: float) -> Array:
    """Return ``unit values``, in float64 unless the unit is 1."""
    return values if unit == 1.0 else unit * values.astype(np.float64)


def _column_sums(X: Rows, weights: Array | None) -> Array:
    """Return the sum of each feature over the samples, which are sparse, in float64."""
    sums = X.sum(axis=0) if weights is None else weights @ X
    return np.asarray(sums, np.float64).reshape(-1)


@dataclass(frozen=True)
class Summary:
    """The statistics of coded samples, to be sent instead of the samples and their codes.

    They are smaller when there are many samples.
    """

    stats: Stats
    uses: Array
    costs: Array
    weight: float
    worst_rows: Rows
    worst_costs: Array

    @classmethod
    def of(cls, new: Contribution) -> Summary:
        """Return the summary of a contribution."""
        stats = Stats.zeros(len(new.atom_ptr) - 1, new.X.shape[1])
        new.add_to(stats, 1.0, 1)
        rows, costs = new.worst()
        return cls(stats, new.uses, new.weighted_costs(), new.total_weight(), rows, costs)

    def add_to(self, stats: Stats, weight: float, n_threads: int) -> None:
        """Add these samples to the statistics, each with this weight."""
        stats.add(self.stats, weight)

    def weighted_costs(self) -> Array:
        """Return the costs of the samples, times their weights."""
        return self.costs

    def total_weight(self) -> float:
        """Return the sum of the weights."""
        return self.weight

    def worst(self) -> tuple[Rows, Array]:
        """Return the few samples with the largest weighted costs, and these costs."""
        return self.worst_rows, self.worst_costs


def statistics_are_cheaper(new: Contribution) -> bool:
    """Return whether sending the statistics of coded samples is faster than sending the samples.

    The estimate assumes a gigabyte per second and half a nanosecond per multiplication for the
    receiver. It depends on the samples only, not on the worker that codes them.
    """
    k, m = len(new.atom_ptr) - 1, new.X.shape[1]
    n, nonzeros = len(new.costs), len(new.codes.indices)
    X: Any = new.X
    rows = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    sent = rows + sum(part.nbytes for part in new.codes) + 24 * n
    as_codes = 1e-9 * sent + 0.5e-9 * nonzeros * (nonzeros / max(n, 1) + m)
    as_statistics = (1e-9 * 8 + 1e-9) * (k * k + k * m)
    return bool(as_statistics < as_codes)
