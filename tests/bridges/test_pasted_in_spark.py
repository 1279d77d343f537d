"""What `rowsieve translate` prints for Spark runs there as it is pasted, and keeps our rows."""

from __future__ import annotations

import ast
import datetime
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.session import in_session
from rowsieve.bridges.sql.column_list import columns_of
from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.sql.language import to_text
from rowsieve.bridges.where import to_predicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.semantics import Semantics
from tests.cli.test_cli import run

pytestmark = pytest.mark.spark

SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
UTC = datetime.UTC
_TIMES = [
    datetime.datetime(2024, 3, 10, 7, 30),
    datetime.datetime(2024, 7, 3, 10, 20, 30, 500_000),
    datetime.datetime(1969, 12, 31, 23, 59, 59),
    None,
]
ROWS = pa.table(
    {
        "k": pa.array(range(4), pa.int64()),
        "i": pa.array([5, -7, None, 2**31 - 1], pa.int32()),
        "x": pa.array([1.5, float("nan"), None, -0.0]),
        "n": pa.array(["1.9", "5", "007", None]),
        "w": pa.array(["2", "5", "007", None]),
        "s": pa.array(["it's", "a%b", 'q"\\', None]),
        "flag": pa.array(["yes", "F", "1", None]),
        "day": pa.array(["2024-1-5", "2024", "-0044-03-15", None]),
        "at": pa.array(
            ["2024-03-10 02:30:00", "2024-07-03T10:20:30.5", "1969-12-31 23:59:59Z", None]
        ),
        "german": pa.array(["10.03.2024 02:30", "03.07.2024 10:20", "31.12.1969 23:59", None]),
        "odd": pa.array(["n/a", "20240703", "1e3", None]),
        "ts": pa.array(_TIMES, pa.timestamp("us")),
        "tz": pa.array(_TIMES, pa.timestamp("us", "UTC")),
        "d": pa.array([time and time.date() for time in _TIMES], pa.date32()),
    }
)
COLUMNS = {
    "spark": "k bigint, i int, x double, n string, w string, s string, flag string, day string, "
    "at string, german string, odd string, ts timestamp_ntz, tz timestamp, d date",
    "postgres": "k bigint, i int, x double precision, n text, w text, s text, flag text, "
    "day text, at text, german text, odd text, ts timestamp, tz timestamptz, d date",
}
CONDITIONS = [
    *(("spark", text) for text in ("i > 4", "s = 'it\\'s' OR s LIKE 'q%'", "i IN (5, NULL, 6)")),
    *(("spark", text) for text in ("w = 5", "CAST(w AS INT) > 4", "w IN (5, 7)", "n > 1.5")),
    *(("spark", text) for text in ("CAST(n AS DOUBLE) < 2", "CAST(n AS DECIMAL(9,1)) = 1.9")),
    *(("spark", text) for text in ("flag = TRUE", "CAST(flag AS BOOLEAN)", "x = 'NaN'")),
    *(("spark", text) for text in ("CAST(day AS DATE) < DATE '2024-01-05'", "to_date(day) = d")),
    *(("spark", text) for text in ("day > DATE '2024-01-01'", "to_date(at) = d", "at > d")),
    *(("spark", text) for text in ("CAST(at AS TIMESTAMP) > tz", "at = tz")),
    ("spark", "to_timestamp(at) <> tz"),
    ("spark", "CAST(at AS TIMESTAMP_NTZ) = TIMESTAMP_NTZ '2024-03-10 02:30:00'"),
    ("spark", "to_date(german, 'dd.MM.yyyy HH:mm') = DATE '2024-03-10'"),
    ("spark", "to_timestamp(german, 'dd.MM.yyyy HH:mm') < tz"),
    ("spark", "to_timestamp_ntz(german, 'dd.MM.yyyy HH:mm') < ts"),
    ("spark", "unix_timestamp(german, 'dd.MM.yyyy HH:mm') < 0"),
    ("spark", "try_to_timestamp(odd, 'yyyyMMdd') IS NULL"),
    ("spark", "try_to_date(odd, \"yyyyMMdd\") = DATE '2024-07-03'"),
    ("spark", "try_to_timestamp(at, \"yyyy-MM-dd'T'HH:mm:ss.S\") > TIMESTAMP '2024-01-01'"),
    ("spark", "TRY_CAST(odd AS DOUBLE) = 1000 OR TRY_CAST(n AS INT) IS NULL"),
    ("spark", "TRY_CAST(odd AS DATE) IS NULL AND TRY_CAST(odd AS TIMESTAMP) IS NULL"),
    ("spark", "NOT (hour(tz) = 10 OR d > DATE '2024-05-01')"),
    ("spark", "i - 1 > 0 OR i IS NULL"),
    ("postgres", "i > 4 AND s = 'it''s'"),
    ("postgres", "ts >= '2024-03-10 07:30:00' AND d < '2024-07-01'"),
    ("postgres", "x = 'NaN' OR x = 0"),
    ("postgres", "s LIKE 'it%' OR length(s) = 3"),
]  # fmt: skip


@pytest.fixture(params=[("UTC", True), ("America/New_York", False)], ids=["ansi", "legacy"])
def session(spark: Any, request: pytest.FixtureRequest) -> Iterator[tuple[Any, rs.Session]]:
    before = {name: spark.conf.get(name) for name in SETTINGS}
    zone, ansi = request.param
    spark.conf.set(SETTINGS[0], zone)
    spark.conf.set(SETTINGS[1], str(ansi).lower())
    yield spark, rs.Session(time_zone=zone, ansi=ansi)
    for name, value in before.items():
        spark.conf.set(name, value)


def printed(dialect: str, text: str, target: str, session: rs.Session) -> str:
    """The translation for a session that is set as the one that it is meant in."""
    settings = []
    for name in ("", "target-"):
        mode = f"--{name}ansi" if session.ansi else f"--no-{name}ansi"
        settings += [f"--{name}time-zone", session.time_zone, mode]
    if dialect != "spark":  # other engines have no ANSI mode, and mean UTC here
        settings = ["--time-zone", "UTC", *settings[3:]]
    words = ("translate", text, "--from", dialect, "--to", target, "--schema", COLUMNS[dialect])
    return run(*words, "--strict", *settings).rstrip("\n")


def column(text: str) -> Any:
    """The column of the Python text, which calls `F.expr` of a constant and nothing else."""
    from pyspark.sql import functions

    match ast.parse(text, mode="eval").body:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="F"), attr="expr"),
            args=[ast.Constant(value=str())],
            keywords=[],
        ):
            names = {"F": functions, "__builtins__": {}}
            return eval(compile(text, "<pasted>", "eval"), names)
    raise AssertionError(text)


def ours(dialect: str, text: str, session: rs.Session) -> list[int]:
    meant = session if dialect == "spark" else rs.Session("UTC")
    semantics = in_session(dialect_named(dialect).semantics, meant)
    schema = columns_of(COLUMNS[dialect], dialect)
    bound = bind(to_predicate(text, dialect, schema, semantics), schema, semantics)
    kept = matching(bound, ROWS.combine_chunks().to_batches()[0])
    return [row for row, found in enumerate(kept) if found]


def test_printed_text_runs_in_spark_and_keeps_the_rows(session: tuple[Any, rs.Session]) -> None:
    """As columns, as text, and beside both Spark's own text: all in one query, to save time."""
    from pyspark.sql import functions

    spark, meant = session
    frame = spark.createDataFrame(ROWS, COLUMNS["spark"]).coalesce(1)
    asked: list[tuple[str, Any, list[int]]] = []
    for dialect, text in CONDITIONS:
        wanted = ours(dialect, text, meant)
        asked.append((text, column(printed(dialect, text, "spark_columns", meant)), wanted))
        asked.append((text, functions.expr(printed(dialect, text, "spark", meant)), wanted))
        if dialect == "spark":
            asked.append((text, functions.expr(text), wanted))
    found = frame.orderBy("k").select(*(each for _, each, _ in asked)).collect()
    for place, (text, _, wanted) in enumerate(asked):
        assert [row for row, values in enumerate(found) if values[place]] == wanted, text
    assert sum(bool(wanted) for _, _, wanted in asked) > 0.8 * len(asked)
    assert [row.k for row in frame.where(asked[0][1]).collect()] == asked[0][2]


REFUSED = [  # meant in ANSI mode and UTC, and run without it in another zone
    *("CAST(w AS INT) = 5", "w > 4", "to_date(day) = d", "to_timestamp(german, 'yyyy') < tz"),
    *("CAST(at AS TIMESTAMP) < tz", "TRY_CAST(at AS TIMESTAMP) < tz", "flag = TRUE"),
    *("to_timestamp_ntz(odd, 'yyyyMMdd') < ts", "try_to_timestamp(odd, 'yyyyMMdd') < tz"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_text_that_spark_interprets_differently_is_omitted(text: str) -> None:
    meant, there = rs.Session("UTC", ansi=True), rs.Session("Asia/Kathmandu", ansi=False)
    made = rs.translate(
        text,
        "spark",
        target="spark",
        schema=columns_of(COLUMNS["spark"], "spark"),
        session=meant,
        target_session=there,
    )
    assert (made.expression, made.residual is not None) == (None, True)


def test_a_fraction_cast_to_an_integer_is_omitted_in_ansi_mode() -> None:
    schema = columns_of(COLUMNS["spark"], "spark")
    meant = Semantics.of_spark(ansi=False, time_zone="UTC")
    there = rs.Session("UTC", ansi=True)
    found = [
        to_text(
            to_predicate(f"CAST(n AS {type_}) = 1", "spark", schema, meant),
            schema,
            meant,
            dialect="spark",
            session=there,
        ).expression
        for type_ in ("INT", "DOUBLE")
    ]
    assert found == [None, "TRY_CAST(`n` AS DOUBLE) = CAST('1.0' AS DOUBLE)"]


@pytest.mark.parametrize(
    ("dialect", "text"), [("postgres", "CAST(w AS int) = 5"), ("duckdb", "CAST(n AS DATE) < d")]
)
def test_text_with_other_rules_is_omitted(dialect: str, text: str) -> None:
    made = rs.translate(text, dialect, target="spark", schema=ROWS.schema)
    assert made.expression is None
