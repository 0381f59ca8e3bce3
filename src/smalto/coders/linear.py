"""Codes that are a linear function of the signals, as those of `Ridge`."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array, Rows, as_floats
from smalto.coders.coded import Coded
from smalto.coders.codes import Codes
from smalto.coders.preparing import Prepared
from smalto.coders.products import Packed
from smalto.coders.scaling import signal_exponents, squared_norms
from smalto.coders.signals import Signals
from smalto.threads import run_tasks


def code_linearly(
    signals: Signals,
    W: Packed,
    prepared: Prepared,
    cuts: list[int],
    n_threads: int,
    measured: bool,
) -> Coded | None:
    """Code rows by one product ``x Wᵀ``, straight into the result; ``cuts`` says which as one task.

    None if entries are missing, or if signals are of unusual size.
    """
    if signals.missing is not None:
        return None
    n, count, dtype = len(signals), len(prepared.used), prepared.dtype
    size = n * count
    # One array for both: the system takes the memory of two back at each call.
    both = np.empty(size + -(-4 * size // dtype.itemsize), dtype)
    values = both[:size].reshape(n, count)
    indices = both[size:].view(np.int32)[:size].reshape(n, count)
    norms, fit = np.empty(n), np.zeros(n)
    ordinary = np.zeros(len(cuts) - 1, np.bool_)

    def task(number: int) -> None:
        rows = slice(cuts[number], cuts[number + 1])
        x = as_floats(signals.X[rows], dtype)
        with np.errstate(over="ignore"):
            squares = squared_norms(x)
            ordinary[number] = signal_exponents(x, squares) is None
        if ordinary[number]:
            norms[rows], indices[rows] = squares, prepared.used
            W.products(x, values[rows])
            if measured:
                fit[rows] = _fit_dense(x, values[rows], prepared)

    run_tasks(task, len(ordinary), n_threads)
    if not ordinary.all():
        return None
    codes = Codes(count * np.arange(n + 1), indices.reshape(-1), values.reshape(-1))
    return Coded(codes, fit, norms, np.ones(n, np.int32))


def _fit_dense(x: Rows, values: Array, prepared: Prepared) -> Array:
    """Return ``½‖x − αD‖²`` of each row, from the coefficients of all atoms in use."""
    return 0.5 * squared_norms(np.asarray(x - values @ prepared.used_atoms))
