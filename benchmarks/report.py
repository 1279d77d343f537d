"""Prints results as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Series
from benchmarks.result import Bar, Case, Machine

WIDTH = 180
FIGURES = (
    "CPU s",
    "spread",
    "wall s",
    "CPU / ours",
    "first",
    "MB read",
    "MB written",
    "MB grown",
    "runs",
)
VERDICTS = {True: "[green]met[/green]", False: "[red]missed[/red]", None: "not measured"}


def wide_console() -> Console:
    """A console that is wide enough for the tables, even if its output goes to a file."""
    console = Console()
    return console if console.width >= WIDTH else Console(width=WIDTH)


def print_machine(machine: Machine, console: Console) -> None:
    """One paragraph: machine, versions and date."""
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    console.print(
        f"{machine.date}: {machine.cpu}, {machine.cores} cores, {machine.memory_gb} GB, "
        f"{machine.system}, Python {machine.python}, load {machine.load}; {versions}",
        highlight=False,
    )


def print_bars(bars: Sequence[Bar], console: Console) -> None:
    """The bars, then the measurements behind them."""
    table = Table(title="Bars", title_justify="left", show_lines=True)
    for heading in ("bar", "promise", "found", ""):
        table.add_column(heading, overflow="fold")
    for bar in bars:
        table.add_row(bar.name, bar.promise, bar.found, VERDICTS[bar.met])
    console.print(table)
    print_cases([case for bar in bars for case in bar.cases], console)


def print_cases(cases: Sequence[Case], console: Console) -> None:
    """Medians of every system in every case, CPU as a multiple of ours; and missing systems."""
    table = Table(title="Medians", title_justify="left")
    table.add_column("case", no_wrap=True)
    table.add_column("system", no_wrap=True)
    for heading in FIGURES:
        table.add_column(heading, justify="right", no_wrap=True)
    for case in cases:
        ours = case.series[0].cpu_s() if case.series else 0.0
        for i, series in enumerate(case.series):
            last = i == len(case.series) - 1
            name = case.name if i == 0 else ""
            table.add_row(name, *_figures(series, ours), end_section=last)
    console.print(table)
    reasons: dict[str, list[str]] = {}
    for case in cases:
        for system, why in case.absent.items():
            reasons.setdefault(f"{system}: {why}", []).append(case.name)
    for reason, names in reasons.items():
        console.print(f"Without {reason} ({', '.join(names)})", highlight=False)


def _figures(series: Series, ours: float) -> tuple[str, ...]:
    return (
        series.system,
        f"{series.cpu_s():.4f}",
        f"{series.spread():.0%}",
        f"{series.wall_s():.4f}",
        f"{series.cpu_s() / max(ours, 1e-9):.2f}",
        "-" if series.first is None else f"{series.first.cpu_s:.4f}",
        _megabytes(series.bytes_read()),
        _megabytes(series.bytes_written()),
        _megabytes(series.growth_bytes()),
        str(len(series.samples)),
    )


def _megabytes(size: int | None) -> str:
    return "-" if size is None else f"{size / 1e6:.2f}"
