"""New figures and axes, which need no display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smalto.checks import Array, as_dictionary, as_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(**settings: Any) -> Figure:
    """Create a figure without touching the global state of pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        message = 'plots need matplotlib: pip install "smalto[plot]"'
        raise ImportError(message) from error
    return Figure(**settings)


def new_axes() -> Axes:
    """Create a figure for curves; return its axes."""
    return new_figure(figsize=(6.4, 4.0), dpi=150, layout="constrained").add_subplot()


def atoms_of(D: Any) -> Array:
    """Return atoms as an array; raise TypeError if D is what has atoms, such as a result."""
    for name in ("D", "components_", "best_model"):
        if not isinstance(D, np.ndarray) and hasattr(D, name):
            message = f"D must be an array, got a {type(D).__name__}: give its {name}"
            raise TypeError(message)
    rows = as_rows("D", D)
    return as_dictionary(rows, rows.shape[1], np.dtype(np.float64))


def tidy(ax: Axes) -> None:
    """Draw a light grid below the curves, and no frame above and to the right."""
    ax.grid(visible=True, which="major", color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
