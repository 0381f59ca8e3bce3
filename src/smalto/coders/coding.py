"""Coding of validated rows in chunks on several threads, and their mean cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows, as_floats, is_built_in
from smalto.coders.base import PROMISED_GAP, Coder, is_certified
from smalto.coders.certificates import gaps_of_reduced
from smalto.coders.checked_coder import penalty_of
from smalto.coders.chunks import Chunk, all_if_none
from smalto.coders.coded import Coded, stacked, zero_coded
from smalto.coders.codes import Codes, compressed
from smalto.coders.doubts import cancelling, delicate_rows, doubtful, unmeasured, whole_groups
from smalto.coders.linear import code_linearly
from smalto.coders.mending import Mender, warn_if_short
from smalto.coders.out_of_reach import exceeds, missed_by_rounding, too_small_for_gram
from smalto.coders.parameters import of_rows
from smalto.coders.preparing import (
    Prepared,
    coarse_products,
    may_be_coarse,
    prepare,
    solve_part,
)
from smalto.coders.scaling import (
    check_in_range,
    number_exponent,
    scaled_codes,
    scaled_signals,
    signal_exponents,
    squared_norms,
)
from smalto.coders.signals import Signals, blocks
from smalto.coders.tasks import task_bounds
from smalto.coders.unpenalized import free_atoms, reduced_problems
from smalto.kernels import aligned
from smalto.kernels.coding.fit import fit_of_rows
from smalto.threads import run_tasks
from smalto.warn import warn

FEW = 64  # rows
_LOOKED_AT = 2048  # rows, for advice
ROWS_AT_ONCE = 8192  # rows whose codes are in memory at a time if only their cost is needed


def code_rows(
    signals: Signals,
    prepared: Prepared,
    start: Codes | None,
    n_threads: int,
    *,
    numbered: bool = False,
    measured: bool = True,
) -> Coded:
    """Code validated rows, chunk by chunk.

    Parameters
    ----------
    signals : Signals
        The rows.
    prepared : Prepared
        The dictionary and the solver.
    start : Codes or None
        Codes to start from; ignored if the coder takes none.
    n_threads : int
        Number of threads.
    numbered : bool, default False
        Whether the rows are all rows of the user's X, so that parameters with one number per
        signal apply.
    measured : bool, default True
        Compute ``fit``, which is otherwise undefined.
    """
    W = prepared.linear if prepared.exponents is None else None
    cuts = task_bounds(signals, prepared.coder, prepared.n_atoms, linear=W is not None)
    if W is not None:
        linear = code_linearly(signals, W, prepared, cuts, n_threads, measured)
        if linear is not None:
            return linear
    start = start if "start" in prepared.coder.takes else None
    parts: list[Any] = [None] * (len(cuts) - 1)
    dtype = prepared.dtype
    signals, prepared = _with_ordinary_weights(signals, prepared)

    def task(number: int) -> None:
        rows = slice(cuts[number], cuts[number + 1])
        part = signals.part(rows)
        X = as_floats(part.X, dtype)
        parts[number] = _code_part(
            part if X is part.X else replace(part, X=X),
            prepared,
            None if start is None else start.part(rows),
            np.arange(rows.start, rows.stop) if numbered else None,
            measured,
        )

    run_tasks(task, len(parts), n_threads)
    coded = stacked(parts)
    warn_if_short(coded.short, prepared.coder, dtype)
    return coded


def _with_ordinary_weights(signals: Signals, prepared: Prepared) -> tuple[Signals, Prepared]:
    """Return all penalty weights as those of the signals, of ordinary size, and the problem for them."""
    weights = prepared.problem.all_weights(signals.penalty_weights)
    if weights is None:
        return signals, prepared
    prepared = prepared.unweighted
    top = float(np.max(weights, where=np.isfinite(weights), initial=0.0))
    exponent = number_exponent(top)
    if exponent:
        weights, prepared = np.ldexp(weights, -exponent), prepared.at(0, exponent)
    return replace(signals, penalty_weights=weights), prepared


def _code_part(
    part: Signals, prepared: Prepared, start: Codes | None, numbers: Array | None, measured: bool
) -> Coded:
    """Code the signals of one task; those of unusual size are scaled by powers of two."""
    with np.errstate(over="ignore"):
        norms = squared_norms(part.X)
        exponents = signal_exponents(part.X, norms, part.groups)
    if exponents is not None and prepared.problem.rescaled(1.0, 1.0) is None:
        exponents = None
    if start is not None and prepared.exponents is not None:
        start = scaled_codes(start, 0, -prepared.exponents)
    if exponents is None:
        coded = _code_chunk(part, norms, prepared, start, numbers, measured)
    else:
        pieces, order = [], []
        for exponent in np.unique(exponents):
            rows = np.flatnonzero(exponents == exponent)
            some = scaled_signals(part, rows, int(exponent))
            piece = _code_chunk(
                some,
                squared_norms(some.X),
                prepared.at(int(exponent)) if exponent else prepared,
                None if start is None else scaled_codes(start.take(rows), -exponent, None),
                None if numbers is None else numbers[rows],
                measured,
            )
            pieces.append(piece.times(int(exponent)))
            order.append(rows)
        coded = stacked(pieces).take(np.argsort(np.concatenate(order)))
    if prepared.exponents is not None:
        coded = replace(coded, codes=scaled_codes(coded.codes, 0, prepared.exponents))
    return coded


def _code_chunk(
    part: Signals,
    norms: Array,
    prepared: Prepared,
    start: Codes | None,
    numbers: Array | None,
    measured: bool,
    *,
    narrow: bool = False,
) -> Coded:
    """Code signals of ordinary size, and mend codes that rounding has spoilt.

    Single float32 signals that need it are coded in float64, unless ``narrow``.
    """
    free = free_atoms(part, prepared.problem)
    if free is not None:
        return _code_freely(part, norms, prepared, numbers, measured, free)
    n, x, W = len(part), part.X, prepared.linear
    coded = None if W is None else code_linearly(part, W, prepared, [0, n], 1, measured)
    if coded is not None:
        return coded
    rows = _rows_not_zero(part, norms, prepared, numbers)
    if rows is not None:
        norms = norms.astype(np.float64, copy=False)
        if not rows.size:
            return zero_coded(norms, prepared.dtype)
        some = part.take(rows)
        first = None if start is None else start.take(rows)
        own = None if numbers is None else numbers[rows]
        coded = _code_chunk(some, norms[rows], prepared, first, own, measured, narrow=narrow)
        return coded.among_zeros(rows, norms)
    narrow = narrow or prepared.dtype != np.float32 or part.groups is not None
    whole = part.missing is None and part.penalty_weights is None
    fine = whole and not measured and prepared.fine_enough
    if prepared.too_coarse and not (narrow or fine):
        return _code_in_float64(part, prepared, start, numbers, measured)
    room = _room_for_products(n, prepared)
    coarse = None
    if room is not None and part.missing is None and may_be_coarse(part, prepared):
        coarse, Q = coarse_products(x, prepared), room
    else:
        Q = prepared.packed.products(x, room)
    rounds, fit = np.zeros(n, np.int32), np.zeros(n)
    chunk = Chunk(
        Q,
        norms.astype(np.float64, copy=False),
        rounds,
        numbers,
        start,
        part.groups,
        stuck=np.zeros(1, np.int64),
        coarse=coarse,
    )
    weights, problem = part.penalty_weights, prepared.problem
    delicate: Any = False
    if not fine:
        delicate = delicate_rows(chunk, problem, prepared.sizes, prepared.safe_norm, weights)
    many = delicate is not False and 4 * np.count_nonzero(np.broadcast_to(delicate, n)) > n
    if many and not narrow:
        return _code_in_float64(part, prepared, start, numbers, measured)
    codes = solve_part(chunk, part, prepared)
    is_rough = prepared.slack > 0.0 and part.missing is None and part.penalty_weights is None
    if measured:
        if not (is_rough and prepared.problem.rough_fit(codes, chunk, fit)):
            fit_of_rows(prepared.G, Q, chunk.norms, *codes, fit)
        if part.missing is not None:
            holes = np.flatnonzero(part.missing.any(axis=1))
            _fit_directly(part, holes, codes, prepared.padded, fit)
    bound, tame = problem.error_bound(), False
    eps, small = np.empty(0), np.empty(0, np.int64)
    if measured and bound is not None:
        eps = np.asarray(bound) if part.groups is not None else of_rows("eps", bound, numbers, n)
        unsure = unmeasured(codes, chunk, prepared.sizes)
        tame = not unsure.size
        small = np.flatnonzero(too_small_for_gram(eps, chunk.norms, Q.dtype))
        unsure = np.union1d(unsure, small) if small.size else unsure
        if unsure.size:
            _fit_directly(part, unsure, codes, prepared.wide, fit)
    rows, marked = doubtful(codes, chunk, part, prepared, delicate, tame), rounds < 0
    np.abs(rounds, out=rounds)
    if measured and bound is not None:
        if is_certified(type(problem)) and Q.dtype == np.float32:  # their gaps are rounding
            rows = np.union1d(rows, small)
        missed = np.flatnonzero(exceeds(eps, fit, chunk.norms, Q.dtype, part.groups))
        if missed.size:
            missed = missed if part.groups is None else part.groups[missed]
            rows = whole_groups(np.union1d(rows, missed), part.groups)
    short = None
    if rows.size and problem.can_be_mended:
        codes, short = _mended(codes, rows, marked[rows], part, numbers, prepared, fit)
    return Coded(codes, fit, chunk.norms, rounds, short)


def _rows_not_zero(
    part: Signals, norms: Array, prepared: Prepared, numbers: Array | None
) -> Array | None:
    """Return the rows whose codes are not zero at once, as no error is too large; None for all.

    Where there is a bound on the error, such as that of noise, this can be most rows.
    """
    problem = prepared.problem
    limits = problem.two_limits()
    eps = problem.error_bound() if limits is None else limits[1]
    if eps is None or not np.any(eps) or not len(part) or not is_built_in(prepared.coder):
        return None
    if "groups" in problem.takes:
        groups = all_if_none(part.groups, len(part))
        sizes = np.diff(groups)
        sums = np.add.reduceat(norms.astype(np.float64, copy=False), groups[:-1])
        is_zero = np.repeat(sums <= np.asarray(eps, np.float64) * sizes, sizes)
    else:
        is_zero = norms <= of_rows("eps", eps, numbers, len(part))
    return np.flatnonzero(~is_zero) if is_zero.any() else None


def _code_in_float64(
    part: Signals,
    prepared: Prepared,
    start: Codes | None,
    numbers: Array | None,
    measured: bool,
) -> Coded:
    """Code float32 signals in float64, and round their codes.

    Codes whose terms cancel, and those that had to be mended, are certified once more: what is known
    of them does not hold after rounding. Those that rounding has spoilt are coded in float32.
    """
    wide = replace(part, X=as_floats(part.X, np.dtype(np.float64)))
    coded = _code_chunk(wide, squared_norms(wide.X), prepared.double, start, numbers, measured)
    with np.errstate(over="ignore"):
        codes = coded.codes._replace(values=coded.codes.values.astype(np.float32))
    check_in_range(codes.values)
    found = cancelling(codes, coded.norms, prepared.problem, prepared.sizes)
    if coded.short is not None:
        found = found | (coded.short > 0)
    if not np.any(found):
        return replace(coded, codes=codes)
    rows = np.flatnonzero(found)
    mender = _mender(rows, part, numbers, prepared)
    mender.shortfalls(coded.codes.take(rows))  # their bounds on the optima are better
    short = np.zeros(len(part))
    short[rows] = mender.shortfalls(codes.take(rows))
    coded.fit[rows] = mender.fit
    coded = replace(coded, codes=codes, short=short)
    spoilt = short > mender.allowed
    if not spoilt.any():
        return coded
    rows, rest = np.flatnonzero(spoilt), np.flatnonzero(~spoilt)
    some = part.take(rows)
    again = _code_chunk(
        some,
        squared_norms(some.X),
        prepared,
        None if start is None else start.take(rows),
        None if numbers is None else numbers[rows],
        measured,
        narrow=True,
    )
    return stacked([coded.take(rest), again]).take(np.argsort(np.concatenate([rest, rows])))


def _code_freely(
    part: Signals,
    norms: Array,
    prepared: Prepared,
    numbers: Array | None,
    measured: bool,
    free: Array,
) -> Coded:
    """Code signals of which some atoms are not penalized: without these first; see `unpenalized.py`."""
    problem, ridge = prepared.problem.eliminated()
    D, dtype = prepared.wide[: prepared.n_atoms], prepared.dtype
    pieces, order = [], []
    same = len(free) == 1  # for all signals: kept for other chunks
    for some in reduced_problems(part, D, free, ridge, prepared.eliminations if same else {}):
        made, keep = some.elimination, same and some.whole
        rest = prepared.others.get(made.free.tobytes()) if keep else None
        if rest is None:
            with np.errstate(over="ignore"):  # of a huge ridge
                rest = prepare(made.atoms.astype(dtype), problem, 1)
        if keep:
            prepared.others[made.free.tobytes()] = rest
        signals = replace(some.signals, X=as_floats(some.signals.X, dtype))
        own = None if numbers is None else numbers[some.rows]
        coded = _code_part(signals, rest, None, own, measured)
        with np.errstate(over="ignore", invalid="ignore"):
            codes, lost = made.completed(coded.codes, some.X)
        check_in_range(codes.values)
        whole = norms[some.rows].astype(np.float64)
        unit = np.where(whole > 0, 0.5 * whole, 1.0)
        short = np.zeros(len(whole)) if coded.short is None else coded.short
        if problem.error_bound() is None:
            short = short * coded.norms * 0.5 / unit
            if made.whole is not None:
                lost = gaps_of_reduced(some, codes.as_csr(len(D)), prepared.problem, own)
        short = short + np.where(lost > PROMISED_GAP[dtype.itemsize] * unit, lost / unit, 0.0)
        said = short if short.any() else coded.short
        pieces.append(replace(coded, codes=codes, norms=whole, short=said))
        order.append(some.rows)
    coded = stacked(pieces).take(np.argsort(np.concatenate(order)))
    reduced = coded.fit.copy()
    if measured or coded.short is not None:
        _fit_directly(part, np.arange(len(part)), coded.codes, D, coded.fit)
    bound = problem.error_bound()
    if bound is not None:
        eps = of_rows("eps", bound, numbers, len(part))
        return missed_by_rounding(coded, reduced, eps) if measured else coded
    if coded.short is None:
        return coded
    csr = coded.codes.as_csr(len(D))
    cost = coded.fit + prepared.problem.weighted_penalty(csr, part.penalty_weights)
    worse = np.flatnonzero(cost > 0.5 * coded.norms * (1.0 + 1e-6))  # than zero codes, by rounding
    nothing = compressed(np.zeros((len(worse), len(D)), dtype))
    coded.fit[worse] = 0.5 * coded.norms[worse]
    return replace(coded, codes=coded.codes.put(worse, nothing))


def _room_for_products(n: int, prepared: Prepared) -> Array | None:
    """Return memory for ``x Dᵀ`` that the next chunk uses again; None for a coder of a user's own."""
    if not is_built_in(prepared.coder):
        return None
    return aligned.reused((n, len(prepared.padded)), prepared.dtype)


def _mended(
    codes: Codes,
    rows: Array,
    marked: Array,
    part: Signals,
    numbers: Array | None,
    prepared: Prepared,
    fit: Array,
) -> tuple[Codes, Array]:
    """Return codes of which some rows are certified or solved again, and how far all fall short.

    ``marked`` are those of the rows that the solver has marked (`Chunk.rounds`).
    """
    mender = _mender(rows, part, numbers, prepared)
    some, chosen = mender.signals, mender.numbers

    def again(few: Array) -> tuple[Codes, Array]:
        double = prepared.double
        signals = some.take(few)
        signals = replace(signals, X=as_floats(signals.X, np.dtype(np.float64)))
        chunk = Chunk(
            double.packed.products(signals.X),
            squared_norms(signals.X),
            np.zeros(len(few), np.int32),
            None if chosen is None else chosen[few],
            groups=signals.groups,
        )
        return solve_part(chunk, signals, double), chunk.rounds < 0

    in_float64 = again if mender.dtype == np.float32 else None
    new, short = mender.mend(codes.take(rows), marked, in_float64)
    fit[rows] = mender.fit
    whole = np.zeros(len(part))
    whole[rows] = short
    return codes.put(rows, new), whole


def _mender(rows: Array, part: Signals, numbers: Array | None, prepared: Prepared) -> Mender:
    """Return what certifies the codes of some rows."""
    return Mender(part.take(rows), prepared, None if numbers is None else numbers[rows])


def _fit_directly(part: Signals, rows: Array, codes: Codes, atoms: Array, fit: Array) -> None:
    """Set ``fit`` of some rows to ``½‖x − αD‖²`` over the known entries, without the Gram matrix."""
    x = part.X[rows].toarray() if scipy.sparse.issparse(part.X) else part.X[rows]
    if len(rows) <= FEW:  # before a sparse array would be made
        left = x.astype(atoms.dtype)
        for row, rest in zip(rows, left, strict=True):
            some = slice(codes.indptr[row], codes.indptr[row + 1])
            rest -= codes.values[some].astype(atoms.dtype) @ atoms[codes.indices[some]]
    else:
        left = x - codes.take(rows).as_csr(len(atoms)) @ atoms
    if part.missing is not None:
        left[part.missing[rows]] = 0.0
    fit[rows] = 0.5 * np.einsum("ij,ij->i", left, left)


def mean_cost(signals: Signals, D: Array, coder: Coder, n_threads: int) -> float:
    """Return the mean of ``½‖x − αD‖² + ψ(α)`` over validated rows, for a resolved coder."""
    prepared = prepare(D, coder, n_threads)
    total, n = 0.0, len(signals)
    for rows in blocks(n, ROWS_AT_ONCE, signals.groups):
        part = signals.part(rows)
        coded = code_rows(part, prepared, None, n_threads)
        total += float(coded.fit.sum())
        total += float(penalty_of(coder, coded.codes, len(D), part.groups).sum())
    return total / n


def warn_of_zeros(coder: Coder, X: Rows, D: Array) -> None:
    """Warn that all codes of the rows X are zero, if the coder can say what to change."""
    advice = coder.advice_on_zeros(X[:_LOOKED_AT], D)
    if advice is not None:
        warn(f"every code is zero: {advice}")
