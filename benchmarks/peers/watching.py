"""What `Log` and `Report` cost: the share of a run's time that is spent in them.

A run on a setting of the paper, with a log and a page every 30 seconds, samples coded for the page
included. The seconds inside the callbacks are measured, and set against those of the whole run, so
that 0.1 % can be told from nothing. The size of the page is printed as well.

Run it with ``python -m benchmarks.peers.watching``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.common import add_common, announce, load, machine, save, table
from smalto import learn
from smalto.coders import Lasso
from smalto.learning import Callback, Log
from smalto.reporting import Report

SIDES = {"A": (8, 8), "B": (12, 12, 3), "C": (16, 16)}


class Timed(Callback):
    """Another callback, and the seconds that it has taken."""

    def __init__(self, inner: Callback) -> None:
        self.inner, self.seconds, self.calls = inner, 0.0, 0

    def _time(self, method: Any, *given: Any) -> Any:
        began = time.perf_counter()
        try:
            return method(*given)
        finally:
            self.seconds += time.perf_counter() - began

    def begin(self, state: Any, share: Any) -> None:
        """Begin."""
        self._time(self.inner.begin, state, share)

    def __call__(self, state: Any, record: Any) -> bool | None:
        """Take a step."""
        self.calls += 1
        return self._time(self.inner, state, record)  # type: ignore[no-any-return]

    def finish(self, state: Any) -> None:
        """Finish."""
        self._time(self.inner.finish, state)

    def end(self, stopped: str, error: BaseException | None) -> None:
        """End."""
        self._time(self.inner.end, stopped, error)

    def close(self) -> None:
        """Close."""
        self._time(self.inner.close)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and save."""
    command = argparse.ArgumentParser(
        description="The cost of Log and Report.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument("--setting", choices=SIDES, default="A", help="setting of the paper")
    command.add_argument("--n", type=int, default=200_000, help="number of training patches")
    command.add_argument("--seconds", type=float, default=90.0, help="seconds of learning")
    command.add_argument("--every", type=float, default=30.0, help="seconds between two pages")
    command.add_argument("--threads", type=int, default=2)
    add_common(command)
    options = command.parse_args(arguments)
    if options.quick:
        options.n, options.seconds, options.every = 5000, 1.0, 0.2
    about = machine()
    announce(about)
    problem = load(options.setting, options.n, 1000, quick=options.quick)
    found = measure(problem, options)
    rows = [
        [name, f"{found[name]['seconds']:.3f}", f"{100 * found[name]['share']:.3f} %"]
        for name in ("log", "report", "both")
    ]
    table(["callback", "seconds", "of the run"], rows)
    print(
        f"{found['steps']:,} steps in {found['run']:.1f} s; the page has "
        f"{found['page_bytes'] / 1e6:.2f} MB, the log {found['log_bytes'] / 1e6:.2f} MB"
    )
    save(options.out, "watching", about, options, **found)


def measure(problem: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds of each callback, and of the whole run."""
    with tempfile.TemporaryDirectory() as name:
        page, log = Path(name) / "run.html", Path(name) / "run.jsonl"
        shape = None if options.quick else SIDES[options.setting]
        report = Timed(Report(page, options.every, X=problem.train, patch_shape=shape))
        logged = Timed(Log(log))
        settings: dict[str, Any] = {
            "init": problem.D0,
            "n_threads": options.threads,
            "random_state": 0,
        }
        coder = Lasso(problem.lam)
        learn(problem.train, len(problem.D0), coder, max_steps=2, **settings)  # compiles
        began = time.perf_counter()
        result = learn(
            problem.train,
            len(problem.D0),
            coder,
            max_seconds=options.seconds,
            callbacks=[logged, report],
            **settings,
        )
        run = time.perf_counter() - began
        seconds = {"log": logged.seconds, "report": report.seconds}
        seconds["both"] = sum(seconds.values())
        return {
            **{key: {"seconds": spent, "share": spent / run} for key, spent in seconds.items()},
            "run": run,
            "steps": result.state.step,
            "page_bytes": page.stat().st_size,
            "log_bytes": log.stat().st_size,
        }


if __name__ == "__main__":
    main()
