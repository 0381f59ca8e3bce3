"""What a coder is: a sparse coding problem, and a way to solve it for rows of signals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows, check_role


class Codes(NamedTuple):
    """Sparse codes of some rows, as CSR arrays."""

    indptr: Array  # int64, one more than rows
    indices: Array  # int32, increasing within a row
    values: Array

    def as_csr(self, n_atoms: int) -> Any:
        """These codes as a SciPy array (n, n_atoms), sharing indices and values."""
        shape = (len(self.indptr) - 1, n_atoms)
        # SciPy wants both index arrays of one type, and the smaller one where it will do.
        kind = np.int32 if len(self.indices) < 2**31 else np.int64
        indptr, indices = self.indptr.astype(kind), self.indices.astype(kind, copy=False)
        codes = sparse.csr_array((self.values, indices, indptr), shape=shape)
        codes.has_canonical_format = True
        return codes

    def take(self, rows: Array) -> Codes:
        """The codes of these rows, in their order."""
        counts = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.repeat(self.indptr[rows] - indptr[:-1], counts) + np.arange(indptr[-1])
        return Codes(indptr, self.indices[places], self.values[places])

    def part(self, rows: slice) -> Codes:
        """The codes of consecutive rows, sharing indices and values."""
        begin, end = self.indptr[rows.start], self.indptr[rows.stop]
        indptr = self.indptr[rows.start : rows.stop + 1] - begin
        return Codes(indptr, self.indices[begin:end], self.values[begin:end])

    def put(self, rows: Array, new: Codes) -> Codes:
        """These codes with those of some rows, increasing, exchanged for new ones."""
        order = np.arange(len(self.indptr) - 1)
        order[rows] = len(order) + np.arange(len(rows))
        return stack([self, new]).take(order)


def stack(parts: list[Codes]) -> Codes:
    """Codes of consecutive rows, one below the other."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0] + [int(part.indptr[-1]) for part in parts])
    indptr = [part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Codes(
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


class Chunk(NamedTuple):
    """Some signals as a solver sees them."""

    Q: Array  # x Dᵀ (n, width)
    norms: Array  # ‖x‖² (n,)
    rounds: Array  # (n,) int32, zeros: where the solver notes how many rounds a signal took
    numbers: Array | None = None  # which of the rows given to `encode`; None: of a stream
    start: Codes | None = None  # codes to start from
    groups: Array | None = None  # signals groups[g] to groups[g + 1] belong together (int64)
    own: OwnGram | None = None  # where each signal has a Gram matrix of its own

    def take(self, rows: Array) -> Chunk:
        """Some of the signals, each by itself."""
        own = self.own
        if own is not None:
            missing = None if own.missing is None else own.missing[rows]
            weights = None if own.weights is None else own.weights[rows]
            own = own._replace(missing=missing, weights=weights)
        return Chunk(
            np.ascontiguousarray(self.Q[rows]), self.norms[rows], np.zeros(len(rows), np.int32),
            None if self.numbers is None else self.numbers[rows],
            None if self.start is None else self.start.take(rows), None, own,
        )  # fmt: skip


def check_squares(chunk: Chunk) -> None:
    """Refuse signals so large that their squares overflow, for coders that compare squares."""
    if not np.isfinite(chunk.norms).all():
        message = f"X has signals whose squared norms overflow {chunk.Q.dtype}: scale them down" + (
            ", or use float64" if chunk.Q.dtype == np.float32 else ""
        )
        raise ValueError(message)


class OwnGram(NamedTuple):
    """What makes the Gram matrix of each signal its own: entries it lacks, weights it has."""

    features: Array  # Dᵀ (m, width), C-contiguous
    missing: Array | None  # (n, m) bool
    weights: Array | None  # (n, width), above zero: a coefficient's share in the penalty


class Residuals(NamedTuple):
    """Codes and what they leave over, all in float64: what a certificate is computed from."""

    codes: Any  # csr_array (n, k)
    norms: Array  # ‖x‖² (n,)
    squares: Array  # ‖r‖² (n,) of r = x − αD
    C: Array  # r Dᵀ (n, k)
    weights: Array | None = None  # (n, k) or (1, k)
    groups: Array | None = None
    numbers: Array | None = None

    def inner(self) -> Array:
        """``⟨αD, r⟩`` of each row."""
        return np.asarray(self.codes.multiply(self.C).sum(axis=1)).ravel()

    def lengths(self) -> Array:
        """``Σ w_j|α_j|`` of each row."""
        sizes = abs(self.codes)
        if self.weights is not None:  # an infinite weight has the coefficient 0
            sizes = sizes.multiply(np.where(np.isfinite(self.weights), self.weights, 0.0))
        return np.asarray(sizes.sum(axis=1)).ravel()

    def steepest(self, positive: bool) -> Array:
        """The largest correlation of each row's residual, as the weighted penalty sees it."""
        C = self.C if positive else np.abs(self.C)
        if self.weights is not None:
            C = C / self.weights
        return np.asarray(C.max(axis=1, initial=0.0))


def with_room(arrays: tuple[Array, Array], needed: int) -> tuple[Array, Array]:
    """The same arrays with room for at least so many entries, and more than they have."""
    more = max(needed, 2 * arrays[0].size) - arrays[0].size
    first, second = (np.concatenate([array, np.empty(more, array.dtype)]) for array in arrays)
    return first, second


# Codes of a chunk of signals. Called from several threads at once.
Solver: TypeAlias = Callable[[Chunk], Codes]

PADDING = 16  # numbers in a vector of float32


class Coder(ABC):
    """A sparse coding problem ``min_α ½‖x − αD‖² + ψ(α)``: subclass it as a frozen dataclass.

    A coder must say how it is solved (`solver`) and what ψ is (`penalty`). Everything else has a
    default that suits a convex or greedy problem without free parameters.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"mask"})
    """What ``encode`` and ``learn`` may give beside the signals: any of "mask" (missing entries),
    "penalty_weights", "groups" (of signals to be coded together) and "start" (first codes)."""

    own_gram: ClassVar[bool] = False
    """Whether solvers handle a `Chunk` whose signals have Gram matrices of their own (`Chunk.own`).
    If not, signals with missing entries are coded one at a time, each with its whole matrix."""

    positive: bool = False
    """Whether codes must not be negative."""

    @abstractmethod
    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G.

        G is (width, width), C-contiguous, and must not be written to. The dictionary is padded
        with zero atoms to a width that is a multiple of `PADDING`.
        """

    @abstractmethod
    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return ψ of each row of a CSR array of codes.

        For a coder that takes groups, rows groups[g] to groups[g + 1] are a group (by default all
        rows are one), and a row has an equal share of its group's ψ. Others ignore ``groups``.
        """

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> Coder:
        """Return this problem with everything that depends on data decided, from sample rows X."""
        return self

    @property
    def undecided(self) -> bool:
        """Whether something is left that `resolve` would decide, or decide again."""
        return False

    def fixed(self) -> Coder:
        """Return this problem, once resolved, with nothing left to decide again."""
        return self

    def matching(self, other: Coder) -> Coder:
        """Return this problem with what is undecided taken from ``other``, to compare the two."""
        return self

    def relaxed(self, factor: float) -> Coder:
        """Return this problem with its λ multiplied by ``factor`` (for `Continuation`)."""
        message = f"continuation needs a coder with a lam to raise, got {type(self).__name__}"
        raise TypeError(message)

    def error_bound(self) -> Any:
        """Return the promised bound on ``‖x − αD‖²``, one or one per signal; None if there is none."""
        return None

    def describe(self) -> dict[str, float | None]:
        """Return what a `Record` notes about this problem: its λ, or None where it has none."""
        return {"lam": None}

    def refusal(self, name: str) -> str:
        """Say why ``name``, which is not in `takes`, cannot be given."""
        return _REFUSALS[name].format(type(self).__name__)

    def advice_on_zeros(self, X: Rows, D: Array) -> str | None:
        """Explain why all codes of the rows X are zero, and what to change; None if unknown."""
        return None


_REFUSALS = {
    "mask": "{} cannot code signals with missing entries",
    "penalty_weights": (
        "penalty_weights are for Lasso, L1Ball and ErrorBound: {} takes no penalty_weights"
    ),
    "groups": (
        "groups say which signals are coded together, for JointLasso and JointOMP: "
        "{} codes each signal by itself"
    ),
    "start": "start is for Lasso, GroupLasso and TreeLasso: {} takes no start",
}


@runtime_checkable
class Certified(Protocol):
    """A coder of a convex problem, which can bound how far codes are from its optimum."""

    def gap(self, left: Residuals) -> Array:
        """Bound how much each row's objective exceeds the least one (the duality gap)."""


def check_coder(coder: Any) -> Coder:
    """Raise TypeError unless ``coder`` is a coder; hint at missing parentheses."""
    check_role("coder", coder, Coder, "Lasso(lam=0.1)")
    return coder  # type: ignore[no-any-return]


def check_takes(coder: Coder, **given: Any) -> None:
    """Raise ValueError if one of the things given (not None) is not taken by the coder."""
    for name, value in given.items():
        if value is not None and name not in coder.takes:
            raise ValueError(coder.refusal(name))
