"""Greedy coding on the Gram matrix: orthogonal matching pursuit, with or without look-ahead.

Approaches ``min_α ½‖x − αD‖²`` with few nonzeros (the ℓ0 of Section 5.1), one atom a step, with
all coefficients fitted anew. The choice of the atom is in `omp_choice.py`. With it comes a factor
of the Gram matrix of the active atoms, ``L_si = h_i[j_s]``, which gives the code as ``L⁻ᵀ y``
(`omp_fit.py`). For float64 data, atoms are first chosen on a float32 copy of G, as long as what
they gain is far above its rounding; the code on them is then computed in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.active_moves import walk
from smalto.kernels.coding.active_set import (
    CODE,
    SIGN,
    TARGET,
    ActiveSet,
    append,
    capacity,
    make_active_set,
)
from smalto.kernels.coding.masked_gram import (
    begin_signal,
    forget_rows,
    is_lazy,
    make_row,
    squared_norms,
)
from smalto.kernels.coding.omp_choice import (
    NORMS,
    OUTSIDE,
    C,
    Table,
    advance,
    best_atom,
    enter,
    first_atom,
    make_table,
    set_norms,
)
from smalto.kernels.coding.omp_fit import (
    ROUGH_32,
    ROUGH_64,
    correlate,
    dependent_share,
    fit_chosen,
    keep_row,
    solve_kept,
    write_code,
)
from smalto.kernels.flat import flat
from smalto.kernels.jit import kernel, part
from smalto.kernels.precision import EPSILON_32, EPSILON_64, is_double

DELICATE = 1e2  # times the share that makes an atom dependent: below, the factor is inexact
COARSE = 1e-5  # share of ‖x‖² that an atom must gain for it to be chosen in float32
MARGIN = 1e-3  # relative error that a gain may have in float32
NOISE = 32.0  # units in the last place of ‖x‖: an atom must gain the square of it
UNTOLD = 2.0  # times the share that makes an atom dependent: below, what is outside is unknown
ROUNDING = 16.0  # units in the last place that the numbers of an atom may be off, see `_may_gain`
WORTH_32, WORTH_64 = 1e-3, 1e-5  # share of ‖x‖² beyond its cost that an atom must gain to be missed
SMALLEST = 1e-20  # share of its squared norm that must be outside for an atom to count at all

# Why a pursuit ended: the number of atoms or the error is as wanted, no atom gains enough, going on
# takes more precision, there is no room.
_DONE, _SPENT, _DOUBTFUL, _FULL = range(4)


class Targets(NamedTuple):
    """Where the pursuit of each signal ends."""

    norms: Any  # (n,): ‖x‖²
    most: Any  # int64 (n,): atoms, at most
    eps: Any  # (n,): error that is small enough
    gain: float  # by which an atom must lower the error, at least


class Limits(NamedTuple):
    """The same for one signal and one stage."""

    norm: float
    most: int
    eps: float
    gain: float


class Pursuit(NamedTuple):
    """Scratch for one signal; `fast_` what the search in float32 uses."""

    active: ActiveSet
    used: Any  # bool (width,): whether an atom is active, all False between signals
    table: Table
    fast_table: Table  # `table` itself where all is float32
    norms: Any  # (width,): squared norms of the atoms
    fast_norms: Any


class Source(NamedTuple):
    """A Gram matrix in one precision, and the correlations of a signal."""

    G: Any
    lazy: Any  # LazyGram that fills G row by row, or None
    q: Any
    start: int
    given: Any  # what q is computed from where it is read, or None if all of it is there


class Stage(NamedTuple):
    """What atoms are chosen by: exact, or in float32."""

    source: Source
    table: Table
    smallest: float  # squared norm of an atom that is not zero


class Outcome(NamedTuple):
    """How a pursuit ended."""

    s: int  # active atoms
    error: float  # ‖x − αD‖²
    end: int  # why it ended
    top: float  # the best score
    delicate: bool  # whether an atom is so nearly in the span of others that rounding counts
    narrow: float  # the smallest share of an active atom's squared norm that is outside the others
    choices: int  # atoms looked at


def make_pursuit(width: int, room: int, dtype: np.dtype) -> Pursuit:
    """Room for ``room`` active atoms out of ``width``, whose norms are not set: one per thread."""
    table = make_table(room, width, dtype)
    single = np.dtype(np.float32)
    return Pursuit(
        make_active_set(room),
        np.zeros(width, np.bool_),
        table,
        table if dtype == single else make_table(room, width, single),
        np.empty(width, dtype),
        np.empty(width, single),
    )


@kernel
def _replay(stage, rules, least, active, s):
    """Compute the table afresh for the s active atoms.

    Returns the largest score, its atom, and the smallest share of an atom outside those before it.
    """
    source, table = stage.source, stage.table
    atoms, narrow = active.atoms, 1.0
    top, best = first_atom(table, source.q, source.start, rules.positive)
    for i in range(s):
        outside = enter(table, atoms[i], i, rules.look_ahead)
        narrow = min(narrow, outside / table.numbers[NORMS * table.stride + atoms[i]])
        if not rules.positive:
            keep_row(active, i, table, outside)
        top, best = advance(source.G, table, atoms[i], i, outside, rules, least)
    return top, best, narrow


@kernel
def _error(active, s, norm):
    """``‖x − αD‖²`` of the least-squares code on the active atoms."""
    error = norm
    for i in range(s):
        error -= active.work[i] * active.work[i]
    return error


@kernel
def _walk_positive(active, s, used):
    """Go to the best code with α ≥ 0, the last of the s atoms having joined; returns their number."""
    work, stride = active.work, active.atoms.size
    work[SIGN * stride + s - 1] = 1.0
    work[CODE * stride + s - 1] = 0.0
    used[active.atoms[s - 1]] = True
    return walk(active, s, np.bool_(False), used)[0]


@kernel
def _pursue(exact, stage, limits, rules, active, s, used):
    """Let atoms join the s active ones until a limit is reached; returns an `Outcome`.

    Atoms are chosen by the source of the stage; ``exact`` is the exact one.
    """
    atoms, table, source = active.atoms, stage.table, stage.source
    numbers, width, stride = table.numbers, table.width, table.stride
    positive = rules.positive
    share = dependent_share(numbers)
    least = share * stage.smallest
    top, j, narrow = _replay(stage, rules, least, active, s)
    error, delicate, choices = _error(active, s, limits.norm), s > 0, 0
    while s < limits.most and error > limits.eps:
        if not top > limits.gain:
            return Outcome(s, error, _SPENT, np.float64(top), delicate, narrow, choices)
        if s == capacity(active):
            return Outcome(s, error, _FULL, np.float64(top), delicate, narrow, choices)
        make_row(source.lazy, j, source.G, source.G)
        if positive:
            make_row(exact.lazy, j, exact.G, exact.G)
        choices += 1
        outside = enter(table, j, s, rules.look_ahead)
        norm = numbers[NORMS * stride + j]
        joins = outside > share * norm
        if not joins and is_double(source.G) != is_double(exact.G):
            return Outcome(s, error, _DOUBTFUL, np.float64(top), delicate, narrow, choices)
        delicate |= outside < DELICATE * share * norm
        if joins and positive:
            correlate(exact.given, exact.q, exact.start, width, j)
            b = np.float64(exact.q[exact.start + j])
            joins = append(exact.G, width, active, s, j, b, dependent_share(exact.G))
        if not joins:  # it depends on the active atoms
            top, j = best_atom(table, positive)
            continue
        atoms[s] = j
        s += 1
        narrow = min(narrow, outside / norm)
        if not positive:
            y = keep_row(active, s - 1, table, outside)
            error -= y * y
        else:
            before, last = s, error
            s = _walk_positive(active, s, used)
            error = _error(active, s, limits.norm)
            if s < before:
                unit = EPSILON_64 if is_double(numbers) else EPSILON_32
                if not error < last - unit * limits.norm:  # no circles
                    return Outcome(s, error, _SPENT, np.float64(top), delicate, narrow, choices)
                top, best, narrow = _replay(stage, rules, least, active, s)
                if not used[j]:
                    numbers[OUTSIDE * stride + j] = np.inf
                    top, best = best_atom(table, positive)
                j = best
                continue
        if s < limits.most and error > limits.eps:
            top, j = advance(source.G, table, j, s - 1, outside, rules, least)
    return Outcome(s, error, _DONE, np.float64(top), delicate, narrow, choices)


@kernel
def _may_gain(stage, limits, found, least, active):
    """Whether an atom that seems to gain less than it costs might gain more, up to rounding.

    What is known of an atom is off by some units in the last place, and the more of them the nearer
    the active atoms are to depending on each other. An atom that depends on these, as far as is known,
    may gain something if its squared correlation with the residual is at least ``least``, times its
    squared norm: in float32 it may be zero and tell nothing. Zero atoms, of infinite norms, do not count.
    """
    numbers, stride = stage.table.numbers, stage.table.stride
    double = is_double(numbers)
    off = ROUNDING * (EPSILON_64 if double else EPSILON_32) / np.sqrt(max(found.narrow, SMALLEST))
    unknown = UNTOLD * dependent_share(numbers)
    worth = limits.gain + (WORTH_64 if double else WORTH_32) * limits.norm
    for j in range(stage.table.width):
        c, norm = np.float64(numbers[C * stride + j]), np.float64(numbers[NORMS * stride + j])
        outside = np.float64(numbers[OUTSIDE * stride + j])
        if outside == np.inf or outside <= unknown * norm:
            able = c * c >= least * norm
        else:
            largest = np.abs(c) + off * np.sqrt(norm * limits.norm)
            able = largest * largest > worth * (outside - off * norm)
        if norm < np.inf and able:
            is_active = False
            for i in range(found.s):
                is_active |= active.atoms[i] == j
            if not is_active:
                return True
    return False


@part
def _search_fast(exact, stage, limits, rules, active, used):
    """Choose atoms in float32 for a signal in float64 and fit them exactly.

    Returns their number, why it ended, whether nothing is left to do, and how many choices it took.
    """
    coarse = COARSE * limits.norm
    gain = max((1.0 + MARGIN) * limits.gain, coarse)
    rough = Limits(limits.norm, limits.most, limits.eps, gain)
    found = _pursue(exact, stage, rough, rules, active, np.int64(0), used)
    s, end = found.s, found.end
    finished = end == _FULL or (
        end == _SPENT
        and limits.gain > coarse
        and found.top < (1.0 - MARGIN) * limits.gain
        and not _may_gain(stage, limits, found, 0.0, active)
    )
    if rules.positive:
        finished |= end == _DONE
    elif end != _FULL:
        s, error = fit_chosen(exact, used.size, limits.norm, limits.eps, active, s)
        finished &= np.abs(error - found.error) <= coarse
        all_fit = s == found.s and (finished or s == limits.most)
        finished = error <= limits.eps or all_fit
    return s, end, finished, found.choices


@part
def _search_exact(stage, limits, rules, active, s, used):
    """Let atoms join the s active ones in the precision of the data, and fit them all.

    Returns their number, why it ended, whether rounding may have ended it, and how many choices it
    took.
    """
    exact = stage.source
    unit = EPSILON_64 if is_double(stage.table.numbers) else EPSILON_32
    noise = (NOISE * unit) ** 2 * limits.norm
    gain = max(limits.gain, noise)
    fine = Limits(limits.norm, limits.most, limits.eps, gain)
    found = _pursue(exact, stage, fine, rules, active, s, used)
    s, error = found.s, found.error
    least = max(noise, SMALLEST * gain)
    early = found.end == _SPENT and (
        limits.gain == 0.0 or _may_gain(stage, limits, found, least, active)
    )
    if not rules.positive and found.delicate:
        s, error = fit_chosen(exact, used.size, limits.norm, limits.eps, active, s)
        early |= s < found.s or np.abs(error - found.error) > COARSE * limits.norm
    elif not rules.positive:
        solve_kept(active, s)
    rough = ROUGH_64 if is_double(stage.table.numbers) else ROUGH_32
    early &= s < limits.most and error > max(limits.eps, rough * limits.norm)
    return s, found.end, early, found.choices


@kernel
def omp_rows(gram, correlations, row, targets, rules, pursuit, out, rounds):
    """Code the signals from ``row`` on; returns the first row not done.

    Stops early, to be called again, when the active set or the output has no room left. ``rounds``
    counts choices of an atom; it is negative where rounding may have ended a pursuit too early.
    """
    n, width = correlations.Q.shape
    q, fast_q, lazy = flat(correlations.Q), flat(correlations.fast), gram.lazy
    active, used, table, fast_table, norms, fast_norms = pursuit
    two_stages = is_double(gram.fast) != is_double(gram.exact)
    smallest = set_norms(norms, table)
    fast_smallest = set_norms(fast_norms, fast_table)
    while row < n:
        position = out.indptr[row]
        if position + capacity(active) > out.indices.size:
            return row
        # With as many atoms as known entries, all others depend on them.
        most = min(targets.most[row], begin_signal(lazy, row))
        limits = Limits(targets.norms[row], most, targets.eps[row], targets.gain)
        exact = Source(gram.exact, lazy, q, row * width, correlations.given)
        s, end, finished, choices = np.int64(0), _DONE, False, 0
        if two_stages:
            if is_lazy(lazy):
                forget_rows(gram.fast_lazy)
                squared_norms(gram.fast_lazy, fast_norms)
                fast_smallest = set_norms(fast_norms, fast_table)
            source = Source(gram.fast, gram.fast_lazy, fast_q, row * width, None)
            stage = Stage(source, fast_table, fast_smallest)
            s, end, finished, choices = _search_fast(exact, stage, limits, rules, active, used)
        rounds[row] = choices
        if not finished:
            if is_lazy(lazy):
                squared_norms(lazy, norms)
                smallest = set_norms(norms, table)
                for i in range(s):
                    make_row(lazy, active.atoms[i], gram.exact, gram.exact)
            for j in range(width):
                correlate(exact.given, exact.q, exact.start, width, j)
            last = Stage(exact, table, smallest)
            s, end, early, choices = _search_exact(last, limits, rules, active, s, used)
            rounds[row] += choices
            if early:
                rounds[row] = -rounds[row]
        if end == _FULL:
            used[:] = False
            return row
        first = (TARGET if rules.positive else CODE) * active.atoms.size
        write_code(active, s, first, used, out, position)
        out.indptr[row + 1] = position + s
        row += 1
    return row
