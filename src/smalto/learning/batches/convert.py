"""Conversion of the data given to `learn` into batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.coders.base import Coder, check_takes
from smalto.coders.signals import Missing, check_missing
from smalto.learning.batches.base import Batches
from smalto.learning.batches.dataset import DatasetBatches
from smalto.learning.batches.stream import StreamBatches
from smalto.sources import Stream, as_source


def as_batches(
    source: Any, mask: Any, missing: Missing, sample_weight: Any, groups: Any, coder: Coder
) -> Batches:
    """Return the data as batches; raise unless its options fit together and suit the coder."""
    check_missing(missing)
    about = {"mask": mask, "sample_weight": sample_weight, "groups": groups}
    if isinstance(source, Batches):
        _refuse({**about, "missing": missing}, "cannot be used with data on a cluster")
        batches = source
    else:
        if not isinstance(source, np.ndarray):  # a masked array has a mask of its own
            source = as_source(source, nan=missing is not None or mask is not None)
        if isinstance(source, Stream):
            joint = coder if "groups" in coder.takes else None
            about["a joint coder"] = joint
            _refuse(about, "needs data of known length, not a stream")
            batches = StreamBatches(source, missing)
        else:
            batches = DatasetBatches.of(source, mask, missing, sample_weight, groups)
    check_takes(coder, mask=True if batches.has_missing else None, groups=groups)
    if groups is None and "groups" in coder.takes:
        message = f"{type(coder).__name__} needs groups: a label for each sample"
        raise ValueError(message)
    return batches


def _refuse(given: dict[str, Any], reason: str) -> None:
    """Raise ValueError, with the reason, if one of the options is given (not None)."""
    for name, value in given.items():
        if value is not None:
            message = f"{name} {reason}"
            raise ValueError(message)
