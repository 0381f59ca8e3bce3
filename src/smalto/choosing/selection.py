"""The result of `select`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from smalto.choosing.penalties import PARTS
from smalto.choosing.tables import as_frame, as_text
from smalto.estimators.base import Factorization
from smalto.estimators.dictionary_learning import DictionaryLearning

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Selection:
    """The result of `select`.

    Attributes
    ----------
    rows : list of dict
        One for each setting that all rounds have tried: ``n_atoms``, ``lam`` or ``coder``,
        ``error`` (mean squared error of the predicted entries), ``standard_error`` of that mean
        over the rounds, ``r2`` of these predictions (0: as good as the mean of each feature),
        ``mean_nonzeros`` of these codes, ``cost`` (minus the score of the samples that were
        learned from, of at most 8192 of them) and ``seconds`` of learning, of all rounds and
        starts.
    lowest : int or None
        Number of the row with the lowest error.
    chosen : int or None
        Number of the row that is chosen: the simplest one near the lowest.
    best_params : dict
        The settings chosen, as parameters of the estimator.
    stopped : str
        "done", or "interrupt" (Ctrl-C).

    See Also
    --------
    smalto.select : Where it comes from.
    """

    rows: list[dict[str, Any]]
    lowest: int | None
    chosen: int | None
    best_params: dict[str, Any]
    stopped: str
    _model: Factorization | None = field(default=None)

    @property
    def table(self) -> Any:
        """The rows as a data frame of pandas, if it is installed; otherwise a dict of columns."""
        return as_frame(self.rows)

    @property
    def best_model(self) -> Any:
        """The estimator with the settings chosen, fitted to all of the data."""
        if self._model is None:
            message = (
                "select was interrupted before the best model was fitted: call it again (with "
                "store= it goes on where it was), or fit an estimator with best_params yourself"
                if self.stopped == "interrupt"
                else "no model was fitted, because of refit=False: fit one with best_params"
            )
            raise AttributeError(message)
        return self._model

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the error against the number of atoms, or against λ if only that varies.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from smalto.choosing.pictures import error_curves

        return error_curves(self, ax)

    def __repr__(self) -> str:
        lines = [f"Selection(stopped={self.stopped!r}, best_params={self.best_params!r})"]
        return "\n".join([*lines, as_text(self.rows, self.chosen), *self._at_the_edge()])

    def _at_the_edge(self) -> Iterator[str]:
        """Yield what to try where the lowest error is at an end of what was tried."""
        words = {"lam": ("a smaller lam", "a larger lam"), "n_atoms": ("fewer atoms", "more atoms")}
        wanted = []
        for name, advice in words.items():
            values = [row[name] for row in self.rows if row.get(name) is not None]
            if self.lowest is not None and len(set(values)) > 1:
                best = self.rows[self.lowest][name]
                for end, what in zip((min(values), max(values)), advice, strict=True):
                    if best == end:
                        wanted.append(what)
                        yield f"The lowest error is at {name}={best:g}, the end of the grid: try {what} too"
        lams = self._smaller_lams() if "more atoms" in wanted else None
        if lams or {"a smaller lam", "more atoms"} <= set(wanted):
            first = f"lam=[{lams}]" if lams else "a smaller lam"
            yield f"More atoms can make up for a penalty that is too large: try {first} first"

    def _smaller_lams(self) -> str | None:
        """Return which penalties to try if a single one was tried."""
        if not isinstance(self._model, DictionaryLearning) or "coder" in self.rows[0]:
            return None
        lam = getattr(self._model.coder_, "lam", None)
        if not lam or len({row.get("lam") for row in self.rows}) > 1:
            return None
        return ", ".join(f"{lam / part:.3g}" for part in PARTS)
