"""Streams one table by several systems in turns, each run in a fresh process.

Speed is input rows per CPU second, so the ratio of two speeds is the inverse ratio of CPU times.
Each system's answer is checked once, in a process of its own, before anything is timed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.bars.merged_table import MergedTable
from benchmarks.measure import Series
from benchmarks.peers.registry import STREAMS, System
from benchmarks.result import Case, expect
from benchmarks.suite.runners import Child, PeerFailed, Start, running

START: Start = Child
OURS, CACHED = "rowsieve", "rowsieve, second read"  # by one thread, as pyarrow decodes
PARALLEL = "rowsieve, all cores"
DECODE, VERIFIED = "pyarrow decode", "pyarrow decode, checked"  # pages' checksums, as we do
DUCKDB, DATAFUSION = "DuckDB QUALIFY", "DataFusion row_number"


class Race:
    """One table and the systems that read it correctly; `absent`: why others are missing."""

    def __init__(self, table: MergedTable, names: Sequence[str]) -> None:
        asked = [system for system in STREAMS if system.name in names]
        reasons = {system.name: _wrong(table, system) for system in asked}
        self._table = table
        self._systems = [system for system in asked if reasons[system.name] is None]
        self.absent = {name: why for name, why in reasons.items() if why is not None}

    def run(self, name: str, columns: Sequence[str], repeats: Mapping[str, int]) -> Case:
        """Stream these columns, each system `repeats` times in a fresh process."""
        series = {system: Series(system) for system in (OURS, CACHED, *repeats)}
        absent = dict(self.absent)
        for turn in range(max(repeats.values())):
            shift = turn % len(self._systems)
            for system in self._systems[shift:] + self._systems[:shift]:
                if turn >= repeats[system.name] or system.name in absent:
                    continue
                try:
                    _run(self._table, system, columns, series)
                except PeerFailed as error:
                    if system.name in (OURS, PARALLEL):
                        raise
                    absent[system.name] = f"failed: {error}"
        found = [one for one in series.values() if one.samples and one.system not in absent]
        return Case(name, found, absent)


def speed(table: MergedTable, case: Case, system: str) -> float:
    """Millions of input rows per CPU second."""
    return table.input_rows / case.of(system).cpu_s() / 1e6


def times(case: Case, ours: str, peer: str) -> float | None:
    """Our speed as a multiple of the peer's; None without the peer."""
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
        if system.name in (OURS, PARALLEL):
            raise
        return f"failed: {error}"
    if system.name in (DECODE, VERIFIED):
        expect(f"rows decoded by {system.name}", digest["n"], table.input_rows)
    else:
        expect(f"rows and sums by {system.name}", digest, table.digest)
    return None
