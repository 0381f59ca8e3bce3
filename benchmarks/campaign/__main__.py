"""Try the library on random problems, and count how often its promises hold.

``python -m benchmarks.campaign`` runs for 10 minutes on all cores. Every failure is printed with the
command that reproduces it, the table of what was tried and what held comes last, and the exit
code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from benchmarks.campaign import table
from benchmarks.campaign.families import load
from benchmarks.campaign.report import Report, say
from benchmarks.campaign.workers import Pool, Ticket, cores, run_problem, shout

SPACING = 1_000_000_000  # seeds of one campaign
EVERY = 60.0  # seconds between two lines on the progress


def tickets(seed: int, names: list[str]) -> Iterator[Ticket]:
    """Yield problems without end: rounds in which every family has its share, spread evenly."""
    families = load()
    places = sorted(
        ((number + 0.5) / families[name].share, name)
        for name in names
        for number in range(families[name].share)
    )
    number = seed * SPACING
    while True:
        for _, name in places:
            yield name, number
            number += 1


def batches(
    seed: int, names: list[str], problems: int | None, deadline: float, size: int = 10
) -> Iterator[list[Ticket]]:
    """Yield batches of problems until there are enough of them, or until the time is over."""
    source, given = tickets(seed, names), 0
    while time.monotonic() < deadline and (problems is None or given < problems):
        count = size if problems is None else min(size, problems - given)
        given += count
        yield [next(source) for _ in range(count)]


def campaign(
    seed: int, names: list[str], problems: int | None, minutes: float, workers: int
) -> Report:
    """Run problems and return the sum of their reports."""
    total, done, start = Report(), 0, time.monotonic()
    deadline = start + (60.0 * minutes if problems is None else float("inf"))
    limits = {name: family.seconds for name, family in load().items()}
    told = start
    with Pool(load, limits, workers) as pool:
        for ticket, report in pool.run(batches(seed, names, problems, deadline)):
            shout(ticket, report)
            total.add(report)
            done += 1
            if time.monotonic() - told > EVERY:
                told = time.monotonic()
                counts = f"{total.signals:,} signals, {total.cases:,} other cases"
                failed = len(total.failures)
                say(f"{(told - start) / 60:.0f} min: {done:,} problems, {counts}, {failed} failed")
    return total


def main() -> int:
    """Run the campaign or reproduce one problem; return the exit code."""
    families = load()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default: 10)")
    parser.add_argument("--problems", type=int, help="how many problems, instead of minutes")
    parser.add_argument("--seed", type=int, default=0, help="which problems (default: 0)")
    parser.add_argument("--only", choices=families, help="one family of problems")
    parser.add_argument("--workers", type=int, default=cores(), help="processes (default: cores)")
    parser.add_argument("--reproduce", metavar="FAMILY:SEED", help="one problem, in this process")
    arguments = parser.parse_args()
    if arguments.reproduce:
        family, _, seed = arguments.reproduce.partition(":")
        report = run_problem(families, (family, int(seed)))
        shout((family, int(seed)), report)
    else:
        names = [arguments.only] if arguments.only else list(families)
        start = time.monotonic()
        report = campaign(
            arguments.seed, names, arguments.problems, arguments.minutes, arguments.workers
        )
        say(f"\n{(time.monotonic() - start) / 60:.1f} minutes, seed {arguments.seed}")
    say(table.markdown(report))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
