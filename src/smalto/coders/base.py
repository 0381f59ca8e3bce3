"""The base class of coders: a sparse coding problem and its solver."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from smalto.checks import Array, Rows, check_role
from smalto.coders.chunks import Chunk, Problem, Residuals
from smalto.coders.codes import Codes
from smalto.coders.parameters import PerSignal

if TYPE_CHECKING:
    from smalto.coders.signals import Signals

# A function that codes a chunk of signals. It is called from several threads at once.
Solver: TypeAlias = Callable[[Chunk], Codes]


# The duality gap that is promised, as a share of ½‖x‖², by the size of a number in bytes.
PROMISED_GAP = {4: 1e-3, 8: 1e-8}
_LEAST_LAM = {4: 1e-4, 8: 1e-5}  # share of the largest correlation below which codes are checked


@functools.cache
def margin(dtype: np.dtype[Any]) -> float:
    """Return how much larger than rounding, as kernels take it, the promised gap is."""
    return 0.25 * PROMISED_GAP[dtype.itemsize] / (64.0 * float(np.finfo(dtype).eps))


class Sizes(NamedTuple):
    """Sizes of the atoms of a dictionary."""

    norms: Array  # (width,), float64
    largest: float
    uneven: bool  # whether rounding, for the largest atom, may be too much for the smallest

    @classmethod
    def of(cls, G: Array) -> Sizes:
        """Return the sizes of atoms with Gram matrix G."""
        return cls.of_norms(np.sqrt(G.diagonal(), dtype=np.float64), G.dtype)

    @classmethod
    def of_norms(cls, norms: Array, dtype: np.dtype[Any]) -> Sizes:
        """Return the sizes of atoms with these norms."""
        used = norms if norms.min(initial=np.inf) > 0 else norms[norms > 0]
        largest = float(used.max(initial=0.0))
        uneven = bool(largest > margin(dtype) * used.min(initial=np.inf))
        return cls(norms, largest, uneven)


def too_small(lam: float, chunk: Chunk, atoms: Sizes) -> Any:
    """Return for which signals ``lam`` is so small that rounding may matter; False if for none.

    Without any penalty only float32 codes are checked: nothing is promised of the others.
    """
    dtype = chunk.Q.dtype
    if chunk.norms.max(initial=0.0) <= large_enough(lam, atoms, dtype):
        return False
    return lam < _least(atoms, dtype) * np.abs(chunk.Q).max(axis=1, initial=0.0)


def large_enough(lam: float, atoms: Sizes, dtype: np.dtype[Any]) -> float:
    """Return ``‖x‖²`` up to which ``lam`` is not `too_small`, whatever the correlations."""
    if atoms.largest == 0.0 or (lam == 0.0 and dtype == np.float64 and not atoms.uneven):
        return np.inf
    root = lam / (_least(atoms, dtype) * atoms.largest)
    return root * root


def _least(atoms: Sizes, dtype: np.dtype[Any]) -> float:
    return 1.0 / margin(dtype) if atoms.uneven else _LEAST_LAM[dtype.itemsize]


class Coder(ABC):
    """A sparse coding problem ``min_α ½‖x − αD‖² + ψ(α)``: subclass it as a frozen dataclass.

    A subclass defines how the problem is solved (`solver`) and what ψ is (`penalty`). The defaults
    of everything else suit a problem without parameters that depend on data.

    See Also
    --------
    smalto.learning.register : Let files contain a coder of your own.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"mask"})
    """What the coder takes besides the signals: any of "mask" (missing entries),
    "penalty_weights", "groups" (of signals to be coded together) and "start" (initial codes)."""

    own_gram: ClassVar[bool] = False
    """Whether the solver handles chunks whose signals have a Gram matrix each (`Chunk.own`).
    If not, signals with missing entries are coded one at a time, each with its full matrix."""

    takes_coarse: ClassVar[bool] = False
    """Whether the solver handles float64 chunks with float32 correlations (`Chunk.coarse`)."""

    can_be_rough: ClassVar[bool] = False
    """Whether `rough_solver` is faster than `solver`."""

    remedy: ClassVar[str] = "a larger lam"
    """What keeps rounding from spoiling codes of similar atoms, for warnings."""

    positive: bool = False
    """Whether codes are nonnegative."""

    @abstractmethod
    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G.

        G is (width, width), C-contiguous, and must not be written to. The dictionary is padded
        with zero atoms to a width that is a multiple of `PADDING`.
        """

    def rough_solver(self, G: Array, slack: float) -> Solver:
        """Return a solver whose codes may violate optimality, by ``slack`` times λ at most.

        It is for steps of learning, where exact codes are not needed. By default it is `solver`.
        """
        return self.solver(G)

    def rough_fit(self, codes: Codes, chunk: Chunk, out: Array) -> bool:
        """Write ``½‖x − αD‖²`` of codes of `rough_solver`, if that is faster than from the Gram matrix.

        Return whether it was written; by default it is not.
        """
        return False

    @abstractmethod
    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return ψ of each row of a CSR array of codes.

        For a coder that takes groups, rows groups[g] to groups[g + 1] are a group (by default all
        rows are one), and each row gets an equal share of its group's ψ. Other coders ignore
        ``groups``.
        """

    def penalty_of_codes(self, codes: Codes, n_atoms: int, groups: Array | None) -> Array:
        """Return `penalty` of codes that are not a CSR array yet: making one takes time."""
        return self.penalty(codes.as_csr(n_atoms), groups)

    def weighted_penalty(
        self, codes: Any, weights: Array | None, groups: Array | None = None
    ) -> Array:
        """Return ψ of each row of codes, with the penalty weights (n or 1, k) of `encode`.

        The default suits coders that take none, and those that have them in a constraint.
        """
        return self.penalty(codes, groups)

    def own_weights(self) -> Array | None:
        """Return the penalty weights (1, k) of this problem; None, the default, if it has none."""
        return None

    def unweighted(self) -> Coder:
        """Return this problem without its own penalty weights."""
        return self

    def all_weights(self, weights: Array | None) -> Array | None:
        """Return the weights of this problem (1, k) times those of signals (n or 1, k)."""
        own = self.own_weights()
        if own is None or weights is None:
            return weights if own is None else own
        with np.errstate(invalid="ignore"):  # infinity excludes an atom, also if times zero
            return np.asarray(np.nan_to_num(own * weights, nan=np.inf, posinf=np.inf))

    def eliminated(self) -> tuple[Coder, float]:
        """Return the problem of the other atoms, without its ridge, and the ridge.

        See `unpenalized.py`; for coders that take penalty weights.
        """
        return self, 0.0

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> Coder:
        """Return this problem with all parameters decided that depend on data (sample rows X)."""
        return self

    def resolve_for(
        self, signals: Signals, D: Array, n_threads: int = 1, G: Array | None = None
    ) -> Coder:
        """Return `resolve` for sample rows with missing entries and penalty weights.

        The default ignores both: missing entries are zero. G is the Gram matrix of the padded
        dictionary, if it is known.
        """
        return self.resolve(signals.X, D, n_threads)

    @property
    def undecided(self) -> bool:
        """Whether `resolve` has a parameter to choose, or to choose again."""
        return False

    def conflict(self) -> str | None:
        """Return what is wrong if a user has given parameters that exclude each other; else None."""
        return None

    def fixed(self) -> Coder:
        """Return this problem, already resolved, such that `resolve` no longer changes it."""
        return self

    def matching(self, other: Coder) -> Coder:
        """Return this problem with undecided parameters taken from ``other``, for comparison."""
        return self

    def relaxed(self, factor: float) -> Coder:
        """Return this problem with its λ multiplied by ``factor`` (for `Continuation`).

        The default does so for dataclasses whose λ is the field ``lam``, and is in `describe`.
        """
        lam = self.describe()["lam"]
        if lam is None or "lam" not in getattr(self, "__dataclass_fields__", {}):
            message = f"continuation needs a coder with a lam to raise, got {type(self).__name__}"
            raise TypeError(message)
        return replace(self, lam=float(lam) * factor)  # type: ignore[type-var]

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> Coder | None:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale.

        The signals, the atoms and the penalty weights (those of ``encode``) are multiplied by these
        factors. None, the default, if this is unknown: then nothing is ever rescaled.
        """
        return None

    @property
    def any_atom_scale(self) -> bool:
        """Whether each atom can be scaled by itself, which divides its coefficients and no more."""
        return False

    def linear(self, D: Array) -> Array | None:
        """Return W (k, m) if the codes of signals x are ``x Wᵀ``, up to rounding that does no harm.

        None, the default, if they are not: then codes come from `solver`.
        """
        return None

    def certain(self, problem: Problem) -> Array | None:
        """Return float64 codes found by a slow method that atoms of any similarity cannot mislead.

        It is used where rounding spoils the codes of `solver`; None, the default, if there is none.
        """
        return None

    @property
    def can_be_mended(self) -> bool:
        """Whether codes can be certified or solved again; if not, they are taken as they are."""
        return is_certified(type(self)) or type(self).certain is not Coder.certain

    def lower_bound(self, problem: Problem, codes: Array) -> float:
        """Return a lower bound of the optimum, better than that of `Certified.gap` at these codes.

        It may take as long as a code; minus infinity, the default, if there is none.
        """
        return -np.inf

    def delicate(self, chunk: Chunk, atoms: Sizes) -> Any:
        """Return whether codes must be checked, or for which signals of a chunk they must be."""
        return bool(atoms.uneven) and not self.any_atom_scale

    def safe_norm(self, atoms: Sizes, dtype: np.dtype[Any]) -> float:
        """Return ``‖x‖²`` up to which no signal is `delicate`; it is cheaper than asking for each."""
        return 0.0

    def suits_float32(self, G: Array) -> bool:
        """Return whether float32 will do although there is no penalty, over atoms of Gram matrix G."""
        return False

    def error_bound(self) -> PerSignal | None:
        """Return the bound on ``‖x − αD‖²``, for all signals or one each; None if there is none."""
        return None

    def two_limits(self) -> tuple[PerSignal, PerSignal] | None:
        """Return the number of nonzeros and the error of which the first to be reached counts."""
        return None

    def describe(self) -> dict[str, float | None]:
        """Return the parameters that a `Record` shows: ``lam``, or None if there is none."""
        return {"lam": None}

    def refusal(self, name: str) -> str:
        """Return the error message for ``name``, which is not in `takes`."""
        return _REFUSALS[name].format(type(self).__name__)

    def advice_on_zeros(self, X: Rows, D: Array) -> str | None:
        """Return why all codes of the rows X are zero and what to change; None if unknown."""
        return None


_REFUSALS = {
    "mask": "{} cannot code signals with missing entries: use another coder, or fill them in first",
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
    """A coder of a convex problem, which can bound the suboptimality of codes."""

    def gap(self, left: Residuals) -> Array:
        """Return a bound on the suboptimality of each row's objective (the duality gap)."""


@functools.cache
def is_certified(kind: type) -> bool:
    """Return whether coders of a class are `Certified`: isinstance takes as long as 50 codes."""
    return issubclass(kind, Certified)


def check_coder(coder: Any) -> Coder:
    """Raise TypeError unless ``coder`` is a coder; hint at missing parentheses."""
    check_role("coder", coder, Coder, "Lasso(lam=0.1)")
    conflict = coder.conflict()
    if conflict is not None:
        raise ValueError(conflict)
    return coder  # type: ignore[no-any-return]


def check_takes(coder: Coder, **given: Any) -> None:
    """Raise ValueError if an argument that is not None is not in the coder's `takes`."""
    for name, value in given.items():
        if value is not None and name not in coder.takes:
            raise ValueError(coder.refusal(name))
