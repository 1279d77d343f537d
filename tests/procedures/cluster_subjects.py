"""Calls that go wrong on a cluster: a catalog, a statement, and what must be in the table then.

Each call has several tasks. `lake` makes the same table every time, so that a twin on which the
same statement runs in one thread has the expected rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import rowsieve as rs
from rowsieve.procedures.built_ins import add_files, analyze, vector_tasks
from rowsieve.procedures.built_ins.add_files import AddFiles
from rowsieve.procedures.built_ins.analyze import Analyze
from rowsieve.procedures.built_ins.build_vectors import BuildDeletionVectors
from rowsieve.procedures.built_ins.merge_vectors import RewritePositionDeleteFiles
from rowsieve.procedures.built_ins.migrate import Migrate
from rowsieve.procedures.built_ins.rewrite_data_files import RewriteDataFiles
from rowsieve.procedures.procedure import DistributedProcedure

Lake = Callable[[Path], rs.Catalog]


@dataclass(frozen=True, slots=True)
class Subject:
    """A procedure, the catalog that it is called in, and the call; whether tasks write files."""

    procedure: type[DistributedProcedure]
    lake: Lake
    call: str
    writes_files: bool


def overlapping(folder: Path) -> rs.Catalog:
    """A catalog with a table of four overlap groups, two parts and a delete each."""
    catalog = rs.Catalog(folder / "lake")
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table = catalog.create_table("db.t", schema, ["id"], properties={"statistics": "off"})
    for start in range(0, 80, 20):
        table.upsert(pa.table({"id": range(start, start + 15), "v": [1] * 15}))
        table.upsert(pa.table({"id": range(start + 10, start + 18), "v": [2] * 8}))
        table.delete(f"id = {start + 3}")
    return catalog


def with_vectors(folder: Path) -> rs.Catalog:
    """The same, with the vectors of each group in a file of its own."""
    catalog = overlapping(folder)
    table = catalog.open_table("db.t")
    for start in range(0, 80, 20):
        table.build_deletion_vectors(f"id BETWEEN {start} AND {start + 17}")
    return catalog


def beside_files(folder: Path) -> rs.Catalog:
    """A catalog with a table without a key, and a folder of files to add."""
    catalog = rs.Catalog(folder / "lake")
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    catalog.create_table("db.t", schema).append(pa.table({"id": [1], "v": [1]}))
    (folder / "more").mkdir()
    for start in range(100, 140, 10):
        pq.write_table(_rows(start), folder / f"more/{start}.parquet")
    return catalog


def imported(folder: Path) -> rs.Catalog:
    """A catalog with a table of imported files, which overlap with nothing."""
    (folder / "old").mkdir(parents=True)
    files = [str(folder / f"old/{start}.parquet") for start in range(0, 80, 20)]
    for number, file in enumerate(files):
        pq.write_table(_rows(number * 20), file)
    catalog = rs.Catalog(folder / "lake")
    rs.from_parquet(files, catalog.uri_of("db.t"), ["id"])
    return catalog


def _rows(start: int) -> pa.Table:
    return pa.table({"id": range(start, start + 10), "v": range(10)})


SUBJECTS = {
    "analyze": Subject(
        Analyze,
        overlapping,
        "CALL system.analyze('db', 't', distinct_counts => TRUE)",
        writes_files=False,
    ),
    "add_files": Subject(
        AddFiles,
        beside_files,
        "CALL system.add_files('db', 't', '{folder}/more', copy => TRUE)",
        writes_files=True,
    ),
    "placed": Subject(
        AddFiles,
        beside_files,
        "CALL system.add_files('db', 't', '{folder}/more')",
        writes_files=False,
    ),
    "migrate": Subject(Migrate, imported, "CALL system.migrate('db', 't')", writes_files=True),
    "vectors": Subject(
        BuildDeletionVectors,
        overlapping,
        "CALL system.build_deletion_vectors('db', 't')",
        writes_files=True,
    ),
    "merged vectors": Subject(
        RewritePositionDeleteFiles,
        with_vectors,
        "CALL system.rewrite_position_delete_files('db', 't')",
        writes_files=True,
    ),
    "rewrite": Subject(
        RewriteDataFiles,
        overlapping,
        "CALL system.rewrite_data_files(table => 'db.t', options => map("
        "'rewrite-all', 'true', 'max-file-group-size-bytes', '1'))",
        writes_files=True,
    ),
}


def with_small_tasks(patch: Any) -> None:
    """Let a task have few bytes, so that small tables have several."""
    for module in (add_files, analyze, vector_tasks):
        patch.setattr(module, "_TASK_BYTES", 1)
    patch.setattr("rowsieve.changes.vector_merging.FILE_BYTES", 40)  # two or three vectors
    patch.setattr("rowsieve.procedures.built_ins.placed_additions._TASK_FILES", 1)


def described(catalog: rs.Catalog) -> dict[str, Any]:
    """What a call may have changed: rows, files by kind, statistics, sketches and vectors."""
    table = catalog.open_table("db.t")
    kinds = table.files().column("kind").to_pylist()
    vectors = table.handle.pinned.parts.vectors()
    return {
        "version": table.version,
        "rows": sorted(table.scan().to_arrow().to_pylist(), key=repr),
        "data files": kinds.count("data"),
        "read": table.scan("v = 2").explain().parts_read,
        "distinct": table.distinct_counts(),
        "vectors": sorted(-1 if ref is None else ref.rows for ref in vectors),
    }


def expected(subject: Subject, folder: Path) -> dict[str, Any]:
    """What the call makes of a twin, without faults."""
    catalog = subject.lake(folder)
    catalog.call(subject.call.format(folder=folder))
    return described(catalog)
