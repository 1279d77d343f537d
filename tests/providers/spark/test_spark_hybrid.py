"""Spark reads files itself where that gives our rows, and only there."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from collections import Counter
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import CorruptData, InvalidInput
from rowsieve.predicate.rowset import RowSet
from rowsieve.providers.spark import explain, read
from rowsieve.providers.spark.frames import spark_read
from rowsieve.providers.spark.reads import routes as part_routes
from rowsieve.providers.spark.reads.hybrid import hybrid_frame, routes_of
from rowsieve.providers.spark.reads.routes import ALL_ROUTES, Reason, SparkRoutes
from rowsieve.providers.spark.reads.visible_rows import _words, first_words
from tests.executor.planted import lie
from tests.profiles import IS_DEEP, examples
from tests.providers.spark import test_spark_oracle as oracle

pytestmark = pytest.mark.spark

NAN = math.nan
FORCED = (ALL_ROUTES, ("native", "source"), ("bitmap",), ("source",))


def numbered(*ids: int, **more: Any) -> pa.Table:
    texts = pa.array([f"v{i}" for i in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "s": texts, **more})


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Ids 0 to 99 in one part, 7 and 100 to 109 in another, 50 deleted."""
    made = rs.create_table(str(tmp_path / "t"), numbered(*range(100)), key=["id"])
    made.upsert(numbered(7, *range(100, 110)))
    made.delete(keys=pa.table({"id": [50]}))
    return made


def routes(table: rs.Table, spark: Any, *allowed: str, **wanted: Any) -> SparkRoutes:
    asked = spark_read(table, spark, wanted.get("where"), wanted.get("columns"))
    return routes_of(asked, allowed or ALL_ROUTES)


def forced(table: rs.Table, spark: Any, *allowed: str, **wanted: Any) -> Any:
    asked = spark_read(table, spark, wanted.get("where"), wanted.get("columns"))
    return hybrid_frame(asked, allowed or ALL_ROUTES)


def reasons(found: SparkRoutes) -> set[tuple[str, Reason]]:
    return {(part.route, part.reason) for part in found.parts}


def rows_of(frame: Any) -> Counter[str]:
    """The rows as text, in which NaN equals itself and -0.0 differs from 0.0."""
    return Counter(repr(row) for row in frame.toArrow().to_pylist())


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def test_clean_files_are_read_natively_and_others_by_bitmap(
    spark: Any, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_routes, "_JOINED_BELOW_ROWS", 0)
    first = rs.open_table(table.uri, version=0)
    assert reasons(routes(first, spark)) == {("native", Reason.CLEAN)}
    assert "FileScan parquet" in plan_of(first.to_spark(spark))
    assert "Union" not in plan_of(first.to_spark(spark))
    assert reasons(routes(table, spark)) == {
        ("bitmap", Reason.HIDDEN),
        ("native", Reason.CLEAN),
    }
    expected = [i for i in range(110) if i != 50]
    assert ids(table.to_spark(spark)) == ids(forced(table, spark, "source")) == expected
    assert ids(table.to_spark(spark, where="id IN (7, 50, 51)")) == [7, 51]


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().simpleString())


def test_few_clean_rows_are_read_with_the_files_that_have_hidden_ones(
    spark: Any, table: rs.Table
) -> None:
    assert reasons(routes(table, spark)) == {("bitmap", Reason.HIDDEN), ("bitmap", Reason.JOINED)}
    frame: Any = table.to_spark(spark)
    plan = plan_of(frame)
    assert "Union" not in plan
    assert plan.count("FileScan parquet") == 1
    assert ids(table.to_spark(spark)) == [i for i in range(110) if i != 50]


def same_sizes(folder: Path) -> rs.Table:
    """Four files with hidden rows, three of them of one size, and a clean one of another size."""
    columns = pa.schema([("id", pa.int64()), ("x", pa.int64())])
    table = rs.create_table(str(folder / "t"), columns, key=["id"])
    for start, count in ((1000, 100), (2000, 100), (3000, 100), (6000, 50)):
        numbers = pa.array(range(start, start + count), pa.int64())
        table.upsert(pa.table({"id": numbers, "x": numbers}))
    table.delete("id IN (1000, 2001, 3002, 6030) OR id BETWEEN 3064 AND 3070")
    table.upsert(pa.table({"id": [1050, 5000], "x": [-1, -2]}))
    return table


def test_files_of_one_size_are_one_scan(spark: Any, tmp_path: Path) -> None:
    table = same_sizes(tmp_path)
    sizes = Counter(part.size_bytes for part in routes(table, spark).parts)
    assert sorted(sizes.values()) == [1, 1, 3]
    plan = table.to_spark(spark)._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("] parquet") == 1
    assert rows_of(table.to_spark(spark)) == rows_of(forced(table, spark, "source"))


def test_a_single_file_has_one_bitmap(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), pa.table({"id": range(200)}), key=["id"])
    table.delete("id = 7 OR id BETWEEN 64 AND 130")
    assert ids(table.to_spark(spark)) == [i for i in range(200) if i != 7 and not 64 <= i <= 130]


def test_a_cached_frame_serves_reads_of_its_version_only(spark: Any, table: rs.Table) -> None:
    cached: Any = table.to_spark(spark)
    cached.cache()
    try:
        for version, is_cached in ((None, True), (1, False), (0, False)):
            plan = read(spark, table.uri, version=version)._jdf.queryExecution().withCachedData()
            assert ("InMemoryRelation" in plan.toString()) == is_cached, version
    finally:
        cached.unpersist()


@pytest.mark.parametrize("name", ["_rowsieve_first_word", "_ROWSIEVE_first_place"])
def test_a_column_with_a_name_of_the_scan_goes_through_the_source(
    spark: Any, tmp_path: Path, name: str
) -> None:
    data = pa.table({"id": range(9), name: range(9)})
    table = rs.create_table(str(tmp_path / "t"), data, key=["id"])
    table.delete("id = 7")
    assert reasons(routes(table, spark)) == {("source", Reason.NAMES)}
    assert ids(table.to_spark(spark).filter(f"{name} > 5")) == [6, 8]


@pytest.mark.parametrize(
    "setting",
    [
        ("spark.sql.optimizer.nestedSchemaPruning.enabled", "false"),
        ("spark.sql.parquet.enableVectorizedReader", "false"),
        ("spark.sql.codegen.wholeStage", "false"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.files.maxPartitionBytes", "600"),
        ("spark.sql.adaptive.enabled", "false"),
    ],
)
def test_settings_do_not_change_which_rows_of_a_file_are_visible(
    spark: Any, tmp_path: Path, setting: tuple[str, str]
) -> None:
    table = same_sizes(tmp_path)
    name, value = setting
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        frame = table.to_spark(spark)
        expected = table.scan(columns=["id", "x"]).to_arrow().sort_by("id").to_pylist()
        assert frame.toArrow().sort_by("id").to_pylist() == expected
        assert ids(frame.filter("x > 3060 AND id < 3072")) == [3061, 3062, 3063, 3071]
        assert frame.select("x").where("x < 0").toArrow()["x"].to_pylist() == [-1, -2]
    finally:
        spark.conf.set(name, before)


def test_a_file_with_another_length_is_an_error(
    spark: Any, table: rs.Table, tmp_path: Path
) -> None:
    frame: Any = table.to_spark(spark)
    file = min((tmp_path / "t" / "data").glob("*.0.parquet"))
    file.write_bytes(file.read_bytes() + b"more")
    with pytest.raises(Exception, match=re.escape(file.name)):
        frame.collect()


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_bitmaps_begin_at_the_first_words_of_their_files(count: int) -> None:
    files = [RowSet.from_ranges([(i, i + 3)], 60 + i) for i in range(count)]
    words = np.frombuffer(_words(files), dtype=">i8").astype("<i8")
    for rows, start in zip(files, first_words(files), strict=True):
        bits = np.unpackbits(words[start : start + 2].view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits[: rows.row_count]).tolist() == list(rows)


def test_the_routes_are_explained(spark: Any, table: rs.Table) -> None:
    shown = str(explain(spark, table.uri, version=2)).splitlines()
    assert shown[0].endswith("version 2: 2 parts")
    assert [line.split() for line in shown[1:]] == [
        ["bitmap", "1", "parts", "100", "rows", "2", "hidden", "some", "rows", "are", "hidden"],
        ["bitmap", "1", "parts", "11", "rows", "0", "hidden", *Reason.JOINED.value.split()],
    ]
    (one,) = explain(spark, table.uri, where="id = 105").parts
    assert (one.route, one.row_count, one.rows_hidden) == ("native", 11, 0)


def test_a_table_is_read_by_its_uri_version_and_time(spark: Any, table: rs.Table) -> None:
    assert ids(read(spark, table.uri, version=0)) == list(range(100))
    then = table.history()[-1].timestamp
    assert read(spark, table.uri, as_of=then, columns=["s"], where="id < 3").columns == ["s"]
    with pytest.raises(InvalidInput, match="routes is a list of native, bitmap, source"):
        read(spark, table.uri, routes=["jvm"])


def test_filters_reach_the_files(spark: Any, table: rs.Table) -> None:
    plan = plan_of(rs.open_table(table.uri, version=0).to_spark(spark).filter("id > 97"))
    assert "PushedFilters: [IsNotNull(id), GreaterThan(id,97)]" in plan


@pytest.mark.parametrize("allowed", [ALL_ROUTES, ("bitmap",)])
def test_filters_of_one_scan_do_not_leak(
    spark: Any, table: rs.Table, allowed: tuple[str, ...]
) -> None:
    frame = forced(table, spark, *allowed)
    assert (frame.filter("id = 1").count(), frame.count()) == (1, 109)
    assert ids(frame.filter("id = 1").union(frame.filter("id = 102"))) == [1, 102]
    assert frame.alias("a").join(frame.filter("id = 3").alias("b"), "id", "left").count() == 109
    frame.createOrReplaceTempView("hybrid_leak")
    counts = spark.sql(
        "SELECT (SELECT count(*) FROM hybrid_leak WHERE id = 1), (SELECT count(*) FROM hybrid_leak)"
        ", (SELECT count(*) FROM hybrid_leak WHERE id IN (1, 102))"
    ).first()
    assert tuple(counts) == (1, 109, 2)


def test_a_file_is_read_by_the_names_that_it_has(spark: Any, tmp_path: Path) -> None:
    """By field ids, Spark would push `a = 10` to the column that the file calls `a`."""
    table = rs.create_table(
        str(tmp_path / "t"), pa.table({"id": [1, 2], "a": [1, 2], "b": [10, 20]}), key=["id"]
    )
    table.rename_column("a", "c")
    table.rename_column("b", "a")
    table.rename_column("c", "b")
    frame = table.to_spark(spark)
    assert reasons(routes(table, spark)) == {("native", Reason.CLEAN)}
    assert [tuple(row) for row in frame.filter("a = 10").collect()] == [(1, 1, 10)]
    assert frame.filter("b = 10").count() == 0


def test_files_with_tags_for_names_are_read_by_these(spark: Any, tmp_path: Path) -> None:
    inner = pa.array([{"f1": 1}, {"f1": 2}], pa.struct([("f1", pa.int64())]))
    table = rs.create_table(
        str(tmp_path / "t"),
        pa.table({"id": [1, 2], "f1": [10, 20], "x": ["a", "b"], "st": inner}),
        key=["id"],
        properties={"column_names": "tag"},
    )
    table.upsert(table.scan("id = 2").to_arrow())
    plain = forced(table, spark, columns=["f1", "x", "id"])
    assert {part.route for part in routes(table, spark, columns=["f1"]).parts} == {"bitmap"}
    assert rows_of(plain.filter("f1 >= 10")) == rows_of(
        forced(table, spark, "source", columns=["f1", "x", "id"])
    )
    assert reasons(routes(table, spark)) == {("source", Reason.CHANGED)}
    assert [row["st"]["f1"] for row in table.to_spark(spark).orderBy("id").collect()] == [1, 2]


def test_stored_vectors_of_hidden_rows_are_read(spark: Any, table: rs.Table) -> None:
    table.build_deletion_vectors()
    table.upsert(numbered(8))
    assert {part.route for part in routes(table, spark).parts} == {"bitmap"}
    assert rows_of(table.to_spark(spark)) == rows_of(forced(table, spark, "source"))


def test_deleted_rows_of_a_table_without_a_key_are_hidden(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), numbered(1, 1, 2, 3))
    table.append(numbered(2, 3))
    table.delete("id = 1 OR s = 'v3'")
    assert {part.route for part in routes(table, spark).parts} == {"bitmap"}
    assert ids(table.to_spark(spark)) == [2, 2]


def test_many_runs_of_hidden_rows_are_a_bitmap(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), numbered(*range(200)), key=["id"])
    gone = {0, 63, 64, 65, 127, 128, 130, 191, 199, *range(3, 60, 7)}
    table.delete(keys=pa.table({"id": sorted(gone)}))
    frame = table.to_spark(spark)
    assert "getbit" in plan_of(frame)
    assert ids(frame) == [i for i in range(200) if i not in gone]
    assert ids(frame.filter("id BETWEEN 60 AND 66")) == [60, 61, 62, 66]
    assert len(plan_of(frame)) < 3000  # the bits are no text in it
    frame.createOrReplaceTempView("hybrid_bits")
    shapes = (
        "EXISTS (SELECT 1 FROM hybrid_bits o WHERE o.id = t.id + 1)",
        "id + 1 IN (SELECT max(id) FROM hybrid_bits o WHERE o.id <= t.id + 1)",
        "id + 1 IN (SELECT id FROM hybrid_bits)",
    )
    followed = [i for i in range(200) if i not in gone and i + 1 < 200 and i + 1 not in gone]
    for shape in shapes:
        assert ids(spark.sql(f"SELECT id FROM hybrid_bits t WHERE {shape}")) == followed, shape


def evolved(folder: str) -> rs.Table:
    """Files of four schemas, with hidden rows in some of them."""
    table = rs.create_table(
        folder,
        pa.table(
            {
                "id": pa.array(range(6), pa.int32()),
                "n": pa.array([1, None, 3, -128, 127, 0], pa.int8()),
                "real": pa.array([-(2**31), None, 2**31 - 1, 0, 1, 2], pa.int32()),
                "whole": pa.array([2**64 - 1, None, 3, 0, 1, 2], pa.uint64()),
                "f": pa.array([0.0, -0.0, NAN, None, 1.5, math.inf], pa.float32()),
                "d": pa.array([decimal.Decimal("1.10"), None] * 3, pa.decimal128(4, 2)),
                "day": pa.array([datetime.date(1500, 1, 1), None] * 3, pa.date32()),
                "s": pa.array(["a", None, "", "é", "a", "b"]),
            }
        ),
        key=["id"],
    )
    table.widen_column("n", pa.int64())
    table.widen_column("real", pa.float64())
    table.widen_column("whole", pa.decimal128(22, 1))
    table.widen_column("f", pa.float64())
    table.widen_column("d", pa.decimal128(12, 4))
    table.widen_column("day", pa.timestamp("us"))
    table.rename_column("s", "was_s")
    table.add_column("s", pa.string(), default="new")
    table.add_column("x", pa.float64(), default=NAN)
    table.add_column("at", pa.timestamp("us", "UTC"), default=datetime.datetime.now(datetime.UTC))
    table.add_column("wall", pa.timestamp("us"), default=datetime.datetime(1, 1, 1))
    table.add_column("none", pa.list_(pa.int32()))
    fresh = table.scan("id IN (1, 4)").to_arrow()
    table.upsert(fresh.set_column(1, "n", pa.array([2**40, None], pa.int64())))
    table.drop_column("was_s")
    table.set_comment("s", "text")
    table.delete("id = 5")
    return table


QUERIES = [
    "SELECT * FROM t",
    "SELECT * FROM t WHERE f = 0 OR f > 100 OR f <> 1",
    "SELECT id FROM t WHERE x = CAST('NaN' AS DOUBLE) AND s = 'new'",
    "SELECT id FROM t WHERE real = 1.5D OR real > 2147483646 OR whole = 18446744073709551615BD",
    "SELECT id, real, whole FROM t WHERE NOT (real < 0.5D) OR whole IN (0.5BD, 3)",
    "SELECT * FROM t WHERE n >= 127 UNION ALL SELECT * FROM t WHERE d = 1.1",
    "SELECT a.id, b.s FROM t a LEFT JOIN t b ON a.id = b.id AND b.n > 1",
    "SELECT s, count(*), max(n), min(f), sum(d) FROM t GROUP BY s",
    "SELECT count(*), count(n), max(id), min(day) FROM t",
    "WITH c AS (SELECT * FROM t WHERE id < 4) SELECT c.id FROM c JOIN c e ON c.id = e.id + 1",
    "SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE n > 0) AND EXISTS (SELECT 1 FROM t)",
    "SELECT id, row_number() OVER (PARTITION BY s ORDER BY id DESC) FROM t",
    "SELECT * FROM t a FULL JOIN t b ON a.id = b.n WHERE a.day < TIMESTAMP_NTZ '1600-01-01 00:00'",
    "SELECT id FROM t WHERE NOT (n <= 3) OR n IS NULL ORDER BY id LIMIT 3",
]


def test_queries_over_changed_columns_give_the_same_rows_by_each_route(
    spark: Any, tmp_path: Path
) -> None:
    table = evolved(str(tmp_path / "t"))
    assert {part.route for part in routes(table, spark).parts} == {"native", "bitmap"}
    answers = []
    for allowed in (ALL_ROUTES, ("source",), *(FORCED[1:3] if IS_DEEP else ())):
        forced(table, spark, *allowed).createOrReplaceTempView("t")
        answers.append([rows_of(spark.sql(query)) for query in QUERIES])
    for other in answers[1:]:
        assert other == answers[0]
    assert sum(answers[0][0].values()) == table.scan().count() == 5


VALUES: dict[str, tuple[Any, list[Any]]] = {
    "u8": (pa.uint8(), [0, 255]),
    "u16": (pa.uint16(), [0, 2**16 - 1]),
    "u32": (pa.uint32(), [0, 2**32 - 1]),
    "u64": (pa.uint64(), [0, 2**63, 2**64 - 1]),
    "i8": (pa.int8(), [-128, 127]),
    "i64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "f": (pa.float32(), [0.0, -0.0, NAN, 1.5, -math.inf]),
    "x": (pa.float64(), [0.0, -0.0, NAN, 1.5, math.inf]),
    "x1": (pa.float64(), [-0.0]),
    "d": (pa.decimal128(38, 1), [decimal.Decimal("-1.5"), decimal.Decimal("9" * 36 + ".9")]),
    "d2": (pa.decimal128(9, 2), [decimal.Decimal("-1.50"), decimal.Decimal("0.00")]),
    "b": (pa.bool_(), [True, False]),
    "bin": (pa.binary(), [b"", b"\xff\x00", b"a"]),
    "s": (pa.string(), ["", "é", "a%", "\U0010ffff"]),
    "day": (pa.date32(), [datetime.date(1001, 1, 1), datetime.date(1582, 10, 10)]),
    "wall": (pa.timestamp("us"), [datetime.datetime(1001, 1, 1), datetime.datetime(2024, 3, 31)]),
    "at": (pa.timestamp("us", "UTC"), [datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC)]),
    "uid": (pa.uuid(), [uuid.UUID(int=5).bytes, uuid.UUID(int=2**128 - 1).bytes]),
    "json": (pa.json_(), ['{"a": 1}', "1"]),
    "list": (pa.list_(pa.uint64()), [[2**64 - 1, None], []]),
    "st": (
        pa.struct([("a", pa.float64()), ("b", pa.string())]),
        [{"a": NAN, "b": None}, {"a": -0.0, "b": "x"}],
    ),
    "map": (pa.map_(pa.string(), pa.float64()), [[("k", 1.5)], []]),
}


def all_types(folder: str) -> rs.Table:
    """Values of every type that Spark reads itself, NULL among them."""
    count = 10
    columns = {"id": pa.array(range(count), pa.int64())}
    for name, (type_, values) in VALUES.items():
        cells = [([*values, None] * count)[i] for i in range(count)]
        columns[name] = pa.array(cells, type_)
    return rs.create_table(folder, pa.table(columns), key=["id"])


PROBES = (
    "SELECT id FROM t WHERE x = 0 OR f = 0 OR x1 >= 0",
    "SELECT id FROM t WHERE x > 100 OR f <> 1.5 OR st.a > 5",
    "SELECT id, cast(at AS string), day, wall FROM t WHERE day < DATE '1700-01-01' OR u64 > 5",
    "SELECT id FROM t WHERE bin = X'FF00' OR s = 'é' OR st.b = 'x' OR uid LIKE '0%5'",
)
SETTINGS = {
    "spark.sql.parquet.enableVectorizedReader": "false",
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "false",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parquet.int96AsTimestamp": "false",
    "spark.sql.parquet.int96TimestampConversion": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.parquet.columnarReaderBatchSize": "3",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.files.maxPartitionBytes": "2000",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "America/Sao_Paulo",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}


def test_values_of_all_types_are_ours_whatever_the_settings(spark: Any, tmp_path: Path) -> None:
    table = all_types(str(tmp_path / "t"))
    assert reasons(routes(table, spark)) == {("native", Reason.CLEAN)}
    assert rows_of(table.to_spark(spark)) == rows_of(forced(table, spark, "source"))
    session = spark.newSession()
    # Each setting alone in a deep run; otherwise all in three groups.
    names = list(SETTINGS)
    groups = [[name] for name in names] if IS_DEEP else [names[i::3] for i in range(3)]
    for group in groups:
        before = {name: session.conf.get(name) for name in group}
        for name in group:
            session.conf.set(name, SETTINGS[name])
        answers = []
        for allowed in (("bitmap",), ("source",)):
            forced(table, session, *allowed).createOrReplaceTempView("t")
            union = " UNION ALL ".join(
                f"SELECT {i} AS probe, to_json(struct(*)) FROM ({probe})"
                for i, probe in enumerate(PROBES)
            )
            answers.append(rows_of(session.sql(union)))
        assert answers[0] == answers[1], group
        for name, value in before.items():
            session.conf.set(name, value)


def test_a_reader_that_answers_from_footers_turns_native_reads_off(
    spark: Any, table: rs.Table
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.sources.useV1SourceList", "csv,json")
    assert reasons(routes(table, session)) == {("source", Reason.SETTING)}


def test_the_filter_of_single_records_does_not_change_zeros_whenever_it_is_set(
    spark: Any, tmp_path: Path
) -> None:
    zeros = numbered(1, 2, 3, x=pa.array([0.0, -0.0, 1.0]))
    table = rs.create_table(str(tmp_path / "t"), zeros, key=["id"])
    session = spark.newSession()
    before = table.to_spark(session).where("x = 0.0")
    session.conf.set("spark.sql.parquet.recordLevelFilter.enabled", "true")
    session.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    assert ids(before) == ids(table.to_spark(session).where("x = 0.0")) == [1, 2]
    assert reasons(routes(table, session)) == {("native", Reason.CLEAN)}


def test_names_of_files_that_the_session_hides_are_read(spark: Any, table: rs.Table) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.files.ignoredPathSegmentRegex", "[a-z]")
    assert reasons(routes(table, session)) == reasons(routes(table, spark))
    assert ids(table.to_spark(session)) == ids(table.to_spark(spark))


def test_what_is_not_proved_goes_through_the_source(
    spark: Any, table: rs.Table, tmp_path: Path
) -> None:
    for where in ("1 / (id - 200) < 0", "id < second(now())", "id + 1 > 0"):
        assert {why for _, why in reasons(routes(table, spark, where=where))} == {Reason.CONDITION}
    foreign = pc.field("id") > 5
    assert {why for _, why in reasons(routes(table, spark, where=foreign))} == {Reason.CONDITION}
    clocks = rs.create_table(
        str(tmp_path / "clocks"),
        numbered(1, 2, at=pa.array([datetime.time(1), None], pa.time64("us"))),
        key=["id"],
    )
    assert reasons(routes(clocks, spark)) == {("source", Reason.TYPE)}
    assert "'at' is time" in str(routes(clocks, spark))
    assert reasons(routes(clocks, spark, columns=["id"])) == {("native", Reason.CLEAN)}
    named = rs.create_table(
        str(tmp_path / "named"),
        numbered(1, 2, _tmp_Metadata_row_index=pa.array(["a", "b"])),
        key=["id"],
    )
    named.delete("id = 1")
    assert reasons(routes(named, spark)) == {("source", Reason.NAMES)}
    assert [row["_tmp_Metadata_row_index"] for row in named.to_spark(spark).collect()] == ["b"]
    lie(table, "native_safe", value=False)
    assert reasons(routes(table, spark)) == {("source", Reason.UNSAFE)}
    assert ids(table.to_spark(spark))[:3] == [0, 1, 2]


@pytest.mark.parametrize("name", ["[ab]", "a{b,c}", "é", "a:b", "%41"])
def test_odd_paths_go_through_the_source(spark: Any, tmp_path: Path, name: str) -> None:
    table = rs.create_table(str(tmp_path / name), numbered(1, 2), key=["id"])
    assert reasons(routes(table, spark)) == {("source", Reason.PATH)}


def test_folders_that_spark_reads_otherwise_are_only_places(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "_day=1" / ".a b"), numbered(1, 2), key=["id"])
    assert reasons(routes(table, spark)) == {("native", Reason.CLEAN)}
    assert table.to_spark(spark).columns == ["id", "s"]
    assert ids(table.to_spark(spark)) == [1, 2]


def test_a_damaged_or_missing_file_is_an_error_whatever_the_session_ignores(
    spark: Any, tmp_path: Path
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    table = rs.create_table(str(tmp_path / "t"), numbered(*range(5000)), key=["id"])
    frame = table.to_spark(session)
    (path,) = (tmp_path / "t" / "data").glob("*.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
    with pytest.raises(Exception, match=r"(?i)crc|checksum|corrupt"):
        frame.collect()
    path.unlink()
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist"):
        frame.collect()
    with pytest.raises(CorruptData, match=f"the newest of .*, is missing: data/{path.name}"):
        table.to_spark(session)


@settings(cast("settings", examples(3)), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    history=oracle.changes(),
    chosen=st.lists(oracle.leaves(), min_size=8, max_size=8),
    forms=st.lists(st.sampled_from(["{}", "NOT ({})", "({}) OR n = 1", "({}) AND f IS NOT NULL"])),
)
def test_pushed_filters_select_the_same_rows_by_each_route(
    spark: Any, history: list[oracle.Change], chosen: list[str], forms: list[str]
) -> None:
    texts = [(forms[i] if i < len(forms) else "{}").format(t) for i, t in enumerate(chosen)]
    with TemporaryDirectory() as folder:
        table, model = oracle.make(str(Path(folder) / "t"), history)
        if not model.num_rows:
            return
        plain = model.set_column(4, "u", model.column("u").cast(pa.int16()))
        truth = oracle.by_column(spark.createDataFrame(plain, oracle.DDL), texts)
        for allowed in FORCED if IS_DEEP else (ALL_ROUTES, ("bitmap",)):
            frame = forced(table, spark, *allowed)
            parts = [frame.where(t).selectExpr(f"{i} i", "k", "n") for i, t in enumerate(texts)]
            found = Counter(map(tuple, reduce(lambda a, b: a.unionAll(b), parts).collect()))
            expected = Counter((i, *key) for i, keys in truth.items() for key in keys)
            assert found == expected, (allowed, texts)
