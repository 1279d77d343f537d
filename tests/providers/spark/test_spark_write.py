from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    ConstraintViolation,
    EmptyData,
    InvalidInput,
    KeyViolation,
    SchemaMismatch,
    UnsupportedOperation,
)
from tests.faults.vocabulary import Fault
from tests.profiles import IS_DEEP

pytestmark = pytest.mark.spark
ATTEMPTS = 4  # of a task, in the session of the tests


def rows_of(*ids: int, text: str = "v") -> pa.Table:
    texts = pa.array([f"{text}{i}" for i in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "s": texts})


def named(faults: Sequence[Fault]) -> str:
    return " ".join(fault.name for fault in faults)


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(str(tmp_path / "t"), rows_of(0, 1, 2), key=["id"])


@pytest.fixture
def log(tmp_path: Path) -> rs.Table:
    return rs.create_table(str(tmp_path / "log"), rows_of(0, 1, 2))


def frame(spark: Any, *ids: int, text: str = "v", partitions: int = 1) -> Any:
    return spark.createDataFrame(rows_of(*ids, text=text)).repartition(partitions)


def spread(spark: Any, *ids: int, text: str = "v") -> Any:
    """A frame of two tasks; a union of such frames has the tasks of both."""
    found = spark.createDataFrame(rows_of(*ids, text=text))
    assert found.rdd.getNumPartitions() == 2
    return found


def save(written: Any, table: rs.Table, how: str = "append", **options: object) -> None:
    written.write.format("rowsieve").mode(how).options(**options).save(table.uri)


def content(table: rs.Table) -> dict[int, str]:
    rows = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["s"] for row in rows}


@pytest.mark.parametrize("name", ["table", "log"])
def test_tasks_obey_constraints(spark: Any, name: str, request: pytest.FixtureRequest) -> None:
    written: rs.Table = request.getfixturevalue(name)
    written.add_constraint("short", "length(s) < 3")
    mode: Any = "upsert" if written.key else "append"
    before = content(written)
    with pytest.raises(ConstraintViolation, match=r"'short'.*has \{.*'s': 'long[78]'\}"):
        written.write_spark(spread(spark, 7, 8, text="long"), mode)
    with pytest.raises(Exception, match="the constraint 'short'"):
        save(spread(spark, 7, 8, text="long"), written, mode=mode)
    written.refresh()
    assert content(written) == before
    written.write_spark(spread(spark, 7, 8), mode)
    frame_of_some = written.to_spark(spark, where="length(s) > 5")
    assert frame_of_some.count() == 0
    assert len(content(written)) == 5


def data_files(table: rs.Table) -> set[str]:
    folder = Path(table.uri.removeprefix("file://"))
    return {path.name for path in (folder / "data").iterdir()}


def unchanged(table: rs.Table) -> bool:
    return rs.open_table(table.uri).version == 0


def test_an_upsert_replaces_and_adds_in_one_commit(spark: Any, table: rs.Table) -> None:
    save(frame(spark, 2, 3, 4, text="w", partitions=2), table, mode="upsert")
    assert content(table) == {0: "v0", 1: "v1", 2: "w2", 3: "w3", 4: "w4"}
    (commit, _) = table.history()
    assert (commit.version, commit.operation, commit.rows_written) == (1, "upsert", 3)


def test_a_delete_needs_the_key_alone(spark: Any, table: rs.Table) -> None:
    save(frame(spark, 1, 1, 9).select("id"), table, mode="delete")
    assert content(table) == {0: "v0", 2: "v2"}
    assert (table.history()[0].operation, table.history()[0].rows_deleted) == ("delete_keys", 2)


def test_rows_are_appended_to_a_table_without_a_key(spark: Any, log: rs.Table) -> None:
    save(frame(spark, 2, 3, partitions=2), log)
    save(spark.createDataFrame(pa.table({"id": [4]})), log, mode="append")
    rows = log.scan().to_arrow().sort_by("id").to_pydict()
    assert rows == {"id": [0, 1, 2, 2, 3, 4], "s": ["v0", "v1", "v2", "v2", "v3", None]}


def test_an_overwrite_replaces_everything(spark: Any, table: rs.Table, log: rs.Table) -> None:
    for each in (table, log):
        save(frame(spark, 7, 8, partitions=2), each, "overwrite")
        assert content(each) == {7: "v7", 8: "v8"}
        assert each.history()[0].operation == "overwrite"


def test_columns_match_by_name_in_any_order_and_case(spark: Any, table: rs.Table) -> None:
    save(frame(spark, 5).selectExpr("upper(s) AS S", "id AS ID"), table, mode="upsert")
    table.write_spark(frame(spark, 6).selectExpr("s AS S", "id AS ID"), "upsert")
    assert content(table) == {0: "v0", 1: "v1", 2: "v2", 5: "V5", 6: "v6"}


def test_a_table_writes_frames_and_pins_the_commit(spark: Any, table: rs.Table) -> None:
    commit = table.write_spark(frame(spark, 2, 3, text="w", partitions=3), "upsert")
    assert (commit.version, commit.rows_written, table.version) == (1, 2, 1)
    commit = table.write_spark(frame(spark, 0, 3).select("id"), "delete")
    assert (commit.version, commit.rows_deleted, table.version) == (2, 2, 2)
    assert content(table) == {1: "v1", 2: "w2"}


def test_a_thread_without_an_active_session_writes(spark: Any, log: rs.Table) -> None:
    late = frame(spark, 5)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(log.write_spark, late, "append").result().rows_written == 1


def test_tasks_of_a_table_write_disjoint_ranges(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "r"), rows_of().schema, key=["id"])
    shuffled = spark.range(3000).selectExpr("id", "concat('v', id) AS s").repartition(4, "s")
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    try:
        commit = table.write_spark(shuffled, "upsert")
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    assert commit.parts_added == 3
    splits = table.scan(order_by_key=True).plan().splits
    assert [len(piece.parts) for split in splits for piece in split.pieces] == [1, 1, 1]
    assert table.scan().count() == 3000


@pytest.mark.skipif(not IS_DEEP, reason="seven jobs of Spark's")
def test_keys_of_several_columns_with_odd_names_in_any_order(spark: Any, tmp_path: Path) -> None:
    """Rows come in descending order; a write in one pass that cannot be one is repeated."""
    from pyspark.sql import functions

    key = ["a.b", "x`y", "É É"]
    types = [pa.int64(), pa.string(), pa.int32()]
    columns = pa.schema([*zip(key, types, strict=True), ("v", pa.string())])
    table = rs.create_table(str(tmp_path / "odd"), columns, key=key)
    names = "id % 7 AS `a.b`", "concat('k', id) AS `x``y`", "int(-id) AS `É É`", "string(id) AS v"
    rows = spark.range(2000).selectExpr(*names).orderBy(functions.desc("v"))
    wanted = {(i % 7, f"k{i}", -i): f"{i}" for i in range(2000)}

    def found() -> dict[tuple[Any, ...], str]:
        return {tuple(row[name] for name in key): row["v"] for row in table.to_arrow().to_pylist()}

    for presorted in (None, True, False):
        assert table.write_spark(rows, mode="upsert", presorted=presorted).rows_written == 2000
        assert found() == wanted
    with pytest.raises(KeyViolation, match=r"have the key \{'a\.b': \d, 'x`y': 'k\d+', 'É É': -"):
        table.write_spark(rows.unionAll(rows.limit(1)), mode="upsert")
    gone = rows.where("v < '2'").select(*(f"`{name.replace('`', '``')}`" for name in key))
    table.write_spark(gone, mode="delete")
    wanted = {keys: v for keys, v in wanted.items() if v >= "2"}
    assert found() == wanted
    table.merge_spark(
        rows.where("`a.b` < 3"),
        on=["É É", "x`y", "a.b"],
        when_matched={"update": {"v": "concat(source.v, target.v)"}},
        when_not_matched="insert",
        when_not_matched_by_source={"delete": "*", "where": "target.`a.b` = 6"},
    )
    low = {(i % 7, f"k{i}", -i): f"{i}" for i in range(2000) if i % 7 < 3}
    merged = {keys: v * 2 if keys in wanted else v for keys, v in low.items()}
    assert found() == {keys: v for keys, v in wanted.items() if keys[0] != 6} | merged


def test_a_key_in_two_tasks_is_an_error_and_nothing_is_committed(
    spark: Any, table: rs.Table
) -> None:
    """Invariant 10: two tasks that write one key would give two winners."""
    twice = spread(spark, 10, 20, 30).union(spread(spark, 15, 20, 35, text="w"))
    with pytest.raises(Exception, match=r"KeyViolation: upsert: .* the key {'id': 20}"):
        save(twice, table, mode="upsert")
    with pytest.raises(KeyViolation, match=r"{'id': 20}"):
        table.write_spark(twice, "upsert")
    with pytest.raises(Exception, match=r"KeyViolation"):
        save(twice, table, "overwrite")
    assert unchanged(table)
    assert content(table) == {0: "v0", 1: "v1", 2: "v2"}


def test_overlapping_tasks_without_a_common_key_are_committed(spark: Any, table: rs.Table) -> None:
    both = spread(spark, *range(0, 2000, 2)).union(spread(spark, *range(1, 2000, 2)))
    save(both, table, mode="upsert")
    assert table.history()[0].parts_added == 4
    assert content(table) == {i: f"v{i}" for i in range(2000)}


def test_a_key_deleted_in_two_tasks_is_refused_unless_grouped(spark: Any, table: rs.Table) -> None:
    twice = spread(spark, 0, 1).union(spread(spark, 1, 2)).select("id")
    with pytest.raises(Exception, match="KeyViolation"):
        save(twice, table, mode="delete")
    assert unchanged(table)
    assert table.write_spark(twice, "delete").rows_deleted == 3
    assert content(table) == {}


@pytest.mark.parametrize(
    "faults",
    [
        (Fault.TASK_FAILED,),
        (Fault.TASK_KILLED,),
        (Fault.TASK_FAILED, Fault.TASK_FAILED_BEFORE),
        (Fault.TASK_KILLED_BEFORE, Fault.TASK_KILLED),
    ],
    ids=named,
)
def test_tasks_that_run_again_write_once(
    spark: Any, table: rs.Table, faults: tuple[Fault, ...]
) -> None:
    faulty = frame(spark, 5, 6, 7, 8, partitions=2).write.format("rowsieve_faulty")
    options = {"mode": "upsert", "metadata.task_faults": named(faults)}
    faulty.mode("append").options(**options).save(table.uri)
    assert content(table) == {0: "v0", 1: "v1", 2: "v2", 5: "v5", 6: "v6", 7: "v7", 8: "v8"}
    assert [commit.rows_written for commit in table.history()] == [4, 3]
    table.refresh()
    listed = table.handle.pinned.parts.table.column("data.path").to_pylist()
    orphans = data_files(table) - {path.removeprefix("data/") for path in listed}
    assert len(orphans) == 2  # each task wrote files in one attempt that failed


def test_a_task_that_always_fails_fails_the_write(spark: Any, table: rs.Table) -> None:
    faulty = frame(spark, 5, 6, 7, 8, partitions=2).write.format("rowsieve_faulty")
    options = {"metadata.task_faults": named([Fault.TASK_FAILED] * ATTEMPTS)}
    options |= {"mode": "upsert", "metadata.partition": "0"}
    with pytest.raises(Exception, match=Fault.TASK_FAILED.value):
        faulty.mode("append").options(**options).save(table.uri)
    assert unchanged(table)


def test_an_abort_after_the_commit_undoes_nothing(
    spark: Any, table: rs.Table, tmp_path: Path
) -> None:
    """Spark calls `abort` when `commit` raises, even if it landed (rule 15)."""
    faulty = frame(spark, 5, 6).write.format("rowsieve_faulty").mode("append")
    options = {"mode": "upsert", "metadata.commit_fault": Fault.LOST_ANSWER.name}
    with pytest.raises(Exception, match=Fault.LOST_ANSWER.value):
        faulty.options(**options).save(table.uri)
    assert (tmp_path / "aborted").read_text() == "1"
    assert content(table) == {0: "v0", 1: "v1", 2: "v2", 5: "v5", 6: "v6"}


def test_a_commit_in_between_does_not_conflict(spark: Any, table: rs.Table) -> None:
    faulty = frame(spark, 1, 5).write.format("rowsieve_faulty").mode("append")
    faulty.options(**{"mode": "upsert", "metadata.overtaken_by": "upsert"}).save(table.uri)
    assert content(table) == {0: "v0", 1: "v1", 2: "v2", 5: "v5", 100: "other"}
    assert rs.open_table(table.uri).version == 2


def test_another_table_in_its_place_is_a_conflict(spark: Any, table: rs.Table) -> None:
    faulty = frame(spark, 5).write.format("rowsieve_faulty").mode("append")
    with pytest.raises(Exception, match=r"CommitConflict: .* was replaced by another one"):
        faulty.options(**{"mode": "upsert", "metadata.overtaken_by": "create_table"}).save(
            table.uri
        )
    assert content(rs.open_table(table.uri)) == {7: "new"}


def test_a_token_is_committed_once(spark: Any, table: rs.Table) -> None:
    token: dict[str, Any] = {"mode": "upsert", "token_app": "nightly", "token_sequence": 4}
    save(frame(spark, 5), table, **token)
    files = data_files(table)
    save(frame(spark, 5, text="again"), table, **token)
    assert (content(table)[5], rs.open_table(table.uri).version) == ("v5", 1)
    assert data_files(table) == files
    save(frame(spark, 5, text="next"), table, **{**token, "token_sequence": 5})
    assert (content(table)[5], rs.open_table(table.uri).version) == ("next5", 2)


def test_metadata_is_kept_with_the_commit(spark: Any, table: rs.Table) -> None:
    save(frame(spark, 5), table, **{"mode": "upsert", "metadata.run": "7"})
    assert table.history()[0].metadata == {"run": "7"}


def test_an_empty_frame_commits_nothing(spark: Any, table: rs.Table) -> None:
    empty = frame(spark, 5).where("id < 0")
    save(empty, table, mode="upsert")
    commit = table.write_spark(empty, "upsert")
    assert (commit.version, commit.rows_written) == (0, 0)
    with pytest.raises(Exception, match=EmptyData.__name__):
        save(empty, table, "overwrite")
    assert unchanged(table)


@pytest.mark.parametrize(
    ("columns", "mode", "error"),
    [
        (["id"], "upsert", "SchemaMismatch: the data lacks column 's'"),
        (["id", "s", "id AS extra"], "upsert", "'extra' that the table does not have"),
        (["id", "id AS s"], "upsert", "'s' is string in the table, but int64"),
        (["s"], "upsert", "lacks the key column 'id'"),
        (["id", "s"], "delete", "'s' that the table does not have"),
        (["id", "s"], None, r"UnsupportedOperation: append: .*\(id\).*'upsert'"),
        (["id", "s"], "merge", "append, upsert, delete"),
    ],
)
def test_columns_are_checked_before_anything_is_written(
    spark: Any, table: rs.Table, columns: list[str], mode: str | None, error: str
) -> None:
    files = data_files(table)
    options = {} if mode is None else {"mode": mode}
    with pytest.raises(Exception, match=error):
        save(frame(spark, 5).selectExpr(*columns), table, **options)
    assert unchanged(table)
    assert data_files(table) == files


@pytest.mark.parametrize("column", ["id", "n"])
def test_null_where_none_may_be_is_refused(spark: Any, tmp_path: Path, column: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int64(), nullable=False)])
    table = rs.create_table(str(tmp_path / "n"), schema, key=["id"])
    rows = spark.range(4).selectExpr("id", "id AS n").replace(2, None, [column])
    with pytest.raises((KeyViolation, SchemaMismatch), match=rf"'{column}' is (NOT )?NULL"):
        table.write_spark(rows.coalesce(1), "upsert")
    assert unchanged(table)


def test_frames_that_cannot_be_written_fail_before_spark_is_asked(
    spark: Any, table: rs.Table, log: rs.Table
) -> None:
    with pytest.raises(SchemaMismatch, match="lacks column 's'"):
        table.write_spark(frame(spark, 5).select("id"), "upsert")
    with pytest.raises(UnsupportedOperation, match="has the key"):
        table.write_spark(frame(spark, 5), "append")
    with pytest.raises(UnsupportedOperation, match="has no key"):
        log.write_spark(frame(spark, 5), "upsert")
    with pytest.raises(InvalidInput, match="mode is 'merge'"):
        table.write_spark(frame(spark, 5), "merge")  # type: ignore[arg-type]
    older = rs.open_table(table.uri, version=0)
    with pytest.raises(UnsupportedOperation, match="read-only"):
        older.write_spark(frame(spark, 5), "upsert")


@pytest.fixture(autouse=True)
def faulty_source(spark: Any) -> None:
    from tests.faults.spark_writes import FaultySource

    spark.dataSource.register(FaultySource)
