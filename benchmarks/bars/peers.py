"""Bar: ahead of other table formats in every case of the suite that both can do."""

from __future__ import annotations

from pathlib import Path

from benchmarks.bars import race
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series
from benchmarks.peers.registry import KINDS, OURS
from benchmarks.result import Bar, Case
from benchmarks.suite.cases import CASES
from benchmarks.suite.field import Field
from benchmarks.suite.install import not_installed

PEERS = ("deltalake", "pypaimon-rust", "DuckLake")


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Run the suite among these systems; compares both CPU and time."""
    cases: list[Case] = []
    missing: dict[str, str] = {}

    def new_field(kind: str, where: Path) -> Field:
        systems = [system for system in KINDS[kind] if system.name in (OURS, *PEERS)]
        absent = not_installed(systems, make=sizes.make_environments)
        missing.update(absent)
        present = [system for system in systems if system.name not in absent]
        return Field(kind, present, race.START, where, absent)

    for name in ("life", "upsert", "planning"):
        (folder / name).mkdir()
        cases += CASES[name](sizes.suite, folder / name, new_field)
    behind = [line for case in cases for line in _behind(case)]
    pairs = sum(len(_rivals(case)) for case in cases)
    found = f"ahead in {pairs - len(behind)} of {pairs} pairs"
    if behind:
        found += f"; not ahead: {'; '.join(behind)}"
    if missing:
        found += f"; {'; '.join(f'{name} {why}' for name, why in missing.items())}"
    return Bar(
        name="ahead of table formats",
        promise=f"less CPU and less time than {', '.join(PEERS)} in each case of the suite, "
        f"{sizes.suite.rows:,} rows",
        found=found,
        met=False if behind else None if missing else True,
        cases=cases,
    )


def _rivals(case: Case) -> list[Series]:
    """Peers that did the work; a compaction that writes almost nothing does not count."""
    ours, *peers = case.series
    if not case.name.startswith("compaction"):
        return peers
    least = (ours.bytes_written() or 0) / 100
    return [peer for peer in peers if (peer.bytes_written() or 0) >= least]


def _behind(case: Case) -> list[str]:
    ours = case.of(OURS)
    lines = []
    for peer in _rivals(case):
        cpu, wall = peer.cpu_s() / ours.cpu_s(), peer.wall_s() / ours.wall_s()
        if min(cpu, wall) <= 1:
            lines.append(f"{case.name}: {peer.system} {cpu:.2f}x our CPU, {wall:.2f}x our time")
    return lines
