"""`df.write` that creates a table, and `replaceWhere`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    InvalidInput,
    RowsieveError,
    TableExists,
    TableNotFound,
    UnknownColumn,
    UnsupportedOperation,
)
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes.write_tasks import RowsieveWriter

pytestmark = pytest.mark.spark


def frame(spark: Any, *ids: int, text: str = "v") -> Any:
    rows = pa.table({"id": pa.array(ids, pa.int64()), "s": [f"{text}{i}" for i in ids]})
    return spark.createDataFrame(rows)


def save(written: Any, uri: str, how: str = "append", **options: object) -> None:
    written.write.format("rowsieve").mode(how).options(**options).save(uri)


def check(written: Any, uri: str, how: str = "append", **options: str) -> None:
    """The checks of a write before its first task, without the costs of a job."""
    parsed = {"path": uri, **{name.lower(): value for name, value in options.items()}}
    RowsieveWriter.begin(WriteOptions.parse(parsed), written.schema, overwrite=how == "overwrite")


def content(uri: str) -> list[tuple[int, str]]:
    rows = rs.open_table(uri).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["s"]) for row in rows)


def versions(uri: str) -> list[str]:
    return [commit.operation for commit in rs.open_table(uri).history()][::-1]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def test_a_write_creates_its_table_in_one_commit(spark: Any, uri: str) -> None:
    save(frame(spark, 1, 2, 3), uri, key="ID", **{"property.checkpoint_interval": "7"})
    table = rs.open_table(uri)
    assert (table.version, table.key) == (0, ("id",))
    assert table.handle.pinned.table.properties == {"checkpoint_interval": "7"}
    columns = table.handle.pinned.schema
    assert [column.nullable for column in columns] == [False, True]
    assert content(uri) == [(1, "v1"), (2, "v2"), (3, "v3")]
    save(frame(spark, 3, 4, text="w"), uri, key="id", mode="upsert")
    assert content(uri) == [(1, "v1"), (2, "v2"), (3, "w3"), (4, "w4")]
    assert versions(uri) == ["create", "upsert"]


def test_an_overwrite_creates_a_table_without_a_key(spark: Any, uri: str) -> None:
    for _ in range(2):
        save(frame(spark, 1, 1), uri, "overwrite", key="")
        assert (rs.open_table(uri).key, content(uri)) == ((), [(1, "v1"), (1, "v1")])
    assert versions(uri) == ["create", "overwrite"]


def test_if_exists_is_as_the_save_modes_of_spark(spark: Any, uri: str) -> None:
    save(frame(spark, 1), uri, key="id", if_exists="error")
    with pytest.raises(TableExists, match=r"a table already exists at .*if_exists"):
        check(frame(spark, 2), uri, key="id", if_exists="error")
    save(frame(spark, 2), uri, key="id", if_exists="ignore")
    assert (content(uri), versions(uri)) == ([(1, "v1")], ["create"])
    with pytest.raises(Exception, match="ErrorIfExists"):  # Spark's own refusal
        frame(spark, 2).write.format("rowsieve").option("key", "id").save(uri)


def test_a_frame_without_rows_creates_an_empty_table(spark: Any, uri: str) -> None:
    save(frame(spark, 1).where("id > 5"), uri, key="id")
    assert (rs.open_table(uri).version, content(uri)) == (0, [])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, TableNotFound, "no table at"),
        ({"key": "no"}, UnknownColumn, "no column 'no'"),
        ({"key": "id,id"}, RowsieveError, "id"),
        ({"key": "id", "mode": "delete"}, UnsupportedOperation, "option mode='delete'"),
        ({"key": "", "mode": "upsert"}, UnsupportedOperation, "has no key; omit"),
        ({"key": "id", "token_app": "a", "token_sequence": "1"}, InvalidInput, "token_app"),
        ({"key": "id", "replaceWhere": "id = 1"}, InvalidInput, "replaceWhere: no table"),
        ({"key": "id", "property.nonsense": "1"}, InvalidInput, "nonsense"),
        ({"key": "id", "kee": "1"}, InvalidInput, "unknown option 'kee' .* did you mean 'key'"),
        ({"if_exists": "error"}, InvalidInput, "if_exists and property"),
        ({"key": "id", "if_exists": "maybe"}, InvalidInput, "error or ignore, not 'maybe'"),
    ],
)
def test_a_wrong_creation_is_refused_before_the_first_task(
    spark: Any, uri: str, options: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check(frame(spark, 1), uri, **options)
    assert not Path(uri).exists()


def test_null_and_repeated_keys_create_no_table(spark: Any, uri: str) -> None:
    nulls = spark.sql("SELECT if(id = 2, NULL, id) AS id, 'x' AS s FROM range(4)")
    with pytest.raises(
        Exception, match=r"KeyViolation: .*'id' is NULL in .*{'id': None, 's': 'x'}"
    ):
        save(nulls, uri, key="id")
    with pytest.raises(Exception, match=r"KeyViolation: .*{'id': 1}"):
        save(frame(spark, 1, 2).union(frame(spark, 1, text="w")), uri, key="id")
    with pytest.raises(TableNotFound):
        rs.open_table(uri)


def test_a_folder_with_other_files_is_no_place_for_a_table(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InvalidInput, match=r"cannot create a table in .*notes.txt"):
        check(frame(spark, 1), str(tmp_path), key="id")


def test_options_of_a_new_table_must_fit_the_one_that_exists(spark: Any, uri: str) -> None:
    rs.create_table(uri, frame(spark, 1).schema, key=["id"])
    for options, message in [
        ({"key": "s"}, "has the key"),
        ({"key": "id", "property.visibility": "eager"}, "visibility=eager"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            check(frame(spark, 2), uri, mode="upsert", **options)


def test_a_table_is_created_from_a_schema_of_spark(spark: Any, uri: str) -> None:
    source = frame(spark, 1, 2)
    table = rs.create_table(uri, source.schema, key=["id"])
    assert (table.schema, table.version) == (
        pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())]),
        0,
    )
    assert table.write_spark(source, "upsert").rows_written == 2


@pytest.mark.parametrize("key", ["id", ""])
def test_replace_where_replaces_the_rows_that_match(spark: Any, uri: str, key: str) -> None:
    save(frame(spark, *range(10)), uri, key=key)
    save(frame(spark, 4, 5, text="w"), uri, "overwrite", replaceWhere="id BETWEEN 3 AND 6")
    kept = [(i, f"v{i}") for i in (0, 1, 2, 7, 8, 9)]
    assert content(uri) == sorted([*kept, (4, "w4"), (5, "w5")])
    with pytest.raises(Exception, match=r"InvalidData: .*do not match where=, such as {'id': 7"):
        save(frame(spark, 5, 7), uri, "overwrite", replaceWhere="id BETWEEN 3 AND 6")
    with pytest.raises(Exception, match="EmptyData"):
        save(frame(spark, 5).where("id > 9"), uri, "overwrite", replaceWhere="id = 5")
    with pytest.raises(UnknownColumn, match="no column 'x'"):
        check(frame(spark, 5), uri, "overwrite", replaceWhere="x = 5")
    mode = "upsert" if key else "append"
    with pytest.raises(InvalidInput, match="replaceWhere is for the save mode overwrite"):
        check(frame(spark, 5), uri, mode=mode, replaceWhere="id = 5")
    assert versions(uri) == ["create", "overwrite"]


def test_replace_where_takes_no_key_of_a_row_that_stays(spark: Any, uri: str) -> None:
    save(frame(spark, 1, 2, 3), uri, key="id")
    moved = spark.createDataFrame([(2, "v1")], "id long, s string")
    with pytest.raises(Exception, match=r"KeyViolation: .*{'id': 2}, belong to rows that where"):
        save(moved, uri, "overwrite", replaceWhere="s = 'v1'")
    assert versions(uri) == ["create"]


def test_replace_where_says_when_it_needs_settings(spark: Any, uri: str) -> None:
    rows = spark.sql("SELECT 1L AS id, timestamp '2024-01-01 00:00:00' AS at")
    save(rows, uri, key="id")
    where = "hour(at) >= 0"
    with pytest.raises(InvalidInput, match="give the options time_zone and ansi"):
        check(rows, uri, "overwrite", replaceWhere=where)
    save(rows, uri, "overwrite", replaceWhere=where, time_zone="UTC", ansi="true")
    assert versions(uri) == ["create", "overwrite"]


def test_a_write_spark_overwrites_all_rows_or_some(spark: Any, uri: str) -> None:
    table = rs.create_table(uri, frame(spark, 1, 2, 3).toArrow(), key=["id"])
    commit = table.write_spark(frame(spark, 2, text="w"), "overwrite", where="id = 2")
    assert (commit.operation, commit.rows_written, commit.version) == ("overwrite", 1, 1)
    assert content(uri) == [(1, "v1"), (2, "w2"), (3, "v3")]
    table.write_spark(frame(spark, 9), "overwrite")
    assert content(uri) == [(9, "v9")]
    with pytest.raises(InvalidInput, match="where= is for mode='overwrite'"):
        table.write_spark(frame(spark, 9), "upsert", where="id = 9")


def test_a_write_keeps_vectors_of_an_eager_table(spark: Any, uri: str) -> None:
    save(frame(spark, *range(8)), uri, key="id", **{"property.visibility": "eager"})
    table = rs.open_table(uri)
    for mode in ("upsert", "delete"):
        rows = frame(spark, 2, 3, text="w")
        save(rows if mode == "upsert" else rows.select("id"), uri, mode=mode)
        table.refresh()
        old = table.handle.pinned.parts
        assert sum(ref is not None for ref in old.vectors()) >= 1, mode
    assert len(content(uri)) == 6


def test_a_write_creates_a_table_with_an_event_order(spark: Any, uri: str) -> None:
    rows = spark.sql("SELECT * FROM VALUES (1L, 5L), (2L, 7L) AS v(id, lsn)")
    save(rows, uri, key="id", sequence="lsn")
    table = rs.open_table(uri)
    assert (table.key, table.sequence, versions(uri)) == (("id",), ("lsn",), ["create"])
    assert table.upsert(pa.table({"id": [1, 2], "lsn": [4, 8]})).rows_late == 1
    found = sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())
    assert found == [(1, 5), (2, 8)]
    with pytest.raises(Exception, match="exists, and its event order is by"):
        save(rows, uri, key="id", sequence="id")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("CAST(NULL AS BIGINT)", "NULL"),
        ("double('NaN')", "NaN, which has no order"),
        ("'text'", "cannot compare"),
        ("true", "cannot order"),
    ],
)
def test_sequences_without_an_order_create_nothing(
    spark: Any, uri: str, column: str, words: str
) -> None:
    rows = spark.sql(f"SELECT 1L AS id, {column} AS lsn")
    with pytest.raises(Exception, match=words):
        save(rows, uri, key="id", sequence="lsn")
    with pytest.raises(rs.errors.TableNotFound):
        rs.open_table(uri)
