"""The table of what was tried and what held."""

from __future__ import annotations

from benchmarks.campaign.report import Report


def markdown(report: Report) -> str:
    """Return the counts of a campaign as a Markdown table."""
    lines = ["| promise | tried | held |", "|---|---:|---:|"]
    lines += [
        f"| {promise} | {count:,} | {report.held[promise]:,} |"
        for promise, count in sorted(report.tried.items())
    ]
    lines += ["", f"{report.signals:,} signals and {report.cases:,} other cases"]
    lines += [f"{count:,} {note}" for note, count in sorted(report.notes.items())]
    return "\n".join(lines)
