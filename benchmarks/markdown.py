"""Cases as a Markdown table for the documents: a row per case, a column per system."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.measure import Series
from benchmarks.result import Case

Figure = Callable[[Series], str]


def table(cases: Sequence[Case], figure: Figure) -> str:
    """One figure of every series; "-" where a system is not in a case."""
    fullest_first = sorted(cases, key=lambda case: -len(case.series))
    systems = list(dict.fromkeys(one.system for case in fullest_first for one in case.series))
    lines = [["", *systems], ["---", *["---:"] * len(systems)]]
    for case in cases:
        found = {series.system: figure(series) for series in case.series}
        lines.append([case.name, *(found.get(system, "-") for system in systems)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cpu(series: Series) -> str:
    """The median CPU time."""
    return duration(series.cpu_s())


def wall(series: Series) -> str:
    """The median time."""
    return duration(series.wall_s())


def megabytes_read(series: Series) -> str:
    """The median of the bytes read."""
    return _megabytes(series.bytes_read())


def megabytes_grown(series: Series) -> str:
    """The largest growth of memory."""
    return _megabytes(series.growth_bytes())


def duration(seconds: float) -> str:
    """Format with three digits and a unit."""
    if seconds >= 1:
        return f"{_digits(seconds)} s"
    return f"{_digits(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{_digits(seconds * 1e6)} µs"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _megabytes(size: int | None) -> str:
    return "-" if size is None else _digits(size / 1e6) if size >= 1_000 else "0"


FIGURES: dict[str, Figure] = {
    "CPU": cpu,
    "Time": wall,
    "MB read": megabytes_read,
    "MB grown": megabytes_grown,
}


def document(cases: Sequence[Case]) -> str:
    """One table for each figure."""
    return "\n".join(f"{name}\n\n{table(cases, figure)}" for name, figure in FIGURES.items())
