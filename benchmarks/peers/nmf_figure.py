"""Curves of NMF: how far each method is above the lowest cost, against seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = 3
LEAST = 1e-4  # relative excess at which the axis ends
COLORS = {
    "smalto NMF": "C0",
    "SPAMS nmf": "C1",
    "SPAMS nnsc": "C1",
    "scikit-learn cd nndsvda": "C2",
    "scikit-learn cd random": "C3",
    "scikit-learn mu nndsvda": "C4",
    "scikit-learn MiniBatchNMF": "C5",
    "extrapolated HALS": "C7",
    "nmf-torch halsvar": "C8",
    "nmf-torch bpp": "C9",
}


def plot(runs: list[dict[str, Any]], path: Path) -> None:
    """Draw the runs on one thread, a panel for each problem and a line for each start."""
    from matplotlib.figure import Figure

    fewest = min(run["threads"] for run in runs)
    runs = [run for run in runs if run["threads"] == fewest]
    rows = -(-len(runs) // COLUMNS)
    figure = Figure(figsize=(4.2 * min(len(runs), COLUMNS), 3.2 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, min(len(runs), COLUMNS), squeeze=False).ravel()
    lines: dict[str, Any] = {}
    for ax, run in zip(axes, runs, strict=False):
        curves = [(one["method"], curve) for one in run["methods"] for curve in one["curves"]]
        best = min(min(curve["cost"]) for _, curve in curves)
        for method, curve in curves:
            seconds = np.add(curve["seconds"], curve["coding"])
            excess = np.maximum(np.divide(curve["cost"], best) - 1.0, LEAST)
            (lines[method],) = ax.plot(seconds, excess, color=COLORS[method], lw=1.2)
        ax.axhline(0.01, color="0.6", lw=0.8, ls=":")
        kind, (n, m) = "NMF" if run["lam"] == 0.0 else "sparse coding", run["shape"]
        ax.set(xscale="log", yscale="log", ylim=(LEAST, 1.0), xlabel="seconds")
        ax.set_title(f"{run['set']}, {kind}: {n:,} x {m:,}, k = {run['atoms']}", fontsize=9)
        ax.grid(alpha=0.2)
    for ax in axes[len(runs) :]:
        ax.set_axis_off()
    axes[0].set_ylabel("cost above the lowest, relative")
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=120)
    print(f"written: {path}")
