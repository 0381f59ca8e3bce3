"""A second look at codes that rounding may have spoilt, and better ones in their place.

The solvers work on the Gram matrix, whose condition is the square of the dictionary's. With similar
atoms its rounding can make codes useless. Codes of which this is possible (`doubts.py`) are certified
in float64, from D. What fails is solved again: float32 signals in float64, and what fails then by the
coder's `Coder.certain`. Where most float32 signals of a chunk are `Coder.delicate`, all of them are
solved in float64 to begin with.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.base import PROMISED_GAP, Certified, Coder, is_certified
from smalto.coders.certain_bounds import least_errors, usable_span
from smalto.coders.certificates import residuals_of
from smalto.coders.chunks import Problem, Residuals
from smalto.coders.codes import Codes, compressed
from smalto.coders.off_least_squares import OffLeastSquares
from smalto.coders.out_of_reach import rounding_of_errors
from smalto.coders.parameters import of_rows
from smalto.coders.patience import is_over
from smalto.coders.preparing import Prepared
from smalto.coders.rounding import rounded_together
from smalto.coders.signals import Signals
from smalto.warn import warn

_log = logging.getLogger("smalto.coding")
_PATIENCE, _AGAIN = 3.0, 60.0  # seconds until slow work is mentioned, and mentioned again
_said = -math.inf  # when that was
_EPS = float(np.finfo(np.float64).eps)
_OF_SUMS = 1e-14  # rounding of an objective, as a share of it
_TINY = np.finfo(np.float64).tiny
_WORSE = 2.0  # added where a code is worse than the zero code, whose gap is at most 1
_ROUNDING = {4: 1e-6, 8: 1e-13}  # of the objective of the zero code
_ORTHOGONAL = 1e-15  # correlation of a float64 residual with a unit atom that is only rounding

# A function that codes some rows in float64, and says which of them its solver has marked.
SolveAgain: TypeAlias = Callable[[Array], tuple[Codes, Array]]


class Mender:
    """Certifies codes of some signals, and solves again where they fall short.

    Parameters
    ----------
    signals : Signals
        The signals; whole groups if there are groups.
    prepared : Prepared
        The problem and the dictionary. After its deadline (`patience.py`) what has not been solved
        again stays as it is.
    numbers : array or None
        Row numbers in the X given to `encode`.
    """

    def __init__(self, signals: Signals, prepared: Prepared, numbers: Array | None) -> None:
        self.signals, self.prepared, self.numbers = signals, prepared, numbers
        self.coder, self.dtype, self.deadline = prepared.problem, prepared.dtype, prepared.deadline
        self.D = prepared.wide[: prepared.n_atoms]
        self.allowed = PROMISED_GAP[self.dtype.itemsize]
        X = signals.X.toarray() if scipy.sparse.issparse(signals.X) else signals.X
        self.X = X.astype(np.float64)
        self.fit = np.empty(len(signals))  # of the codes that were measured last
        self.lower = np.full(len(signals), -np.inf)  # bounds on the optima, the best so far
        self._off = OffLeastSquares()

    def mend(self, codes: Codes, marked: Array, again: SolveAgain | None) -> tuple[Codes, Array]:
        """Return codes and how far they are from their optimum, relative to ½‖x‖².

        ``marked`` says which rows the solver has marked, and ``again`` codes some rows in float64.
        """
        if marked.any() and self.coder.any_atom_scale and not is_certified(type(self.coder)):
            codes = self._continued(codes, np.flatnonzero(marked), again)
        short = self.shortfalls(codes)
        if again is not None:
            codes, short = self._replace(codes, short, lambda rows: again(rows)[0])
        short = self._with_better_bounds(codes, short)
        near = codes
        codes, short = self._replace(codes, short, lambda rows: self._certain(rows, near))
        codes, short = self._replace(codes, short, self._nothing, _WORSE)
        if self.signals.groups is None:
            return codes, short
        # Single signals of a group may still be worse.
        rows = np.flatnonzero(self.fit > 0.5 * np.einsum("ij,ij->i", self.X, self.X))
        nothing = self._nothing(rows)
        codes = codes.put(rows, nothing._replace(values=nothing.values.astype(self.dtype)))
        return codes, self.shortfalls(codes)

    def _continued(self, codes: Codes, rows: Array, again: SolveAgain | None) -> Codes:
        """Return codes of pursuits, of which rounding may have ended some too early.

        These are made anew, in float64 and then by the slow method, where atoms are left that might
        gain something, and replaced where that lowers the objective.
        """

        def slowly(rows: Array) -> tuple[Codes, Array]:
            return self._certain(rows, codes), np.zeros(len(rows), np.bool_)

        if again is None:
            rows = rows[self._has_more_to_gain(codes)[rows]]
        for solve in (slowly,) if again is None else (again, slowly):
            if not rows.size:
                break
            new, marked = solve(rows)
            candidates = codes.put(rows, new._replace(values=new.values.astype(self.dtype)))
            before, after = (self._objective(part)[rows] for part in (codes, candidates))
            better, worse = after < before, after > before * (1.0 + _ROUNDING[4])
            exact = codes._replace(values=codes.values.astype(np.float64)).put(rows, new)
            codes = codes.put(rows[better], candidates.take(rows[better]))
            rows = rows[worse | (marked & self._has_more_to_gain(exact)[rows])]
        return codes

    def _objective(self, codes: Codes) -> Array:
        """Return the objective of each row, or of its group."""
        left = self._residuals(codes)
        penalties = self.coder.penalty(left.codes, self.signals.groups)
        return _together(0.5 * left.squares + penalties, self.signals.groups)

    def _has_more_to_gain(self, codes: Codes) -> Array:
        """Return for which rows, or groups, an atom correlates with the residual, beyond rounding."""
        left, norms = self._residuals(codes), np.linalg.norm(self.D, axis=1)
        sizes = np.sqrt(left.norms) + abs(left.codes) @ norms
        C = left.C if self.coder.positive else np.abs(left.C)
        C = np.divide(C, norms, out=np.zeros_like(C), where=norms > 0)
        able = C.max(axis=1, initial=0.0) > _ORTHOGONAL * sizes
        return _together(able.astype(np.float64), self.signals.groups) > 0

    def _residuals(self, codes: Codes) -> Residuals:
        csr = codes.as_csr(len(self.D)).astype(np.float64)
        return residuals_of(self.signals, self.D, csr, self.numbers)

    def _replace(
        self, codes: Codes, short: Array, solve: Callable[[Array], Codes], limit: float = 0.0
    ) -> tuple[Codes, Array]:
        """Return the codes with those that fall short solved again, where that is better."""
        rows = np.flatnonzero(~(short <= max(self.allowed, limit)))
        if not rows.size:
            return codes, short
        new = solve(rows)
        if self.dtype == np.float32:  # exact codes give the better bound
            wide = codes._replace(values=codes.values.astype(np.float64))
            self.shortfalls(wide.put(rows, new))
        plain = new._replace(values=new.values.astype(self.dtype))
        codes, short = self._where_better(codes, self.shortfalls(codes), rows, plain)
        if self.dtype == np.float32 and (short[rows] > self.allowed).any():
            missing = self.signals.missing
            holes = None if missing is None else missing[rows]
            together = rounded_together(new, self.D, holes)
            codes, short = self._where_better(codes, short, rows, together)
        return codes, short

    def _where_better(
        self, codes: Codes, short: Array, rows: Array, new: Codes
    ) -> tuple[Codes, Array]:
        """Return codes with some rows replaced by new ones, where these fall less short."""
        candidates = codes.put(rows, new)
        after = self.shortfalls(candidates)
        better = rows[after[rows] < np.where(np.isnan(short), np.inf, short)[rows]]
        codes = codes.put(better, candidates.take(better))
        return codes, self.shortfalls(codes)

    def _with_better_bounds(self, codes: Codes, short: Array) -> Array:
        """Return the shortfalls with bounds on the optima that cost more."""
        rows = np.flatnonzero((short > self.allowed) & np.isfinite(short))
        if not rows.size:
            return short
        dense = codes.as_csr(len(self.D))
        for part, problem in self._problems(rows):
            if is_over(self.deadline):
                break
            bound = self.coder.lower_bound(problem, dense[part].toarray().astype(np.float64))
            self.lower[part] = np.maximum(self.lower[part], bound)
        return self.shortfalls(codes)

    def _certain(self, rows: Array, near: Codes) -> Codes:
        """Solve some rows by the coder's slow method; zero codes if it has none."""
        found = np.zeros((len(rows), len(self.D)))
        dense = near.as_csr(len(self.D))
        begun = time.monotonic()
        for part, problem in self._problems(rows):
            if is_over(self.deadline):
                break
            done = int(np.searchsorted(rows, part[0]))
            _say_if_slow(time.monotonic() - begun, done, len(rows), self.coder.remedy)
            with np.errstate(all="ignore"):
                own = dense[part].toarray().astype(np.float64)
                codes = self.coder.certain(problem._replace(near=own))
            if codes is None:
                continue
            codes = np.where(np.isfinite(codes), codes, 0.0)
            found[np.searchsorted(rows, part)] = codes
            bound = self.coder.lower_bound(problem, codes)
            self.lower[part] = np.maximum(self.lower[part], bound)
        return compressed(found)

    def _nothing(self, rows: Array) -> Codes:
        """Return zero codes: the last resort for codes that are worse."""
        return compressed(np.zeros((len(rows), len(self.D))))

    def _problems(self, rows: Array) -> Iterator[tuple[Array, Problem]]:
        """Yield single signals, or groups of them: their rows and their problem."""
        if not rows.size:
            return
        groups, missing = self.signals.groups, self.signals.missing
        weights = self.signals.penalty_weights
        numbers = rows if groups is None else np.searchsorted(groups, rows, side="right")
        for part in np.split(rows, np.flatnonzero(np.diff(numbers)) + 1):
            own = np.ones(len(self.D))
            if weights is not None:
                own = weights[part[0] if len(weights) > 1 else 0]
            chosen = None if self.numbers is None else self.numbers[part]
            X, D, holes = self.X[part], self.D, None if missing is None else missing[part]
            if holes is not None and (len(part) == 1 or not holes.any()):
                known, holes = ~holes[0], None
                X, D = X[:, known], np.ascontiguousarray(D[:, known])
            yield part, Problem(X, D, own, chosen, self.dtype, holes)

    def shortfalls(self, codes: Codes) -> Array:
        """Return how far codes are above their optimum, relative to ½‖x‖²; infinite if not finite.

        For a problem that is not convex, by how much they are above the zero code or, for least
        squares on the atoms in use, from those.
        """
        csr = codes.as_csr(len(self.D)).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            spoilt = ~np.isfinite(np.asarray(abs(csr).sum(axis=1)).ravel())
        csr.data[np.repeat(spoilt, np.diff(csr.indptr))] = 0.0
        left = residuals_of(self.signals, self.D, csr, self.numbers)
        self.fit = 0.5 * left.squares
        short = self._relative(left)
        if self.coder.positive:
            spoilt |= np.asarray((csr < 0).sum(axis=1)).ravel() > 0
        short[spoilt] = np.inf
        groups = self.signals.groups
        if groups is not None and len(short):
            short = np.repeat(np.maximum.reduceat(short, groups[:-1]), np.diff(groups))
        return short

    def _relative(self, left: Residuals) -> Array:
        coder, groups = self.coder, self.signals.groups
        bound = coder.error_bound()
        if bound is not None:
            return self._beyond(left, bound)
        half = 0.5 * _together(left.norms, groups)
        unit = np.maximum(half, _TINY)
        penalties = coder.weighted_penalty(left.codes, left.weights, groups)
        objective = _together(0.5 * left.squares + penalties, groups)
        worse = objective - half * (1.0 + _ROUNDING[self.dtype.itemsize])
        short = np.where(worse > 0, worse / unit + _WORSE, 0.0)
        if isinstance(coder, Certified):
            gap = self._above_bound(objective, _together(coder.gap(left), groups))
            short = np.maximum(short, np.where(half > 0, np.maximum(gap / unit, _EPS), 0.0))
        elif coder.any_atom_scale:  # least squares on the atoms in use
            short = np.maximum(
                short, self._off_least_squares(left.codes, np.arange(len(half))) / unit
            )
        return np.asarray(short)

    def _off_least_squares(self, codes: Any, rows: Array) -> Array:
        """Return by how much the fit of some rows is above that of least squares on their atoms.

        With α ≥ 0 it is at an optimum too, where no coefficient is zero.
        """
        if self.signals.groups is None and self.signals.missing is None:
            return self._off.of_signals(codes[rows], rows, self.X, self.D)
        out = np.zeros(codes.shape[0])
        for some, problem in self._problems(rows):
            out[some] = self._off.of_problem(codes[some].toarray(), int(some[0]), problem)
        return out[rows]

    def _above_bound(self, objective: Array, gap: Array) -> Array:
        """Return gaps to the best bounds on the optima so far; infinite gaps stay so.

        The difference of two huge numbers, as of a code that is only rounding, bounds nothing.
        """
        self.lower = np.maximum(self.lower, objective - gap - _OF_SUMS * objective)
        return np.where(np.isfinite(gap), np.minimum(gap, objective - self.lower), gap)

    def _beyond(self, left: Residuals, bound: Any) -> Array:
        """Return the shortfalls of codes whose error is bounded; 0 where no code meets the bound."""
        coder, groups = self.coder, self.signals.groups
        n = len(left.norms)
        norms, squares = _together(left.norms, groups), _together(left.squares, groups)
        sizes = np.ones(n) if groups is None else np.repeat(np.diff(groups), np.diff(groups))
        eps = of_rows("eps", bound, self.numbers, n) * sizes
        unit = np.maximum(norms, _TINY)
        missed = np.maximum(squares - eps, 0.0) / unit
        short = np.zeros(n)
        if isinstance(coder, Certified):
            lengths = left.lengths()
            gap = self._above_bound(lengths, coder.gap(left))
            short = gap / np.maximum(lengths, _TINY)
            short = np.where(lengths > 0, np.maximum(short, _EPS), 0.0)
        else:  # least squares on the atoms in use
            short = self._off_least_squares(left.codes, np.arange(n)) / (0.5 * unit)
        out = np.flatnonzero(squares - eps > rounding_of_errors(eps, norms, self.dtype))
        if not out.size:
            return np.asarray(short)
        short[out] = 1.0 + missed[out]
        least = self._least_errors(out, eps)
        able = least <= eps[out]
        lost = out[~able]
        # Where the bound is out of reach, least squares are asked for.
        off = np.abs(_together(left.inner(), groups)[lost]) / unit[lost]
        above = self._off_least_squares(left.codes, lost) / (0.5 * unit[lost])
        far = (off > np.sqrt(self.allowed)) | (above > self.allowed)
        beyond = np.maximum(squares[lost] - least[~able], 0.0) / unit[lost]
        short[lost] = np.where(far, np.maximum(beyond, np.maximum(off, above)), 0.0)
        return np.asarray(short)

    def _least_errors(self, rows: Array, eps: Array) -> Array:
        """Return the squared errors of least squares; see `least_errors`."""
        missing, positive = self.signals.missing, bool(self.coder.positive)
        errors = np.zeros(len(rows))
        holes = np.zeros(len(rows), np.bool_) if missing is None else missing[rows].any(axis=1)
        whole = rows[~holes]
        if whole.size:
            V = self.prepared.span
            errors[~holes] = least_errors(
                self.X[whole], self.D, V, positive, eps[whole], self.dtype
            )
        for place in np.flatnonzero(holes):
            row = rows[place]
            known = ~missing[row]  # type: ignore[index]
            X, D = self.X[[row]][:, known], self.D[:, known]
            V = usable_span(D, self.dtype)
            errors[place] = least_errors(X, D, V, positive, eps[[row]], self.dtype)[0]
        return _together(errors, self._among(rows))

    def _among(self, rows: Array) -> Array | None:
        """Return the groups of some rows, which are whole groups."""
        groups = self.signals.groups
        if groups is None:
            return None
        numbers = np.searchsorted(groups, rows, side="right") - 1
        return np.append(np.flatnonzero(np.diff(numbers, prepend=-1)), len(rows))


def _together(values: Array, groups: Array | None) -> Array:
    """Return the sum over its group for each row; the values themselves without groups."""
    if groups is None or not len(values):
        return values
    return np.repeat(np.add.reduceat(values, groups[:-1]), np.diff(groups))


def _say_if_slow(seconds: float, done: int, count: int, remedy: str) -> None:
    """Log that the slow method takes long; once a minute."""
    global _said
    now = time.monotonic()
    if not done or seconds < _PATIENCE or now - _said < _AGAIN:
        return
    _said = now
    _log.warning(
        "%d of %d codes of similar atoms are solved again slowly: %.2f s each. To avoid it, use %s",
        count - done,
        count,
        seconds / done,
        remedy,
    )


def warn_if_short(short: Array | None, coder: Coder, dtype: np.dtype[Any]) -> None:
    """Warn how many codes fall short of their optimum, and how far."""
    if short is None:
        return
    count = int(np.count_nonzero(~(short <= PROMISED_GAP[dtype.itemsize])))
    if not count:
        return
    worst = float(np.max(np.nan_to_num(short, nan=np.inf)))
    if coder.error_bound() is not None and worst >= 1.0:
        how = f"their errors above eps, by up to {worst - 1.0:.1e} of ‖x‖²"
    elif is_certified(type(coder)):
        how = f"them up to {worst:.1e} of ½‖x‖² above a lower bound of the optimum"
    else:
        how = f"them up to {worst:.1e} of ½‖x‖² above least squares on their atoms"
    message = (
        f"{count} of {len(short)} codes are not proven optimal: rounding keeps {how}, since atoms are "
        f"too similar. To avoid it, use {'float64, ' if dtype == np.float32 else ''}{coder.remedy}"
    )
    warn(message, RuntimeWarning)
