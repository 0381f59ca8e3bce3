"""Sufficient statistics of coded samples: all that the dictionary update needs to know of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.threads import run_tasks

SMALLEST_SCALE = 1e-12
MANY_ATOMS = 8192  # from which on A is as precise as the dictionary: most of the memory is A
_ATOMS = 256  # rows of A at a time
_LARGE = 1e250


@dataclass
class Stats:
    """Statistics of coded samples: sums over samples x with codes α and weights w.

    ``A = Σ w αᵀα``, ``B = Σ w αᵀx``, ``constant = Σ w (½‖x‖² + ψ(α))`` and ``weight = Σ w``. With
    ``code_sum = Σ w α`` and ``sample_sum = Σ w x`` the origin can be moved afterwards. All are in
    float64 (A for very many atoms in float32) and stored divided by ``scale``, so that forgetting
    takes one multiplication, not a pass over A and B (Section 3 of the paper).

    Attributes
    ----------
    A, B : arrays (k, k) and (k, m)
        ``Σ w αᵀα`` and ``Σ w αᵀx``, divided by ``scale``.
    constant, weight, scale : float
        ``Σ w (½‖x‖² + ψ(α))`` and ``Σ w``, divided by ``scale``.
    code_sum, sample_sum : arrays (k,) and (m,)
        ``Σ w α`` and ``Σ w x``, divided by ``scale``.

    See Also
    --------
    smalto.State : Contains them.
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
    def zeros(cls, n_atoms: int, n_features: int, *, dtype: Any = np.float64) -> Stats:
        """Return the statistics of no samples, for a dictionary of this dtype."""
        of_A = np.float64 if n_atoms < MANY_ATOMS else dtype
        return cls(np.zeros((n_atoms, n_atoms), of_A), np.zeros((n_atoms, n_features)))

    def move_origin(self, by: Array) -> None:
        """Turn these into the statistics of the samples ``x − by``, with the same codes."""
        by = np.asarray(by, np.float64)
        self.B -= np.outer(self.code_sum, by)
        self.constant += 0.5 * self.weight * float(by @ by) - float(self.sample_sum @ by)
        self.sample_sum -= self.weight * by

    def clear(self) -> None:
        """Set all sums to zero; new zeros take no memory until something is added."""
        self.A, self.B = (np.zeros(sums.shape, sums.dtype) for sums in (self.A, self.B))
        self.code_sum.fill(0.0)
        self.sample_sum.fill(0.0)
        self.constant, self.weight, self.scale = 0.0, 0.0, 1.0

    def decay(self, beta: float) -> None:
        """Multiply all sums by ``beta``."""
        if beta == 0.0:
            self.clear()
            return
        self.scale *= beta
        if self.scale < SMALLEST_SCALE:
            self._multiply_out()

    def make_room(self, size: float) -> None:
        """Make sure that sums of this size can be added: divided by a small scale, they may overflow."""
        if size > _LARGE and self.scale != 1.0:
            self._multiply_out()

    def _multiply_out(self) -> None:
        self.A *= self.scale
        self.B *= self.scale
        self.code_sum *= self.scale
        self.sample_sum *= self.scale
        self.constant *= self.scale
        self.weight *= self.scale
        self.scale = 1.0

    def copy(self) -> Stats:
        """Return an independent copy."""
        return Stats(
            self.A.copy(), self.B.copy(), self.constant, self.weight, self.scale,
            self.code_sum.copy(), self.sample_sum.copy(),
        )  # fmt: skip

    def add(self, other: Stats, weight: float) -> None:
        """Add other statistics, times ``weight``, to these."""
        self.make_room(other.constant)
        factor = weight * other.scale / self.scale
        self.A += factor * other.A
        self.B += factor * other.B
        self.code_sum += factor * other.code_sum
        self.sample_sum += factor * other.sample_sum
        self.constant += factor * other.constant
        self.weight += factor * other.weight

    def surrogate_sum(self, D: Array, n_threads: int = 1) -> float:
        """Return ``½ Σ A∘DDᵀ − Σ B∘D + constant``, the weighted sum of costs with the old codes."""
        D = D.astype(self.A.dtype, copy=False)
        sums = np.zeros(-(-len(D) // _ATOMS))  # added up in this order

        def task(number: int) -> None:
            block = slice(number * _ATOMS, (number + 1) * _ATOMS)
            slope = 0.5 * (self.A[block] @ D) - self.B[block]
            sums[number] = np.vdot(slope, D[block].astype(np.float64, copy=False))

        if self.A.diagonal().any():
            run_tasks(task, len(sums), n_threads)
        return float(self.scale * (sum(sums.tolist()) + self.constant))

    def total_weight(self) -> float:
        """Return the current total weight of the samples."""
        return self.scale * self.weight
