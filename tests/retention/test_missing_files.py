"""A file that somebody deleted by hand is damage, whatever call needs it, and no expiry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData, RowsieveError, SnapshotExpired
from tests.small_tables import kv

READERS: dict[str, Callable[[rs.Table], object]] = {
    "scan": lambda table: table.to_arrow(),
    "compact": lambda table: table.compact(),
    "maintain": lambda table: table.maintain(),
    "clone": lambda table: table.clone("memory://copies/missing"),
    "changes": lambda table: table.changes(0).read_all(),
    "difference": lambda table: table.difference(0, table.version),
}


def overlapping(folder: Path) -> rs.Table:
    """A table of three versions, all of whose files the newest one needs; one file is gone."""
    table = rs.create_table(folder, kv((1, 0), (2, 0)), key=["k"])
    table.upsert(kv((2, 1), (3, 1)))
    table.upsert(kv((3, 2), (4, 2)))
    newest = max(folder.glob("data/*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    return rs.open_table(folder)


def imported(folder: Path) -> rs.Table:
    """A table over small files of others, of which one is gone."""
    folder.mkdir()
    for number in range(3):
        pq.write_table(kv((2 * number, 0), (2 * number + 1, 0)), folder / f"{number}.parquet")
    rs.from_parquet(folder, f"{folder}-table", ["k"])
    (folder / "1.parquet").unlink()
    return rs.open_table(f"{folder}-table")


@pytest.mark.parametrize("call", READERS)
@pytest.mark.parametrize("make", [overlapping, imported])
def test_a_missing_file_of_the_newest_version_is_damage_in_every_call(
    tmp_path: Path, make: Callable[[Path], rs.Table], call: str
) -> None:
    table = make(tmp_path / "t")
    if make is imported and call in {"clone", "difference"}:
        READERS[call](table)  # refers to the files; needs no rows
        return
    with pytest.raises(CorruptData, match=r"is missing: .*parquet; restore the file from a copy"):
        READERS[call](table)


def test_a_missing_file_of_an_older_version_is_not_said_to_be_of_the_newest(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "t"
    table = rs.create_table(folder, kv((1, 0), (2, 0)), key=["k"])
    table.upsert(kv((2, 1), (3, 1)))
    old = set(folder.glob("data/*.parquet"))
    table.overwrite(kv((5, 5)))
    for path in old:
        path.unlink()
    table = rs.open_table(folder)
    old_reads: dict[str, Callable[[], object]] = {
        "changes": lambda: table.changes(1).read_all(),
        "clone": lambda: table.clone("memory://copies/old", version=1),
    }
    for name, read in old_reads.items():
        with pytest.raises(RowsieveError, match="does not exist") as raised:
            read()
        assert isinstance(raised.value, SnapshotExpired), name
    assert table.to_arrow() == pa.table(kv((5, 5))).cast(table.to_arrow().schema)
