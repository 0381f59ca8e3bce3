"""The study of the batch size η described in Section 6.1: 1, 16, 64, …, 1024 on setting A.

One thread, float32, otherwise the settings of OL1; the mean over three initial dictionaries.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.paper.curves import OL1, Bench, Curve, draw, mean_curve, records
from benchmarks.paper.frame import Study, Verdict, new_figure

TITLE = "The size of mini-batches"
SIZES = (1, 16, 64, 128, 256, 512, 1024)
SIMILAR = 0.01  # of the cost


def run(study: Study) -> None:
    """Run the experiment."""
    starts, sizes = (1, (1, 64, 512)) if study.quick else (3, SIZES)
    n, n_test = (4_096, 200) if study.quick else (500_000, 4_000)
    seconds = float(f"{0.8 * study.seconds / (starts * len(sizes)):.2g}")
    bench = Bench(study, "A", n, n_test)
    runs = {
        f"η = {size}": bench.curves(replace(OL1, batch_size=size), starts, seconds=seconds)
        for size in sizes
    }
    means = {label: mean_curve(each) for label, each in runs.items()}
    figure, axes = new_figure(2)
    draw(axes[0][0], means, f"A, {n:,} patches", {})
    by_samples = {
        label: Curve(curve.samples, curve.samples, curve.cost) for label, curve in means.items()
    }
    draw(axes[0][1], by_samples, "the same, against samples", {})
    axes[0][1].set_xlabel("samples seen", fontsize=8)
    axes[0][0].legend(fontsize=7, frameon=False)
    shares = (0.05, 0.2, 1.0)
    rows = [
        [label, f"{curve.samples[-1]:,.0f}", *(f"{curve.at(s * seconds):.4f}" for s in shares)]
        for label, curve in means.items()
    ]
    last = {size: float(curve.cost[-1]) for size, curve in zip(sizes, means.values(), strict=True)}
    best = min(last, key=last.__getitem__)
    usual = {size: cost for size, cost in last.items() if size >= 64}
    spread = max(usual.values()) / min(usual.values()) - 1
    verdicts = [
        Verdict(
            "η = 512 is a good choice; 64, 128, 256 and 1024 give very similar performance.",
            spread < SIMILAR and last[512] < (1 + SIMILAR) * last[best],
            f"the lowest cost at the end is that of η = {best}, η = 512 is "
            f"{100 * (last[512] / last[best] - 1):.2f} % above it; those from 64 on differ by "
            f"{100 * spread:.2f} %",
        ),
        Verdict(
            "The difference with the choice η = 1 is significant.",
            last[1] > (1 + 2 * spread) * last[512],
            f"η = 1 ends {100 * (last[1] / last[512] - 1):.1f} % above η = 512",
        ),
    ]
    header = ["", "samples seen", *(f"at {100 * s:g} % of the time" for s in shares)]
    notes = [
        f"training time of a curve (processor): {seconds:g} s; one thread, float32, {starts} starts"
    ]
    results = {"n": n, "n_test": n_test, "curves": records(runs)}
    study.finish(TITLE, figure, header, rows, verdicts, results, notes)
