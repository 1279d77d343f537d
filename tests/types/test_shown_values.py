"""Messages show values of every type and extreme; no value loses the message."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import ConstraintViolation, EvaluationError, InvalidData, KeyViolation
from rowsieve.types import logical
from rowsieve.types.shown_values import ValueText, python_value, python_values, shown_row
from tests.profiles import examples
from tests.small_tables import fresh_uri

INT64 = st.integers(-(2**63), 2**63 - 1)
FAR = pa.array([2**62], pa.int64())


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (FAR.cast(pa.timestamp("us")), "148108-07-06 14:00:27.387904"),
        (FAR.cast(pa.timestamp("us", "UTC")), "148108-07-06 14:00:27.387904+00:00"),
        (FAR.cast(pa.timestamp("us", "Asia/Tokyo")), "148108-07-06 14:00:27.387904+00:00"),
        (pa.array([-(2**55)], pa.int64()).cast(pa.timestamp("ms")), "-1139738-11-15 12:03:56.032"),
        (pa.array([-719_163], pa.int32()).cast(pa.date32()), "0000-12-31"),
        (pa.array([2_932_897], pa.int32()).cast(pa.date32()), "10000-01-01"),
        (pa.array([2_932_897 * 86_400_000], pa.int64()).cast(pa.date64()), "10000-01-01"),
        (FAR.cast(pa.duration("ms")), f"{2**62} ms"),
        (pa.StringArray.from_buffers(1, *pa.array([b"a\xff"]).buffers()[1:]), "b'a\\xff'"),
        (pa.array([1, 2]).cast(pa.timestamp("us")), "datetime.datetime(1970, 1, 1, 0, 0, 0, 1)"),
    ],
)
def test_values_that_python_cannot_hold_are_shown(values: pa.Array, text: str) -> None:
    assert repr(python_value(values[0])) == text
    nested = pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, len(values)], values)], ["l"])
    assert text in repr(python_value(nested[0]))
    assert shown_row(pa.table({"v": values}), 0).keys() == {"v"}
    assert text in str(shown_row(pa.table({"v": nested}), 0))


def test_messages_show_uuids_and_intervals_as_users_write_them() -> None:
    """They are stored as bytes, which no user could look for."""
    known = "00000000-0000-0000-0000-000000000005"
    schema = pa.schema([("id", pa.uuid()), ("i", pa.month_day_nano_interval()), ("n", pa.int64())])
    row = pa.table([[uuid.UUID(known).bytes], [(1, 2, 3_000_000_000)], [0]], schema=schema)
    table = rs.create_table(fresh_uri(), row, key=["id"])
    twice = pa.concat_tables([row, row])
    for error, change in (
        (KeyViolation, lambda: table.upsert(twice)),
        (KeyViolation, lambda: table.upsert(twice, columns="given")),
        (KeyViolation, lambda: table.merge(twice, on="id").when_matched_update_all().execute()),
        (ConstraintViolation, lambda: table.add_constraint("c", "i IS NULL")),
        (EvaluationError, lambda: table.update({"n": "1 / n"})),
        (EvaluationError, lambda: table.count("id IS NOT NULL AND i IS NOT NULL AND 1 / n > 0")),
        (InvalidData, lambda: table.overwrite(row, where="n > 5")),
    ):
        with pytest.raises(error, match=known) as caught:
            change()
        assert "\\x" not in str(caught.value)
    assert table.version == 0
    with pytest.raises(ConstraintViolation, match="1 months 2 days 3 seconds"):
        table.add_constraint("c", "i IS NULL")


def test_bytes_that_are_no_value_of_their_type_are_shown_as_bytes() -> None:
    rows = pa.table({"u": [b"ab"], "i": [b"cd"], "n": [{"x": 1}], "s": [None]})
    types: tuple[logical.LogicalType, ...] = (
        logical.Uuid(),
        logical.Interval(),
        logical.Numeric(),
        logical.Uuid(),
    )
    fields = [logical.Field(i, *pair) for i, pair in enumerate(zip("uins", types, strict=True))]
    assert str(shown_row(rows, 0, fields)) == "{'u': b'ab', 'i': b'cd', 'n': {'x': 1}, 's': None}"
    damaged = pa.table({"n": [{"approx": 1.0, "exact": b"\x03\xff\xff\xff\xff\x01"}]})
    assert "'exact': b'" in str(shown_row(damaged, 0, [logical.Field(0, "n", logical.Numeric())]))


def test_maps_and_null_are_shown() -> None:
    far = FAR.cast(pa.timestamp("us"))
    maps = pa.MapArray.from_arrays([0, 1], pa.array(["k"]), far)
    assert repr(python_value(maps[0])) == "[('k', 148108-07-06 14:00:27.387904)]"
    assert python_values(pa.chunked_array([far, pa.nulls(1, far.type)]))[1] is None


def test_a_long_value_is_shown_by_its_start() -> None:
    row = shown_row(pa.table({"t": ["x" * 10_000], "b": [b"y" * 10_000], "l": [[1] * 10_000]}), 0)
    assert len(str(row)) < 700
    assert str(row).startswith("{'t': 'xxx")


@examples(500)
@given(INT64, st.sampled_from(["s", "ms", "us"]))
def test_times_are_those_of_numpy(number: int, unit: Any) -> None:
    """NumPy has years of any size, and NaT for the smallest integer."""
    shown = python_value(pa.scalar(number, pa.int64()).cast(pa.timestamp(unit)))
    expected = np.datetime64(max(number, -(2**63) + 1), unit)
    if isinstance(shown, ValueText) and number > -(2**63):
        sign, digits = ("-", shown[1:]) if shown.startswith("-") else ("", shown)
        date, _, time = digits.partition(" ")
        whole = str(expected).removeprefix("-").partition("T")
        assert (sign == "-") == (str(expected).startswith("-"))
        assert (date, time.partition(".")[0]) == (whole[0], whole[2].partition(".")[0])
    zoned = pa.scalar(number, pa.int64()).cast(pa.timestamp(unit, "America/New_York"))
    assert repr(python_value(zoned))
