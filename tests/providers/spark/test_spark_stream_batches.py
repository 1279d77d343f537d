"""What tasks send of a micro-batch, and what its commit does with it, without a session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StringType, StructField, StructType

import rowsieve as rs
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    KeyViolation,
    SchemaMismatch,
    UnsupportedOperation,
)
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes import stream_sink
from rowsieve.providers.spark.writes.stream_sink import RowsieveStreamWriter, StreamWritten
from tests.stores.s3_server import S3

pytestmark = pytest.mark.spark


def columns(*names: str) -> StructType:
    """Columns of whole numbers, but for the text `op`."""
    kinds = [StringType() if name == "op" else LongType() for name in names]
    return StructType([StructField(*each) for each in zip(names, kinds, strict=True)])


ROWS = columns("id", "v")
CHANGES = columns("id", "v", "op", "at")
MERGED = {"mode": "changes", "op": "op", "sequence": "at"}


@pytest.fixture(autouse=True)
def one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_sink, "_query_id", lambda: "query")


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(str(tmp_path / "t"), {"id": [1, 2], "v": [0, 0]}, key=["id"])


def writer(
    table: rs.Table, schema: StructType = ROWS, *, overwrite: bool = False, **options: str
) -> RowsieveStreamWriter:
    parsed = WriteOptions.parse_stream({"path": table.uri, **options})
    return RowsieveStreamWriter.begin(parsed, schema, overwrite=overwrite)


def task(
    table: rs.Table, schema: StructType, rows: Sequence[tuple[Any, ...]], **options: Any
) -> StreamWritten:
    kinds = {"long": pa.int64(), "string": pa.string()}
    names = [field.name for field in schema]
    types = [kinds["string" if name == "op" else "long"] for name in names]
    arrays = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(types)]
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    message = writer(table, schema, **options).write(iter([batch]))
    assert isinstance(message, StreamWritten)
    return message


def run(
    table: rs.Table,
    number: int,
    *tasks: Sequence[tuple[Any, ...]],
    schema: StructType = ROWS,
    **options: Any,
) -> None:
    messages = [task(table, schema, rows, **options) for rows in tasks]
    writer(table, schema, **options).commit(messages, number)


def content(table: rs.Table) -> dict[int, int]:
    rows = table.scan().to_arrow().to_pylist()
    return {row["id"]: row["v"] for row in rows}


def version(table: rs.Table) -> int:
    return rs.open_table(table.uri).version


def test_the_rows_of_small_tasks_become_one_part(table: rs.Table) -> None:
    run(table, 0, [(9, 1), (2, 1)], [(3, 1)], [], mode="upsert")
    assert content(table) == {1: 0, 2: 1, 3: 1, 9: 1}
    commit = table.history()[0]
    assert (commit.operation, commit.parts_added) == ("upsert", 1)
    assert (commit.rows_written, commit.rows_deleted) == (3, 0)


def test_tasks_with_many_rows_write_parts(table: rs.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    small = task(table, ROWS, [(3, 1)], mode="upsert")
    monkeypatch.setattr(stream_sink, "SENT_BYTES", 16)
    large = task(table, ROWS, [(5, 1), (4, 1)], mode="upsert")
    assert (bool(small.rows), small.manifest, large.rows) == (True, b"", b"")
    writer(table, mode="upsert").commit([small, large], 0)
    assert content(table) == {1: 0, 2: 0, 3: 1, 4: 1, 5: 1}
    assert (table.history()[0].parts_added, table.history()[0].rows_written) == (2, 3)
    twice = task(table, ROWS, [(7, 1), (9, 1)], mode="upsert")
    monkeypatch.undo()
    monkeypatch.setattr(stream_sink, "_query_id", lambda: "query")
    again = task(table, ROWS, [(8, 1), (9, 2)], mode="upsert")
    with pytest.raises(KeyViolation, match=r"\{'id': 9\}"):
        writer(table, mode="upsert").commit([twice, again], 1)
    assert version(table) == 1


def test_batches_of_two_queries_have_the_same_numbers(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token without the id of its query would take the second one's rows for written."""
    for key, query in enumerate(("one", "other"), 5):
        monkeypatch.setattr(stream_sink, "_query_id", lambda query=query: query)
        for number in (0, 1):
            run(table, number, [(key, number)], mode="upsert")
    assert content(table) == {1: 0, 2: 0, 5: 1, 6: 1}
    tokens = rs.open_table(table.uri).handle.pinned.tokens
    assert {name: last.sequence for name, last in tokens.items()} == {
        "spark-stream:one": 1,
        "spark-stream:other": 1,
    }


@pytest.mark.parametrize("mode", ["upsert", "changes"])
def test_a_batch_that_was_committed_is_not_committed_again(table: rs.Table, mode: str) -> None:
    options = MERGED if mode == "changes" else {"mode": "upsert"}
    schema = CHANGES if mode == "changes" else ROWS
    rows = [(5, 1, "u", 1) if mode == "changes" else (5, 1)]
    for number in (0, 1):
        run(table, number, rows, schema=schema, **options)
    table.upsert({"id": [5], "v": [7]})
    files = {path.name for path in Path(table.uri.removeprefix("file://"), "data").iterdir()}
    for number in (0, 1):
        run(table, number, rows, schema=schema, **options)
    assert content(table) == {1: 0, 2: 0, 5: 7}
    now = {path.name for path in Path(table.uri.removeprefix("file://"), "data").iterdir()}
    assert (version(table), now) == (3, files)


def test_changes_are_reduced_over_all_tasks(table: rs.Table) -> None:
    run(
        table,
        0,
        [(1, 1, "u", 1), (2, None, "d", 9), (3, 3, "c", 4)],
        [(1, 2, "u", 3), (2, 5, "u", 8), (3, None, "d", 5), (4, 4, "i", 1)],
        [(1, 3, "u", 2)],
        schema=CHANGES,
        **MERGED,
    )
    assert content(table) == {1: 2, 4: 4}
    assert (table.history()[0].rows_written, table.history()[0].rows_deleted) == (2, 2)
    with pytest.raises(KeyViolation, match="the same 'at'"):
        run(table, 1, [(1, 1, "u", 1)], [(1, 2, "u", 1)], schema=CHANGES, **MERGED)
    assert version(table) == 1


def test_deletes_of_large_and_small_tasks_are_counted_together(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = task(table, columns("id"), [(1,)], mode="delete")
    monkeypatch.setattr(stream_sink, "SENT_BYTES", 0)
    large = task(table, columns("id"), [(2,), (7,)], mode="delete")
    writer(table, columns("id"), mode="delete").commit([small, large], 0)
    assert content(table) == {}
    assert (table.history()[0].rows_written, table.history()[0].rows_deleted) == (0, 3)


def test_deletes_may_name_a_key_in_several_tasks(table: rs.Table) -> None:
    keys = columns("id")
    run(table, 0, [(1,), (7,)], [(1,)], schema=keys, mode="delete")
    assert content(table) == {2: 0}


def test_a_complete_result_replaces_the_table_and_may_empty_it(table: rs.Table) -> None:
    run(table, 0, [(3, 1)], [(4, 1)], overwrite=True)
    assert content(table) == {3: 1, 4: 1}
    run(table, 1, [], [], overwrite=True)
    assert (content(table), version(table)) == ({}, 2)
    run(table, 2, [], overwrite=True)
    assert version(table) == 2


def test_a_batch_without_rows_commits_nothing(table: rs.Table) -> None:
    run(table, 0, [], [], mode="upsert")
    run(table, 1, mode="upsert")
    run(table, 2, [], schema=CHANGES, **MERGED)
    assert version(table) == 0


def test_rows_that_spark_drops_fail_a_batch(table: rs.Table) -> None:
    """With the continuous trigger Spark calls the writer of no task, and commits all the same."""
    for messages in ([None, None], [task(table, ROWS, [(5, 1)], mode="upsert"), None]):
        with pytest.raises(UnsupportedOperation, match=r"trigger\(continuous=\.\.\.\)"):
            writer(table, mode="upsert").commit(messages, 0)
    assert version(table) == 0


def test_columns_that_change_during_a_batch_fail_it(table: rs.Table) -> None:
    message = task(table, ROWS, [(5, 1)], mode="upsert")
    table.rename_column("v", "w")
    table.add_column("v", "int64")
    table.drop_column("w")
    late = task(table, ROWS, [(6, 1)], mode="upsert")
    for messages in ([message], [late, message]):
        with pytest.raises(CommitConflict, match="repeats the batch"):
            writer(table, mode="upsert").commit(messages, 0)
    assert version(table) == 3


@pytest.mark.parametrize(
    ("options", "schema", "error", "text"),
    [
        ({"mode": "append"}, ROWS, UnsupportedOperation, r"append: the table has the key \(id\)"),
        ({"mode": "merge"}, ROWS, InvalidInput, "append, upsert, delete, changes"),
        ({"mode": "changes"}, CHANGES, InvalidInput, "needs the option op"),
        ({"mode": "changes", "op": "op"}, CHANGES, InvalidInput, "needs the option sequence"),
        ({**MERGED, "missing": "null"}, CHANGES, InvalidInput, "missing is error or keep"),
        (
            {"mode": "upsert", "op": "op", "sequence": "at"},
            CHANGES,
            InvalidInput,
            "of mode changes",
        ),
        ({"mode": "upsert", "missing": "keep"}, ROWS, InvalidInput, "missing is of mode changes"),
        ({**MERGED, "op": "kind"}, CHANGES, SchemaMismatch, r"no column 'kind' \(option op\)"),
        (MERGED, columns("id", "op", "at"), SchemaMismatch, "'v'"),
        ({"mode": "upsert"}, CHANGES, SchemaMismatch, "that the table does not have"),
        ({"mode": "upsert", "token_app": "mine"}, ROWS, InvalidInput, "unknown option 'token_app'"),
    ],
)
def test_options_and_columns_are_checked_before_a_batch(
    table: rs.Table, options: dict[str, Any], schema: StructType, error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        writer(table, schema, **options)


def test_changes_that_lack_a_column_keep_its_value(table: rs.Table) -> None:
    schema = columns("id", "op", "at")
    run(table, 0, [(1, "u", 1), (5, "u", 1)], schema=schema, **MERGED, missing="keep")
    assert content(table) == {1: 0, 2: 0, 5: None}


def test_a_change_that_occurs_again_in_a_batch_counts_once(table: rs.Table) -> None:
    run(table, 0, [(1, 7, "u", 1)], [(1, 7, "c", 1), (2, 0, "d", 1)], schema=CHANGES, **MERGED)
    assert content(table) == {1: 7}


def test_late_batches_keep_the_event_order_of_the_table(tmp_path: Path) -> None:
    table = rs.create_table(
        str(tmp_path / "ordered"),
        pa.schema([("id", pa.int64()), ("v", pa.int64()), ("at", pa.int64())]),
        key=["id"],
        sequence=["at"],
    )
    schema, rows = columns("id", "v", "at", "op"), columns("id", "v", "at")
    run(table, 0, [(1, 20, 20, "u"), (2, 30, 30, "d")], schema=schema, mode="changes", op="op")
    run(table, 1, [(1, 10, 10, "u")], [(2, 25, 25, "u")], schema=schema, mode="changes", op="op")
    assert content(table) == {1: 20}
    run(table, 2, [(1, 15, 15)], [(3, 1, 1)], schema=rows, mode="upsert")
    run(table, 2, [(9, 1, 1)], schema=rows, mode="upsert")  # a batch that is repeated
    assert content(table) == {1: 20, 3: 1}


def test_a_method_of_the_table_gets_the_options_of_the_store(s3: S3) -> None:
    fields = [(name, pa.int64()) for name in ("id", "at")]
    options = s3.options
    table = rs.create_table(
        s3.fresh_uri(), pa.schema(fields), key=["id"], sequence=["at"], storage_options=options
    )
    given = {f"storage.secret.{name}": str(value) for name, value in options.items()}
    run(table, 0, [(1, 5)], schema=columns("id", "at"), mode="upsert", **given)
    assert table.refresh() == 1


def test_without_the_id_of_the_query_nothing_is_written(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    with pytest.raises(UnsupportedOperation, match=r"sql\.streaming\.queryId"):
        task(table, ROWS, [(5, 1)], mode="upsert")
