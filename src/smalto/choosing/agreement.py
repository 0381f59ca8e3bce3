"""The result of `consensus`: what the starts agree on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from smalto.checks import Array
from smalto.choosing.tables import as_frame, as_text
from smalto.estimators.base import Factorization

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Agreement:
    """What all starts with k atoms agree on.

    Attributes
    ----------
    D : array (k, m)
        The consensus: the median of each cluster of atoms, scaled to norm 1, most stable first.
    stability : array (k,)
        How stable each of these is, at most 1: the mean silhouette of its cluster.
    support : array (k,)
        Share of the starts that have an atom similar to it.
    costs : array (n_starts,)
        Mean cost per sample of each start.
    n_left_out : int
        Number of atoms of all starts that are not similar to the center they are matched with.

    See Also
    --------
    smalto.consensus : Where it comes from.
    """

    D: Array
    stability: Array
    support: Array
    costs: Array
    n_left_out: int

    def __repr__(self) -> str:
        return (
            f"Agreement({len(self.D)} atoms, stability {self.stability.mean():.3f}, "
            f"{len(self.costs)} starts)"
        )


@dataclass(frozen=True, repr=False)
class Consensus:
    """The result of `consensus`.

    Attributes
    ----------
    agreements : dict of int to Agreement
        What the starts agree on, for each number of atoms.
    best_params : dict
        The number of atoms chosen, as a parameter of the estimator.
    stopped : str
        "done", or "interrupt" (Ctrl-C): then it is about the starts that were done.

    See Also
    --------
    smalto.consensus : Where it comes from.
    """

    agreements: dict[int, Agreement]
    best_params: dict[str, Any]
    stopped: str
    _model: Factorization | None = field(default=None)

    @property
    def best(self) -> Agreement:
        """The agreement for the number of atoms chosen."""
        return self.agreements[self.best_params["n_components"]]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict for each number of atoms: stability, support, cost, atoms left out."""
        return [
            {
                "n_atoms": k,
                "stability": float(found.stability.mean()),
                "least_stable": float(found.stability.min()),
                "support": float(found.support.mean()),
                "left_out": found.n_left_out,
                "lowest_cost": float(np.min(found.costs)),
                "mean_cost": float(np.mean(found.costs)),
            }
            for k, found in sorted(self.agreements.items())
        ]

    @property
    def table(self) -> Any:
        """The rows as a data frame of pandas, if it is installed; otherwise a dict of columns."""
        return as_frame(self.rows)

    @property
    def best_model(self) -> Any:
        """The estimator, fitted to all of the data from the consensus of the number chosen."""
        if self._model is None:
            message = (
                "no model was fitted, because of "
                f"{'Ctrl-C' if self.stopped == 'interrupt' else 'refit=False'}: fit an estimator "
                "with init=consensus.best.D"
            )
            raise AttributeError(message)
        return self._model

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the stability of each atom against the number of atoms, and its mean.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from smalto.choosing.pictures import stability_picture

        return stability_picture(self, ax)

    def __repr__(self) -> str:
        rows = self.rows
        chosen = next(
            i for i, row in enumerate(rows) if row["n_atoms"] == self.best_params["n_components"]
        )
        head = f"Consensus(stopped={self.stopped!r}, best_params={self.best_params!r})"
        return f"{head}\n{as_text(rows, chosen)}"
