"""What results, models and estimators say of themselves: pages, and atoms by their features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smalto.learning.top_features import table_of_features, words_of_atoms


class Reported:
    """A learned dictionary that can be reported: mixed into `Result`, `Model` and estimators."""

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        X: Any = None,
        *,
        patch_shape: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        n_channels: int | None = None,
        title: str | None = None,
    ) -> Path:
        """Write a page about it: one HTML file that needs no network.

        It has the settings, the costs and the time of the run, the use of atoms, the dictionary and
        a table of the atoms that can be sorted and searched. If samples are given, it also has the
        quality of their codes.

        Parameters
        ----------
        path : path, default "report.html"
            The file to write; an existing one is replaced.
        X : array, CSR array, path or source, optional
            Samples to code, such as those that the dictionary was learned from: at most 2000 of
            them, evenly spread.
        patch_shape : (height, width) or (height, width, 3), optional
            Show atoms as pictures of this shape.
        names : sequence of str, optional
            Show atoms by the names of their largest features: one name for each feature.
        n_channels : int, optional
            Show atoms as lines, one for each channel; the channels of an atom follow one another.
            This is the default, with one channel.
        title : str, optional
            The title of the page.

        Returns
        -------
        Path
            The path of the file.
        """
        from smalto.reporting import write_report

        return write_report(
            self,
            path,
            X,
            patch_shape=patch_shape,
            names=names,
            n_channels=n_channels,
            title=title,
        )

    def top_features(self, names: Sequence[str] | None = None, n: int = 10) -> Any:
        """Return the features with the largest weights in each atom, as a data frame of pandas.

        Parameters
        ----------
        names : sequence of str, optional
            One name for each feature; by default those seen in `fit`, those that a model has in
            ``info["names"]``, or the numbers of the features.
        n : int, default 10
            Number of features of each atom. Those of weight zero are left out.

        Returns
        -------
        pandas.DataFrame
            The columns "atom", "rank" (from 0), "feature" (its name) and "weight".
        """
        return table_of_features(self._atoms(), self._names(names), n)

    def topics(self, names: Sequence[str] | None = None, n: int = 8) -> list[str]:
        """Return each atom as words: the names of its features of largest weight.

        Parameters
        ----------
        names : sequence of str, optional
            One name for each feature, such as the words of a vocabulary; by default those seen in
            `fit`, or the numbers of the features.
        n : int, default 8
            Number of words of each atom.

        Returns
        -------
        list of str
            One string per atom, such as "game team season".
        """
        return words_of_atoms(self._atoms(), self._names(names), n)

    def _repr_html_(self) -> str:
        """Return a small report, for notebooks."""
        from smalto.reporting import small_report

        return small_report(self)

    def _atoms(self) -> Any:
        """Return the dictionary."""
        return vars(self)["D"]

    def _names(self, names: Sequence[str] | None) -> Sequence[str] | None:
        """Return the names of the features, if they are known."""
        return names
