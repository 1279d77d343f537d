"""Casts from text under Spark's semantics give what Spark gives, or refuse the text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.functions.casting.casts import cast_as_written
from rowsieve.predicate.ir import Cast, Column
from rowsieve.predicate.semantics import OnFailure, Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
)
from tests import oracle_zones
from tests.oracle_spark_texts import spark_reads_one
from tests.oracle_texts import plain, read_apart
from tests.oracle_values import Failed
from tests.profiles import IS_DEEP

COUNT = 1_000 if IS_DEEP else 40  # random texts, beside those that show something

TYPES: dict[str, LogicalType] = {
    "BOOLEAN": Bool(),
    "TINYINT": Int(8),
    "SMALLINT": Int(16),
    "INT": Int(32),
    "BIGINT": Int(64),
    "FLOAT": Float(32),
    "DOUBLE": Float(64),
    "DECIMAL(9,2)": Decimal(9, 2),
    "DECIMAL(38,10)": Decimal(38, 10),
    "DECIMAL(38,38)": Decimal(38, 38),
    "DECIMAL(38,0)": Decimal(38, 0),
    "DATE": Date(),
    "TIMESTAMP_NTZ": Timestamp(),
    "TIMESTAMP": Timestamp(utc=True),
}
AS_NUMBERS = {"DATE": "unix_date({})", "TIMESTAMP": "unix_micros({})"}
AS_NUMBERS["TIMESTAMP_NTZ"] = "unix_micros(CAST({} AS TIMESTAMP))"  # in UTC alone

ENDS = [str(sign * 2**bits + step) for bits in (7, 15, 31, 63) for sign in (1, -1)
        for step in (-1, 0, 1)]  # fmt: skip
WORDS = [
    *("nan", "NaN", "NAN", "-NaN", "+NaN", "-nan", "+nan", "inf", "INF", "+inf", "-Inf"),
    *("Infinity", "-INFINITY", "infinit", "NaNd", "Infinityf", "--inf", "0x1p3", "0x10", "1_0"),
    *("t", "True", "tRuE", "y", "yes", "1", "0", "f", "false", "n", "NO", "on", "off", "T "),
    *("", " ", "abc", "null", ".", "-.", "+.", "-", "+", "e5", ".e5", "1e", "1e+", "1d", "1.f"),
    *("0e38", "0e400", "1e37", "1e38", "10e37", "0.1e38", "1e-40", "5e-39", "0e-2147483648"),
    *("0.5", "1.5", "-0.5", "-0", "1.005", "99999.995", "9999999.995", "9999999.994", "1e3"),
    *("1.7976931348623157e308", "1.7976931348623159e308", "4.9e-324", "2e-324", "3.4028236e38"),
    *("1e99999999999", "1e-99999999999", "0e99999999999", "1e+0000000000003", "16777217.5"),
    *("\u0661", "12\u0663", "\uff11", "\u212a", "\u0130nf", "1\u00a0", "1.9999999999999999999"),
    *("0." + "9" * 40, "0." + "4" * 40, "0." + "0" * 37 + "5", "1" * 38 + ".5", "9" * 39),
]
MOMENTS = [
    *("2024", "24", "12024", "+2024", "-2024", "0000", "1234567", "9999999", "5881580-07-11"),
    *("5881580-07-12", "-5877641-06-23", "-5877641-06-22", "2024-1", "2024-13", "2024-00-1"),
    *("2024-2-30", "2023-02-29", "1900-02-29", "2024-02-29", "2024-1-5 ", "\t2024-01-05\x7f"),
    *("2024-01-05T", "2024-01-05 abc", "2024-01-05Tabc\n", "2024-01-05x", "2024-01-050", "2024-"),
    *("2024/01/05", "20240105", "2024-01-05 1", "2024-01-05 1:2", "2024-01-05T1:2:3", "1582-10-10"),
    *("2024-01-05 24:00:00", "2024-01-05 23:60", "2024-01-05 23:59:60", "2024-01-05 10:"),
    *("2024-01-05 10:00:00.", "2024-01-05 10:00:00.1234567", "2024-01-05 10:00:00.000001Z"),
    *("294247-01-09 00:00:00", "-290308-12-22 00:00:00", "294248-01-01", "now", "today", "T1x"),
    *("2024-03-10 02:30:00", "2024-11-03 01:30:00", "2024-03-31 02:30:00", "1883-11-18 12:03:58"),
]
ZONES = [
    *("Z", "z", " Z", "UTC", " GMT", "UT", "+01", "+1", "+01:00", "-05:30", "+0130", "+1:30"),
    *("+01:3", "+18", "+18:00", "+18:01", "-19:00", "+01:60", "+01:00:30", "+010030", "UTC+1"),
    *("GMT-3", "UT+3:30", "UTC0", " Europe/Berlin", "America/New_York", "america/new_york"),
    *("Foo/Bar", " foo", "x", "+", "-", "\t+02:00", "+ 02:00", "\u00a0Z", "[UTC]", "PST", ".5"),
]
FIRST = [*ENDS, *(end + ".9" for end in ENDS), *WORDS, *MOMENTS]
FIRST += ["2024-06-01 12:00:00" + zone for zone in ZONES]
FIRST += ["2024-06-01 12:00:00.25" + zone for zone in ZONES[::3]]
_SPACES = ("", "", "", "", " ", "\t", "\n", "\x00", "\x1f", "\x7f", "\u00a0", "\x85")


def texts(seed: int, count: int) -> list[str]:
    """Those that show something, and random ones."""
    rng = random.Random(seed)

    def digits() -> str:
        return "".join(rng.choices("0123456789", k=rng.choice([0, 1, 1, 2, 3, 5, 10, 19, 38, 45])))

    def number() -> str:
        made = rng.choice(["", "", "-", "+", "--"]) + digits() + rng.choice(["", "."]) + digits()
        if rng.random() < 0.3:
            made += rng.choice("eE") + rng.choice(["", "+", "-"]) + digits()[:3]
        return made + rng.choice(["", "", "", "d", "F", "l", "x"])

    def moment() -> str:
        parts = [rng.choice(["2024", "-0001", "9999", "123456"]), rng.choice(["1", "02", "11"])]
        made = "-".join([*parts, rng.choice(["5", "29", "30", "31"])])
        if rng.random() < 0.6:
            clock = rng.choice(["1", "10:00", "1:2", "23:59:59", "2:30:0.5", "01:30:00.123456789"])
            made += rng.choice(" T") + clock + rng.choice(["", "", *ZONES])
        return made

    made = [rng.choice([number, moment])() for _ in range(count)]
    return FIRST + [rng.choice(_SPACES) + text + rng.choice(_SPACES) for text in made]


def read(texts: Sequence[str], type_: str, semantics: Semantics) -> list[Any]:
    """What is read here, None where a cast fails."""
    cast = cast_as_written(pa.array(texts), String(), TYPES[type_], semantics, try_=False)
    return plain(cast.values)


def known(texts: list[str], type_: str, semantics: Semantics) -> dict[str, Any]:
    """The values of those texts that are not refused."""
    found = read_apart(
        texts, lambda some: read(some, type_, semantics), refusal=UnsupportedOperation
    )
    assert len(found) > 0.85 * len(texts)
    return found


def agree(found: Any, expected: Any) -> bool:
    return found == expected if isinstance(found, type(expected)) else False


@pytest.mark.parametrize("type_", sorted(TYPES))
@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
def test_a_text_has_the_value_that_the_oracle_reads(type_: str, ansi: bool) -> None:
    semantics = Semantics.of_spark(ansi=ansi, time_zone="America/New_York")

    def instant(local: int, name: str | None) -> int:
        return oracle_zones.instant(local, semantics, name=name)

    cuts = semantics.failed_cast is OnFailure.NULL
    for text, found in known(texts(1, COUNT), type_, semantics).items():
        try:
            expected = spark_reads_one(text, TYPES[type_], cuts=cuts, instant=instant)
        except Failed:  # the oracle's zones know the years 5 to 9987
            continue
        assert repr(found) == repr(expected) or agree(found, expected), text


@pytest.mark.spark
@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_text_has_the_value_that_spark_reads_or_is_refused(
    zoned_session: Any, zone: str, ansi: bool
) -> None:
    zoned_session.conf.set("spark.sql.session.timeZone", zone)
    zoned_session.conf.set("spark.sql.ansi.enabled", "false")
    semantics = Semantics.of_spark(ansi=ansi, time_zone=zone)
    asked = texts(2, 3 * COUNT)
    frame = zoned_session.createDataFrame(pa.table({"k": range(len(asked)), "s": asked}))
    names = [name for name in TYPES if zone == "UTC" or name == "TIMESTAMP"]
    casts = [f"{'TRY_CAST' if ansi else 'CAST'}(s AS {name})" for name in names]
    columns = [
        AS_NUMBERS.get(name, "{}").format(text) + f" AS c{place}"
        for place, (name, text) in enumerate(zip(names, casts, strict=True))
    ]
    rows = frame.selectExpr("k", *columns).orderBy("k").collect()
    for place, name in enumerate(names):
        by_spark = dict(zip(asked, (row[place + 1] for row in rows), strict=True))
        for text, found in known(list(by_spark), name, semantics).items():
            expected = by_spark[text]
            assert repr(found) == repr(expected) or agree(found, expected), (name, text)


@pytest.mark.parametrize(
    ("text", "type_", "reason"),
    [
        ("0x1p3", "DOUBLE", "java has rules of its own"),
        ("12\u0663", "DECIMAL(9,2)", "java has rules of its own"),
        ("10:00", "TIMESTAMP", "one of today"),
        ("2024-01-01 00:00:00 PST", "TIMESTAMP", "time zone"),
        ("2024-01-01 00:00:00 Foo/Bar", "TIMESTAMP_NTZ", "time zone"),
        ("294247-01-10 00:00:00", "TIMESTAMP", "where 64 bits end"),
        ("1" * 4001 + "e1", "DECIMAL(38,10)", "java has rules of its own"),
    ],
)
def test_a_text_whose_value_is_not_known_is_refused_by_name(
    text: str, type_: str, reason: str
) -> None:
    with pytest.raises(UnsupportedOperation, match=reason) as raised:
        read([text], type_, Semantics.SPARK)
    assert repr(text[:60]) in str(raised.value)


@pytest.mark.parametrize("ansi", [True, False])
def test_a_tried_cast_reads_no_fraction_in_any_mode(ansi: bool) -> None:
    table = pa.table({"s": ["1.9", "2", None]})
    schema, _ = schema_of(table.schema)
    semantics = Semantics.of_spark(ansi=ansi, time_zone="UTC")
    for try_, expected in ((True, [None, 2, None]), (False, [None if ansi else 1, 2, None])):
        operand = bind_operand(Cast(Column("s"), Int(32), try_), schema, semantics)
        values, failed = compute(operand, table.to_batches()[0])
        assert values.to_pylist() == expected
        assert failed.tolist() == [ansi and not try_, False, False]
