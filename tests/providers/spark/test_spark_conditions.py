"""Text of every kind selects what Spark's own `where` selects, over awkward values."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from tests.cases import cases_in
from tests.profiles import IS_DEEP
from tests.providers.spark.spark_texts import Triple
from tests.providers.spark.test_spark_sessions import by_spark, by_us, configure

pytestmark = pytest.mark.spark
TEXTS = cases_in(__file__, "spark_conditions.txt")

UTC = datetime.UTC
STRINGS = (
    *("", "a", "A", "ab", "abc", "ABC", " abc ", "\tabc", "a_b", "a%b", "a\\b", "\\", "\u00df"),
    *("SS", "\u0130", "\u0131", "\ufb01", "\u03a3\u03b1\u03c2", "\u00e9", "e\u0301", "\U0001f600"),
    *("123", " 12 ", "1e3", "-0", "NaN", "true", "null", None, "a,b,,c", "x'y", 'q"r', "\n", "zzz"),
    *("\u017fx", "\u212a", "\u4e2d\u6587", "\u00a0abc"),
)
VALUES: dict[str, tuple[Any, ...]] = {
    "n": (0, 1, -1, 2**31 - 1, -(2**31), None, 7),
    "f": (0.0, -0.0, 1.5, float("nan"), float("inf"), -1.5, None, 2.5),
    "d": (*map(decimal.Decimal, ("1.25", "-1.25", "0.00")), None),
    "arr": ([1, 2], [], None, [None, 3], [5]),
    "m": ([("a", 1)], [], None, [("b", 2), ("c", None)]),
    "st": ({"x": 1, "Y": "q"}, {"x": None, "Y": "w"}, None),
    "b": (True, False, None),
    "day": (*(datetime.date(*d) for d in ((1, 1, 1), (1582, 10, 4), (2024, 2, 29))), None),
    "tz": (
        datetime.datetime(1, 1, 2, tzinfo=UTC),
        datetime.datetime(1582, 10, 10, 12, tzinfo=UTC),
        datetime.datetime(1883, 11, 18, 17, 3, 57, tzinfo=UTC),
        datetime.datetime(1899, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime.datetime(2024, 11, 3, 5, 30, tzinfo=UTC),
        None,
        datetime.datetime(9999, 12, 30, tzinfo=UTC),
    ),
    "ts": (
        datetime.datetime(1, 1, 2),
        datetime.datetime(1883, 11, 18, 12),
        datetime.datetime(2024, 3, 10, 2, 30),
        None,
    ),
    "bin": (b"", b"abc", b"\xff", None),
}
SCHEMA = pa.schema(
    [
        ("k", pa.int32()),
        ("s", pa.string()),
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("d", pa.decimal128(9, 2)),
        ("arr", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("st", pa.struct([("x", pa.int32()), ("Y", pa.string())])),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("tz", pa.timestamp("us", "UTC")),
        ("ts", pa.timestamp("us")),
        ("bin", pa.binary()),
    ]
)
DDL = (
    "k int, s string, n int, f double, d decimal(9,2), arr array<int>, m map<string,int>, "
    "st struct<x:int,Y:string>, b boolean, day date, tz timestamp, ts timestamp_ntz, bin binary"
)
SESSIONS = (("UTC", True), ("America/New_York", False))
# 02:30 of that day was skipped in New York, and a cast to an instant makes 03:30 of it. Spark's
# analyser adds that cast to the column; its optimiser drops it again, which is not the same.
SKIPPED = "ts = timestamp'2024-03-10 02:30:00'"
EXCLUDED = "spark.sql.optimizer.excludedRules"
UNWRAPPING = "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"


def rows() -> list[dict[str, Any]]:
    return [
        {"k": k, "s": text} | {name: cells[k % len(cells)] for name, cells in VALUES.items()}
        for k, text in enumerate(STRINGS)
    ]


def test_text_of_every_kind_selects_the_rows_of_spark(zoned_session: Any, tmp_path: Any) -> None:
    table = rs.create_table(tmp_path / "t", SCHEMA, key=["k"])
    data = pa.Table.from_pylist(rows(), schema=SCHEMA)
    for start in range(0, data.num_rows, 4):
        table.upsert(data.slice(start, 4))
    truth = zoned_session.createDataFrame(data, DDL).coalesce(1).localCheckpoint()
    wrong, refused, asked = [], 0, 0
    for zone, ansi in SESSIONS:
        configure(zoned_session, zone, ansi=ansi)
        for text in TEXTS if IS_DEEP else TEXTS[::12]:
            ours = by_us(table, Triple(zone, ansi, text))
            refused, asked = refused + (ours == "refused"), asked + 1
            if text == SKIPPED:
                zoned_session.conf.set(EXCLUDED, UNWRAPPING)
            expected = by_spark(lambda each=text: truth.where(each))
            zoned_session.conf.unset(EXCLUDED)
            if ours not in ("refused", expected):
                wrong.append((zone, ansi, text, ours))
    assert not wrong
    assert refused <= asked // 2
