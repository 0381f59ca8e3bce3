"""The tuples in which coding kernels take their arguments.

A kernel reads a problem, overwrites scratch space and appends to an output. Each of the three is
a NamedTuple; the ones below are shared by several methods, the others are defined next to their
method. Numba passes a tuple member by member, so that it costs what its members would cost as
arguments. Arrays named ``q`` are ``x Dᵀ`` of all signals, flat: those of one signal begin at
``start``. Gram matrices are flat too, with rows ``width`` apart. The width is the number of atoms,
filled up with zero atoms to whole vectors.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class SparseRows(NamedTuple):
    """Sparse codes: the nonzeros of row i stand at ``indptr[i] : indptr[i + 1]``.

    As an output, it may be longer than what has been written, and ``indptr`` is valid up to the
    next row to write.
    """

    indptr: Any  # int64 (n + 1,)
    indices: Any  # int32, increasing within a row
    values: Any


class Gram(NamedTuple):
    """The Gram matrix of the atoms, ``G = D Dᵀ``.

    Where it is in float64, methods search on its float32 copy and then make the end exact. Where
    each signal has its own Gram matrix, ``lazy`` fills both row by row (see `masked_gram.py`).
    """

    exact: Any
    fast: Any  # float32 copy of `exact`; `exact` itself if that is float32
    lazy: Any  # LazyGram of the exact one, or None if all signals share G
    fast_lazy: Any = None  # the same for the float32 copy, for methods that fill it by itself


class Tally(NamedTuple):
    """What a method counts."""

    rounds: Any  # int32 (n,): rounds taken for each signal
    stuck: Any  # int64 (1,): signals, or groups of them, that rounding kept from the optimum


class Signal(NamedTuple):
    """The problem of one signal, as the exact methods read it."""

    gram: Gram
    q: Any
    start: int
    row: int  # number of the signal
    positive: bool  # whether α ≥ 0
    scale: float  # the largest correlation, for what counts as rounding
    tolerance: float  # share of its squared norm an atom must have outside the span of others


class View(NamedTuple):
    """The precision in which passes over all atoms are made: what they read and write."""

    G: Any
    q: Any
    start: int
    c: Any  # (width + room,): correlations of the residual, followed by the coefficients
    lazy: Any  # LazyGram in this precision, or None if all signals share G
