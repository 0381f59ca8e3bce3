"""A callback that writes a page about a run while it goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows, check_number
from smalto.kernels.compiling import seconds_of_compiling
from smalto.learning.callbacks.base import Callback, Share
from smalto.learning.callbacks.time_left import TimeLeft
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State
from smalto.reporting.data_facts import Samples, code_samples, some_samples
from smalto.reporting.facts import Facts, facts_of_state
from smalto.reporting.html import shortened
from smalto.reporting.number_texts import duration
from smalto.reporting.page import Page, Running, page_html
from smalto.reporting.whole_files import check_page, write_text
from smalto.reporting.writing import look_of, title_of
from smalto.warn import warn

_SHARE = 0.005  # of the time of a run that writing may take, at most


class Report(Callback):
    """Write a page about a run, again and again while it goes on.

    The page is one HTML file that needs no server and no network. It is whole at any time, and in a
    browser it loads itself again until the run has ended: also if that was by an exception or
    Ctrl-C, which it says. Writing takes at most half a percent of the time: pages that take long
    come less often. A page that cannot be written, because the disk is full, is a warning, not the
    end of the run. See `write_report` for what is in it.

    Parameters
    ----------
    path : path
        The file to write, ``*.html``; an existing one is replaced.
    every_seconds : float, default 30
        Seconds between two pages, at least.
    X : array, CSR array, path or source, optional
        Samples to code, at most 2000 of them, evenly spread: a part of the data, or held-out ones.
        Of `SparsePCA` they are centered as those that it learns from.
    patch_shape : (height, width) or (height, width, 3), optional
        Show atoms as pictures of this shape.
    names : sequence of str, optional
        Show atoms by the names of their largest features; by default those of the columns of X.
    n_channels : int, optional
        Show atoms as lines, one for each channel, which is the default with one channel.
    title : str, optional
        The title of the page.

    See Also
    --------
    write_report : The page of something that is over.
    smalto.learning.Log : Writes the records of a run.

    Examples
    --------
    >>> from smalto.reporting import Report
    >>> callbacks = [Report("run.html", patch_shape=(8, 8))]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every_seconds: float = 30.0,
        *,
        X: Any = None,
        patch_shape: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        n_channels: int | None = None,
        title: str | None = None,
    ) -> None:
        self.path = check_page(path)
        self.every_seconds = check_number("every_seconds", every_seconds, low=0)
        self.X, self.title = X, title
        self.patch_shape, self.names, self.n_channels = patch_shape, names, n_channels
        self._share: Share | None = None
        self._mean: Array | None = None  # to subtract from samples
        self._clear()

    def _clear(self) -> None:
        self._state: State | None = None
        self._samples: Samples | None = None
        self._began = time.monotonic()
        self._compiled = seconds_of_compiling()
        self._left = TimeLeft()
        self._begun = False
        self._due = 0.0  # when to write the next page
        self._wait = self.every_seconds

    def begin(self, state: State, share: Share) -> None:
        """Write a first page."""
        self._clear()
        self._share = share
        self._take(state)
        self._write(self._running(None))  # raises if that is impossible

    def center(self, mean: Array) -> None:
        """Subtract this mean from the samples before they are coded."""
        self._mean = mean

    def __call__(self, state: State, record: Record) -> None:
        """Write a page if one is due."""
        if self._state is not state:  # `partial_fit` has no beginning
            self._take(state)
        due = time.monotonic() >= self._due
        if due or not self._begun:  # the time left counts from the first step
            running, self._begun = self._running(record), True
            if due:
                self._try_to_write(running)

    def end(self, stopped: str, error: BaseException | None) -> None:
        """Write the last page, which does not load itself again."""
        if self._state is None:
            return
        failure = None
        if error is not None:
            if isinstance(error, KeyboardInterrupt):
                stopped = "interrupt"
            else:
                failure = f"The run has failed: {type(error).__name__}: {error}"
        self._try_to_write(None, stopped, failure)

    def close(self) -> None:
        """Let go of the run."""
        self._state = self._samples = self._share = self._mean = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to copy: all but what belongs to a run."""
        return {**vars(self), "_state": None, "_samples": None, "_share": None, "_mean": None}

    def _take(self, state: State) -> None:
        """Remember the run, and read samples to code."""
        self._state = state
        look_of(facts_of_state(state), *self._wanted())  # checks them
        if self.X is not None and self._samples is None:
            self._samples = some_samples(self.X, state.D.shape[1])

    def _centered(self, rows: Rows) -> Rows:
        assert self._mean is not None
        dense = rows.toarray() if scipy.sparse.issparse(rows) else rows
        return np.asarray(dense - self._mean.astype(dense.dtype))

    def _wanted(self) -> tuple[Any, ...]:
        """Return what `look_of` asks for."""
        return self.patch_shape, self.names, self.n_channels, self.X

    def _running(self, record: Record | None) -> Running:
        """Return how far the run is."""
        share = None if self._share is None or record is None else self._share(record)
        left = None if share is None else self._left.after(share)
        return Running(self._wait, share, left)

    def _try_to_write(
        self, running: Running | None, stopped: str | None = None, failure: str | None = None
    ) -> None:
        """Write a page now; if that fails, as on a full disk, warn, and try again next time."""
        try:
            self._write(running, stopped, failure)
        except OSError as error:
            self._due = time.monotonic() + self._wait
            message = f"the report {self.path} could not be written: {error}. Learning continues"
            warn(message, RuntimeWarning)

    def _write(
        self, running: Running | None, stopped: str | None = None, failure: str | None = None
    ) -> None:
        """Write a page now, and decide when the next one is due."""
        assert self._state is not None
        began = time.thread_time()
        facts = self._facts(self._state, stopped, failure)
        look = look_of(facts, *self._wanted())
        coded = None
        if self._samples is not None and failure is None:
            coder = self._state.coder.fixed()
            prepare = None if self._mean is None else self._centered
            coded = code_samples(self._samples, self._state.D, coder, prepare)
        title = title_of(self.title, facts)
        write_text(self.path, page_html(Page(title, facts, look, self._samples, coded, running)))
        self._wait = max(self.every_seconds, (time.thread_time() - began) / _SHARE)
        self._due = time.monotonic() + self._wait

    def _facts(self, state: State, stopped: str | None, failure: str | None) -> Facts:
        facts = facts_of_state(state, stopped=stopped)
        timings = {
            **facts.timings,
            "since the run began": duration(time.monotonic() - self._began),
            "of which compiling": duration(seconds_of_compiling() - self._compiled),
        }
        short = None if failure is None else shortened(failure, 400)
        return replace(facts, timings=timings, failure=short)
