"""Connect columns are read as Spark resolves the same column; no server runs for it.

The client needs the extra `connect`: without it there are no such columns, and nothing to test.
"""

from __future__ import annotations

import datetime
import decimal
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from rowsieve.bridges.spark_columns import from_spark_column
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from tests.bridges.spark_columns.nasty import SCHEMA, in_spark, ours, theirs
from tests.bridges.spark_columns.test_read import METHODS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about the versions of what it needs
    connect = pytest.importorskip("pyspark.sql.connect.functions", exc_type=ImportError)

Build = Callable[[Any, Any], Any]
D = decimal.Decimal
AT = datetime.datetime(2024, 3, 31, 2, 30)
BUILDS: dict[str, Build] = {
    **{name: build for name, build in METHODS.items() if name not in ("bytes", "ntz")},
    "bytes": lambda c, f: c("y") == f.lit(b"\xff"),
    "numbers": lambda c, f: (c("i8") < c("i16")) & (c("k") > 2**53) & (c("i") > 1.5),
    "arithmetic": lambda c, f: (c("small") + 1) * 2 - c("small") % 3 > 10,
    "quotients": lambda c, f: (c("small") / 7 == 1.0) | (c("d") / D("2.00") == D("0.75")),
    "tried": lambda c, f: (f.try_divide("whole", "small") > 0) | (f.try_mod("small", "i") == 0),
    "negated": lambda c, f: (-c("small") == 3) | (f.abs("d") == D("2.25")),
    "decimals": lambda c, f: (c("d") + c("d") == D("3")) | (c("d") < c("w")) | (c("d") == 1.5),
    "unsigned": lambda c, f: (c("u8") + 1 == 256) | (c("u64") > c("k")),
    "choices": lambda c, f: f.coalesce("i", "small", f.lit(0)) == f.greatest("i", "small"),
    "nullif": lambda c, f: f.nullif("i", f.lit(12)).isNull() | (f.nvl2("i", f.lit(1), "i") == 1),
    "nanvl": lambda c, f: f.nanvl("f", f.lit(7.0)) == 7.0,
    "isnan": lambda c, f: f.isnan("f") | f.isnull("f") | f.isnotnull("s"),
    "floors": lambda c, f: (f.floor("d") == -3) | (f.ceil("whole") == 3) | (f.round("d", 1) == 2),
    "roots": lambda c, f: (f.sqrt("small") > 2) | (f.degrees("whole") > 80) | (f.sign("f") == 1),
    "bits": lambda c, f: (c("i").bitwiseAND(3) == 2) | (f.shiftright("i", 2) == 3),
    "case of text": lambda c, f: (f.lower("s") == "ss") | (f.upper("s") == "SS"),
    "parts of text": lambda c, f: (
        f.substring("s", 1, 1).isin("a", "é") | (f.left("s", f.lit(1)) == "x")
    ),
    "substr": lambda c, f: c("s").substr(1, 1) == "a",
    "trims": lambda c, f: (f.trim("s") == "a") | (f.trim("s", f.lit("ab")) == ""),
    "trimmed sides": lambda c, f: (f.ltrim("s") == "a ") | (f.rtrim("s") == " a"),
    "replaced": lambda c, f: (
        (f.replace("s", f.lit("a"), f.lit("b")) == "bb") | (f.instr("s", "b") == 2)
    ),
    "tests": lambda c, f: c("s").startswith("a") | c("s").endswith("b") | c("s").contains("é"),
    "located": lambda c, f: (f.locate("b", "s") == 2) | (f.reverse("s") == "ba"),
    "made": lambda c, f: (f.lpad("s", 3, "xy") == "xya") | (f.repeat("s", 2) == "aa"),
    "joined": lambda c, f: (
        (f.concat("s", "st.y") == "aa") | (f.concat_ws("-", "s", "st.y") == "a-a")
    ),
    "split": lambda c, f: f.split_part("s", f.lit("_"), f.lit(2)) == "b",
    "translated": lambda c, f: f.translate("s", "ab", "x") == "x",
    "sizes": lambda c, f: (f.length("s") == 1) | (f.octet_length("s") == 2) | (f.ascii("s") > 127),
    "digests": lambda c, f: (f.md5("s") == f.lit("x")) | (f.sha2("s", 256) == f.lit("x")),
    "dates": lambda c, f: (c("day") > "2024-02-29") | (c("n") < "0001-01-02 00:00:00"),
    "parts of dates": lambda c, f: (f.year("day") == 2024) & (f.dayofweek("day") == 1),
    "parts of times": lambda c, f: (
        (f.hour("n") == 2) & (f.minute("n") == 30) | (f.second("n") == 59)
    ),
    "months": lambda c, f: f.add_months("day", 1) > f.date_add("day", 1),
    "days": lambda c, f: (
        (f.last_day("day") == c("day")) | (f.datediff("day", f.lit(AT.date())) == 1)
    ),
    "day and clock": lambda c, f: c("day") == c("n"),
    "epochs": lambda c, f: (f.unix_micros("ts") > 0) | (f.timestamp_seconds("small") > c("ts")),
    "moved": lambda c, f: c("n") + datetime.timedelta(hours=1) > "2024-03-31 03:00:00",
    "casts": lambda c, f: (c("i").cast("bigint") + 1 == 2**31) | (c("small").cast("string") == "7"),
    "other casts": lambda c, f: (
        c("k").try_cast("int").isNull() | (c("d").cast("decimal(8,1)") == D("2.3"))
    ),
    "lists": lambda c, f: (
        (f.size("l") == 2) | (f.get("l", f.lit(0)) == 1) | (f.array_size("l") == 1)
    ),
    "maps": lambda c, f: (c("m")["a"] == 1) | f.try_element_at("m", f.lit("b")).isNotNull(),
    "quoted": lambda c, f: c("`st`.`x`") == 1,
    "another spelling": lambda c, f: c("I") == 12,
}


def read(column: Any, **session: Any) -> Any:
    return from_spark_column(column, SCHEMA, **session)


@pytest.mark.spark
def test_rows_are_those_of_spark(spark: Any) -> None:
    from pyspark.sql import functions as f

    judged = theirs(in_spark(spark), [build(f.col, f) for build in BUILDS.values()])
    for (name, build), wanted in zip(BUILDS.items(), judged, strict=True):
        found = read(build(connect.col, connect))
        assert found.exactness is Exactness.EXACT, (name, found.notes)
        assert ours(found.exact()) == wanted, name


@pytest.mark.spark
def test_what_hangs_on_the_time_zone_is_read_where_it_is_known(spark: Any) -> None:
    from pyspark.sql import functions as f

    builds: list[Build] = [
        lambda c, f: f.hour("ts") == 2,
        lambda c, f: f.year("ts") == 2024,
        lambda c, f: c("ts").cast("date") == c("day"),
        lambda c, f: c("ts") == c("n"),
        lambda c, f: c("n") == f.lit(AT).cast("timestamp_ntz"),
        lambda c, f: f.date_trunc("month", "ts") == f.date_trunc("week", "ts"),
        lambda c, f: f.current_date() > c("day"),
        lambda c, f: c("ts") - datetime.timedelta(days=1) < c("ts"),
    ]
    judged = theirs(in_spark(spark), [build(f.col, f) for build in builds])
    for build, wanted in zip(builds, judged, strict=True):
        column = build(connect.col, connect)
        assert ours(read(column, time_zone="UTC").exact()) == wanted
        for zone in (None, "Europe/Berlin"):
            assert "UTC" in read(column, time_zone=zone).notes[0]


def test_the_mode_of_the_session_is_an_argument() -> None:
    for column in (connect.col("i") + 1 > 2, connect.col("i").cast("tinyint") == 1):
        assert read(column).exactness is Exactness.EXACT
        assert read(column, ansi=False).exactness is Exactness.UNSUPPORTED


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda c, f: c("s").rlike("a"), "regular expressions"),
        (lambda c, f: f.expr("i > 1"), "SQL text"),
        (lambda c, f: c("s") == 1, "cast them"),
        (lambda c, f: c("i") == c("g"), "cast them"),
        (lambda c, f: f.rand() > 0.5, "another value"),
        (lambda c, f: f.initcap("s") == "A", "not resolved"),
        (lambda c, f: f.exists("l", lambda x: x > 1), "not resolved|LambdaFunction"),
        (lambda c, f: f.max("i") > 1, "not resolved"),
        (lambda c, f: c("l")[0] == 1, "F.get"),
        (lambda c, f: c("f").cast("bigint") == 1, "greatest bigint"),
    ],
)
def test_what_cannot_be_said_is_left_to_spark(build: Build, reason: str) -> None:
    column = (connect.col("i") > 1) & build(connect.col, connect)
    found = read(column)
    assert found.exactness is Exactness.SUPERSET
    assert found.notes[0].startswith("condition 2 of 2")
    assert found.residual is not None
    with pytest.raises(UnsupportedOperation, match=reason):
        read(column, strict=True)


def test_names_that_mean_nothing_are_refused() -> None:
    with pytest.raises(UnknownColumn):
        read(connect.col("nowhere") > 1)
    with pytest.raises(UnknownColumn):
        read(connect.col("st.nowhere") > 1)
    with pytest.raises(InvalidPredicate):
        read(connect.col("`open") > 1)


def test_long_chains_and_lists_are_one_node() -> None:
    column = connect.col("i") == 0
    for value in range(1, 2_000):
        column = column | (connect.col("i") == value)
    assert len(read(column).exact().terms) == 2_000
    listed = connect.col("k").isin(list(range(5_000)))
    assert len(read(listed).exact().values) == 5_000
    deep = connect.col("i")
    for _ in range(400):
        deep = deep + 1
    assert "deeper" in read(deep > math.inf).notes[0]
