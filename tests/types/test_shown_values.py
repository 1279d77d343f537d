"""Messages show values of every type and extreme; no value loses the message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.types.shown_values import ValueText, python_value, python_values, shown_row
from tests.profiles import examples

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
