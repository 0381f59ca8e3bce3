"""How atoms and samples are shown: as pictures, as lines, or by the names of their features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smalto.checks import Array, check_integer
from smalto.learning.top_features import check_names
from smalto.plot.mosaics import check_shape


@dataclass(frozen=True)
class Look:
    """How to show vectors of features; without a shape and without names, as lines."""

    patch_shape: tuple[int, ...] | None = None
    names: Array | None = None
    n_channels: int = 1

    @classmethod
    def of(
        cls,
        n_features: int,
        patch_shape: Sequence[int] | None = None,
        names: Any = None,
        n_channels: int | None = None,
    ) -> Look:
        """Check how a user wants to see atoms; raise ValueError if they have no such shape."""
        given = {"patch_shape": patch_shape, "names": names, "n_channels": n_channels}
        chosen = [name for name, value in given.items() if value is not None]
        if len(chosen) > 1:
            message = f"give at most one of patch_shape, names and n_channels, got {chosen}"
            raise ValueError(message)
        return cls(
            None if patch_shape is None else check_shape(patch_shape, n_features),
            check_names(names, n_features),
            1 if n_channels is None else _check_channels(n_channels, n_features),
        )

    @property
    def kind(self) -> str:
        """Return "pictures", "features" or "lines"."""
        if self.patch_shape is not None:
            return "pictures"
        return "lines" if self.names is None else "features"


def _check_channels(n_channels: int, m: int) -> int:
    count = check_integer("n_channels", n_channels)
    if m % count:
        message = f"n_channels must divide the {m} features, got {count}"
        raise ValueError(message)
    return count
