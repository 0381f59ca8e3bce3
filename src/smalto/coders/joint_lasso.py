"""The joint lasso: the signals of a group share their atoms."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from smalto.checks import Array, check_number
from smalto.coders.base import Coder, Solver
from smalto.coders.chunks import Chunk, Residuals
from smalto.coders.codes import Codes
from smalto.coders.joint_omp import JointOMP, all_together
from smalto.coders.kernel_output import GrowingCodes
from smalto.kernels import aligned
from smalto.kernels.coding.arguments import Gram, Tally
from smalto.kernels.coding.joint_lasso import Penalty, joint_lasso_groups, make_joint_search
from smalto.kernels.coding.joint_tables import SignalGroups, sum_of_norms

_GAP = {4: 1e-6, 8: 1e-10}  # relative, by the size of a number


@dataclass(frozen=True)
class JointLasso(Coder):
    """``min_A ½‖X − AD‖² + lam Σ_j ‖A_j‖₂``, where A_j are the coefficients of atom j.

    The rows of X are the signals of a group (``groups`` of ``encode`` and ``learn``), A has a row
    of coefficients for each of them, and A_j is a column of A: the ℓ1/ℓ2 norm, which makes the
    signals of a group share their atoms. For groups of one signal this is `Lasso`.

    Solved by Newton's method on a working set of atoms until the duality gap is below 1e-10 times
    the objective (1e-6 in float32). As the cost of a signal counts its fit and an equal share of
    its group's penalty: the sum over a group is the group's objective.

    Parameters
    ----------
    lam : float
        Weight of the penalty. With 0 the codes are those of least squares.
    by_size : bool, default False
        Take lam times the root of the number of signals in the group. This is how correlations
        with noise grow, so that groups of different sizes become sparse alike.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import JointLasso
    >>> X = np.array([[3.0, 0.5], [4.0, 0.5]])
    >>> encode(X, np.eye(2), JointLasso(lam=1.0)).toarray()
    array([[2.4, 0. ],
           [3.2, 0. ]])
    """

    lam: float
    by_size: bool = False

    takes: ClassVar[frozenset[str]] = frozenset({"groups"})

    def __post_init__(self) -> None:
        if not np.isfinite(check_number("lam", self.lam, low=0)):
            message = f"lam must be finite, got {self.lam}"
            raise ValueError(message)

    def describe(self) -> dict[str, float | None]:
        """Return ``lam``."""
        return {"lam": self.lam}

    def relaxed(self, factor: float) -> JointLasso:
        """Return this problem with ``lam`` multiplied by ``factor``."""
        return replace(self, lam=float(self.lam) * factor)

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G."""
        if self.lam == 0:
            return JointOMP(eps=0.0).solver(G)
        flat = G.reshape(-1)
        # For float64 the search runs on a float32 copy, then the end is made exact.
        fast = flat if G.dtype == np.float32 else aligned.copy(flat, np.float32)
        lam, by_size = float(self.lam), bool(self.by_size)

        def solve(chunk: Chunk) -> Codes:
            return _solve_groups(flat, fast, chunk, lam, by_size)

        return solve

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """``lam Σ_j ‖A_j‖₂`` of each row's group of codes, shared equally by its rows."""
        codes = sparse.csr_array(codes)
        groups = _or_all(groups, codes.shape[0])
        return _shared(self._penalty(codes, groups), groups)

    def _penalty(self, codes: Any, groups: Array) -> Array:
        """Of each group."""
        out = np.empty(len(groups) - 1)
        squares = np.zeros(codes.shape[1])
        sum_of_norms(codes.indptr, codes.indices, codes.data, groups, squares, out)
        return self._lams(groups) * out

    def _lams(self, groups: Array) -> Array:
        """Of each group."""
        sizes = np.diff(groups)
        return np.asarray(
            float(self.lam) * (np.sqrt(sizes) if self.by_size else np.ones(len(sizes)))
        )

    def gap(self, left: Residuals) -> Array:
        """The duality gap of each row's group, shared equally: scaled residuals are feasible."""
        groups = _or_all(left.groups, len(left.norms))
        if len(groups) == 1 or groups[-1] == 0:
            return np.zeros(0)
        lams = self._lams(groups)
        top = np.sqrt(np.add.reduceat(left.C * left.C, groups[:-1]).max(axis=1, initial=0.0))
        scale = np.divide(lams, top, out=np.ones_like(top), where=top > lams)
        squares = np.add.reduceat(left.squares, groups[:-1])
        inner = np.add.reduceat(left.inner(), groups[:-1])
        primal = 0.5 * squares + self._penalty(left.codes, groups)
        # The dual value of Θ = scale · R is ⟨X, Θ⟩ − ½‖Θ‖², and ⟨X, R⟩ = ‖R‖² + ⟨AD, R⟩.
        dual = scale * (squares + inner) - 0.5 * scale * scale * squares
        return _shared(np.maximum(primal - dual, 0.0), groups)


def _or_all(groups: Array | None, n: int) -> Array:
    return np.array([0, n], np.int64) if groups is None else groups


def _shared(values: Array, groups: Array) -> Array:
    """Each group's value, divided equally among its rows."""
    sizes = np.diff(groups)
    return np.repeat(values / np.maximum(sizes, 1), sizes)


def _solve_groups(exact: Array, fast: Array, chunk: Chunk, lam: float, by_size: bool) -> Codes:
    """Run the kernel over all groups."""
    groups = all_together(chunk)
    n, width = chunk.Q.shape
    dtype, most = chunk.Q.dtype, int(np.diff(groups).max(initial=0))
    gram = Gram(exact, fast, None)
    signals = SignalGroups(chunk.Q, chunk.norms, groups)
    penalty = Penalty(lam, by_size, _GAP[dtype.itemsize])
    tally = Tally(chunk.rounds, np.zeros(1, np.int64))
    room = min(128, width)
    out = GrowingCodes(n, dtype, room, width, room)

    def run(group: int, room: int) -> int:
        search = make_joint_search(width, most, room, dtype)
        return int(joint_lasso_groups(gram, signals, group, penalty, search, out.rows, tally))

    codes = out.fill(run, groups)
    if tally.stuck[0]:
        _warn_stuck(int(tally.stuck[0]), len(groups) - 1)
    return codes


def _warn_stuck(count: int, groups: int) -> None:
    """Say that rounding has kept some groups from their optimum."""
    message = (
        f"{count} of {groups} groups end near, not at, the optimum of the joint lasso: some atoms "
        f"are too alike for its Gram matrix. float64 helps, or a larger lam"
    )
    warnings.warn(message, RuntimeWarning, stacklevel=2)
