"""Coding of a block of samples."""

from __future__ import annotations

import math

import numpy as np

from smalto.checks import Array, check_scale
from smalto.coders.checked_coder import penalty_of
from smalto.coders.codes import Codes
from smalto.coders.coding import code_rows
from smalto.coders.out_of_reach import count_out_of_reach
from smalto.coders.preparing import Prepared
from smalto.coders.scaling import largest_entry, number_exponent
from smalto.learning.batches.samples import Samples, filled
from smalto.learning.dictionary.feature_sweep import View
from smalto.learning.memory.contributions import Contribution, Part

_LARGEST = 1e152  # of codes, for sums of ten thousand squares


def code_samples(
    samples: Samples,
    D: Array,
    prepared: Prepared,
    start: Codes | None,
    n_threads: int,
    view: View | None = None,
) -> Part:
    """Code samples over a dictionary, on the features of ``view`` if there is one."""
    k, signals = len(D), samples.signals
    seen = signals if view is None else view.signals(signals)
    coded = code_rows(seen, prepared, start, n_threads)
    if (
        number_exponent(math.sqrt(coded.norms.max(initial=0.0))) > 0
    ):  # small ones are as good as zero
        check_scale("the samples", signals.X, D.dtype)
    _check_squares(coded.codes)
    new = Contribution.of(
        coded,
        filled(signals, coded.codes, D),
        k,
        penalty_of(prepared.coder, coded.codes, k, signals.groups),
        samples.weights,
        filled=view is not None or signals.missing is not None,
    )
    short = count_out_of_reach(prepared.coder, coded, D.dtype, signals.groups)
    return Part(samples.numbers, new, len(coded.codes.indices), short)


def _check_squares(codes: Codes) -> None:
    """Raise ValueError if sums of squared codes would overflow, which those of float32 do not."""
    top = largest_entry(codes.values) if codes.values.dtype == np.float64 else 0.0
    if top > _LARGEST:
        message = (
            f"codes reach {top:.3g}, and their squares overflow: scale the samples down, or choose a "
            "coder with a penalty, which keeps coefficients small"
        )
        raise ValueError(message)
