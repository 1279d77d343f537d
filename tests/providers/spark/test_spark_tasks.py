"""What a task makes of its rows, without Spark: runs of bounded size, in parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

import rowsieve as rs
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.errors import KeyViolation
from rowsieve.planner.overlap import overlap_groups
from rowsieve.providers.spark.row_types import arrow_schema_of
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes import write_tasks
from rowsieve.providers.spark.writes.write_tasks import RowsieveWriter, WrittenParts
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.logical import Field, Int
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

pytestmark = pytest.mark.spark

SCHEMA = Schema(0, (Field(1, "id", Int(), nullable=False), Field(2, "v", Int())))
SPARK = spark_schema(SCHEMA)
KEYS = spark_schema(SCHEMA.select(("id",)))


@pytest.fixture(autouse=True)
def runs_of_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_tasks, "RUN_BYTES", 1)


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(
        str(tmp_path / "t"), pa.schema([("id", pa.int64()), ("v", pa.int64())]), key=["id"]
    )


def batches(*runs: list[int]) -> Iterator[pa.RecordBatch]:
    for run in runs:
        yield pa.RecordBatch.from_pydict({"id": run, "v": run}, schema=arrow_schema_of(SPARK))


def begin(table: rs.Table, mode: str = "upsert") -> RowsieveWriter:
    options = WriteOptions.parse({"path": table.uri, "mode": mode})
    return RowsieveWriter.begin(options, KEYS if mode == "delete" else SPARK)


def written(table: rs.Table, *runs: list[int]) -> tuple[RowsieveWriter, WrittenParts]:
    task = begin(table)
    message = task.write(batches(*runs))
    assert isinstance(message, WrittenParts)
    return task, message


def write_and_commit(table: rs.Table, *runs: list[int]) -> None:
    task, message = written(table, *runs)
    task.commit([message])


def groups(table: rs.Table, message: WrittenParts) -> list[int]:
    """How many parts each overlap group has."""
    parts = PartTable.from_ipc(message.manifest)
    order = KeyOrder.of(SCHEMA, ["id"])
    return [len(group) for group in overlap_groups(parts.table, order)]


def ids(table: rs.Table) -> list[int]:
    found: list[int] = rs.open_table(table.uri).scan(order_by_key=True).to_arrow()["id"].to_pylist()
    return found


def test_sorted_runs_go_on_in_one_part(table: rs.Table) -> None:
    task, message = written(table, [1, 2], [3, 4], [9, 5])
    assert groups(table, message) == [1]
    assert message.rows_written == 6
    task.commit([message])
    assert ids(table) == [1, 2, 3, 4, 5, 9]


def test_unsorted_runs_become_parts_that_are_checked(table: rs.Table) -> None:
    task, message = written(table, [1, 5], [2, 6], [7])
    assert groups(table, message) == [2]
    task.commit([None, message])
    assert ids(table) == [1, 2, 5, 6, 7]


@pytest.mark.parametrize("runs", [([1, 5], [5, 6]), ([1, 5], [0, 5]), ([1, 5], [1]), ([3, 3],)])
def test_a_key_in_two_runs_is_found(table: rs.Table, runs: tuple[list[int], ...]) -> None:
    with pytest.raises(KeyViolation, match="dropDuplicates"):
        write_and_commit(table, *runs)
    assert rs.open_table(table.uri).version == 0


def test_a_key_deleted_in_neighbouring_runs_is_deleted_once(table: rs.Table) -> None:
    table.upsert(pa.table({"id": [1, 2, 3, 4], "v": [0, 0, 0, 0]}))
    task = begin(table, "delete")
    message = task.write(batch.select(["id"]) for batch in batches([1, 2], [2], [2, 3]))
    assert isinstance(message, WrittenParts)
    assert (groups(table, message), message.rows_deleted) == ([1], 3)
    task.commit([message])
    assert ids(table) == [4]


def test_a_task_without_rows_sends_an_empty_message(table: rs.Table) -> None:
    task, message = written(table, [])
    assert message == WrittenParts(b"", 0, 0)
    task.commit([message, None])
    assert rs.open_table(table.uri).version == 0


def test_a_part_of_a_task_has_the_statistics_and_blooms_of_an_upsert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_tasks, "RUN_BYTES", 2**20)
    columns = pa.schema(
        [("id", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("l", pa.list_(pa.int32()))]
    )
    count = 200
    texts = [None if i % 9 == 0 else f"{'long ' * 30}{i % 7}" for i in range(count)]
    floats = [float("nan") if i == 5 else -0.0 if i == 6 else i / 3 for i in range(count)]
    lists = [None if i % 5 == 0 else [i, None][: i % 3] for i in range(count)]
    rows = pa.table({"id": range(count), "x": floats, "s": texts, "l": lists}, schema=columns)
    by_task, by_upsert = (
        rs.create_table(tmp_path / name, columns, key=["id"]) for name in ("task", "upsert")
    )
    spark = spark_schema(by_task.handle.pinned.schema)
    task = RowsieveWriter.begin(WriteOptions.parse({"path": by_task.uri, "mode": "upsert"}), spark)
    task.commit([task.write(iter(rows.cast(arrow_schema_of(spark)).to_batches()))])
    by_upsert.upsert(rows)
    by_task.refresh()
    one, other = (each.handle.pinned.parts.table for each in (by_task, by_upsert))
    own = ("part_id", "path", "checksum", "tail")  # names are random, and the footer has one
    same = [name for name in one.column_names if not any(part in name for part in own)]
    assert one.column_names == other.column_names
    assert len(same) > len(one.column_names) // 2
    assert one.select(same).to_pylist() == other.select(same).to_pylist()
    files = [next((tmp_path / name / "data").glob("*.parquet")) for name in ("task", "upsert")]
    assert files[0].read_bytes() == files[1].read_bytes()  # with pages, indexes and Bloom filters
