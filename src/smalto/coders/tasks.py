"""How the rows to be coded are cut into tasks.

It depends on the number of rows and of atoms and on the coder, never on the number of threads.
"""

from __future__ import annotations

import numpy as np
import scipy

from smalto.coders.base import Coder
from smalto.coders.signals import Signals

LEAST = 128  # rows of a task, of two tasks at least ...
LIGHT_LEAST = 512  # ... over few atoms
LIGHT = 256  # atoms, up to which a row is coded in a few microseconds
USUAL = 256  # rows of a task: what it takes besides coding is then little
MOST = 1024
LINEAR = 1024, 2048  # least and most where codes are a product ...
QUICK = 2048, 4096  # ... and where a row takes a microsecond or two, and a task itself 200 of them
FEW = 64  # atoms, up to which a code of the lasso takes as little, ...
IN_CACHE = 2**18  # ... numbers of a task's rows


def task_bounds(signals: Signals, coder: Coder, n_atoms: int, *, linear: bool) -> list[int]:
    """Return the boundaries between the signals of successive tasks; groups are not split.

    ``linear`` says that codes are one product of the rows and a matrix.
    """
    n, groups, light = len(signals), signals.groups, n_atoms <= LIGHT
    least = LIGHT_LEAST if light else LEAST
    low, high, share = max(least, USUAL), MOST, n // 16
    if linear:
        low, high = LINEAR
    elif light and coder.takes_coarse:  # a pursuit
        (low, high), share = QUICK, n // 8
    elif n_atoms <= FEW and coder.can_be_rough:  # the lasso
        X = signals.X
        room = IN_CACHE * n // max(X.nnz if scipy.sparse.issparse(X) else X.size, 1)
        high, share = max(high, min(QUICK[1], room)), max(share, min(n // 8, room))
    size = min(max(low, share), high, max(least, n // 2))
    if groups is None:  # equal parts, an even number of them, so that threads end together
        pairs = max(1, round(n / (2 * size)))
        parts = 2 * pairs if n >= least else 1
        return [n * part // parts for part in range(parts + 1)]
    ends = groups[np.searchsorted(groups, np.arange(size, n + size, size))[:-1]]
    return [0, *sorted({int(end) for end in ends if 0 < end < n}), n]
