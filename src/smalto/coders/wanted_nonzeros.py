"""A warning if a wanted number of nonzeros was not reached."""

from __future__ import annotations

from smalto.coders.base import Coder

_MISSED = 0.75  # share of the wanted number below which users are warned


def missed_nonzeros(coder: Coder, mean: float) -> str | None:
    """Return what to tell a user if codes have fewer nonzeros than wanted; None if they have not.

    They can have fewer although `lam` is as small as it gets: for samples that few atoms, or a
    non-negative combination of few atoms, represent exactly.
    """
    wanted = getattr(coder, "mean_nonzeros", None)
    if wanted is None or mean >= _MISSED * wanted:
        return None
    return f"mean_nonzeros={wanted:g} was not reached: codes have {mean:.3g} nonzeros on average"
