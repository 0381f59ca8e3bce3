"""A learned dictionary with its coder and constraint, as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from smalto.checks import Array, check_finite, check_kind, check_role
from smalto.coders._encode import encode
from smalto.coders.base import Coder, check_coder
from smalto.constraints import Constraint
from smalto.learning.dictionary.wanted_density import feasible
from smalto.learning.files.as_json import check_plain, field_from_json, to_json
from smalto.learning.files.container import read_file, write_file
from smalto.learning.files.state_checks import check_problem
from smalto.learning.files.state_file import KIND as STATE
from smalto.learning.files.state_file import state_from
from smalto.learning.memory.record import (
    Record,
    history_from_array,
    history_to_array,
    thinned,
)
from smalto.learning.memory.state import State
from smalto.learning.reported import Reported

KIND = "model"
_RECORDS = 2000  # that are kept of a run, about


class _HasState(Protocol):
    """A result of `learn`."""

    @property
    def state(self) -> State: ...


@dataclass(frozen=True)
class Model(Reported):
    """A learned dictionary with its coder and constraint, which can be saved to a file.

    Parameters
    ----------
    D : array (k, m)
        The dictionary, one atom per row.
    coder : coder
        The coder to encode with, all of its parameters decided.
    constraint : constraint
        The set that the atoms lie in.
    info : dict
        Anything else to store with the model, such as the size of patches: strings, numbers,
        lists and dicts.
    history : list of Record
        Records of the run that it comes from, at most about 2000, evenly spread; none if unknown.

    See Also
    --------
    smalto.State : All that a run needs to continue; a model has only its result.
    smalto.learning.register : Let files contain a coder or constraint of your own.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from smalto import Model, learn
    >>> X = np.random.default_rng(0).standard_normal((500, 16))
    >>> model = Model.of(learn(X, 20, random_state=0), info={"made from": "noise"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "noise.safetensors"
    ...     model.save(path)
    ...     loaded = Model.load(path)
    >>> loaded.encode(X).shape, loaded.info
    ((500, 20), {'made from': 'noise'})
    """

    D: Array
    coder: Coder
    constraint: Constraint
    info: dict[str, Any] = field(default_factory=dict)
    history: list[Record] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.D.ndim != 2 or 0 in self.D.shape or self.D.dtype not in (np.float32, np.float64):
            message = f"D must be float32 or float64 (k, m), got {self.D.dtype} {self.D.shape}"
            raise ValueError(message)
        check_finite("D", self.D)
        check_role("coder", self.coder, Coder, "Lasso(lam=0.1)")
        check_role("constraint", self.constraint, Constraint, "L2Ball()")
        check_kind("info", self.info, dict, "a dict")

    @classmethod
    def of(cls, state: State | _HasState, info: dict[str, Any] | None = None) -> Model:
        """Return the model of a result of `learn`, or of a state, such as ``estimator.state_``."""
        found: Any = getattr(state, "state", state)
        check_kind("state", found, State, "a result of learn, or a State such as estimator.state_")
        D, constraint = feasible(found)
        history = thinned(found.history, _RECORDS)
        return cls(D, found.coder.fixed(), constraint, dict(info or {}), history)

    def _names(self, names: Sequence[str] | None) -> Sequence[str] | None:
        return self.info.get("names") if names is None else names

    def encode(self, X: Any, **options: Any) -> Any:
        """Return sparse codes of the rows of X: `smalto.encode` with this dictionary and coder."""
        return encode(X, self.D, self.coder, **options)

    def save(self, path: str | Path) -> None:
        """Save the model to a file; an existing one is replaced once the new one is complete."""
        check_plain("info", self.info)
        arrays = {"D": np.ascontiguousarray(self.D)}
        settings = {
            "coder": to_json(self.coder, arrays, "coder"),
            "constraint": to_json(self.constraint, arrays, "constraint"),
            "info": self.info,
        }
        if self.history:
            arrays["history"] = history_to_array(self.history)
        write_file(Path(path), KIND, settings, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Load a model from a file that `save` has written, or from a checkpoint.

        No code in the file is executed. Raise ValueError, with the reason, if the file is
        truncated, altered, of another version or of another kind.
        """
        path = Path(path)
        kind, settings, arrays = read_file(path, (KIND, STATE))
        if kind == STATE:
            return cls.of(state_from(path, settings, arrays))
        try:
            coder, constraint, info = (settings[key] for key in ("coder", "constraint", "info"))
            parts = (
                field_from_json("Model", "coder", coder, arrays),
                field_from_json("Model", "constraint", constraint, arrays),
            )
            check_coder(parts[0])
            check_problem(*parts, arrays["D"])
            records = arrays.get("history")
            history = [] if records is None else history_from_array(records)
            return cls(arrays["D"], *parts, info, history)
        except (KeyError, TypeError, ValueError) as error:
            message = f"{path} does not hold a valid model: {error}"
            raise ValueError(message) from error
