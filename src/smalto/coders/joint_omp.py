"""Simultaneous orthogonal matching pursuit: the signals of a group share their atoms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from smalto.checks import Array, Rows, check_finite_number, check_integer
from smalto.coders.base import Coder, Solver
from smalto.coders.certain_pursuit import Pursuit
from smalto.coders.chunks import Chunk, Problem, all_if_none, check_squares
from smalto.coders.codes import Codes
from smalto.coders.greedy import mark_unsure
from smalto.coders.groups_with_holes import coded_groups
from smalto.coders.kernel_output import GrowingCodes, of_thread
from smalto.coders.masked_gram import float32_copy
from smalto.coders.parameters import limit_nonzeros, scaled_number
from smalto.coders.pursuit_with_holes import pursue_with_holes
from smalto.kernels.coding.active_moves import DEPENDENT_32
from smalto.kernels.coding.joint_omp import (
    Dictionary,
    Targets,
    joint_omp_groups,
    make_joint_pursuit,
)
from smalto.kernels.coding.joint_tables import SignalGroups
from smalto.kernels.coding.omp_fit import Given, dependent_share

_MOST_KEPT = 1 << 20  # correlations of a group for which a thread keeps memory


@dataclass(frozen=True)
class JointOMP(Coder):
    """Greedy pursuit for signals that share at most ``max_nonzeros`` atoms, or until an error.

    The rows of X are the signals of a group (``groups`` of ``encode`` and ``learn``) and share one
    set of atoms; each has its own coefficients. Simultaneous orthogonal matching pursuit for
    ``min_A ½‖X − AD‖²`` with a bound on the number of atoms in use: atoms are added one at a time,
    and all coefficients are refitted. A heuristic for an NP-hard problem, exact for orthogonal
    atoms. The cost of a code is its fit. For groups of one signal the problem is that of `OMP`.

    Each signal may have missing entries of its own. It does not take an atom that, on its known
    entries, depends on those it has.

    Parameters
    ----------
    max_nonzeros : int, optional
        Maximum number of atoms of a group. If it exceeds the number of atoms or features, that
        number is used, with a warning.
    eps : float, optional
        Stop when the mean squared error of the signals in the group is at most this:
        ``‖X − AD‖² ≤ eps · (rows of X)``. If both limits are given, the first one reached counts.
    look_ahead : bool, default True
        Add the atom that gives the smallest error of the group when all coefficients are refitted.
        If False, add the atom whose normalized correlations with the residuals have the largest
        ℓ2 norm over the group, as in textbooks.

    See Also
    --------
    OMP : The same for single signals.
    JointLasso : The convex problem.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import JointOMP
    >>> X = np.array([[3.0, -1.0, 2.0], [1.0, -4.0, 2.0], [0.5, 0.0, 0.0]])
    >>> encode(X, np.eye(3), JointOMP(max_nonzeros=1), groups=["a", "a", "b"]).toarray()
    array([[ 0. , -1. ,  0. ],
           [ 0. , -4. ,  0. ],
           [ 0.5,  0. ,  0. ]])
    """

    max_nonzeros: int | None = None
    eps: float | None = None
    look_ahead: bool = True

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "groups"})
    own_gram: ClassVar[bool] = True
    takes_coarse: ClassVar[bool] = True
    remedy: ClassVar[str] = "fewer nonzeros or a larger eps"

    def __post_init__(self) -> None:
        if self.max_nonzeros is None and self.eps is None:
            message = "JointOMP needs a limit: give max_nonzeros, eps or both"
            raise ValueError(message)
        if self.max_nonzeros is not None:
            check_integer("max_nonzeros", self.max_nonzeros, low=0)
        if self.eps is not None:
            check_finite_number("eps", self.eps)

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> JointOMP:
        """Return this problem with max_nonzeros limited to the number of atoms or features."""
        if self.max_nonzeros is None:
            return self
        return replace(self, max_nonzeros=limit_nonzeros(self.max_nonzeros, D))

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> JointOMP:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale."""
        if self.eps is None:
            return self
        return replace(self, eps=scaled_number(self.eps, signals, signals))

    @property
    def any_atom_scale(self) -> bool:
        """Whether each atom can be scaled by itself."""
        return True

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        most = len(G) if self.max_nonzeros is None else int(self.max_nonzeros)
        # Without a limit on the error: rounding does not tell when it is zero.
        eps = -np.inf if self.eps is None else float(self.eps)
        targets = Targets(most, eps, bool(self.look_ahead))
        exact = _dictionary(G, G.reshape(-1))
        fast = exact if G.dtype == np.float32 else _dictionary(G, float32_copy(G.reshape(-1)))

        def solve(chunk: Chunk) -> Codes:
            if chunk.own is not None:
                return self._solve_with_holes(chunk)
            if chunk.coarse is None:
                codes = _solve_groups(exact, targets, chunk)
            else:
                codes = _solve_groups(fast, targets, chunk)
                rows = np.flatnonzero(chunk.rounds < 0)
                if rows.size:
                    chunk.Q[rows] = chunk.coarse.signals[rows] @ chunk.coarse.atoms.T
                    again = chunk.take(rows)._replace(coarse=None)
                    codes = codes.put(rows, _solve_groups(exact, targets, again))
                    chunk.rounds[rows] = again.rounds
            if self.eps and self.max_nonzeros is not None:
                groups = all_if_none(chunk.groups, len(chunk.Q))
                sizes = np.diff(groups)
                means = np.add.reduceat(chunk.norms, groups[:-1]) / sizes if len(sizes) else sizes
                mark_unsure(chunk, codes, most, np.full(len(means), eps), means, sizes)
            return codes

        return solve

    def _solve_with_holes(self, chunk: Chunk) -> Codes:
        """Code groups with missing entries."""

        def code(X: Array, D: Array, missing: Array) -> tuple[Array, int]:
            codes = self._pursue(X, D, missing, chunk.Q.dtype)
            return codes, int(codes.any(axis=0).sum())  # an atom a round

        check_squares(chunk)
        return coded_groups(chunk, code)

    def certain(self, problem: Problem) -> Array:
        """Return float64 codes, found slowly however similar the atoms are."""
        X, D, missing, dtype = problem.X, problem.D, problem.missing, problem.dtype
        return self._pursue(X, D, missing, dtype, problem.near)

    def _pursue(
        self,
        X: Array,
        D: Array,
        missing: Array | None,
        dtype: np.dtype[Any],
        near: Array | None = None,
    ) -> Array:
        """Return the codes of one group in float64; they are exact in ``dtype``."""
        most = len(D) if missing is not None else int(min(D.shape))
        most = most if self.max_nonzeros is None else int(self.max_nonzeros)
        eps = 0.0 if self.eps is None else float(self.eps) * len(X)
        pursuit = Pursuit(most, eps, look_ahead=bool(self.look_ahead))
        if missing is None:
            return pursuit.codes(X, D, dtype, near)
        return pursue_with_holes(pursuit, X, D, missing, dtype)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return zero for each row of codes."""
        return np.zeros(codes.shape[0])

    def two_limits(self) -> tuple[int, float] | None:
        """Return max_nonzeros and eps if both are given."""
        if self.max_nonzeros is None or self.eps is None:
            return None
        return self.max_nonzeros, self.eps

    def error_bound(self) -> float | None:
        """Return the bound on a group's mean error; None if max_nonzeros may prevent it."""
        return self.eps if self.max_nonzeros is None else None


def _dictionary(G: Array, fast: Array) -> Dictionary:
    """Return a dictionary with Gram matrix G, of which atoms are chosen by ``fast``."""
    coarse = fast.dtype != G.dtype  # what it finds too similar is then looked at in float64
    tolerance = DEPENDENT_32 if coarse else float(dependent_share(fast))
    norms = np.diagonal(G)
    norms = np.where(norms > 0, norms, np.inf).astype(fast.dtype)
    least = (tolerance * norms).astype(fast.dtype)
    return Dictionary(G.reshape(-1), fast, norms, least, tolerance)


def _solve_groups(dictionary: Dictionary, targets: Targets, chunk: Chunk) -> Codes:
    """Run the kernel on all groups."""
    check_squares(chunk)
    groups = all_if_none(chunk.groups, len(chunk.Q))
    n, width = chunk.Q.shape
    largest = int(np.diff(groups).max(initial=0))
    signals = SignalGroups(chunk.Q, chunk.norms, groups)
    fast, given, coarse = chunk.Q, None, chunk.coarse
    if coarse is not None:
        fast, given = coarse.Q, Given(coarse.signals.reshape(-1), coarse.atoms.reshape(-1))
    room = min(32, max(targets.most, 1), width)
    out = GrowingCodes(n, chunk.Q.dtype, room, width, room)

    def run(group: int, room: int) -> int:
        sizes = width, room, largest, fast.dtype
        kept = largest * width <= _MOST_KEPT
        pursuit = of_thread(make_joint_pursuit, *sizes) if kept else make_joint_pursuit(*sizes)
        pursuit.active.work.fill(0.0)
        given_all = dictionary, signals, fast, given
        return int(joint_omp_groups(*given_all, group, targets, pursuit, out.rows, chunk.rounds))

    return out.fill(run, groups)
