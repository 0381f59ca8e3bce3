"""The joint lasso: the signals of a group share their atoms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy

from smalto.checks import Array, check_finite_number
from smalto.coders.base import Coder, Sizes, Solver, too_small
from smalto.coders.certain_joint import certain_joint, joint_dual_value
from smalto.coders.chunks import Chunk, Problem, Residuals, all_if_none
from smalto.coders.codes import Codes
from smalto.coders.groups_with_holes import coded_groups
from smalto.coders.joint_omp import JointOMP
from smalto.coders.joint_with_holes import joint_with_holes
from smalto.coders.kernel_output import GrowingCodes
from smalto.coders.masked_gram import float32_copy
from smalto.coders.parameters import scaled_number
from smalto.kernels.coding.arguments import Gram
from smalto.kernels.coding.joint_lasso import Penalty, joint_lasso_groups, make_joint_search
from smalto.kernels.coding.joint_tables import SignalGroups, sum_of_norms

_GAP = {4: 1e-6, 8: 1e-10}  # relative, by the size of a number
_STUCK = 1e3  # times that: reported as too large


@dataclass(frozen=True)
class JointLasso(Coder):
    """Signals that share atoms: ``min_A ½‖X − AD‖² + lam Σ_j ‖A_j‖₂``, A_j those of atom j.

    The rows of X are the signals of a group (``groups`` of ``encode`` and ``learn``), A has one row
    of coefficients per signal, and A_j is column j of A. This ℓ1/ℓ2 norm makes the signals of a
    group share their atoms. For groups of one signal the problem is that of `Lasso`.

    Solved by Newton's method on a working set of atoms until the duality gap is below 1e-10 times
    the objective (1e-6 in float32). The cost of a signal is its fit plus an equal share of its
    group's penalty, so that the costs of a group add up to its objective. Each signal may have missing
    entries of its own. Groups with any take longer: memory and time grow with the number of signals
    times the square, and the cube, of the number of atoms in use.

    Parameters
    ----------
    lam : float
        Weight of the penalty. With 0 the codes are least-squares solutions.
    by_size : bool, default False
        Multiply lam by the square root of the number of signals in the group. Correlations with
        noise grow at this rate, so groups of different sizes become equally sparse.

    See Also
    --------
    JointOMP : A number of atoms or an error, greedily.
    GroupLasso : Groups of atoms instead of signals.

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

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "groups"})
    own_gram: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_finite_number("lam", self.lam)

    def describe(self) -> dict[str, float | None]:
        """Return ``lam``."""
        return {"lam": self.lam}

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> JointLasso:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale."""
        return replace(self, lam=scaled_number(self.lam, signals, atoms))

    @property
    def any_atom_scale(self) -> bool:
        """Whether each atom can be scaled by itself."""
        return self.lam == 0

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        if self.lam == 0:
            return _least_squares(JointOMP(eps=0.0).solver(G))
        flat = G.reshape(-1)
        fast = float32_copy(flat)
        lam, by_size = float(self.lam), bool(self.by_size)

        def solve(chunk: Chunk) -> Codes:
            if chunk.own is not None:
                return self._solve_with_holes(chunk)
            return _solve_groups(flat, fast, chunk, lam, by_size)

        return solve

    def _solve_with_holes(self, chunk: Chunk) -> Codes:
        """Code groups with missing entries."""
        enough, tally = _GAP[chunk.Q.dtype.itemsize], chunk.tally()

        def code(X: Array, D: Array, missing: Array) -> tuple[Array, int]:
            codes, rounds, gap = joint_with_holes(X, D, missing, self._lam_of(X), enough)
            if not gap <= _STUCK * enough:
                tally.stuck[0] += len(X)
            return codes, rounds

        return coded_groups(chunk, code)

    def certain(self, problem: Problem) -> Array:
        """Return float64 codes, found slowly however similar the atoms are."""
        X, D, missing = problem.X, problem.D, problem.missing
        if self.lam == 0 and missing is not None:
            rows = zip(X, ~missing, strict=True)
            return np.array([np.linalg.lstsq(D[:, known].T, x[known])[0] for x, known in rows])
        if self.lam == 0:
            return np.asarray(np.linalg.lstsq(D.T, X.T)[0].T)
        if missing is not None:
            return joint_with_holes(X, D, missing, self._lam_of(X), _GAP[8], careful=True)[0]
        return certain_joint(X, D, self._lam_of(X))

    def lower_bound(self, problem: Problem, codes: Array) -> float:
        """Return the value of dual points that are corrected for the rounding of codes."""
        if self.lam == 0:
            return -np.inf
        X, lam = problem.X, self._lam_of(problem.X)
        return joint_dual_value(X, problem.D, lam, codes, problem.missing)

    def delicate(self, chunk: Chunk, atoms: Sizes) -> Any:
        """Return for which signals ``lam`` is too small for rounding, as kernels take it."""
        if atoms.uneven or self.lam == 0:
            return atoms.uneven and not self.any_atom_scale
        return too_small(float(self.lam), chunk, atoms)

    def _lam_of(self, X: Array) -> float:
        """Return the weight of the penalty of a group of signals."""
        return float(self._lams(np.array([0, len(X)]))[0])

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return ``lam Σ_j ‖A_j‖₂`` of the groups, divided equally among their rows."""
        codes = scipy.sparse.csr_array(codes)
        groups = all_if_none(groups, codes.shape[0])
        return _shared(self._penalty(codes, groups), groups)

    def _penalty(self, codes: Any, groups: Array) -> Array:
        """Return the penalty of each group."""
        out = np.empty(len(groups) - 1)
        squares = np.zeros(codes.shape[1])
        sum_of_norms(codes.indptr, codes.indices, codes.data, groups, squares, out)
        return self._lams(groups) * out

    def _lams(self, groups: Array) -> Array:
        """Return the weight of the penalty of each group."""
        sizes = np.diff(groups)
        return np.asarray(
            float(self.lam) * (np.sqrt(sizes) if self.by_size else np.ones(len(sizes)))
        )

    def gap(self, left: Residuals) -> Array:
        """Return the duality gaps of the groups, divided equally among their rows.

        The scaled residuals are the dual point.
        """
        groups = all_if_none(left.groups, len(left.norms))
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


def _shared(values: Array, groups: Array) -> Array:
    """Return each group's value, divided equally among its rows."""
    sizes = np.diff(groups)
    return np.repeat(values / np.maximum(sizes, 1), sizes)


def _least_squares(solve: Solver) -> Solver:
    """Return the solver of a pursuit that ends with an error: one that does not mark it for that."""

    def solve_unmarked(chunk: Chunk) -> Codes:
        codes = solve(chunk)
        np.abs(chunk.rounds, out=chunk.rounds)
        return codes

    return solve_unmarked


def _solve_groups(exact: Array, fast: Array, chunk: Chunk, lam: float, by_size: bool) -> Codes:
    """Run the kernel on all groups."""
    groups = all_if_none(chunk.groups, len(chunk.Q))
    n, width = chunk.Q.shape
    dtype, most = chunk.Q.dtype, int(np.diff(groups).max(initial=0))
    gram = Gram(exact, fast, None)
    signals = SignalGroups(chunk.Q, chunk.norms, groups)
    penalty = Penalty(lam, by_size, _GAP[dtype.itemsize])
    tally = chunk.tally()
    room = min(128, width)
    out = GrowingCodes(n, dtype, room, width, room)

    def run(group: int, room: int) -> int:
        search = make_joint_search(width, most, room, dtype)
        return int(joint_lasso_groups(gram, signals, group, penalty, search, out.rows, tally))

    return out.fill(run, groups)
