"""A callback that saves the state to a file at intervals."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

from smalto.checks import check_integer, check_number
from smalto.learning.callbacks.base import Callback
from smalto.learning.files.container import clear_leftovers
from smalto.learning.files.state_file import save_state
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State
from smalto.warn import warn


class Checkpoint(Callback):
    """A callback that saves the state to a file at intervals, and at the end of the run.

    ``learn(..., state=State.load(path))`` resumes the run as if it had never stopped. The file
    is always complete: a new one is written under another name, and replaces the old one only
    when it is on the disk. Older versions are kept as ``path.1``, ``path.2``, ...

    Parameters
    ----------
    path : str or Path
        The file, usually with the extension .safetensors.
    every_steps : int, optional
        Number of steps between two files.
    every_seconds : float, optional
        Seconds between two files; 60 if neither interval is given. If both are given, a file
        is written whenever either has passed.
    keep : int, default 2
        Number of files to keep, including the newest.
    on_error : {"raise", "warn"}
        What to do if a file cannot be written, for example because the disk is full: end the
        run, or warn, continue and try again next time. The last file stays intact either way.

    See Also
    --------
    smalto.State : ``State.load`` reads the file.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from smalto import State, learn
    >>> from smalto.learning import Checkpoint
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "run.safetensors"
    ...     half = learn(X, 20, max_epochs=1, random_state=0, callbacks=[Checkpoint(path)])
    ...     whole = learn(X, 20, max_epochs=2, state=State.load(path))
    >>> bool(np.all(whole.D == learn(X, 20, max_epochs=2, random_state=0).D))
    True
    """

    def __init__(
        self,
        path: str | Path,
        *,
        every_steps: int | None = None,
        every_seconds: float | None = None,
        keep: int = 2,
        on_error: Literal["raise", "warn"] = "raise",
    ) -> None:
        if every_steps is None and every_seconds is None:
            every_seconds = 60.0
        if every_steps is not None:
            every_steps = check_integer("every_steps", every_steps)
        if every_seconds is not None:
            every_seconds = check_number("every_seconds", every_seconds, low=0)
        if on_error not in ("raise", "warn"):
            message = f"on_error must be 'raise' or 'warn', got {on_error!r}"
            raise ValueError(message)
        self.path = Path(path)
        if not self.path.parent.is_dir():
            message = f"there is no folder {self.path.parent} for checkpoints: create it first"
            raise FileNotFoundError(message)
        if self.path.is_dir():
            message = f"{self.path} is a folder, but a checkpoint is a file: add a file name"
            raise IsADirectoryError(message)
        self.every_steps, self.every_seconds = every_steps, every_seconds
        self.keep, self.on_error = check_integer("keep", keep), on_error
        self._clock: float | None = None  # when the last file was written, or the run began
        self._saved = -1  # the step of the last file
        self._complete = True  # whether that file has all that is known of this step

    def __call__(self, state: State, record: Record) -> None:
        """Save the state if a file is due."""
        now = time.monotonic()
        if self._clock is None or record.step < self._saved:  # a run begins
            self._clock, self._saved = now, -1
        due = self.every_steps is not None and record.step % self.every_steps == 0
        due = due or (self.every_seconds is not None and now - self._clock >= self.every_seconds)
        if due:
            self.save(state)

    def finish(self, state: State) -> None:
        """Save the last state of the run, unless it has been saved already."""
        measured = bool(state.history) and state.history[-1].test_cost is not None
        if state.step != self._saved or (measured and not self._complete):
            self.save(state)
        self._clock = None

    def save(self, state: State) -> None:
        """Save the state now."""
        try:
            if self._saved < 0:
                clear_leftovers(self.path)
            save_state(state, self.path, keep=self.keep)
        except OSError as error:
            reason = f"the checkpoint after step {state.step} could not be written to {self.path}"
            kept = "; the previous one is intact" if self.path.exists() else ""
            if self.on_error == "raise":
                error.add_note(f"{reason}{kept}")
                raise
            message = f"{reason}: {error}{kept}. Learning continues"
            warn(message, RuntimeWarning)
            self._clock = time.monotonic()
            return
        self._clock, self._saved = time.monotonic(), state.step
        self._complete = not state.history or state.history[-1].test_cost is not None
