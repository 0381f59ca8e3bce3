"""Alternating descent for dense non-negative codes, on data that can be read repeatedly.

The cost is minimized over codes and atoms in turn, each by several sweeps of coordinate descent
that continue from the previous ones (hierarchical alternating least squares). Several sweeps pay
because they cost little compared with the two products with the data. Two things make it fast:

- Codes and atoms start each iteration from points extrapolated along their last moves. An
  iteration that raises the cost is discarded, and later ones extrapolate less.
- The first iterations read few samples and few features, later ones more: far from the solution,
  a part of the data is enough to improve the atoms. (Of sparse data all features.)
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy

from smalto.checks import Array, Rows, as_floats
from smalto.coders.lasso import Lasso
from smalto.coders.scaling import largest_entry, number_exponent, shifted
from smalto.constraints.base import Constraint, project_checked
from smalto.constraints.l2_ball import L2Ball
from smalto.learning.alternating.unreached import reach_more, unreached
from smalto.learning.alternating.variables import Atoms, DenseCodes, is_free
from smalto.learning.clock import on_the_clock
from smalto.learning.dictionary.wanted_density import project_all
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State
from smalto.learning.run import Run
from smalto.learning.stopping import Limits
from smalto.sources import Order
from smalto.sources.order import SKETCHES

SWEEPS = 10  # of coordinate descent in each iteration, for codes and for atoms, at most
FEWEST_SWEEPS = 2
MOSTLY_ZERO = 0.25  # share of nonzeros below which data is treated as sparse
FIRST_SWEEPS = 30  # for codes that start from zero
FIRST_SIZE = 16  # samples, and features, per atom in the first stage
FIRST_SPARSE = 128  # samples per atom in the first stage, if the data is sparse
GROWTH = 4  # factor by which they grow from one stage to the next
STAGE_TOLERANCE = 2e-2  # a stage ends when `WINDOW` iterations lower the cost by less than this
STAGE_ITERATIONS = 60  # or after this many iterations
WINDOW = 10
SMALL = 1e3  # times the rounding of sums: costs below this are computed from residuals


class _Plan(NamedTuple):
    """When a stage ends, apart from the limits of the run."""

    tol: float
    max_iter: float


class _Momentum:
    """The amount of extrapolation: it grows while the cost falls, and shrinks when it rises."""

    def __init__(self) -> None:
        self.beta, self.bound = 0.5, 1.0

    def grow(self) -> None:
        self.beta = min(self.bound, 1.02 * self.beta)
        self.bound = min(1.0, 1.005 * self.bound)

    def shrink(self) -> None:
        self.bound, self.beta = self.beta, self.beta / 1.5


def alternate(
    run: Run, state: State, X: Rows, limits: Limits, tol: float, *, sketches: bool
) -> tuple[str, float]:
    """Learn the dictionary of a state from rows X, in place, by alternating descent.

    The coder of the state must be a non-negative `Lasso`. Its learner must be `Online`, and can
    continue from the result. Without ``sketches`` every iteration reads all of the data. Return
    why the run ended, and the final ``Σ ‖x − αD‖²``.
    """
    X = X if isinstance(X, np.memmap) else as_floats(X, state.D.dtype)
    exponent = number_exponent(largest_entry(X))
    if exponent:  # codes, and all sums, are those of data of ordinary size
        X = shifted(X, -exponent)
    stopped = "epochs"
    k, m = state.D.shape
    plan = stages(k, m, X.shape[0], state.constraint)
    if _has_cheap_products(X) and is_free(state.coder, state.constraint):
        plan = _stages_of_sparse(k, X.shape)
    for rows, columns in plan if sketches else plan[-1:]:
        whole = rows == X.shape[0] and columns == X.shape[1]
        ends = _Plan(tol, math.inf) if whole else _Plan(STAGE_TOLERANCE, STAGE_ITERATIONS)
        with on_the_clock(state):
            sketch = _Sketch.of(X, rows, columns, state.seed)
            codes = DenseCodes(sketch.read(), k, state.D.dtype, exponent)
            here = state if sketch.columns is None else _on_columns(state, sketch)
        stopped = _stage(run, here, codes, limits, ends, watched=here is state)
        if here is not state:
            state.seconds = here.seconds
            with on_the_clock(state):
                state.D = _all_columns(here, codes, sketch, run.n_threads)
        if stopped not in ("tol", "stage"):
            break
    else:
        stopped = _reach_all(run, state, codes, limits, ends)
    with on_the_clock(state):
        if codes.X is not X:
            codes = DenseCodes(X, k, state.D.dtype, exponent)
        squares = _finish(state, codes, run.n_threads)
    return stopped, squares


def stages(
    n_atoms: int, n_features: int, n_rows: int, constraint: Constraint
) -> list[tuple[int, int]]:
    """Return the numbers of samples and features that each stage reads; the last reads all.

    Only for the non-negative ℓ2 ball do stages read some of the features: a part of an atom then
    satisfies the same kind of constraint as the whole.
    """
    sizes, size = [], FIRST_SIZE * n_atoms
    many = n_features if constraint == L2Ball(positive=True) else 0
    while 2 * size <= max(n_rows, many):
        rows = size if 2 * size <= n_rows else n_rows
        sizes.append((rows, size if 2 * size <= many else n_features))
        size *= GROWTH
    return [*sizes, (n_rows, n_features)]


def _stages_of_sparse(n_atoms: int, shape: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the same for sparse data: most of its features are zero in a few samples."""
    n_rows, n_features = shape
    sizes, size = [], FIRST_SPARSE * n_atoms
    while GROWTH * size <= n_rows:
        sizes.append((size, n_features))
        size *= GROWTH
    return [*sizes, (n_rows, n_features)]


@dataclass(frozen=True)
class _Sketch:
    """A random subset of the rows and columns of the data."""

    X: Rows
    rows: Array | None  # None: all
    columns: Array | None

    @classmethod
    def of(cls, X: Rows, rows: int, columns: int, seed: int) -> _Sketch:
        n, m = X.shape
        return cls(
            X,
            None if rows == n else np.sort(Order(n, seed).take(SKETCHES, 0, rows)),
            None if columns == m else np.sort(Order(m, seed).take(SKETCHES, 0, columns)),
        )

    @property
    def scale(self) -> float:
        """The factor that brings norms over some columns to the size of norms over all."""
        return 1.0 if self.columns is None else math.sqrt(self.X.shape[1] / len(self.columns))

    def read(self) -> Rows:
        """Return the chosen rows and columns, or the data itself if all are chosen."""
        part = self.X if self.rows is None else self.X[self.rows]
        if self.columns is None:
            return part
        if scipy.sparse.issparse(part):
            return part[:, self.columns] * part.dtype.type(self.scale)
        few = np.take(part, self.columns, axis=1)  # C-contiguous, unlike part[:, columns]
        few *= few.dtype.type(self.scale)
        return few


def _on_columns(state: State, sketch: _Sketch) -> State:
    """Return a copy of the state with its dictionary reduced to the columns of a sketch."""
    assert sketch.columns is not None
    D = np.ascontiguousarray(state.D[:, sketch.columns] * state.D.dtype.type(sketch.scale))
    for atom in D:
        state.constraint.project(atom)
    return replace(state, D=D, n_rows=None)  # None: passes over the sketch are not epochs


def _all_columns(state: State, codes: DenseCodes, sketch: _Sketch, n_threads: int) -> Array:
    """Return the dictionary on all columns that fits the codes of a sketch."""
    coder, C = _lasso(state, codes), codes.old
    whole = replace(sketch, columns=None).read()
    D = np.zeros((len(C), whole.shape[1]), C.dtype)
    atoms = Atoms(D, D, state.constraint, is_free(coder, state.constraint))
    A = (C @ C.T).astype(np.float64)
    B = np.asarray(C @ whole, np.float64)
    atoms.accept(atoms.step(A, B, FIRST_SWEEPS, n_threads)[0], 0.0)
    return atoms.scaled()


def _stage(
    run: Run, state: State, codes: DenseCodes, limits: Limits, plan: _Plan, *, watched: bool
) -> str:
    """Iterate on the samples of one stage; return why it ended.

    Without ``watched`` (for atoms on some of the features) nothing is recorded, and no callbacks
    are called.
    """
    with on_the_clock(state):
        descent = _Descent(state, codes, run.n_threads)
    for iteration in itertools.count():
        with on_the_clock(state):
            record = descent.step(state, iteration)
        stopped = run.after_step(state, record) if watched else None
        if stopped is None and run.interrupted():
            stopped = "interrupt"
        stopped = stopped or limits.reached(state)
        if stopped is None and descent.has_stalled(plan.tol):
            stopped = "tol"
        if stopped is None and iteration + 1 >= plan.max_iter:
            stopped = "stage"
        if stopped is not None:
            codes.rescale(descent.atoms.lengths())
            return stopped
    raise AssertionError  # unreachable: the loop has no end


def _reach_all(run: Run, state: State, codes: DenseCodes, limits: Limits, plan: _Plan) -> str:
    """Go on while exchanging atoms for samples that none reaches lowers the cost; return why it ended."""
    stopped = "tol"
    while stopped == "tol" and is_free(state.coder, state.constraint):
        with on_the_clock(state):
            lost = unreached(codes)
            if not lost.size:
                break
            D, C, cost = state.D.copy(), codes.old.copy(), _last_cost(state)
            if not reach_more(state.D, codes, lost):
                break
        stopped = _stage(run, state, codes, limits, plan, watched=True)
        if not _last_cost(state) < cost:
            state.D[:], codes.old[:] = D, C
            break
    return stopped


def _last_cost(state: State) -> float:
    cost = state.history[-1].surrogate
    return math.inf if cost is None else cost


def _has_cheap_products(X: Rows) -> bool:
    """Return whether data is sparse, and most of its entries are zero."""
    return bool(scipy.sparse.issparse(X) and X.nnz < MOSTLY_ZERO * math.prod(X.shape))


def _affordable_sweeps(X: Rows, n_atoms: int) -> int:
    """Return how many sweeps cost as much as the two products with the data; `SWEEPS` if dense."""
    if not _has_cheap_products(X):
        return SWEEPS
    share = 2.0 * X.nnz / (n_atoms * sum(X.shape))
    return int(min(max(math.ceil(share), FEWEST_SWEEPS), SWEEPS))


class _Descent:
    """Alternating descent on one set of samples, one iteration at a time."""

    def __init__(self, state: State, codes: DenseCodes, n_threads: int) -> None:
        coder, constraint = _lasso(state, codes), state.constraint
        free = is_free(coder, constraint)
        self.atoms = Atoms(state.D.copy(), state.D.copy(), constraint, free)
        self.codes, self.coder, self.n_threads = codes, coder, n_threads
        self._sweeps = _affordable_sweeps(codes.X, len(state.D))
        self._momentum, self._last = _Momentum(), math.inf
        self._best: list[float] = []  # the lowest cost up to each iteration
        self._settled = True
        self._rng = np.random.default_rng([state.seed, state.step])
        if coder.lam:
            codes.begin(state.D, coder, n_threads)
        # Up to here the cost is computed from sums, below a multiple of it from residuals.
        self._eps, self._from_residuals = float(np.finfo(state.D.dtype).eps), False
        self._doubled = False  # whether to go on in float64: the rounding of sums is amplified
        self._rounding = 0.5 * codes.squares * self._eps

    def step(self, state: State, iteration: int) -> Record:
        """Improve codes and atoms once; discard the step if the cost has risen."""
        codes, atoms, coder = self.codes, self.atoms, self.coder
        beta = self._momentum.beta if iteration and self._settled else 0.0
        sweeps = self._sweeps if iteration or coder.lam else FIRST_SWEEPS
        A, B, penalty = codes.step(atoms.ahead, coder, beta, sweeps, self.n_threads)
        before = state.constraint
        D, state.constraint = atoms.step(A, B, self._sweeps, self.n_threads)
        # Costs cannot be compared while the set changes.
        self._settled = state.constraint is before
        wide = D.astype(np.float64)
        fit = 0.5 * (codes.squares - 2.0 * np.vdot(B, wide) + np.vdot(A, wide @ wide.T))
        cost = self._measured(float(fit), D) + penalty
        replaced = 0
        if self._settled and cost > self._last + self._rounding:
            atoms.take_back()
            codes.take_back()
            self._momentum.shrink()
        else:
            codes.accept()
            atoms.accept(D, beta)
            if iteration:
                self._momentum.grow()
            if iteration % WINDOW == 0:
                replaced = _revive(atoms, codes, A, self._rng)
        far = atoms.far_from_one()
        if far is not None:  # the same products, with room for all of their factors
            atoms.divide(far)
            codes.rescale(far)
        if self._doubled:
            self._doubled = False
            codes.cast(np.float64)
            atoms.cast(np.float64)
        self._last = cost
        self._best.append(min(cost, self._best[-1]) if self._best else cost)
        state.D = atoms.scaled().astype(state.D.dtype, copy=False)
        state.step += 1
        state.samples += codes.n
        nonzeros = float(np.count_nonzero(codes.old)) / codes.n
        used = int(np.count_nonzero(A.diagonal() > 0.0))
        mean, lam = cost / codes.n * codes.unit**2, state.coder.describe()["lam"]
        record = state.record(mean, nonzeros, lam=lam, replaced=replaced, used=used)
        whole = codes.n == state.n_rows
        state.epoch += whole
        # Costs of parts of the data cannot be compared with one another.
        return replace(record, surrogate=mean if whole else None)

    def _measured(self, fit: float, D: Array) -> float:
        """Return ½‖X − CD‖², from residuals if it is too small to be the difference of sums."""
        if scipy.sparse.issparse(self.codes.X):
            return max(fit, 0.0)
        if not self._from_residuals and fit < SMALL * self._rounding:
            self._from_residuals, self._last = True, math.inf
            self._rounding *= self._eps
            self._best.clear()
            self._doubled = True
        if not self._from_residuals:
            return fit
        return 0.5 * self.codes.squared_error(self.codes.ahead, D, self.n_threads)

    def has_stalled(self, tol: float) -> bool:
        """Return whether the last iterations lowered the cost by less than the share ``tol``."""
        best = self._best
        if not self._settled or len(best) <= WINDOW:
            return False
        return best[-1] <= self._rounding or best[-WINDOW - 1] - best[-1] < tol * best[-1]


def _finish(state: State, codes: DenseCodes, n_threads: int) -> float:
    """Code all samples over the final dictionary, keep their statistics; return ``Σ ‖x − αD‖²``."""
    coder, unit = _lasso(state, codes), codes.unit
    if state.constraint.adapts:
        project_all(state.constraint, state.D)
    codes.take_back()
    D = state.D.astype(codes.new.dtype, copy=False)
    A, B, penalty = codes.step(D, coder, 0.0, FIRST_SWEEPS, n_threads)
    past, weight = state.stats[-1], 1.0 / state.learner.batch_size
    past.clear()
    past.A += weight * A * unit**2
    past.B += weight * B * unit**2
    past.code_sum += weight * unit * codes.new.sum(axis=1, dtype=np.float64)
    sums = np.asarray(codes.X.sum(axis=0, dtype=np.float64)).reshape(-1)
    past.sample_sum += weight * unit * sums
    past.constant = weight * (0.5 * codes.squares + penalty) * unit**2
    past.weight = weight * codes.n
    state.samples = codes.n
    state.last_used[:] = np.where(A.diagonal() > 0.0, codes.n, 0)
    state.measure_surrogate()
    if scipy.sparse.issparse(codes.X):
        wide = state.D.astype(np.float64)
        left = codes.squares - 2.0 * np.vdot(B, wide) + np.vdot(A, wide @ wide.T)
        return max(0.0, float(left)) * unit**2
    return codes.squared_error(codes.new, D, n_threads) * unit**2


def _lasso(state: State, codes: DenseCodes) -> Lasso:
    """Return the problem of the codes, which is that of the state divided by their unit."""
    assert isinstance(state.coder, Lasso)
    return state.coder if codes.unit == 1.0 else state.coder.rescaled(1.0 / codes.unit, 1.0)


def _revive(atoms: Atoms, codes: DenseCodes, A: Array, rng: np.random.Generator) -> int:
    """Replace atoms that no sample uses by random samples, with zero codes; return how many."""
    replaced = 0
    for j in np.flatnonzero((A.diagonal() <= 0.0) | ~atoms.old.any(axis=1)):
        atom = codes.direction(int(rng.integers(codes.n)))
        if atom is None:
            continue
        project_checked(atoms.constraint, atom, int(j))
        atoms.old[j] = atoms.ahead[j] = atom
        codes.old[j] = codes.ahead[j] = 0.0
        replaced += 1
    return replaced
