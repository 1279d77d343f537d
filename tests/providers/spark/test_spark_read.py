from __future__ import annotations

import datetime
import decimal
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError, InvalidInput, UnknownColumn, UnsupportedOperation

pytestmark = pytest.mark.spark

DAY = datetime.datetime(2013, 2, 8, tzinfo=datetime.UTC)


def numbered(*ids: int, text: str = "v") -> pa.Table:
    texts = pa.array([f"{text}{i}" for i in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "s": texts})


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Ids 0 to 4 in three parts: 0 and 1 apart from the others, 3 written twice, 9 deleted."""
    made = rs.create_table(str(tmp_path / "t"), numbered(0, 1), key=["id"])
    made.upsert(numbered(2, 3, 9))
    made.upsert(numbered(3, 4, text="w"))
    made.delete(keys=pa.table({"id": [9]}))
    return made


def load(spark: Any, table: rs.Table, **options: object) -> Any:
    return spark.read.format("rowsieve").options(**options).load(table.uri)


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def test_the_newest_rows_are_read(spark: Any, table: rs.Table) -> None:
    rows = load(spark, table).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [
        (0, "v0"),
        (1, "v1"),
        (2, "v2"),
        (3, "w3"),
        (4, "w4"),
    ]


def test_filters_of_one_scan_do_not_leak_into_another(spark: Any, table: rs.Table) -> None:
    """In Spark 4.1 to 4.3 these lose rows with any source that has `pushFilters`."""
    frame = load(spark, table)
    assert (frame.filter("id = 1").count(), frame.count()) == (1, 5)
    assert ids(frame.filter("id = 1").union(frame.filter("id = 2"))) == [1, 2]
    assert frame.join(frame.filter("id = 3").select("id"), "id").count() == 1
    assert frame.alias("a").join(frame.filter("id = 3").alias("b"), "id", "left").count() == 5
    frame.createOrReplaceTempView("leak")
    counts = spark.sql(
        "SELECT (SELECT count(*) FROM leak WHERE id = 1), (SELECT count(*) FROM leak),"
        " (SELECT count(*) FROM leak WHERE id IN (1, 2))"
    ).first()
    assert tuple(counts) == (1, 5, 2)


def test_where_selects_and_prunes(spark: Any, table: rs.Table) -> None:
    everything = load(spark, table, split_bytes=1)
    selected = load(spark, table, split_bytes=1, where="id <= 1 AND s LIKE 'v%'")
    assert ids(selected) == [0, 1]
    assert everything.rdd.getNumPartitions() == 3  # a clean part, and both parts that overlap
    assert selected.rdd.getNumPartitions() == 1
    nothing = load(spark, table, where="id > 100")
    assert (ids(nothing), nothing.rdd.getNumPartitions()) == ([], 1)


def test_where_never_returns_replaced_rows(spark: Any, table: rs.Table) -> None:
    """Trap T1: pruning by anything but the key before the merge would."""
    assert ids(load(spark, table, where="s = 'v3'")) == []
    assert ids(load(spark, table, where="s = 'v9'")) == []


def test_columns_narrow_and_reorder(spark: Any, table: rs.Table) -> None:
    assert load(spark, table, columns="s,id").columns == ["s", "id"]
    only = load(spark, table, columns="S", where="id = 3")
    assert [tuple(row) for row in only.collect()] == [("w3",)]


def test_older_versions_by_number_and_by_time(spark: Any, table: rs.Table) -> None:
    then = {commit.version: commit.timestamp.isoformat() for commit in table.history()}
    assert ids(load(spark, table, version=0)) == [0, 1]
    assert ids(load(spark, table, versionAsOf=1)) == [0, 1, 2, 3, 9]
    assert ids(load(spark, table, as_of=then[0])) == [0, 1]
    assert ids(load(spark, table, timestampAsOf=then[2])) == [0, 1, 2, 3, 4, 9]


def test_a_frame_keeps_the_version_it_was_loaded_at(spark: Any, table: rs.Table) -> None:
    frame = load(spark, table)
    table.delete("id < 3")
    assert ids(frame) == [0, 1, 2, 3, 4]
    assert frame.count() == 5
    assert ids(load(spark, table)) == [3, 4]


def test_a_frame_of_a_table_is_of_its_pinned_version(spark: Any, table: rs.Table) -> None:
    older = rs.open_table(table.uri, version=1)
    assert ids(older.to_spark(spark)) == [0, 1, 2, 3, 9]
    other = rs.open_table(table.uri)
    table.delete("id < 3")
    assert ids(other.to_spark(spark)) == [0, 1, 2, 3, 4]
    assert ids(table.to_spark(spark, where="id < 4", columns=["id"])) == [3]


def test_sql_reads_through_a_view(spark: Any, table: rs.Table) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW direct USING rowsieve "
        f"OPTIONS (path '{table.uri}', where 'id > 2')"
    )
    assert spark.sql("SELECT count(*) FROM direct").first()[0] == 2


def test_an_empty_table_reads_as_no_rows(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), numbered().schema, key=["id"])
    assert load(spark, table).collect() == []


def test_a_table_without_a_key_hides_deleted_rows(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), numbered(1, 1, 2))
    table.append(numbered(2, 3))
    table.delete("id = 1")
    assert ids(load(spark, table)) == [2, 2, 3]


def test_all_types_arrive(spark: Any, tmp_path: Path) -> None:
    value = uuid.UUID("123e4567-e89b-12d3-a456-426614174000")
    columns = {
        "id": pa.array([1], pa.uint16()),
        "u64": pa.array([2**64 - 1], pa.uint64()),
        "f": pa.array([float("nan")], pa.float32()),
        "d": pa.array([decimal.Decimal("1.50")], pa.decimal128(20, 2)),
        "b": pa.array([b"\x00"], pa.binary()),
        "day": pa.array([DAY.date()], pa.date32()),
        "time": pa.array([datetime.time(1, 2, 3, 4)], pa.time64("us")),
        "wall": pa.array([DAY.replace(tzinfo=None)], pa.timestamp("us")),
        "instant": pa.array([DAY], pa.timestamp("us", "UTC")),
        "uid": pa.array([value.bytes], pa.uuid()),
        "json": pa.array(['{"a":1}'], pa.json_()),
        "list": pa.array([[1, None]], pa.list_(pa.uint8())),
        "struct": pa.array(
            [{"a": None, "b": "x"}], pa.struct([("a", pa.int8()), ("b", pa.string())])
        ),
        "map": pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64())),
        "null": pa.array([None], pa.string()),
    }
    table = rs.create_table(str(tmp_path / "t"), pa.table(columns), key=["id"])
    arrow = load(spark, table).toArrow()
    (row,) = arrow.to_pylist()
    assert row.pop("f") != row.get("f")
    assert row == {
        "id": 1,
        "u64": decimal.Decimal(2**64 - 1),
        "d": decimal.Decimal("1.50"),
        "b": b"\x00",
        "day": DAY.date(),
        "time": datetime.time(1, 2, 3, 4),
        "wall": DAY.replace(tzinfo=None),
        "instant": DAY,
        "uid": str(value),
        "json": '{"a":1}',
        "list": [1, None],
        "struct": {"a": None, "b": "x"},
        "map": [("k", 1.5)],
        "null": None,
    }
    written = table.write_spark(load(spark, table), "upsert")
    assert written.rows_written == 1
    assert (
        table.scan(columns=[c for c in columns if c != "f"]).to_arrow()
        == table.scan(version=0, columns=[c for c in columns if c != "f"]).to_arrow()
    )


def test_a_row_that_fails_is_an_error_in_the_task(spark: Any, table: rs.Table) -> None:
    frame = load(spark, table, where="id % (id - 2) = 0")
    with pytest.raises(Exception, match=EvaluationError.__name__):
        frame.collect()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"wher": "id = 1"}, "did you mean 'where'"),
        ({"where": "nope = 1"}, "no column 'nope'"),
        ({"where": "id +"}, "InvalidPredicate"),
        ({"columns": "nope"}, "no column 'nope'"),
        ({"columns": "id,id"}, "names a column twice"),
        ({"version": 99}, "VersionNotFound"),
        ({"as_of": "2013-01-01"}, "has no offset"),
        ({"storage.secret_access_key": "hunter2"}, r"storage_options \(secret_access_key\)"),
    ],
)
def test_a_wrong_option_is_an_error_when_loading(
    spark: Any, table: rs.Table, options: dict[str, Any], error: str
) -> None:
    with pytest.raises(Exception, match=error) as caught:
        load(spark, table, **options)
    assert "hunter2" not in str(caught.value)


def test_no_table_is_an_error_when_loading(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="TableNotFound"):
        spark.read.format("rowsieve").load(str(tmp_path))


def test_columns_of_the_reader_are_refused(spark: Any, table: rs.Table) -> None:
    with pytest.raises(Exception, match="has its own columns"):
        spark.read.format("rowsieve").schema("id long").load(table.uri).count()


def test_frames_of_a_table_fail_before_spark_is_asked(spark: Any, table: rs.Table) -> None:
    with pytest.raises(UnknownColumn):
        table.to_spark(spark, where="nope = 1")
    with pytest.raises(InvalidInput, match="list of names"):
        table.to_spark(spark, columns="id")
    with pytest.raises(InvalidInput, match="SQL text"):
        table.to_spark(spark, where=3)
    in_memory = rs.create_table("memory:///spark-read", numbered(1), key=["id"])
    with pytest.raises(UnsupportedOperation, match="memory of one process"):
        in_memory.to_spark(spark)


def test_clustered_table_has_the_answers_of_an_unclustered_one(spark: Any, tmp_path: Path) -> None:
    made = []
    for name, properties in (("z", {"cluster_by": "zorder(id, s)"}), ("none", {})):
        one = rs.create_table(tmp_path / name, numbered(0).schema, properties=properties)
        one.append(numbered(*range(40, 0, -1)))
        more = [(i, f"v{i % 3}") for i in range(40, 80)]
        frame = spark.createDataFrame(more, "id long, s string")
        frame.write.format("rowsieve").mode("append").save(one.uri)
        one.refresh()
        one.delete("id = 41")
        made.append(one)
    orders = [set(one.handle.pinned.parts.sort_orders()) for one in made]
    assert orders == [{"zorder(1, 2)"}, {None}]
    for where in ("id < 100", "id > 20 AND s = 'v1'"):
        rows = [sorted(map(tuple, load(spark, one).filter(where).collect())) for one in made]
        assert rows[0] == rows[1]
        assert len(rows[0]) == made[0].scan(where).count() > 0


def test_nanoseconds_are_read_as_microseconds_or_refused(spark: Any, tmp_path: Path) -> None:
    name = {"ARROW:extension:name": "rowsieve.timestamp_ns.1"}
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("t", pa.timestamp("ns"), metadata=name),
            pa.field("z", pa.timestamp("ns", "UTC"), metadata=name),
        ]
    )
    made = rs.create_table(str(tmp_path / "ns"), schema, key=["id"])
    day = int(DAY.timestamp()) * 10**9
    for start, extra in ((0, 1_000), (2, 1)):
        ticks = pa.array([day, day + extra], pa.int64())
        rows = {"id": [start, start + 1], "t": ticks.cast(schema.field("t").type)}
        made.upsert(pa.table({**rows, "z": ticks.cast(schema.field("z").type)}))
    local = DAY.replace(tzinfo=None)
    moments = [local, local + datetime.timedelta(microseconds=1)]
    for frame in (made.to_spark(spark), load(spark, made)):
        assert dict(frame.dtypes)["t"] == "timestamp_ntz"
        with pytest.raises(Exception, match="has nanoseconds, and Spark's timestamps have"):
            frame.collect()
    assert ids(load(spark, made, columns="id")) == [0, 1, 2, 3]
    exact = load(spark, made, where="id < 2").orderBy("id").collect()
    assert [row["t"] for row in exact] == moments
    again = exact[0].asDict() | {"id": 3}
    written = spark.createDataFrame([again], made.to_spark(spark).schema).write.format("rowsieve")
    written.option("mode", "upsert").mode("append").save(made.uri)
    made.refresh()
    found = made.to_spark(spark).orderBy("id").collect()
    assert [row["t"] for row in found] == [*moments, local, local]
