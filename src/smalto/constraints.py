"""Constraint sets of the dictionary: where each atom has to live (Section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeGuard, runtime_checkable

import numpy as np

from smalto.checks import Array, Role, check_number, check_role
from smalto.kernels.learning import block_sweep
from smalto.kernels.projecting import elastic_net_ball, fused_lasso_ball, l2_ball


@runtime_checkable
class Constraint(Protocol):
    """A closed convex set of atoms."""

    def project(self, atom: Array) -> None:
        """Replace ``atom`` (m,) by the nearest point of the set."""

    def gauge(self, atom: Array) -> float:
        """At most 1 just when the atom lies in the set."""


@runtime_checkable
class Compiled(Protocol, metaclass=Role):
    """A constraint whose walk through a block of atoms is compiled."""

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update the atoms of a block: see `smalto.kernels.learning.block_sweep`."""


@runtime_checkable
class Divisible(Protocol):
    """A constraint that, with some entries of an atom held, is one of its kind for the others."""

    def divided(self, rest: Array) -> tuple[float, Constraint]:
        """What is left for the entries that are zero in ``rest``: room times this set."""


@runtime_checkable
class Adaptive(Constraint, Protocol, metaclass=Role):
    """A constraint that settles, while learning goes on, to give a wanted density of atoms."""

    def begun(self, D: Array) -> Self:
        """This constraint with a first guess for atoms like these."""

    def adapted(self, D: Array) -> Self:
        """This constraint, moved towards the wanted density."""

    def matching(self, other: Any) -> Self:
        """This constraint with what is undecided taken from the other one, to compare them."""


@dataclass(frozen=True)
class L2Ball:
    """``{d : ‖d‖₂ ≤ 1}``, and d ≥ 0 where ``positive``: the paper's set (Section 2)."""

    positive: bool = False

    def project(self, atom: Array) -> None:
        """``argmin_u ½‖u − atom‖²`` over the set, in place."""
        l2_ball.project_l2(atom, bool(self.positive))

    def gauge(self, atom: Array) -> float:
        """``‖atom‖₂``, or infinity where an entry is negative and may not be."""
        if self.positive and np.any(atom < 0):
            return float("inf")
        return float(np.linalg.norm(np.asarray(atom, np.float64)))

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update the atoms of a block."""
        block = block_sweep.make_block(D, R, A, first, smallest)
        return float(block_sweep.sweep_l2(block, bool(self.positive)))

    def divided(self, rest: Array) -> tuple[float, L2Ball]:
        """A ball of the radius that is left."""
        return float(np.sqrt(max(0.0, 1.0 - _square(rest)))), self


@dataclass(frozen=True)
class ElasticNetBall:
    """``{d : ‖d‖₂² + gamma ‖d‖₁ ≤ 1}``, and d ≥ 0 where ``positive``: sparse atoms.

    The set of the paper's sparse PCA (Sections 5.2 and 5.4). In the notation of its Appendix
    B.1, ``‖u‖₁ + (γ′/2)‖u‖₂² ≤ τ`` with γ′ = 2/gamma and τ = 1/gamma.

    Parameters
    ----------
    gamma : float, optional
        The larger, the sparser; 0 is the ℓ2 ball.
    positive : bool, default False
        Demand d ≥ 0.
    density : float, optional
        Instead of ``gamma``: the share of nonzero entries that the dictionary is to have. A
        gamma is searched for while the dictionary is learned, from the density reached.
    """

    gamma: float | None = None
    positive: bool = False
    density: float | None = None
    pace: float = field(default=0.5, repr=False, compare=False)  # of the search for the density
    side: int = field(default=0, repr=False, compare=False)  # where it was last: +1 too dense

    def __post_init__(self) -> None:
        _check_sparsity("gamma", self.gamma, self.density)

    def project(self, atom: Array) -> None:
        """``argmin_u ½‖u − atom‖²`` over the set, in place; true zeros."""
        work = np.empty(elastic_net_ball.work_size(len(atom)), atom.dtype)
        elastic_net_ball.project_elastic_net(atom, _known(self.gamma), bool(self.positive), work)

    def gauge(self, atom: Array) -> float:
        """``‖atom‖₂² + gamma ‖atom‖₁``, infinite where negative entries may not be."""
        gauge = elastic_net_ball.elastic_net_gauge
        return float(gauge(atom, _known(self.gamma), bool(self.positive)))

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update the atoms of a block."""
        block = block_sweep.make_block(D, R, A, first, smallest)
        work = np.empty(elastic_net_ball.work_size(D.shape[1]), D.dtype)
        gamma, positive = _known(self.gamma), bool(self.positive)
        return float(block_sweep.sweep_elastic_net(block, gamma, positive, work))

    def divided(self, rest: Array) -> tuple[float, ElasticNetBall]:
        """``‖d‖₂² + gamma ‖d‖₁ ≤ r²`` is r times this set with gamma / r in place of gamma."""
        gamma = _known(self.gamma)
        taken = _square(rest) + gamma * float(np.abs(rest).sum(dtype=np.float64))
        room = float(np.sqrt(max(0.0, 1.0 - taken)))
        return room, ElasticNetBall(gamma / max(room, 1e-300), bool(self.positive))

    def begun(self, D: Array) -> Self:
        """This set with a first gamma, where a density is wanted."""
        if self.density is None:
            return self
        return replace(self, gamma=_first_gamma(self.density, D.shape[1]))

    def adapted(self, D: Array) -> Self:
        """This set with its gamma moved towards the wanted density."""
        if self.density is None:
            return self
        gamma, pace, side = _next_gamma(_known(self.gamma), self.pace, self.side, self.density, D)
        return replace(self, gamma=gamma, pace=pace, side=side)

    def matching(self, other: Any) -> Self:
        """This set with an undecided gamma taken from the other one."""
        if self.density is not None and isinstance(other, type(self)):
            return replace(self, gamma=other.gamma)
        return self


@dataclass(frozen=True)
class FusedLassoBall:
    """``{d : ‖d‖₂² + gamma1 ‖d‖₁ + gamma2 Σ|d_i − d_(i−1)| ≤ 1}``: sparse, piecewise constant.

    Section 5.2 and Appendix B.2 of the paper.

    Parameters
    ----------
    gamma1 : float, optional
        The larger, the sparser.
    gamma2 : float
        The larger, the fewer the jumps.
    positive : bool, default False
        Demand d ≥ 0.
    density : float, optional
        Instead of ``gamma1``: the share of nonzero entries that the dictionary is to have.
    """

    gamma1: float | None = None
    gamma2: float = 0.0
    positive: bool = False
    density: float | None = None
    pace: float = field(default=0.5, repr=False, compare=False)  # of the search for the density
    side: int = field(default=0, repr=False, compare=False)  # where it was last: +1 too dense

    def __post_init__(self) -> None:
        _check_sparsity("gamma1", self.gamma1, self.density)
        check_number("gamma2", self.gamma2, low=0)

    def project(self, atom: Array) -> None:
        """``argmin_u ½‖u − atom‖²`` over the set, in place; true zeros."""
        work = np.empty((fused_lasso_ball.WORK_ROWS, len(atom) + 1))
        gammas = _known(self.gamma1), float(self.gamma2)
        fused_lasso_ball.project_fused_lasso(atom, *gammas, bool(self.positive), work)

    def gauge(self, atom: Array) -> float:
        """The left side of the constraint, infinite where negative entries may not be."""
        gammas = _known(self.gamma1), float(self.gamma2)
        return float(fused_lasso_ball.fused_lasso_gauge(atom, *gammas, bool(self.positive)))

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update the atoms of a block."""
        block = block_sweep.make_block(D, R, A, first, smallest)
        work = np.empty((fused_lasso_ball.WORK_ROWS, D.shape[1] + 1))
        settings = _known(self.gamma1), float(self.gamma2), bool(self.positive)
        return float(block_sweep.sweep_fused_lasso(block, *settings, work))

    def begun(self, D: Array) -> Self:
        """This set with a first gamma1, where a density is wanted."""
        if self.density is None:
            return self
        return replace(self, gamma1=_first_gamma(self.density, D.shape[1]))

    def adapted(self, D: Array) -> Self:
        """This set with its gamma1 moved towards the wanted density."""
        if self.density is None:
            return self
        gamma, pace, side = _next_gamma(_known(self.gamma1), self.pace, self.side, self.density, D)
        return replace(self, gamma1=gamma, pace=pace, side=side)

    def matching(self, other: Any) -> Self:
        """This set with an undecided gamma1 taken from the other one."""
        if self.density is not None and isinstance(other, type(self)):
            return replace(self, gamma1=other.gamma1)
        return self


@dataclass(frozen=True)
class Simplex:
    """``{d : d ≥ 0, Σ d = 1}``: atoms that are distributions (topics, mixtures)."""

    def project(self, atom: Array) -> None:
        """``argmin_u ½‖u − atom‖²`` over the set, in place; true zeros."""
        work = np.empty(elastic_net_ball.work_size(len(atom)), atom.dtype)
        elastic_net_ball.project(atom, atom, 1.0, 0.0, 1.0, elastic_net_ball.RAW, work)

    def gauge(self, atom: Array) -> float:
        """``1 + |Σ atom − 1|``, or infinity where an entry is negative."""
        if np.any(atom < 0):
            return float("inf")
        return 1.0 + abs(float(np.sum(atom, dtype=np.float64)) - 1.0)

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update the atoms of a block."""
        block = block_sweep.make_block(D, R, A, first, smallest)
        work = np.empty(elastic_net_ball.work_size(D.shape[1]), D.dtype)
        return float(block_sweep.sweep_simplex(block, work))

    def divided(self, rest: Array) -> tuple[float, Simplex]:
        """A simplex of the sum that is left."""
        return max(0.0, 1.0 - float(rest.sum(dtype=np.float64))), self


def check_constraint(constraint: Any) -> Constraint:
    """Refuse what is not a constraint, with the likely slip."""
    check_role("constraint", constraint, Constraint, "L2Ball()")
    return constraint  # type: ignore[no-any-return]


def project_checked(constraint: Constraint, atom: Array) -> None:
    """Project in place with a constraint that may be a user's, and see that it has done so."""
    shape = atom.shape
    answer: Any = constraint.project(atom)  # type: ignore[func-returns-value]
    name = type(constraint).__name__
    if atom.shape != shape:
        message = f"{name}.project must keep the atom's shape {shape}, it is {atom.shape} now"
        raise ValueError(message)
    if answer is not None:
        message = (
            f"{name}.project must change the atom in place and return None, "
            f"got a {type(answer).__name__} back"
        )
        raise TypeError(message)
    gauge = float(constraint.gauge(atom))
    if not gauge <= 1.0 + 1e-3:
        message = f"{name}.project left an atom outside of the set: its gauge is {gauge:.4g}, not 1"
        raise ValueError(message)


def is_compiled(constraint: Any) -> TypeGuard[Compiled]:
    """Whether its compiled walk may be used: not where a subclass projects in its own way."""
    if not isinstance(constraint, Compiled):
        return False
    kind = type(constraint)
    owners = [next(c for c in kind.__mro__ if n in vars(c)) for n in ("project", "sweep_block")]
    return owners[0] is owners[1]


def _square(x: Array) -> float:
    return float(np.square(x, dtype=np.float64).sum())


def density(D: Array) -> float:
    """The share of nonzero entries."""
    return float(np.count_nonzero(D)) / D.size


def _check_sparsity(name: str, gamma: float | None, wanted: float | None) -> None:
    if gamma is None and wanted is None:
        message = f"give {name}, or the density wanted of the atoms"
        raise ValueError(message)
    if gamma is not None:
        check_number(name, gamma, low=0)
    if wanted is not None:
        check_number("density", wanted, low=0, high=1, strict=True)


def _known(gamma: float | None) -> float:
    if gamma is None:
        message = "gamma is not decided yet: a density is aimed at while a dictionary is learned"
        raise ValueError(message)
    return float(gamma)


def _first_gamma(wanted: float, n_features: int) -> float:
    """The gamma at which both terms weigh the same in a unit atom of the wanted density."""
    return 1.0 / float(np.sqrt(wanted * n_features))


def _next_gamma(
    gamma: float, pace: float, side: int, wanted: float, D: Array
) -> tuple[float, float, int]:
    """A larger gamma where the atoms are too dense, a smaller one where they are too sparse.

    The density may answer to gamma gently or all but jump: the pace (of log gamma) is halved
    whenever the wanted density has been overshot, and picks up while it has not.
    """
    error = float(np.log(max(density(D), 1e-6) / wanted))
    now = int(np.sign(error))
    pace = 0.5 * pace if now * side < 0 else min(1.2 * pace, 1.0)
    return float(gamma * np.exp(now * min(pace, abs(error)))), pace, now
