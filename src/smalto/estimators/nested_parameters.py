"""Nested parameters such as ``coder__lam`` for scikit-learn estimators."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self

from smalto.estimators.documented import Documented


class NestedParameters(Documented):
    """Abstract estimator whose coder, constraint and other parts have nested parameters.

    The parts are frozen dataclasses. Names such as ``coder__lam`` work in `get_params`,
    `set_params`, `clone` and grid searches, also for parts that are None and have a default.
    """

    _parts: ClassVar[tuple[str, ...]] = ("coder", "constraint", "learner", "replacement")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the parameters of its parts, such as ``coder__lam``.

        Returns
        -------
        dict
            Parameter names mapped to their values.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name in self._parts:
                part = self._part(name)
                params.update({f"{name}__{key}": getattr(part, key) for key in _fields(part)})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator or of its parts, as in ``set_params(coder__lam=0.1)``.

        Parameters
        ----------
        **params : dict
            Parameter names and their new values.

        Returns
        -------
        self
        """
        nested: dict[str, dict[str, Any]] = {}
        for key in list(params):
            name, separator, field = key.partition("__")
            if separator and name in self._parts:
                nested.setdefault(name, {})[field] = params.pop(key)
        super().set_params(**params)
        for name, changes in nested.items():
            part = self._part(name)
            unknown = sorted(set(changes) - set(_fields(part)))
            if unknown:
                message = (
                    f"Invalid parameter {unknown[0]!r} for the {name} {part!r}. "
                    f"Valid parameters are: {_fields(part)}."
                )
                raise ValueError(message)
            self._set_part(name, dataclasses.replace(part, **changes))
        return self

    def _part(self, name: str) -> Any:
        """Return a part of this estimator: the one given, or the default if that is None."""
        part = getattr(self, name)
        if part is not None:
            return part
        try:
            return self._default_part(name)
        except (TypeError, ValueError):  # a wrong parameter of the estimator: `fit` says so
            return None

    def _default_part(self, name: str) -> Any:
        """Return the default of a part; None if it has none."""
        return None

    def _set_part(self, name: str, part: Any) -> None:
        """Set a part after a change of its parameters."""
        setattr(self, name, part)


def _fields(part: Any) -> list[str]:
    """Return the names of the parameters of a part; an empty list if it is no dataclass."""
    if not dataclasses.is_dataclass(part):
        return []
    return [field.name for field in dataclasses.fields(part) if field.init]
