"""Sufficient statistics of coded samples: all that the dictionary update needs of the past."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows
from smalto.coders.base import Codes
from smalto.coders.coding import Coded, squared_norms
from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.learning.sums import Users, add_to_gram, add_to_products, list_users
from smalto.threads import run_tasks

ATOMS = 64  # rows of A and B that one task fills
FEATURES = 512  # columns of B that one task fills, where codes are dense
DENSE = 0.1  # the share of nonzeros from which matrix products are faster
WORST = 8  # badly coded samples of a batch that are looked at

_SMALLEST_SCALE = 1e-12


@dataclass
class Stats:
    """``A = Σ w αᵀα``, ``B = Σ w αᵀx``, ``constant = Σ w (½‖x‖² + ψ(α))``, ``weight = Σ w``.

    They are additive: batch learning sums them over everything, online learning scales the
    old and adds the new. All are in float64, and all are stored divided by ``scale``, so that
    forgetting costs one multiplication and not a pass over A and B. ``code_sum = Σ w α`` and
    ``sample_sum = Σ w x`` are kept so that the origin can be moved afterwards.
    """

    A: Array
    B: Array
    constant: float = 0.0
    weight: float = 0.0
    scale: float = 1.0
    code_sum: Array = field(default_factory=lambda: np.zeros(0))
    sample_sum: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if self.code_sum.size == 0:
            self.code_sum = np.zeros(self.B.shape[0])
        if self.sample_sum.size == 0:
            self.sample_sum = np.zeros(self.B.shape[1])

    @classmethod
    def zeros(cls, n_atoms: int, n_features: int) -> Stats:
        """Statistics of nothing."""
        return cls(np.zeros((n_atoms, n_atoms)), np.zeros((n_atoms, n_features)))

    def move_origin(self, by: Array) -> None:
        """Make these the statistics of the samples ``x − by``, with codes as they were."""
        by = np.asarray(by, np.float64)
        self.B -= np.outer(self.code_sum, by)
        self.constant += 0.5 * self.weight * float(by @ by) - float(self.sample_sum @ by)
        self.sample_sum -= self.weight * by

    def clear(self) -> None:
        """Forget everything."""
        self.A.fill(0.0)
        self.B.fill(0.0)
        self.code_sum.fill(0.0)
        self.sample_sum.fill(0.0)
        self.constant, self.weight, self.scale = 0.0, 0.0, 1.0

    def decay(self, beta: float) -> None:
        """Multiply everything by ``beta``."""
        if beta == 0.0:
            self.clear()
            return
        self.scale *= beta
        if self.scale < _SMALLEST_SCALE:
            self.A *= self.scale
            self.B *= self.scale
            self.code_sum *= self.scale
            self.sample_sum *= self.scale
            self.constant *= self.scale
            self.weight *= self.scale
            self.scale = 1.0

    def copy(self) -> Stats:
        """An independent copy."""
        return Stats(
            self.A.copy(), self.B.copy(), self.constant, self.weight, self.scale,
            self.code_sum.copy(), self.sample_sum.copy(),
        )  # fmt: skip

    def __add__(self, other: Stats) -> Stats:
        """The statistics of both sets of samples."""
        a, b = self.scale, other.scale
        return Stats(
            a * self.A + b * other.A,
            a * self.B + b * other.B,
            a * self.constant + b * other.constant,
            a * self.weight + b * other.weight,
            code_sum=a * self.code_sum + b * other.code_sum,
            sample_sum=a * self.sample_sum + b * other.sample_sum,
        )

    def add(self, other: Stats, weight: float) -> None:
        """Add other statistics, times a weight, to these."""
        factor = weight * other.scale / self.scale
        self.A += factor * other.A
        self.B += factor * other.B
        self.code_sum += factor * other.code_sum
        self.sample_sum += factor * other.sample_sum
        self.constant += factor * other.constant
        self.weight += factor * other.weight

    def surrogate_sum(self, D: Array) -> float:
        """``½ Σ A∘DDᵀ − Σ B∘D + constant``: the weighted sum of costs with codes as they were."""
        D = np.asarray(D, np.float64)
        quadratic = 0.5 * np.vdot(self.A @ D, D) - np.vdot(self.B, D)
        return float(self.scale * (quadratic + self.constant))

    def total_weight(self) -> float:
        """The weight of all samples, as it counts now."""
        return self.scale * self.weight


def add_dense(left: Array, X: Array, B: Array, n_threads: int) -> None:
    """``B += left X`` by matrix products, a slice of the features at a time."""
    left = left.astype(X.dtype, copy=False)

    def task(number: int) -> None:
        features = slice(number * FEATURES, (number + 1) * FEATURES)
        B[:, features] += left @ X[:, features]

    run_tasks(task, -(-X.shape[1] // FEATURES), n_threads)


def _column_sums(X: Rows, weights: Array | None) -> Array:
    """The sums of the features over the samples, in float64; X is not converted as a whole."""
    if weights is not None:
        return np.asarray(weights @ X, np.float64).reshape(-1)
    if sparse.issparse(X):
        return np.asarray(X.sum(axis=0), np.float64).reshape(-1)
    return np.asarray(np.add.reduce(X, axis=0, dtype=np.float64))


@dataclass(frozen=True)
class Contribution:
    """Coded samples, listed by atom, ready to be added to statistics."""

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
        """The contribution of coded rows X (filled where entries are missing)."""
        # Filled entries count: the surrogate is that of the filled rows.
        norms = squared_norms(X) if filled else coded.norms
        return cls.listed(coded.codes, X, n_atoms, norms, coded.fit + penalties, penalties, weights)

    @classmethod
    def listed(
        cls, codes: Codes, X: Rows, n_atoms: int, norms: Array, costs: Array, penalties: Array,
        weights: Array | None,
    ) -> Contribution:  # fmt: skip
        """Sort the codes of the rows of X by atom."""
        atom_ptr = np.empty(n_atoms + 1, np.int64)
        rows, places = np.empty((2, len(codes.indices)), np.int32)
        list_users(SparseRows(*codes), n_atoms, Users(atom_ptr, rows, places))
        return cls(codes, X, norms, costs, penalties, weights, atom_ptr, rows, places)

    def weighted_costs(self) -> Array:
        """The costs of the samples, times their weights."""
        return self.costs if self.weights is None else self.costs * self.weights

    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(len(self.costs) if self.weights is None else self.weights.sum())

    def worst(self) -> tuple[Rows, Array]:
        """A few of the samples, those with the largest weighted costs, and these."""
        costs = self.weighted_costs()
        few = min(WORST, len(costs))
        rows = np.argpartition(costs, len(costs) - few)[len(costs) - few :]
        return self.X[rows], costs[rows]

    @property
    def uses(self) -> Array:
        """How many of the samples use each atom."""
        return np.diff(self.atom_ptr)

    def add_to(self, stats: Stats, weight: float, n_threads: int) -> None:
        """Add these samples to the statistics, each with this weight (negative: take away)."""
        codes, n_atoms = self.codes, len(stats.A)
        rows, users = SparseRows(*codes), Users(self.atom_ptr, self.rows, self.places)
        scaled = weight / stats.scale
        is_sparse = sparse.issparse(self.X)
        if not is_sparse and len(codes.indices) > DENSE * len(self.costs) * n_atoms:
            self._add_dense(stats, scaled, n_threads)
            return

        def task(number: int) -> None:
            first, last = number * ATOMS, min((number + 1) * ATOMS, n_atoms)
            add_to_gram(rows, users, self.weights, scaled, first, last, stats.A)
            if not is_sparse:
                add_to_products(
                    codes.values, users, self.weights, self.X, scaled, first, last, stats.B
                )

        run_tasks(task, -(-n_atoms // ATOMS), n_threads)
        if is_sparse:
            left: Any = codes.as_csr(n_atoms)
            if self.weights is not None:
                left = sparse.diags_array(self.weights) @ left
            products: Any = left.T @ self.X
            coordinates = products.tocoo()
            stats.B[coordinates.row, coordinates.col] += scaled * coordinates.data
        self._add_sums(stats, scaled)

    def _add_dense(self, stats: Stats, scaled: float, n_threads: int) -> None:
        """The same by matrix products, which dense codes are better served by."""
        n_atoms = len(stats.A)
        codes = self.codes.as_csr(n_atoms).toarray().astype(np.float64, copy=False)
        weighted = (
            scaled * codes if self.weights is None else scaled * self.weights[:, None] * codes
        )

        def task(number: int) -> None:
            atoms = slice(number * ATOMS, min((number + 1) * ATOMS, n_atoms))
            stats.A[atoms] += weighted[:, atoms].T @ codes

        run_tasks(task, -(-n_atoms // ATOMS), n_threads)
        add_dense(np.ascontiguousarray(weighted.T), self.X, stats.B, n_threads)
        self._add_sums(stats, scaled)

    def _add_sums(self, stats: Stats, scaled: float) -> None:
        """Add what is one number, or one per atom or feature."""
        codes, n_atoms = self.codes, len(stats.A)
        constants, values = 0.5 * self.norms + self.penalties, codes.values
        ones = np.ones(len(constants)) if self.weights is None else self.weights
        if self.weights is not None:
            values = values * np.repeat(self.weights, np.diff(codes.indptr))
        stats.code_sum += scaled * np.bincount(codes.indices, values, n_atoms)
        stats.sample_sum += scaled * _column_sums(self.X, self.weights)
        stats.constant += scaled * float(ones @ constants)
        stats.weight += scaled * self.total_weight()
