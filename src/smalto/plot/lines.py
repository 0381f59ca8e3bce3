"""Atoms as lines, and weights along chromosomes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from smalto.checks import Array, as_dictionary, as_rows, check_finite, check_integer
from smalto.plot.figures import new_axes, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def atom_lines(
    D: ArrayLike,
    n_channels: int = 1,
    *,
    order: ArrayLike | None = None,
    sampling_rate: float | None = None,
) -> Figure:
    """Plot the atoms of series as lines: one panel per atom, one row in it per channel.

    Parameters
    ----------
    D : array-like of shape (k, m)
        One atom per row. The channels of an atom follow one another: its first m / n_channels
        values are those of the first channel.
    n_channels : int, default 1
        Number of channels.
    order : sequence of int, optional
        Atoms to show, in this order; all of them by default.
    sampling_rate : float, optional
        Values per second, to show seconds below the lines.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    dictionary_mosaic : Atoms as pictures.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.plot import atom_lines
    >>> D = np.sin(np.outer([1, 2, 3], np.linspace(0, 6, 64)))
    >>> len(atom_lines(D, n_channels=2).axes)
    3
    """
    rows = as_rows("D", D)
    atoms = as_dictionary(rows, rows.shape[1], np.dtype(np.float64))
    n_channels = check_integer("n_channels", n_channels)
    if atoms.shape[1] % n_channels:
        message = f"n_channels must divide the {atoms.shape[1]} features, got {n_channels}"
        raise ValueError(message)
    numbers = np.arange(len(atoms)) if order is None else _check_order(order, len(atoms))
    n_columns = math.ceil(math.sqrt(1.6 * len(numbers)))
    n_rows = math.ceil(len(numbers) / n_columns)
    length = atoms.shape[1] // n_channels
    size = (min(1.7 * n_columns, 16.0), min((0.5 + 0.45 * n_channels) * n_rows + 0.4, 24.0))
    figure = new_figure(figsize=size, dpi=110, layout="constrained")
    at = np.arange(length) / (1.0 if sampling_rate is None else sampling_rate)
    for place, number in enumerate(numbers):
        ax = figure.add_subplot(n_rows, n_columns, place + 1)
        channels = atoms[number].reshape(n_channels, length)
        step = 1.1 * float(np.ptp(channels)) or 1.0
        for row, channel in enumerate(channels):
            ax.plot(at, channel - row * step, linewidth=1.1, color="C0")
        ax.set_title(str(number), fontsize=7, pad=2, loc="left", color="0.4")
        ax.set_yticks([])
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(labelsize=6, length=2)
        if sampling_rate is None or place + n_columns < len(numbers):
            ax.set_xticks([])
        else:
            ax.set_xlabel("seconds", fontsize=7)
    return figure


def along_chromosomes(
    weights: ArrayLike,
    chromosomes: ArrayLike,
    positions: ArrayLike | None = None,
    *,
    names: ArrayLike | None = None,
    n_names: int = 8,
    ax: Axes | None = None,
) -> Axes:
    """Plot the weights of genes or probes at their positions, chromosome after chromosome.

    Parameters
    ----------
    weights : array (m,)
        One weight per gene, such as an atom or a column of ``SparseCCA.y_weights_``.
    chromosomes : array (m,)
        The chromosome of each gene, as a number or a name. They are shown in the order in which
        they come.
    positions : array (m,), optional
        The position of each gene on its chromosome; by default one after another.
    names : array of str (m,), optional
        Names of the genes, to label the largest weights.
    n_names : int, default 8
        Number of genes to label.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    smalto.SparseCCA : Finds such weights.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.plot import along_chromosomes
    >>> ax = along_chromosomes([0.0, 1.0, -0.5, 0.0], ["1", "1", "2", "X"])
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1', '2', 'X']
    """
    values = np.asarray(weights, np.float64)
    if values.ndim != 1 or not len(values):
        message = f"weights must be one number for each gene, got shape {values.shape}"
        raise ValueError(message)
    check_finite("weights", values)
    of = _one_each("chromosomes", chromosomes, len(values))
    where = None if positions is None else _one_each("positions", positions, len(values))
    places, middles, labels = _places(of, where)
    labeled = None if names is None else _one_each("names", names, len(values))
    ax = new_axes() if ax is None else ax
    for number, label in enumerate(labels):
        some = of == label
        color = ("C0", "C1")[number % 2]
        lines: Any = ax.vlines(places[some], 0.0, values[some], color=color, linewidth=1.2)
        lines.set_capstyle("round")
    if labeled is not None:
        largest = np.argsort(-np.abs(values), kind="stable")[: check_integer("n_names", n_names)]
        for gene in largest[values[largest] != 0]:
            up = values[gene] > 0
            ax.annotate(
                str(labeled[gene])[:40],
                (places[gene], values[gene]),
                xytext=(0, 2 if up else -2),
                textcoords="offset points",
                ha="center",
                va="bottom" if up else "top",
                fontsize=7,
                parse_math=False,
            )
    ax.axhline(0.0, color="0.4", linewidth=0.8)
    ax.set_xlim(-0.01, len(labels) + 0.01)
    ax.set_xticks(middles, [str(label) for label in labels], fontsize=8)
    ax.set_xlabel("chromosome")
    ax.set_ylabel("weight")
    tidy(ax)
    ax.grid(visible=False, axis="x")
    for edge in range(1, len(labels)):
        ax.axvline(edge, color="0.9", linewidth=0.8, zorder=0)
    return ax


def _places(of: Array, positions: Array | None) -> tuple[Array, list[float], list[Any]]:
    """Return the place of each gene, chromosomes having the width 1, their middles and labels."""
    labels = list(dict.fromkeys(of.tolist()))
    places = np.zeros(len(of))
    for number, label in enumerate(labels):
        some = np.flatnonzero(of == label)
        at = np.arange(len(some), dtype=float) if positions is None else positions[some]
        at = np.asarray(at, np.float64)
        check_finite("positions", at)
        span = float(np.ptp(at)) if len(at) else 0.0
        share = (at - at.min()) / span if span > 0 else np.full(len(at), 0.5)
        places[some] = number + 0.04 + 0.92 * share
    return places, [number + 0.5 for number in range(len(labels))], labels


def _one_each(name: str, values: ArrayLike, count: int) -> Array:
    found = np.asarray(values)
    if found.shape != (count,):
        message = f"{name} must be one for each of {count} weights, got shape {found.shape}"
        raise ValueError(message)
    return found


def _check_order(order: ArrayLike, count: int) -> Array:
    numbers = np.asarray(order)
    wrong = numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not numbers.size
    if wrong or numbers.min() < 0 or numbers.max() >= count:
        message = f"order must be a sequence of numbers from 0 to {count - 1}, got {order!r}"
        raise ValueError(message)
    return numbers
