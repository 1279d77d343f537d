"""Bar: opening a table with a long log, warm, compared with deltalake."""

from __future__ import annotations

from pathlib import Path

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Work, take_turns
from benchmarks.result import Bar, Case, expect

MOST_WALL_S = 0.050
ROWS_PER_COMMIT = 10


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Open a table of `log_length` commits repeatedly."""
    works: dict[str, Work] = {"rowsieve": _rowsieve(folder / "ours", sizes.log_length)}
    if (peer := _deltalake(folder / "delta", sizes.log_length)) is not None:
        works["deltalake"] = peer
    for name, work in works.items():
        expect(f"newest version by {name}", work(), sizes.log_length)
    case = Case("opening", take_turns(works, sizes.repeats * 3))
    wall = case.of("rowsieve").wall_s()
    found = f"{wall * 1000:.1f} ms"
    if "deltalake" in works:
        found += f"; deltalake {case.of('deltalake').wall_s() * 1000:.1f} ms"
    return Bar(
        name="opening",
        promise=f"a table of {sizes.log_length:,} commits opens in under "
        f"{MOST_WALL_S * 1000:.0f} ms, warm",
        found=found,
        met=wall < MOST_WALL_S,
        cases=[case],
    )


def _rowsieve(folder: Path, commits: int) -> Work:
    table = rs.create_table(str(folder), data.rows(0).schema, key=[data.KEY])
    for i in range(commits):
        table.upsert(data.changes(100_000, ROWS_PER_COMMIT, seed=i))
    return lambda: rs.open_table(str(folder)).version


def _deltalake(folder: Path, commits: int) -> Work | None:
    try:
        from deltalake import DeltaTable, write_deltalake
    except ImportError:
        return None
    write_deltalake(str(folder), data.rows(0))
    for i in range(commits):
        batch = data.changes(100_000, ROWS_PER_COMMIT, seed=i)
        write_deltalake(str(folder), batch, mode="append")
    return lambda: DeltaTable(str(folder)).version()
