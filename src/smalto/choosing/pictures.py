"""Pictures of choices: the error of each setting, the stability of atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smalto.plot.figures import new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from smalto.choosing.agreement import Consensus
    from smalto.choosing.selection import Selection

_MOST_TICKS = 10


def error_curves(selection: Selection, ax: Axes | None) -> Axes:
    """Plot errors with their standard errors against atoms or λ; mark the choice."""
    rows = selection.rows
    if not rows:
        message = "there is nothing to plot: no setting was tried by all rounds"
        raise ValueError(message)
    ax = new_axes() if ax is None else ax
    second = next((name for name in ("lam", "coder") if name in rows[0]), None)
    by_lam = second == "lam" and len({row["n_atoms"] for row in rows}) == 1 and len(rows) > 1
    key = "lam" if by_lam else "n_atoms"
    curves: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        curves.setdefault(None if by_lam or second is None else row[second], []).append(row)
    for name, curve in curves.items():
        at = [row[key] for row in curve]
        label = f"λ = {name:g}" if second == "lam" and name is not None else name
        ax.errorbar(
            at,
            [row["error"] for row in curve],
            [np.nan_to_num(row["standard_error"]) for row in curve],
            label=label,
            linewidth=1.8,
            elinewidth=0.9,
            capsize=2.5,
            marker="o",
            markersize=4,
        )
    for number, style in ((selection.lowest, "lowest error"), (selection.chosen, "chosen")):
        if number is None or (style == "lowest error" and number == selection.chosen):
            continue
        row, chosen = rows[number], style == "chosen"
        ax.plot(
            row[key], row["error"], "o", markersize=12 if chosen else 9, markerfacecolor="none",
            markeredgecolor="0.15" if chosen else "0.55", markeredgewidth=1.6, linestyle="none",
            label=style, zorder=5,
        )  # fmt: skip
    values = [row[key] for row in rows]
    if min(values) > 0 and max(values) > 8 * min(values):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    if not by_lam:
        _tick_at_numbers(ax, sorted(set(values)))
    low, high = min(row["error"] for row in rows), max(row["error"] for row in rows)
    if low > 0 and high > 20 * low:
        ax.set_yscale("log")
    ax.set_xlabel("λ" if by_lam else "atoms")
    ax.set_ylabel("squared error of held-out entries")
    ax.legend(frameon=False, fontsize=8)
    tidy(ax)
    return ax


def _tick_at_numbers(ax: Axes, numbers: list[int]) -> None:
    """Put ticks at the numbers of atoms that were tried; at some whole numbers if they are many."""
    if len(numbers) <= _MOST_TICKS:
        ax.set_xticks(numbers)
        ax.minorticks_off()
    elif ax.get_xscale() == "linear":
        ax.locator_params(axis="x", integer=True)


def stability_picture(consensus: Consensus, ax: Axes | None) -> Axes:
    """Plot the stability of every atom for each k, and its mean over the atoms."""
    ax = new_axes() if ax is None else ax
    ks = sorted(consensus.agreements)
    for k in ks:
        scores = consensus.agreements[k].stability
        ax.plot([k] * k, scores, "o", color="C0", alpha=0.35, markersize=5, markeredgewidth=0)
    means = [float(np.mean(consensus.agreements[k].stability)) for k in ks]
    ax.plot(ks, means, color="0.15", linewidth=1.8, marker="s", markersize=5, label="mean")
    ax.plot([], [], "o", color="C0", alpha=0.5, label="an atom")
    best = consensus.best_params["n_components"]
    ax.axvline(best, color="0.6", linewidth=1.0, linestyle=":", label=f"{best} atoms")
    ax.set_ylim(min(0.0, ax.get_ylim()[0]), 1.05)
    ax.set_xticks(ks)
    ax.set_xlabel("atoms")
    ax.set_ylabel("stability over the starts")
    ax.legend(frameon=False, fontsize=8)
    tidy(ax)
    return ax
