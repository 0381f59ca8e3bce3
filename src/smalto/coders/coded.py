"""Coded rows: their codes, errors and norms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.codes import Codes, stack
from smalto.coders.scaling import scaled_codes


@dataclass(frozen=True)
class Coded:
    """Codes of a batch of rows and their errors."""

    codes: Codes
    fit: Array  # ½‖x − αD‖² of each row, float64
    norms: Array  # ‖x‖² of each row, float64
    rounds: Array  # rounds of the solver for each row
    short: Array | None = None  # how far codes are from their optimum, see `mending.py`

    def times(self, exponent: int) -> Coded:
        """Return the codes of signals that are ``2^exponent`` times as large."""
        return replace(
            self,
            codes=scaled_codes(self.codes, exponent, None),
            fit=np.ldexp(self.fit, 2 * exponent),
            norms=np.ldexp(self.norms, 2 * exponent),
        )

    def take(self, rows: Array) -> Coded:
        """Return these rows, in this order."""
        short = None if self.short is None else self.short[rows]
        codes = self.codes.take(rows)
        return Coded(codes, self.fit[rows], self.norms[rows], self.rounds[rows], short)

    def among_zeros(self, rows: Array, norms: Array) -> Coded:
        """Return these as ``rows`` (increasing) of others with zero codes; ``norms`` are of all."""
        counts = np.zeros(len(norms), np.int64)
        counts[rows] = np.diff(self.codes.indptr)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        fit, rounds, short = 0.5 * norms, np.zeros(len(norms), self.rounds.dtype), None
        fit[rows], rounds[rows] = self.fit, self.rounds
        if self.short is not None:
            short = np.zeros(len(norms))
            short[rows] = self.short
        return Coded(self.codes._replace(indptr=indptr), fit, norms, rounds, short)


def zero_coded(norms: Array, dtype: np.dtype[Any]) -> Coded:
    """Return zero codes of this dtype for signals with these ``‖x‖²``."""
    n = len(norms)
    codes = Codes(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, dtype))
    return Coded(codes, 0.5 * norms, norms, np.zeros(n, np.int32))


def stacked(parts: list[Coded]) -> Coded:
    """Return the rows of several parts, one after the other."""
    short = None
    if any(part.short is not None for part in parts):
        short = np.concatenate(
            [np.zeros(len(part.fit)) if part.short is None else part.short for part in parts]
        )
    return Coded(
        stack([part.codes for part in parts]),
        np.concatenate([part.fit for part in parts]),
        np.concatenate([part.norms for part in parts]),
        np.concatenate([part.rounds for part in parts]),
        short,
    )
