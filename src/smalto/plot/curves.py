"""Curves: costs over time, coefficients along a path, the use of atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from smalto.checks import check_finite, check_integer, csr_rows
from smalto.plot.figures import new_axes, tidy
from smalto.plot.histories import Histories, check_histories

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from smalto.coders.lasso_paths import Path

_NAMES = {
    "seconds": "seconds",
    "samples": "samples seen",
    "step": "step",
    "test_cost": "cost on the validation set",
    "batch_cost": "cost on the batch",
    "surrogate": "surrogate cost",
}


def cost_curve(
    histories: Histories,
    x: Literal["seconds", "samples", "step"] = "seconds",
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
    y: Literal["test_cost", "batch_cost", "surrogate"] | None = None,
) -> Axes:
    """Plot the cost against time, samples or steps, on a logarithmic axis.

    Parameters
    ----------
    histories : history, sequence of histories, or mapping of labels to histories
        A history is a sequence of records, as in ``learn(...).history``, a result of `learn`, a
        state, a model, a fitted estimator, or the path of a model, a checkpoint or a log that `Log`
        writes or has written.
        Records at x = 0 and those without the chosen cost are skipped.
    x : {"seconds", "samples", "step"}, default "seconds"
        The quantity on the horizontal axis.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.
    labels : sequence of str, optional
        One label per history, for the legend.
    y : {"test_cost", "batch_cost", "surrogate"}, optional
        The cost: by default ``"test_cost"``, which is recorded when ``learn`` gets a validation
        set, or ``"batch_cost"`` if one of the histories has none.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    smalto.learning.Record : What there is to plot.
    use_curve : How many atoms are used.
    """
    if x not in ("seconds", "samples", "step"):
        message = f'x must be "seconds", "samples" or "step", got {x!r}'
        raise ValueError(message)
    if y not in (None, "test_cost", "batch_cost", "surrogate"):
        message = f'y must be "test_cost", "batch_cost" or "surrogate", got {y!r}'
        raise ValueError(message)
    runs, names = check_histories(histories, labels)
    if y is None:
        validated = all(any(r.test_cost is not None for r in run) for run in runs)
        y = "test_cost" if validated else "batch_cost"
    curves = []
    for i, run in enumerate(runs):
        points = [(getattr(record, x), getattr(record, y)) for record in run]
        points = [(at, cost) for at, cost in points if cost is not None and at > 0]
        if not points:
            hint = ""
            if y == "test_cost":
                hint = ': pass a validation set to learn(), or plot y="batch_cost"'
            message = f"none of the {len(run)} records of history {i} has a {y} at {x} > 0{hint}"
            raise ValueError(message)
        curves.append(np.array(points, dtype=np.float64))
    if ax is None:
        ax = new_axes()
    for name, curve in zip(names, curves, strict=True):
        marker = "o" if len(curve) <= 40 else ""
        ax.plot(curve[:, 0], curve[:, 1], label=name, linewidth=1.8, marker=marker, markersize=3.5)
    ax.set_xscale("log")
    if x == "seconds":
        ax.xaxis.set_major_formatter("{x:g}")  # 0.1, 1, 10
    ax.set_xlabel(_NAMES[x])
    ax.set_ylabel(_NAMES[y])
    tidy(ax)
    if any(names):
        ax.legend(frameon=False)
    return ax


def use_curve(
    histories: Histories,
    x: Literal["seconds", "samples", "step"] = "step",
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
) -> Axes:
    """Plot how many atoms the samples of each step use, and how many were replaced, over time.

    Parameters
    ----------
    histories : history, sequence of histories, or mapping of labels to histories
        As for `cost_curve`.
    x : {"seconds", "samples", "step"}, default "step"
        The quantity on the horizontal axis.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.
    labels : sequence of str, optional
        One label per history, for the legend.

    Returns
    -------
    matplotlib.axes.Axes
        Solid lines for atoms that are used, dashed ones for the sum of those that were replaced.

    See Also
    --------
    atom_use : How often each atom is used.
    cost_curve : The costs.
    """
    if x not in ("seconds", "samples", "step"):
        message = f'x must be "seconds", "samples" or "step", got {x!r}'
        raise ValueError(message)
    runs, names = check_histories(histories, labels)
    ax = new_axes() if ax is None else ax
    for number, (name, run) in enumerate(zip(names, runs, strict=True)):
        steps = [record for record in run if record.step > 0 and record.used is not None]
        if not steps:
            message = f"none of the {len(run)} records of history {number} says how many are used"
            raise ValueError(message)
        at = [getattr(record, x) for record in steps]
        used = np.array([record.used for record in steps], np.float64)
        before = "" if name is None else f"{name}: "
        line = ax.plot(at, used, linewidth=1.5, label=f"{before}used")[0]
        replaced = np.cumsum([record.replaced for record in steps])
        style = {"linestyle": "--", "color": line.get_color()}
        ax.plot(at, replaced, linewidth=1.2, label=f"{before}replaced so far", **style)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel(_NAMES[x])
    ax.set_ylabel("atoms")
    tidy(ax)
    ax.legend(frameon=False)
    return ax


def path_curve(path: Path, *, n_labels: int = 8, ax: Axes | None = None) -> Axes:
    """Plot the coefficients of a code along its regularization path, as λ decreases.

    Parameters
    ----------
    path : Path
        The result of `smalto.lasso_path`.
    n_labels : int, default 8
        Number of coefficients, the largest ones, to label with the number of their atom.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    smalto.lasso_path : Computes the path.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import lasso_path
    >>> from smalto.plot import path_curve
    >>> path = lasso_path(np.array([3.0, 1.0, 2.0]), np.eye(3))
    >>> path_curve(path).get_ylabel()
    'coefficients'
    """
    n_labels = check_integer("n_labels", n_labels, low=0)
    ax = new_axes() if ax is None else ax
    codes = path.codes.toarray()
    used = np.flatnonzero(codes.any(axis=0))
    by_size = used[np.argsort(-np.abs(codes[:, used]).max(axis=0), kind="stable")]
    named = set(by_size[:n_labels].tolist())
    for j in used:
        style = {"linewidth": 1.8} if j in named else {"linewidth": 0.9, "color": "0.75"}
        ax.plot(path.lams, codes[:, j], zorder=3 if j in named else 2, **style)
        if j in named:
            at = (float(path.lams[-1]), float(codes[-1, j]))
            color = ax.lines[-1].get_color()
            ax.annotate(f" {j}", at, fontsize=8, va="center", color=color, annotation_clip=False)
    ax.axhline(0.0, color="0.4", linewidth=0.8)
    ax.invert_xaxis()
    ax.set_xlabel("λ")
    ax.set_ylabel("coefficients")
    tidy(ax)
    return ax


def atom_use(codes: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Plot the share of signals that use each atom, most used atoms first.

    Parameters
    ----------
    codes : array or sparse array (n, k)
        One code per row, as returned by ``encode``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    smalto.learners.Replacement : When unused atoms are replaced.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.plot import atom_use
    >>> ax = atom_use(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0]]))
    >>> ax.get_title()
    '1 of 3 atoms not used'
    """
    table = csr_rows("codes", codes).copy()
    if table.shape[0] == 0:
        message = f"codes must be (signals, atoms), got shape {table.shape}"
        raise ValueError(message)
    check_finite("codes", table)
    table.eliminate_zeros()
    counts = np.bincount(table.indices, minlength=table.shape[1])
    shares = np.sort(counts)[::-1] / table.shape[0]
    ax = new_axes() if ax is None else ax
    ax.fill_between(np.arange(len(shares)), shares, step="mid", alpha=0.25, linewidth=0)
    ax.step(np.arange(len(shares)), shares, where="mid", linewidth=1.5)
    ax.set_xlim(-0.5, len(shares) - 0.5)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("atoms, the most used ones first")
    ax.set_ylabel("share of signals that use it")
    unused = int(np.count_nonzero(counts == 0))
    if unused:
        ax.set_title(f"{unused} of {len(counts)} atoms not used", fontsize=10)
    tidy(ax)
    return ax
