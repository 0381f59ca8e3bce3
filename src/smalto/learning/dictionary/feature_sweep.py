"""Steps on a random subset of the features, for samples with very many features.

Subsampled online matrix factorization (Mensch, Mairal, Thirion, Varoquaux, 2018): a step codes
its samples on a random share of the features, and updates the dictionary on these features. Both
cost less, in proportion to the share; the statistics are those of complete samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.coders.signals import Signals
from smalto.constraints.base import Constraint, project_checked
from smalto.learning.dictionary.sweep import BLOCK, unit_of, unknown_below
from smalto.learning.memory.statistics import Stats
from smalto.sources import Order
from smalto.sources.order import FEATURE_CYCLES
from smalto.threads import run_tasks

SLICE = 128  # features of a product computed by one task
_LEAST_ROOM = 1e-6  # radius left for some features of an atom: less is rounding


@dataclass(frozen=True)
class View:
    """A subset of the features, and a factor that keeps norms at about their full size."""

    features: Array  # increasing
    scale: float

    def rows(self, X: Rows) -> Rows:
        """Return the chosen features of the rows of X, scaled."""
        if scipy.sparse.issparse(X):
            return X[:, self.features] * X.dtype.type(self.scale)
        return np.take(X, self.features, axis=1) * X.dtype.type(self.scale)

    def signals(self, signals: Signals) -> Signals:
        """Return the signals restricted to the chosen features."""
        missing = signals.missing
        if missing is not None:
            missing = np.ascontiguousarray(missing[:, self.features])
        return replace(signals, X=self.rows(signals.X), missing=missing)


def view_at(step: int, share: float, n_features: int, seed: int) -> View:
    """Return the features of a step; each is used once before any is used again."""
    count = max(1, round(share * n_features))
    parts = -(-n_features // count)
    cycle, part = divmod(step, parts)
    chosen = Order(n_features, seed).take(FEATURE_CYCLES + cycle, part * count, (part + 1) * count)
    return View(np.sort(chosen), float(np.sqrt(n_features / len(chosen))))


def sweep_view(
    D: Array, stats: tuple[Stats, ...], constraint: Constraint, view: View, n_threads: int
) -> None:
    """Make one pass of block coordinate descent over the atoms, on the features of a view.

    It minimizes the surrogate over these features of each atom in turn. The other features stay
    fixed, and the constraint that they leave is a set of the same kind (`Constraint.divided`).
    """
    k, chosen = len(D), view.features
    part = np.ascontiguousarray(D[:, chosen])
    A = np.zeros((k, k))
    for one in stats:
        A += one.scale * one.A
    unit = unit_of(float(A.diagonal().max(initial=0.0)), D.dtype)
    A /= unit
    smallest = unknown_below(A.diagonal())
    for first in range(0, k, BLOCK):
        last = min(first + BLOCK, k)
        weights = A[first:last].astype(D.dtype)
        R = np.zeros((last - first, len(chosen)), D.dtype)
        for one in stats:
            R += (one.scale / unit * np.take(one.B[first:last], chosen, axis=1)).astype(D.dtype)

        def task(number: int, weights: Array = weights, R: Array = R) -> None:
            some = slice(number * SLICE, (number + 1) * SLICE)
            R[:, some] -= weights @ part[:, some]

        run_tasks(task, -(-len(chosen) // SLICE), n_threads)
        for row in range(last - first):
            j = first + row
            if not A[j, j] > smallest:
                continue
            atom = R[row] / D.dtype.type(A[j, j]) + part[j]
            D[j, chosen] = 0.0
            room, inner = constraint.divided(D[j])
            if room > _LEAST_ROOM:
                atom /= D.dtype.type(room)
                project_checked(inner, atom, j)
                atom *= D.dtype.type(room)
            else:
                atom.fill(0.0)
            change = atom - part[j]
            part[j] = D[j, chosen] = atom
            R[row + 1 :] -= weights[row + 1 :, j, None] * change
