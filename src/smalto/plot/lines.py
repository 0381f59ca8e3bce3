"""Atoms as lines, and weights along chromosomes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from smalto.checks import Array, check_finite, check_integer, check_number
from smalto.plot.figures import atoms_of, new_axes, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MISSING = ("nan", "None", "<NA>", "")  # how NumPy and pandas write what is not there
_WIDTH, _HEIGHT = 0.9, 0.84  # of the lines in a panel of 1 by 1


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
    >>> figure = atom_lines(D, n_channels=2)
    >>> [text.get_text() for text in figure.axes[0].texts]  # the numbers of the atoms
    ['0', '1', '2']
    """
    atoms = atoms_of(D)
    n_channels = check_integer("n_channels", n_channels)
    if sampling_rate is not None:
        sampling_rate = check_number("sampling_rate", sampling_rate, low=0, strict=True)
    if atoms.shape[1] % n_channels:
        message = f"n_channels must divide the {atoms.shape[1]} features, got {n_channels}"
        raise ValueError(message)
    numbers = np.arange(len(atoms)) if order is None else _check_order(order, len(atoms))
    n_columns = math.ceil(math.sqrt(1.6 * len(numbers)))
    n_rows = math.ceil(len(numbers) / n_columns)
    size = (min(1.7 * n_columns, 16.0), min((0.5 + 0.45 * n_channels) * n_rows + 0.4, 24.0))
    figure = new_figure(figsize=size, dpi=110, layout="constrained")
    ax = figure.add_subplot()  # one for all panels: a thousand take a minute to draw
    lefts, bottoms = np.arange(len(numbers)) % n_columns, -(np.arange(len(numbers)) // n_columns)
    shown = _in_panels(atoms[numbers].reshape(len(numbers), n_channels, -1), lefts, bottoms)
    _draw_segments(ax, shown, linewidth=1.1 if len(numbers) <= 200 else 0.6, color="C0")
    x, y = np.stack([lefts, lefts + _WIDTH], axis=-1), np.stack([bottoms, bottoms], axis=-1)
    _draw_segments(ax, np.stack([x, y], axis=-1), linewidth=0.6, color="0.7")
    for number, left, bottom in zip(numbers, lefts.tolist(), bottoms.tolist(), strict=True):
        name = ax.text(left, bottom + _HEIGHT, str(number), fontsize=6, color="0.4", va="bottom")
        name.set_in_layout(False)  # it lies inside, and measuring takes long
    ax.set_xlim(-0.02, n_columns)
    ax.set_ylim(1.0 - n_rows - 0.05, 1.05)
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.tick_params(labelsize=6, length=2)
    ax.set_xticks([])
    if sampling_rate is not None:
        ends = np.arange(n_columns)[:, None] + [0.0, _WIDTH]
        last = (shown.shape[1] - 1) / sampling_rate
        ax.set_xticks(ends.ravel(), ["0", f"{last:.3g}"] * n_columns)
        ax.set_xlabel("seconds", fontsize=7)
    return figure


def _in_panels(channels: Array, lefts: Array, bottoms: Array) -> Array:
    """Return the points (k times channels, length, 2) of lines in panels of 1 by 1.

    The channels of an atom have one scale, and stand below one another.
    """
    k, n_channels, length = channels.shape
    low = channels.min(axis=(1, 2), keepdims=True)
    span = channels.max(axis=(1, 2), keepdims=True) - low
    y = (channels - low) / np.where(span > 0, span, 1.0)
    y = (y + 1.1 * np.arange(n_channels)[::-1, None]) / (1.1 * n_channels - 0.1)
    y = bottoms[:, None, None] + 0.04 + (_HEIGHT - 0.06) * y
    x = lefts[:, None] + np.linspace(0.0, _WIDTH, length)
    x = np.broadcast_to(x[:, None], y.shape)
    return np.stack([x, y], axis=-1).reshape(k * n_channels, length, 2)


def _draw_segments(ax: Axes, segments: Array, **style: Any) -> None:
    from matplotlib.collections import LineCollection

    ax.add_collection(LineCollection(list(segments), **style))


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
        advice = ": draw one row at a time" if values.ndim == 2 else ""
        message = f"weights must be one number for each gene, got shape {values.shape}{advice}"
        raise ValueError(message)
    check_finite("weights", values)
    of = _one_each("chromosomes", chromosomes, len(values))
    unknown = np.flatnonzero([str(label) in _MISSING for label in of.tolist()])
    if len(unknown):
        message = (
            f"chromosomes of {len(unknown)} of {len(of)} genes are missing, the first is gene "
            f"{unknown[0]}: leave these genes out, or name their chromosome"
        )
        raise ValueError(message)
    where = None if positions is None else _one_each("positions", positions, len(values))
    if where is not None and where.dtype.kind not in "iuf":
        message = f"positions must be numbers, got {where[0]!r}"
        raise TypeError(message)
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
    # At most 40 characters of a name, and no formula.
    shown = [str(label)[:40].replace("$", r"\$") for label in labels]
    ax.set_xticks(middles, shown, fontsize=8)
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
