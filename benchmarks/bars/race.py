"""Streaming one table by several systems, each run in a fresh process, in turns.

Speed is input rows per CPU second, so that of two systems the ratio of their CPU is that of their
speeds. Each system's answer is checked once, in a process of its own, before anything is timed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.bars.merged_table import MergedTable
from benchmarks.measure import Series
from benchmarks.peers.registry import STREAMS, System
from benchmarks.result import Case, expect
from benchmarks.suite.runners import Child, PeerFailed, Start, running

# "checked": every page's checksum is verified, as our scan does
START: Start = Child
OURS, CACHED = "rowsieve", "rowsieve, second read"
DECODE, VERIFIED = "pyarrow decode", "pyarrow decode, checked"
DUCKDB, DATAFUSION = "DuckDB QUALIFY", "DataFusion row_number"


def race(name: str, table: MergedTable, columns: Sequence[str], repeats: Mapping[str, int]) -> Case:
    """Stream these columns; `repeats` says how often, by system, ours first."""
    case = Case(name, [])
    series = {system: Series(system) for system in (OURS, CACHED, *repeats)}
    systems = [system for system in STREAMS if system.name in repeats]
    for system in systems:
        if (why := _wrong(table, system)) is not None:
            case.absent[system.name] = why
    systems = [system for system in systems if system.name not in case.absent]
    for turn in range(max(repeats.values())):
        shift = turn % len(systems)
        for system in systems[shift:] + systems[:shift]:
            if turn < repeats[system.name]:
                _run(table, system, columns, series)
    case.series = [one for one in series.values() if one.samples]
    return case


def speed(table: MergedTable, case: Case, system: str) -> float:
    """Millions of input rows per CPU second."""
    return table.input_rows / case.of(system).cpu_s() / 1e6


def times(case: Case, ours: str, peer: str) -> float | None:
    """How many times the peer's speed ours is; None without the peer."""
    if peer not in {series.system for series in case.series}:
        return None
    return case.of(peer).cpu_s() / case.of(ours).cpu_s()


def _run(
    table: MergedTable, system: System, columns: Sequence[str], series: Mapping[str, Series]
) -> None:
    rows = table.input_rows if system.name in (DECODE, VERIFIED) else table.base_rows
    with running(START, "streams", system, table.folder) as runner:
        runner.ask("open")
        for name in (OURS, CACHED) if system.name == OURS else (system.name,):
            count, sample = runner.ask("stream", columns=list(columns))
            expect(f"rows by {name}", count, rows)
            series[name].samples.append(sample)


def _wrong(table: MergedTable, system: System) -> str | None:
    """Why a peer cannot answer; a wrong answer raises."""
    try:
        with running(START, "streams", system, table.folder) as runner:
            runner.ask("open")
            digest, _ = runner.ask("digest")
    except PeerFailed as error:
        if system.name == OURS:
            raise
        return f"failed: {error}"
    if system.name in (DECODE, VERIFIED):
        expect(f"rows decoded by {system.name}", digest["n"], table.input_rows)
    else:
        expect(f"rows and sums by {system.name}", digest, table.digest)
    return None
