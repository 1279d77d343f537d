"""A column that is read keeps, here, the rows that Spark keeps."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.bridges.spark_columns import from_spark_column, is_spark_column, rules_of
from rowsieve.bridges.sql.language import from_text
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate.ir import FALSE, InList, Or
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.spark_columns.nasty import BATCH, MOMENTS, SCHEMA, in_spark, ours, theirs
from tests.cases import cases_in

pytestmark = pytest.mark.spark
TEXTS = cases_in(__file__, "conditions.txt")

D = decimal.Decimal
UTC = datetime.UTC
AT = datetime.datetime(2024, 3, 31, 2, 30)


@pytest.fixture(scope="module")
def judged(spark: Any) -> dict[str, list[int]]:
    """The rows that Spark keeps for each text."""
    from pyspark.sql import functions as f

    frame = in_spark(spark)
    kept: list[list[int]] = []
    for start in range(0, len(TEXTS), 40):
        kept += theirs(frame, [f.expr(text) for text in TEXTS[start : start + 40]])
    return dict(zip(TEXTS, kept, strict=True))


@pytest.mark.parametrize("text", TEXTS)
def test_rows_are_those_of_spark(text: str, spark: Any, judged: dict[str, list[int]]) -> None:
    from pyspark.sql import functions as f

    read = from_spark_column(f.expr(text), SCHEMA)
    assert read.exactness is Exactness.EXACT, read.notes
    assert ours(read.exact()) == judged[text]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_read_as_spark_means_it(text: str, judged: dict[str, list[int]]) -> None:
    read = from_text(text, SCHEMA, dialect="spark")
    assert read.exactness is Exactness.EXACT, read.notes
    assert ours(read.exact()) == judged[text]


Build = Callable[[Any, Any], Any]
METHODS: dict[str, Build] = {
    "comparison": lambda c, f: (c("i") >= 1) & (c("i") <= 12) | ~c("b"),
    "null safe": lambda c, f: c("s").eqNullSafe(None) | c("f").eqNullSafe(math.nan),
    "isin": lambda c, f: c("s").isin("a", "é", None),
    "isin nothing": lambda c, f: ~c("s").isin([]),
    "decimal": lambda c, f: c("d") > D("1.49"),
    "bytes": lambda c, f: c("y") == b"\xff",
    "date": lambda c, f: c("day").between(datetime.date(1582, 10, 1), datetime.date(2024, 3, 1)),
    "ntz": lambda c, f: c("n") == f.lit(AT).cast("timestamp_ntz"),
    "instant": lambda c, f: c("ts") <= AT.replace(tzinfo=UTC),
    "when": lambda c, f: f.when(c("i") > 0, "a").when(c("b"), c("s")).otherwise("b") == "b",
    "member": lambda c, f: c("st")["x"].isNotNull() & c("st").getField("y").isNull(),
    "infinity": lambda c, f: (c("f") < math.inf) & (c("f") > -math.inf),
    "like": lambda c, f: c("s").like("a\\_%") | c("s").ilike("A_"),
    "rounded": lambda c, f: f.round(c("whole")) == 3.0,
    "null": lambda c, f: f.lit(None),
    "deep": lambda c, f: ~(~(~(c("i") == 1) | c("b")) & (c("s") == "a")),
    "aliased": lambda c, f: (c("i") == 12).alias("twelve"),
}


def test_columns_of_methods_are_read_too(spark: Any) -> None:
    from pyspark.sql import functions as f

    columns = {name: build(f.col, f) for name, build in METHODS.items()}
    judged = theirs(in_spark(spark), list(columns.values()))
    for (name, column), wanted in zip(columns.items(), judged, strict=True):
        read = from_spark_column(column, SCHEMA)
        assert read.exactness is Exactness.EXACT, (name, read.notes)
        assert ours(read.exact()) == wanted, name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("rand() > i", "RAND is not supported"),
        ("s RLIKE st.y", "quoted constant"),
        ("s LIKE st.y", "quoted constant"),
        ("s LIKE 'a\\\\b'", "escapes nothing"),
        ("s ILIKE 'ax_' ESCAPE 'x'", "not its escape"),
        ("l[0] = 1", "try_element_at"),
        ("substring(s, -1) = 'b'", "constant start"),
        ("CAST(f AS string) = '1.0'", "java"),
        ("CAST(s AS binary) = X'31'", "string to binary"),
        ("try_add(i, 1) = 2", "SAFE ADD"),
        ("w * w = 1", "38 digits"),
        ("abs(w) = 1", "34 digits"),
        ("-w = 1", "34 digits"),
        ("round(g, 1) = 1", "digits"),
        ("s COLLATE UNICODE = 'a'", "bytes"),
        ("exists(l, x -> x > 1)", "higher-order functions"),
        ("i = (SELECT 1)", "contain a subquery"),
        ("i IN (SELECT 1)", "contain a subquery"),
        ("max(i) OVER () > 1", "a value for each row"),
        ("max(i) > 1", "aggregate"),
        ("count(DISTINCT i) > 1", "such options"),
        ("count(i) FILTER (WHERE b) > 1", "FILTER"),
        ("explode(l) > 1", "EXPLODE"),
        ("ours.upper(s) = 'A'", "has no counterpart"),
        ("epoch_us(ts) > 1", "has no counterpart"),
        ("~i = 1", "BitwiseNot"),
        ("i > current_user()", "CURRENT USER"),
    ],
)
def test_conditions_without_a_translation_go_to_the_residual(
    spark: Any, text: str, reason: str
) -> None:
    from pyspark.sql import functions as f

    column = (f.col("i") > 1) & f.expr(text)
    read = from_spark_column(column, SCHEMA)
    assert read.exactness is Exactness.SUPERSET
    assert reason in read.notes[0]
    assert read.notes[0].startswith("condition 2 of 2")
    assert is_spark_column(read.residual)
    assert str(read.residual) == str(f.expr(text))
    with pytest.raises(UnsupportedOperation, match=r"condition 2 of 2"):
        from_spark_column(column, SCHEMA, strict=True)


@pytest.mark.parametrize(
    "text",
    [
        "sin(1) > f",
        "initcap('ab') <> s",
        "i < factorial(4)",
        "k = CAST(conv('c', 16, 10) AS bigint)",
        "day > next_day(DATE '2024-03-01', 'MON')",
        "CASE WHEN i > cbrt(27D) THEN s ELSE format_string('%s', 'a') END = 'a'",
    ],
)
def test_constants_are_computed_by_spark(spark: Any, text: str) -> None:
    from pyspark.sql import functions as f

    column = (f.col("b") | f.expr(text)) & f.col("i").isNotNull()
    assert [ours(from_spark_column(column, SCHEMA).exact())] == theirs(in_spark(spark), [column])


def test_volatile_functions_are_not_constants(spark: Any) -> None:
    from pyspark.sql import functions as f

    for text in ("uuid() = s", "rand(5) > f", "date_format(now(), 'XXX') = s"):
        assert from_spark_column(f.expr(text), SCHEMA).expression is None


@pytest.mark.parametrize("text", ["i = CAST(double('Infinity') AS int)", "i % (1 div 0) = 1"])
def test_a_constant_without_a_value_fails_as_in_spark(spark: Any, text: str) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    assert ours(from_spark_column(f.expr(text), SCHEMA).exact()) is None
    with pytest.raises(PySparkException):
        theirs(in_spark(spark), [f.expr(text)])


def test_user_functions_are_refused(spark: Any) -> None:
    from pyspark.sql import functions as f

    own = f.udf(lambda value: value, "int")
    spark.udf.register("own_function", lambda value: value, "int")
    columns = (own("i") > 1, own(f.lit(5)) == f.col("i"), f.call_function("own_function", "i") > 1)
    for column in columns:
        assert from_spark_column(column, SCHEMA).expression is None


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("functionResolution.sessionOrder", "first"),
        ("decimalOperations.allowPrecisionLoss", "false"),
        ("legacy.typeCoercion.datetimeToString.enabled", "true"),
        ("timestampType", "TIMESTAMP_NTZ"),
    ],
)
def test_settings_that_change_a_meaning_refuse_columns(
    spark: Any, setting: str, value: str
) -> None:
    from pyspark.sql import functions as f

    spark.conf.set(f"spark.sql.{setting}", value)
    try:
        read = from_spark_column(f.col("i") > 1, SCHEMA)
    finally:
        spark.conf.unset(f"spark.sql.{setting}")
    assert read.exactness is Exactness.UNSUPPORTED
    assert f"{setting}={value}" in read.notes[0]
    assert str(read.residual) == str(f.col("i") > 1)


def test_settings_of_the_parser_are_those_of_spark(spark: Any) -> None:
    from pyspark.sql import functions as f

    settings = {
        "parser.escapedStringLiterals": "true",
        "ansi.doubleQuotedIdentifiers": "true",
    }
    texts = ["s = 'a\\_b'", '"i" = 12']
    for name, value in settings.items():
        spark.conf.set(f"spark.sql.{name}", value)
    try:
        columns = [f.expr(text) for text in texts]
        judged = theirs(in_spark(spark), columns)
        found = [ours(from_spark_column(column, SCHEMA).exact()) for column in columns]
    finally:
        for name in settings:
            spark.conf.unset(f"spark.sql.{name}")
    assert found == judged


def test_nothing_is_dropped_under_or_and_not(spark: Any) -> None:
    from pyspark.sql import functions as f

    either = (f.col("i") > 1) | f.expr("s RLIKE st.y")
    for column in (either, ~((f.col("i") > 1) & f.expr("s RLIKE st.y"))):
        read = from_spark_column(column, SCHEMA)
        assert read.expression is None
        assert read.exactness is Exactness.UNSUPPORTED
        assert str(read.residual) == str(column)


def test_conditions_inside_sql_text_are_translated_separately(spark: Any) -> None:
    from pyspark.sql import functions as f

    read = from_spark_column(f.expr("i > 1 AND s RLIKE st.y AND b"), SCHEMA)
    assert read.notes[0].startswith("condition 2 of 3 (RLIKE(s, st.y))")
    assert read.expression is not None
    assert str(read.residual) == str(f.expr("i > 1 AND s RLIKE st.y AND b"))


def test_a_session_without_ansi_mode_decides_what_is_exact(spark: Any) -> None:
    from pyspark.sql import functions as f

    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        texts = ["whole / small > 0", "small % 0 IS NULL", "i + 1 > 0", "CAST(i AS tinyint) = 1"]
        empty = ~f.col("i").isin([])
        judged_empty = theirs(in_spark(spark), [empty, ~empty])
        assert [ours(from_spark_column(item, SCHEMA).exact()) for item in (empty, ~empty)] == (
            judged_empty
        )
        texts += ["d / 0 IS NULL", "d + d = 3", "size(l) = -1", "-f = 0", "f + 1 > 1"]
        found = [from_spark_column(f.expr(text), SCHEMA) for text in texts]
        exact = [text for text, read in zip(texts, found, strict=True) if read.residual is None]
        assert exact == texts
        judged = theirs(in_spark(spark), [f.expr(text) for text in exact])
        semantics = Semantics.of_spark(ansi=False, time_zone="UTC")
        assert [ours(read.exact(), semantics=semantics) for read in found] == judged
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_local_times_are_read_in_any_zone(spark: Any) -> None:
    from pyspark.sql import functions as f

    rows = [(str(moment), str(moment.date())) for moment in MOMENTS[:5]]
    texts = spark.createDataFrame(rows, "n string, day string")
    frame = texts.selectExpr("CAST(n AS timestamp_ntz) AS n", "CAST(day AS date) AS day")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        for text in ("hour(ts) = 1", "CAST(ts AS date) = day", "n = ts", "day = ts"):
            assert from_spark_column(f.expr(text), SCHEMA).exactness is Exactness.EXACT
        for text in ("hour(n) = 2", "CAST(n AS date) = day", "n < '2024-03-31 02:00:00'"):
            column = f.expr(text)
            read = from_spark_column(column, SCHEMA).exact()
            rules = rules_of(column)
            assert ours(read, BATCH.slice(0, 5), semantics=rules) == theirs(frame, [column])[0]
        column = f.expr("ts = '2024-03-31 04:30:00'")
        read = from_spark_column(column, SCHEMA).exact()
        assert ours(read, BATCH.slice(0, 5), semantics=rules_of(column)) == [1]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_columns_that_spark_rejects_are_rejected(spark: Any) -> None:
    from pyspark.sql import functions as f

    with pytest.raises(UnknownColumn, match="nowhere"):
        from_spark_column(f.col("nowhere") > 1, SCHEMA)
    with pytest.raises(InvalidPredicate, match="Spark does not take this column"):
        from_spark_column(f.expr("i >"), SCHEMA)
    found = from_spark_column((f.col("b") + 1 > 1) & f.col("b"), SCHEMA)
    assert found.exactness is Exactness.SUPERSET
    assert "bool and int32" in found.notes[0]


def test_columns_of_a_frame_are_taken_by_their_names(spark: Any) -> None:
    from pyspark.sql import functions as f

    frame = in_spark(spark)
    column = (frame.i >= 1) & (frame["s"] == "a") | (f.col("k") == frame.k) & frame.b
    column |= frame["st.x"] == 1
    read = from_spark_column(column, SCHEMA)
    assert [ours(read.exact())] == theirs(frame, [column])
    other = spark.createDataFrame([], "i string, nowhere int")
    note = from_spark_column(other.i == "a", SCHEMA).notes[0]
    assert "string in its DataFrame and int here" in note
    with pytest.raises(UnknownColumn, match="nowhere"):
        from_spark_column(other.nowhere == 1, SCHEMA)


def test_names_in_another_case_are_found_where_spark_finds_them(spark: Any) -> None:
    from pyspark.sql import functions as f

    frame = in_spark(spark)
    column = (f.col("I") >= 1) & (f.col("S") == "a") | (frame["I"] == 12) & f.col("B")
    assert [ours(from_spark_column(column, SCHEMA).exact())] == theirs(frame, [column])
    both, _ = schema_of(pa.schema([("i", pa.int32()), ("I", pa.int32())]))
    with pytest.raises(InvalidPredicate, match="ambiguous"):
        from_spark_column(f.col("I") >= 1, both, strict=True)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(UnknownColumn, match="'I'"):
            from_spark_column(f.col("I") >= 1, SCHEMA)
        assert str(from_spark_column(f.col("I") >= 1, both).exact()) == '"I" >= 1'
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_long_chains_are_not_deep(spark: Any) -> None:
    from pyspark.sql import functions as f

    column = f.col("i") == 0
    for value in range(1, 700):
        column = column | (f.col("i") == value)
    read = from_spark_column(column, SCHEMA).exact()
    assert isinstance(read, Or)
    assert len(read.terms) == 700


def test_long_lists_are_one_list(spark: Any) -> None:
    from pyspark.sql import functions as f

    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days) for days in range(300)]
    read = from_spark_column(f.col("day").isin(days), SCHEMA).exact()
    assert isinstance(read, InList)
    assert read.values.array.to_pylist() == days
    read = from_spark_column(f.col("k").isin(list(range(3_000))), SCHEMA).exact()
    assert isinstance(read, InList)
    assert read.values.array.equals(pa.array(range(3_000), pa.int64()))
    assert from_spark_column(f.col("k").isin([]), SCHEMA).exact() == FALSE


def test_depth_that_spark_itself_does_not_take_is_told(spark: Any) -> None:
    from pyspark.sql import functions as f

    column = f.col("i")
    for _ in range(600):
        column = column + 1
    with pytest.raises(UnsupportedOperation, match="deep"):
        from_spark_column(column > 1, SCHEMA, strict=True)
    case = f.lit(0)
    for value in range(12):
        case = f.when(f.col("i") == value, value).otherwise(case)
    with pytest.raises(UnsupportedOperation, match="deep"):
        from_spark_column(case > 1, SCHEMA, strict=True)
