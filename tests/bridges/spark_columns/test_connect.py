"""Connect columns mean here what a Spark Connect server makes of them, read and written.

The server is the JVM of the shared session, so that both kinds of columns live in one process. The
client needs the extra `connect`: without it there are no such columns, and nothing to test.
"""

from __future__ import annotations

import datetime
import decimal
import inspect
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowsieve.bridges.session import Session
from rowsieve.bridges.spark_columns import from_spark_column, rules_of, to_spark_column
from rowsieve.bridges.spark_columns.long_lists import SHORT
from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate.semantics import Semantics
from tests.bridges.spark_columns.nasty import (
    BATCH,
    FLAT,
    SCHEMA,
    every_other,
    in_spark,
    ours,
    theirs,
)
from tests.bridges.spark_columns.test_read import METHODS
from tests.bridges.spark_columns.test_write import TEXTS as WRITTEN

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
    "long lists": lambda c, f: (
        c("k").isin([*range(-100, 100), 2**60, None]) | ~c("i8").isin(list(range(1, 120)))
    ),
    "long lists of others": lambda c, f: (
        (
            c("s").isin([*map(str, range(120)), "a", None])
            | (c("f").isin([n / 2 for n in range(120)]))
        )
        & ~c("day").isin([AT.date() + datetime.timedelta(n) for n in range(-100, 40)])
    ),
    "long lists one by one": lambda c, f: (
        c("f").isin(list(range(120))) | c("d").isin([D(n) / 4 for n in range(120)])
    ),
    "long lists of casts": lambda c, f: (
        c("k").isin([f.lit(n).cast("smallint") for n in range(120)])
        | c("i").isin([f.lit(n).cast("bigint") for n in range(-10, 120)])
    ),
    "a long list of infinities": lambda c, f: c("f").isin([f.lit(1e300).cast("float")] * 120),
    "lists": lambda c, f: (
        (f.size("l") == 2) | (f.get("l", f.lit(0)) == 1) | (f.array_size("l") == 1)
    ),
    "maps": lambda c, f: (c("m")["a"] == 1) | f.try_element_at("m", f.lit("b")).isNotNull(),
    "quoted": lambda c, f: c("`st`.`x`") == 1,
    "another spelling": lambda c, f: c("I") == 12,
    "more bits": lambda c, f: (c("i").bitwiseOR(1) == 13) | (c("i").bitwiseXOR(c("i")) == 0),
    "shifts": lambda c, f: f.shiftleft("k", 2) == 48,
    "more of text": lambda c, f: (
        (f.bit_length("s") == 8) | (f.right("s", f.lit(1)) == "b") | (f.rpad("s", 2, " ") == "a ")
    ),
    "digits": lambda c, f: (f.hex("k") == "C") | (f.radians("whole") < 0),
    "whole quotients": lambda c, f: call("div", c("small"), f.lit(3)) == -1,
    "signs": lambda c, f: (f.positive("f") == 0) | (f.least("f", f.lit(0.0)) == 0),
    "zeros": lambda c, f: f.nullifzero("small").isNull() | (f.zeroifnull("small") == 7),
    "named otherwise": lambda c, f: (call("len", c("s")) == 2) | (f.position(f.lit("b"), "s") == 2),
    "between": lambda c, f: call("between", c("small"), f.lit(1), f.lit(7)),
    "floats as others": lambda c, f: (
        (f.floor(f.when(f.isnan("f"), c("f")).otherwise(1.5)) == 0)
        | (c("f").try_cast("bigint") == 2)
        | (c("f").cast("float") == math.inf)
    ),
    "if": lambda c, f: call("if", c("b"), c("i"), f.lit(0)) == 12,
    "casts by name": lambda c, f: (call("bigint", c("i")) + 1 == 2**31) | call("boolean", c("i")),
    "more parts": lambda c, f: (
        (f.quarter("day") == 1) & (f.month("n") == 2) | (f.weekofyear("day") == 13)
    ),
    "days of something": lambda c, f: (
        (f.dayofmonth("day") == 31) & (f.dayofyear("day") == 91) | (f.weekday("day") == 6)
    ),
    "extracted": lambda c, f: (
        (f.extract(f.lit("SECOND"), "n") == D("59.999999"))
        | (f.extract(f.lit("YEAROFWEEK"), "day") == 1582)
    ),
    "truncated": lambda c, f: f.trunc("day", "MM") == c("day"),
    "made dates": lambda c, f: f.make_date(f.lit(2024), f.lit(3), f.lit(31)) == c("day"),
    "back": lambda c, f: f.date_sub("day", 1) < f.dateadd("day", f.lit(1)),
    "months as intervals": lambda c, f: (
        (c("day") + f.make_ym_interval(f.lit(0), f.lit(1)) == datetime.date(2024, 3, 29))
        | (c("n") - f.make_ym_interval(f.lit(1)) > "2023-03-31 02:00:00")
    ),
    "named zones": lambda c, f: (
        (f.from_utc_timestamp("ts", "Europe/Berlin") > f.to_utc_timestamp("ts", "+05:30"))
        | (f.convert_timezone(f.lit("Europe/Berlin"), f.lit("Pacific/Apia"), c("n")) > c("n"))
    ),
}
# Where instants are looked at: exact only in a session whose time zone is known.
ZONED: list[Build] = [
    lambda c, f: f.hour("ts") == 2,
    lambda c, f: f.year("ts") == 2024,
    lambda c, f: c("ts").cast("date") == c("day"),
    lambda c, f: c("ts") == c("n"),
    lambda c, f: c("n") == f.lit(AT).cast("timestamp_ntz"),
    lambda c, f: f.date_trunc("month", "ts") == f.date_trunc("week", "ts"),
    lambda c, f: f.current_date() > c("day"),
    lambda c, f: c("ts") - datetime.timedelta(days=1) < c("ts"),
    lambda c, f: f.localtimestamp() > c("n"),
    lambda c, f: f.date_trunc("day", f.current_timestamp()) > c("ts"),
]


def call(name: str, *columns: Any) -> Any:
    return connect.call_function(name, *columns)


def read(column: Any, **session: Any) -> Any:
    return from_spark_column(column, SCHEMA, **session)


@pytest.fixture(scope="module")
def frame(client: Any) -> Any:
    """The awkward rows on the server."""
    return in_spark(client)


@pytest.mark.spark
def test_rows_are_those_of_the_server(frame: Any) -> None:
    columns = [build(connect.col, connect) for build in BUILDS.values()]
    judged = theirs(frame, columns, functions=connect)
    for name, column, wanted in zip(BUILDS, columns, judged, strict=True):
        found = read(column)
        assert found.exactness is Exactness.EXACT, (name, found.notes)
        assert ours(found.exact()) == wanted, name


@pytest.mark.spark
def test_conditions_that_depend_on_the_time_zone_need_a_known_zone(frame: Any) -> None:
    columns = [build(connect.col, connect) for build in ZONED]
    judged = theirs(frame, columns, functions=connect)
    for column, wanted in zip(columns, judged, strict=True):
        assert ours(read(column, time_zone="UTC").exact()) == wanted
        assert "UTC" in read(column).notes[0]
        assert read(column, time_zone="Europe/Berlin").exactness is Exactness.EXACT
        assert "EST" in read(column, time_zone="EST").notes[0]


@pytest.mark.spark
def test_written_columns_keep_the_same_rows_and_are_read_back(frame: Any, remote: None) -> None:
    utc = Session(time_zone="UTC")  # of the session that runs them; a client alone has none
    predicates = [parse_predicate(text) for text in WRITTEN]
    columns = [to_spark_column(predicate, SCHEMA, session=utc).exact() for predicate in predicates]
    assert type(columns[0]).__module__ == "pyspark.sql.connect.column"
    judged: list[list[int]] = []
    for start in range(0, len(columns), 40):
        judged += theirs(frame, columns[start : start + 40], functions=connect)
    for text, column, wanted in zip(WRITTEN, columns, judged, strict=True):
        assert ours(parse_predicate(text)) == wanted, text
        assert ours(read(column, time_zone="UTC").exact()) == wanted, text


@pytest.mark.spark
def test_long_lists_of_every_type_keep_the_same_rows(frame: Any, remote: None) -> None:
    lists = [every_other(field.name, SHORT + 1, null=bool(at % 2)) for at, field in enumerate(FLAT)]
    columns = [to_spark_column(listed, SCHEMA).exact() for listed in lists]
    judged = theirs(frame, columns, functions=connect)
    for listed, column, wanted in zip(lists, columns, judged, strict=True):
        assert ours(listed) == wanted, listed
        assert ours(read(column, time_zone="UTC").exact()) == wanted, listed
    assert all(judged)


@pytest.mark.parametrize("many", [1, 2 * SHORT])
def test_moments_that_the_server_takes_for_others_are_not_read(many: int) -> None:
    days = {datetime.date(1582, 10, day): 5 <= day < 15 for day in (4, 5, 10, 14, 15)}
    for day, moved in days.items():
        listed = connect.col("day").isin([day] * many)
        for column in (listed, connect.col("day") == day, connect.lit(day) > connect.col("n")):
            found = read(column)
            assert (found.expression is None) == moved, day
            assert not moved or "October 1582" in found.notes[0]
    years = {1: False, 1582: False, 1583: True, 1899: True, 1900: False, 9999: False}
    for year, moved in years.items():
        at = datetime.datetime(year, 1, 1, tzinfo=datetime.UTC)
        found = read(connect.col("ts").isin([at] * many))
        assert (found.expression is None) == moved, year


def test_instants_that_pyspark_cannot_show_are_refused_like_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    years = [datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (1, 1700)]
    try:
        (note,) = read(connect.col("ts").isin(years)).notes
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "cannot show" in note
    assert "October 1582" in note


@pytest.mark.spark
def test_such_moments_are_others_on_the_server(frame: Any) -> None:
    day = datetime.date(1582, 10, 10)
    assert day in BATCH.column("day").to_pylist()
    assert theirs(frame, [connect.col("day") == day], functions=connect) == [[]]


def test_casts_in_long_lists_are_checked() -> None:
    numbers = [*range(2 * SHORT), 70_000]  # the last one does not fit
    cast = [connect.lit(number).cast("smallint") for number in numbers]
    assert ours(read(connect.col("k").isin(cast)).exact()) is None  # it fails, as in Spark
    assert ours(read(connect.col("k").isin(cast[:-1])).exact()) is not None


@pytest.fixture
def remote(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's functions make columns of a client, as in a process whose session is one."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")


@pytest.fixture
def active(client: Any) -> Iterator[Any]:
    """The client's session as the active one of this thread."""
    kind = type(client)
    kind._set_default_and_active_session(client)
    yield client
    kind._default_session = kind._active_session.session = None


@pytest.mark.spark
def test_the_settings_of_the_active_session_decide(frame: Any, active: Any) -> None:
    lasting = [("spark.sql.ansi.enabled", "false"), ("spark.sql.session.timeZone", "Asia/Tokyo")]
    builds: list[Build] = [
        lambda c, f: c("whole") / c("small") > 0,
        lambda c, f: c("small") % 0 == 0,
        lambda c, f: c("l")[0] == 1,
        lambda c, f: f.size("l") == -1,
        lambda c, f: ~c("i").isin([]),
        lambda c, f: f.hour("n") == 2,
        lambda c, f: f.hour("ts") == 2,
        lambda c, f: c("i") + 1 > 0,
        lambda c, f: c("i").cast("tinyint") == 1,
    ]
    left: list[Build] = [
        lambda c, f: f.floor("whole") == 1,
    ]
    columns = [build(connect.col, connect) for build in builds]
    try:
        for name, value in lasting:
            active.conf.set(name, value)
        judged = theirs(frame, columns, functions=connect)
        rules = Semantics.of_spark(ansi=False, time_zone="Asia/Tokyo")
        assert rules_of(columns[0]) == rules
        assert [ours(read(column).exact(), semantics=rules) for column in columns] == judged
        for build in left:
            assert read(build(connect.col, connect)).expression is None
        active.conf.set("spark.sql.legacy.sizeOfNull", "false")
        active.conf.set("spark.sql.legacy.nullInEmptyListBehavior", "false")
        columns = [columns[3], columns[4], ~columns[4]]
        judged = theirs(frame, columns, functions=connect)
        assert [ours(read(column).exact()) for column in columns] == judged
    finally:
        for name, _ in lasting:
            active.conf.unset(name)
        active.conf.unset("spark.sql.legacy.sizeOfNull")
        active.conf.unset("spark.sql.legacy.nullInEmptyListBehavior")
        active.conf.set("spark.sql.session.timeZone", "UTC")


def test_every_function_of_the_client_is_read_or_refused() -> None:
    source = inspect.getsource(inspect.getmodule(connect.col) or connect)
    called = r'(?:_invoke_\w+|UnresolvedFunction)\(\s*"(\w+)"'
    names = {name.lower() for name in re.findall(called, source)}
    assert len(names) > 400
    for name in names:
        found = read(call(f"`{name}`", connect.col("i")))
        assert found.exactness is Exactness.EXACT or found.notes, name


def test_the_mode_of_the_session_is_an_argument() -> None:
    for column in (connect.col("i") + 1 > 2, connect.col("i").cast("tinyint") == 1):
        for ansi in (True, False):
            assert read(column, ansi=ansi).exactness is Exactness.EXACT
            assert rules_of(column, Session(ansi=ansi)).is_ansi is ansi


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda c, f: c("s").rlike(c("st.y")), "pattern"),
        (lambda c, f: f.expr("s RLIKE st.y"), "pattern"),
        (lambda c, f: f.expr("i > 1) OR (i < 1"), "not expected"),
        (lambda c, f: f.rand() > 0.5, "not supported"),
        (lambda c, f: f.exists("l", lambda x: x > 1), "LambdaFunction"),
        (lambda c, f: f.max("i") > 1, "aggregate"),
        (lambda c, f: call("ours", c("i")) > 1, "ours"),
        (lambda c, f: call("epoch_us", c("ts")) > 1, "epoch_us has no counterpart"),
        (lambda c, f: call("between", c("i"), f.lit(1)), "between"),
        (lambda c, f: c("l")[0] == 1, "get\\(list"),
        (lambda c, f: c("f").cast("string") == "1.0", "float64 to string"),
    ],
)
def test_conditions_without_a_translation_go_to_the_residual(build: Build, reason: str) -> None:
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


@pytest.mark.parametrize("levels", [12, 40, 100, 150])
def test_deep_conditions_are_read(levels: int) -> None:
    def built(column: Callable[[str], Any]) -> Any:
        whole = column("i") > 0
        for level in range(levels):
            if level % 3 == 0:
                whole = ~whole
            elif level % 3 == 1:
                whole = whole & (column("k") != level)
            else:
                whole = whole | (column("i") == level)
        return ~whole

    whole = read(built(connect.col)).exact()
    numbered = BATCH.append_column("row number", pa.array(range(BATCH.num_rows)))
    expected = pa.table(numbered).filter(built(pc.field))
    assert ours(whole) == expected["row number"].to_pylist()


def test_text_in_a_column_names_no_condition_of_another() -> None:
    assert "names something other" in read(~connect.expr("`:condition 0` > 1")).notes[0]


def test_long_chains_and_lists_are_one_node() -> None:
    column = connect.col("i") == 0
    for value in range(1, 800):
        column = column | (connect.col("i") == value)
    assert len(read(column).exact().terms) == 800
    listed = connect.col("k").isin(list(range(5_000)))
    assert len(read(listed).exact().values) == 5_000
    deep = connect.col("i")
    for _ in range(400):
        deep = deep + 1
    assert "deeper" in read(deep > math.inf).notes[0]
