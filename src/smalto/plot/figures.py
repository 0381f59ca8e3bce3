"""Figures and axes that need no display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(**settings: Any) -> Figure:
    """Make a figure of matplotlib, or say how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        message = 'plots need matplotlib: pip install "smalto[plot]"'
        raise ImportError(message) from error
    return Figure(**settings)


def new_axes(ax: Axes | None) -> Axes:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    return new_figure(figsize=(6.4, 4.0), dpi=150, layout="constrained").add_subplot()


def quiet(ax: Axes) -> None:
    """Faint lines behind the curves, and no box around them."""
    ax.grid(visible=True, which="major", color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
