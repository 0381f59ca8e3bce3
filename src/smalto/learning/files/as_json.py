"""Conversion of settings to JSON and back: registered names and plain values, never code."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from typing import Any, TypeVar

import numpy as np

from smalto import coders, constraints
from smalto.checks import Array, check_kind
from smalto.learning.learners.batch import Batch
from smalto.learning.learners.online import Online
from smalto.learning.learners.sgd import SGD
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import Stats
from smalto.learning.options import Continuation, Replacement

Kind = TypeVar("Kind", bound=type)


def _built_in() -> dict[str, type]:
    """Return the coders, constraints, learners and options of the library, by name."""
    public = [*vars(coders).values(), *vars(constraints).values()]
    roles = (coders.Coder, constraints.Constraint)
    kinds = [kind for kind in public if _is_setting(kind) and issubclass(kind, roles)]
    kinds += [Online, Batch, SGD, Replacement, Continuation]
    return {kind.__name__: kind for kind in kinds}


def _is_setting(kind: Any) -> bool:
    return (
        isinstance(kind, type)
        and dataclasses.is_dataclass(kind)
        and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    )


_KINDS: dict[str, type] = _built_in()
_PARTS: dict[str, type] = {kind.__name__: kind for kind in (State, Stats, CodeStore)}


def register(kind: Kind) -> Kind:
    """Register a coder, constraint or learner of your own, so that files can contain it.

    It must be a frozen dataclass. A file stores its name and its settings, not its code, so the
    program that loads the file must register the class as well. Can be used as a decorator.

    Parameters
    ----------
    kind : class
        A frozen dataclass that subclasses `Coder`, `Constraint` or `Learner`.

    Returns
    -------
    class
        The same class.

    See Also
    --------
    smalto.Model : Files of models.
    smalto.State : Files of runs.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from smalto.constraints import Constraint
    >>> from smalto.learning import register
    >>> @register
    ... @dataclass(frozen=True)
    ... class UpTo(Constraint):
    ...     bound: float
    ...     def project(self, atom): atom.clip(-self.bound, self.bound, out=atom)
    ...     def gauge(self, atom): return float(abs(atom).max() / self.bound)
    """
    if not _is_setting(kind):
        message = f"only frozen dataclasses can be registered, got {kind!r}"
        raise TypeError(message)
    known = _KINDS.get(kind.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (
        kind.__module__,
        kind.__qualname__,
    ):
        message = f"the name {kind.__name__} is taken by {known!r}: choose another one"
        raise ValueError(message)
    _KINDS[kind.__name__] = kind
    return kind


def known() -> list[str]:
    """Return the registered names, which files may contain."""
    return sorted(_KINDS)


def to_json(value: Any, arrays: dict[str, Array], name: str) -> Any:
    """Return a value in a form that JSON can hold; store its arrays in ``arrays``, by name."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = value.item()
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple | list):
        tag = "tuple" if isinstance(value, tuple) else "list"
        return {tag: [to_json(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]}
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    settings: Any = value
    kind = type(settings).__name__
    if {**_KINDS, **_PARTS}.get(kind) is not type(value):
        message = (
            f"{kind} cannot be saved: make it a frozen dataclass and register it with "
            f"smalto.learning.register, in the program that saves and in the one that loads"
        )
        raise TypeError(message)
    fields = {
        field.name: to_json(getattr(value, field.name), arrays, f"{name}.{field.name}")
        for field in dataclasses.fields(settings)
        if field.init
    }
    return {"kind": kind, "fields": fields}


def check_plain(name: str, value: Any) -> None:
    """Raise unless JSON can hold a value as it is: strings, finite numbers, lists and dicts."""
    wanted = "made of strings, numbers, lists and dicts (as .tolist() and .item() return)"
    check_kind(name, value, str | int | float | list | tuple | dict | None, wanted)
    if isinstance(value, float) and not math.isfinite(value):
        message = f"{name} must be finite, got {value}: a file cannot hold it"
        raise ValueError(message)
    if isinstance(value, dict):
        for key, item in value.items():
            check_kind(f"each key of {name}", key, str, "a string")
            check_plain(f"{name}[{key!r}]", item)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            check_plain(f"{name}[{number}]", item)


def from_json(data: Any, arrays: dict[str, Array]) -> Any:
    """Return the value that `to_json` has converted; only registered classes are created."""
    if data is None or isinstance(data, bool | int | float | str):
        return data
    match data:
        case {"float": "inf" | "-inf" | "nan" as text}:
            return float(text)
        case {"tuple": [*items]}:
            return tuple(from_json(item, arrays) for item in items)
        case {"list": [*items]}:
            return [from_json(item, arrays) for item in items]
        case {"array": str(name)} if name in arrays:
            return arrays[name]
        case {"kind": str(name), "fields": dict(fields)}:
            values = {key: field_from_json(name, key, fields[key], arrays) for key in fields}
            return _make(name, values)
    message = f"the file has a setting that cannot be read: {data!r:.80}"
    raise ValueError(message)


def field_from_json(kind: str, name: str, data: Any, arrays: dict[str, Array]) -> Any:
    """Return the value of a field; an error names the field."""
    try:
        return from_json(data, arrays)
    except ValueError as error:
        message = f"{kind}.{name}: {error}"
        raise ValueError(message) from error


def _make(name: str, values: dict[str, Any]) -> Any:
    kind = {**_KINDS, **_PARTS}.get(name)
    if kind is None:
        message = (
            f"the file has a {name}, which this program does not know: if it is your own, "
            f"register it with smalto.learning.register before loading the file"
        )
        raise ValueError(message)
    fields = {field.name for field in dataclasses.fields(kind) if field.init}
    if fields != set(values):
        message = (
            f"the file has a {name} with the settings {sorted(values)}, expected "
            f"{sorted(fields)}: it was written by another version"
        )
        raise ValueError(message)
    hints = typing.get_type_hints(kind)
    for key, value in values.items():
        if not _fits(value, hints[key]):
            message = f"the file has a {name} whose {key} is {value!r}, expected {hints[key]}"
            raise ValueError(message)
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        message = f"the file has an invalid {name}: {error}"
        raise ValueError(message) from error


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of the type of a field, as far as that is easy to check."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if origin is typing.Literal:
        return value in typing.get_args(hint)
    if hint is types.NoneType:
        return value is None
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin is tuple:
        inner = typing.get_args(hint)[0]
        return isinstance(value, tuple) and all(_fits(item, inner) for item in value)
    plain = isinstance(hint, type) and hint is not Any and origin is None
    return isinstance(value, hint) if plain else True
