"""A page about something that is over: a result, a model, a checkpoint, an estimator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smalto.checks import check_kind
from smalto.data_frames import check_columns, column_names
from smalto.reporting.data_facts import code_samples, some_samples
from smalto.reporting.facts import Facts, facts_of
from smalto.reporting.html import shortened
from smalto.reporting.look import Look
from smalto.reporting.page import Page, page_html
from smalto.reporting.whole_files import check_page, write_text


def write_report(
    what: Any,
    path: str | os.PathLike[str] = "report.html",
    X: Any = None,
    *,
    patch_shape: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    n_channels: int | None = None,
    title: str | None = None,
) -> Path:
    """Write a page about a result, a state, a model, a fitted estimator or the log of a run.

    The file needs nothing else, and no network. It has the settings, costs and time of the run, the
    use of atoms, the dictionary and a table of the atoms that can be sorted and searched. If samples
    are given, it also has the quality of their codes.

    Parameters
    ----------
    what : Result, State, Model, fitted estimator, Log or path of a log
        What to report. Of a log (.jsonl or .csv) there are only the curves, no atoms.
    path : path, default "report.html"
        The file to write; an existing one is replaced.
    X : array, CSR array, path or source, optional
        Samples to code, such as those that the dictionary was learned from: at most 2000 of
        them, evenly spread. NaN means a missing entry.
    patch_shape : (height, width) or (height, width, 3), optional
        Show atoms as pictures of this shape.
    names : sequence of str, optional
        Show atoms by the names of their largest features: one name for each feature. By default
        those that the model knows, or those of the columns of X.
    n_channels : int, optional
        Show atoms as lines, one for each channel; the channels of an atom follow one another.
        This is the default, with one channel.
    title : str, optional
        The title of the page.

    Returns
    -------
    Path
        The path of the file.

    See Also
    --------
    Report : Writes such a page while a run goes on.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from smalto import learn
    >>> from smalto.reporting import write_report
    >>> X = np.random.default_rng(0).standard_normal((500, 16))
    >>> result = learn(X, 20, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(result, f"{folder}/noise.html", X, patch_shape=(4, 4))
    ...     path.stat().st_size < 200_000
    True
    """
    page = check_page(path)
    facts = facts_of(what)
    look = look_of(facts, patch_shape, names, n_channels, X)
    samples = coded = None
    if X is not None:
        if facts.D is None or facts.coder is None:
            message = "a log has no atoms to code samples with: leave X out, or give the model"
            raise ValueError(message)
        check_columns("X", X, facts.names)
        samples = some_samples(X, facts.D.shape[1])
        coded = code_samples(samples, facts.D, facts.coder, facts.prepare)
    shown = Page(title_of(title, facts), facts, look, samples, coded)
    write_text(page, page_html(shown))
    return page


def look_of(
    facts: Facts,
    patch_shape: Sequence[int] | None,
    names: Sequence[str] | None,
    n_channels: int | None,
    X: Any = None,
) -> Look:
    """Return how to show atoms: as wanted, or as the model or the columns of X say."""
    if facts.D is None:
        return Look()
    m = facts.D.shape[1]
    if patch_shape is None and names is None and n_channels is None:
        if facts.patch_shape is not None:
            patch_shape = facts.patch_shape
        elif facts.names is not None and len(facts.names) == m:
            names = facts.names
        elif (columns := column_names(X)) is not None and len(columns) == m:
            names = columns
    return Look.of(m, patch_shape, names, n_channels)


def title_of(title: str | None, facts: Facts) -> str:
    """Return the title of a page."""
    if title is None:
        return "A run" if facts.D is None else f"{len(facts.D):,} atoms"
    check_kind("title", title, str, "a text")
    return shortened(title)
