"""Costs as they fall, atoms by their use, regularisation paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from scipy import sparse

from smalto.checks import as_rows, check_integer
from smalto.plot.figures import new_axes, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from smalto.coders.path import Path
    from smalto.learning.state import Record

_NAMES = {
    "seconds": "seconds",
    "samples": "samples seen",
    "step": "step",
    "test_cost": "cost on the validation set",
    "batch_cost": "cost on the batch",
    "surrogate": "surrogate cost",
}
_SPAN = 1e-4  # the smallest lam drawn of a path, as a share of the largest

History: TypeAlias = "Sequence[Record]"


def cost_curve(
    histories: History | Sequence[History] | Mapping[str, History],
    x: Literal["seconds", "samples", "step"] = "seconds",
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
    y: Literal["test_cost", "batch_cost", "surrogate"] = "test_cost",
) -> Axes:
    """Draw how the cost falls, on a logarithmic axis of time, samples or steps.

    Parameters
    ----------
    histories : history, sequence of histories, or mapping of labels to histories
        A history is what ``learn`` returns as ``result.history``: a sequence of records. Those
        without the cost asked for, and those at x = 0, have no place on the curve.
    x : {"seconds", "samples", "step"}
        What the cost is drawn against.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure.
    labels : sequence of str, optional
        One name per history, for the legend.
    y : {"test_cost", "batch_cost", "surrogate"}
        Which cost. ``"test_cost"`` is there when ``learn`` was given a validation set.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if x not in ("seconds", "samples", "step"):
        message = f'x must be "seconds", "samples" or "step", got {x!r}'
        raise ValueError(message)
    if y not in ("test_cost", "batch_cost", "surrogate"):
        message = f'y must be "test_cost", "batch_cost" or "surrogate", got {y!r}'
        raise ValueError(message)
    runs, names = _check_histories(histories, labels)
    curves = []
    for i, run in enumerate(runs):
        points = [(getattr(record, x), getattr(record, y)) for record in run]
        points = [(at, cost) for at, cost in points if cost is not None and at > 0]
        if not points:
            hint = ": give learn() a validation set" if y == "test_cost" else ""
            message = f"none of the {len(run)} records of history {i} has a {y} at {x} > 0{hint}"
            raise ValueError(message)
        curves.append(np.array(points, dtype=np.float64))
    ax = new_axes(ax)
    for name, curve in zip(names, curves, strict=True):
        marker = "o" if len(curve) <= 40 else ""
        ax.plot(curve[:, 0], curve[:, 1], label=name, linewidth=1.8, marker=marker, markersize=3.5)
    ax.set_xscale("log")
    if x == "seconds":
        ax.xaxis.set_major_formatter("{x:g}")  # 0.1, 1, 10
    ax.set_xlabel(_NAMES[x])
    ax.set_ylabel(_NAMES[y])
    quiet(ax)
    if any(names):
        ax.legend(frameon=False)
    return ax


def atom_use(codes: Any, *, ax: Axes | None = None) -> Axes:
    """Draw which share of the signals uses each atom, the most used ones first.

    Parameters
    ----------
    codes : array or sparse array (n, k)
        Codes, one per row, such as `encode` returns.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    rows = sparse.csr_array(as_rows("codes", codes))
    n, k = rows.shape
    if n == 0 or k == 0:
        message = f"codes must have rows and columns, got shape {rows.shape}"
        raise ValueError(message)
    rows.eliminate_zeros()
    share = np.sort(np.bincount(rows.indices, minlength=k) / n)[::-1]
    ax = new_axes(ax)
    ax.fill_between(np.arange(1, k + 1), share, step="mid", alpha=0.25, linewidth=0)
    ax.step(np.arange(1, k + 1), share, where="mid", linewidth=1.5)
    unused = int(np.count_nonzero(share == 0))
    ax.set_xlabel(f"atoms, by use ({unused} of {k} not used)" if unused else "atoms, by use")
    ax.set_ylabel("share of signals that use it")
    ax.set_xlim(1, max(k, 2))
    ax.set_ylim(bottom=0)
    quiet(ax)
    return ax


def path_plot(path: Path, *, most: int = 10, ax: Axes | None = None) -> Axes:
    """Draw the coefficients of a regularisation path against lam, from large lam to small.

    Parameters
    ----------
    path : Path
        What `lasso_path` returns.
    most : int, default 10
        How many coefficients, the largest ones, have a colour and a name; others are grey.
        What happens below a ten-thousandth of the largest lam is not drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    most = check_integer("most", most, low=0)
    lams, codes = np.asarray(path.lams, np.float64), path.codes.toarray()
    shown = lams > _SPAN * lams.max(initial=0.0)
    if not shown.any():
        message = "the path is that of a zero signal: it has no lam > 0"
        raise ValueError(message)
    ax = new_axes(ax)
    largest = np.argsort(-np.abs(codes).max(axis=0), kind="stable")
    used = [int(j) for j in largest if codes[:, j].any()]
    for place, j in reversed(list(enumerate(used))):
        named = place < most
        ax.plot(
            lams[shown], codes[shown, j], label=f"atom {j}" if named else None,
            color=f"C{place % 10}" if named else "0.8", linewidth=1.6 if named else 0.8,
            zorder=2.5 if named else 1.5,
        )  # fmt: skip
    ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=1)
    ax.set_xscale("log")
    if np.count_nonzero(shown) > 1:
        ax.set_xlim(lams[shown].max(), lams[shown].min())
    ax.set_xlabel("lam")
    ax.set_ylabel("coefficients")
    quiet(ax)
    if used[:most]:
        handles, names = ax.get_legend_handles_labels()
        ax.legend(
            handles[::-1], names[::-1], frameon=False, fontsize="small", loc="center left",
            bbox_to_anchor=(1.0, 0.5),
        )  # fmt: skip
    return ax


def _check_histories(
    histories: History | Sequence[History] | Mapping[str, History], labels: Sequence[str] | None
) -> tuple[list[History], Sequence[str | None]]:
    """Return the histories as a list, and one label for each."""
    names: Sequence[str | None] | None = labels
    if isinstance(histories, Mapping):
        runs = list(histories.values())
        names = list(histories) if labels is None else labels
    elif len(histories) and not isinstance(histories[0], Sequence):
        runs = [cast(History, histories)]
    else:
        runs = list(cast(Sequence[History], histories))
    if not runs:
        message = f"histories must hold one history or more, got {histories!r}"
        raise ValueError(message)
    if names is None:
        names = [None] if len(runs) == 1 else [f"run {i + 1}" for i in range(len(runs))]
    if len(names) != len(runs):
        message = f"labels must be one per history, got {len(names)} for {len(runs)}"
        raise ValueError(message)
    return runs, names
