"""Intervals in 16 bytes: exact both ways, sorted as declared, and compared by their length."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import InvalidPredicate, SchemaMismatch
from rowsieve.predicate.literal_values import parse_text
from rowsieve.types.conform import conform_values
from rowsieve.types.interval_bytes import (
    STORAGE,
    decoded,
    encoded,
    from_arrow,
    spelled,
    to_arrow,
    total_of,
    total_us,
)
from rowsieve.types.logical import Interval
from tests.profiles import examples

_LIMIT = (2**63 - 1) // 1000  # microseconds that Arrow's nanoseconds hold
_SMALL = st.sampled_from([-(2**31), -(2**31) + 1, -31, -1, 0, 1, 30, 2**31 - 1]) | st.integers(
    -(2**31), 2**31 - 1
)
_MICROS = st.sampled_from(
    [-(2**63), -_LIMIT, -86_400_000_001, -1, 0, 1, 999_999, 10**6, _LIMIT, 2**63 - 1]
) | st.integers(-(2**63), 2**63 - 1)
_PARTS = st.tuples(_SMALL, _SMALL, _MICROS)
_ROWS = st.lists(st.none() | _PARTS, max_size=12)


def _array(rows: list[tuple[int, int, int] | None]) -> pa.Array:
    return pa.array([None if row is None else encoded(*row) for row in rows], STORAGE)


@given(_ROWS, st.integers(0, 3))
@examples(200)
def test_arrow_intervals_survive_encoding(
    rows: list[tuple[int, int, int] | None], start: int
) -> None:
    fitting = [row if row is None or abs(row[2]) <= _LIMIT else None for row in rows]
    arrow = pa.array(
        [None if row is None else (row[0], row[1], row[2] * 1000) for row in fitting],
        pa.month_day_nano_interval(),
    ).slice(start)
    stored = from_arrow(arrow)
    assert stored.equals(_array(fitting).slice(start))
    stored.validate(full=True)
    assert to_arrow(_array(fitting).slice(start)).equals(arrow)
    assert [None if row is None else decoded(row.as_py()) for row in stored if row.is_valid] == [
        row for row in fitting[start:] if row is not None
    ]


@given(_ROWS, st.integers(0, 3))
@examples(200)
def test_the_length_is_exact_for_every_interval(
    rows: list[tuple[int, int, int] | None], start: int
) -> None:
    wanted = [
        None if row is None else (row[0] * 30 + row[1]) * 86_400_000_000 + row[2]
        for row in rows[start:]
    ]
    got = total_us(_array(rows).slice(start))
    got.validate(full=True)
    assert [None if value is None else int(value) for value in got.to_pylist()] == wanted
    assert [None if row is None else total_of(encoded(*row)) for row in rows[start:]] == wanted


@given(_PARTS, _PARTS)
@examples(300)
def test_the_bytes_sort_as_months_then_days_then_microseconds(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    assert (encoded(*one) < encoded(*other)) == (one < other)


def test_the_bytes_do_not_sort_as_sql_compares() -> None:
    month, days = encoded(1, 0, 0), encoded(0, 31, 0)
    assert month > days
    assert total_of(month) < total_of(days)
    assert total_of(month) == total_of(encoded(0, 30, 0))


@given(_PARTS)
@examples(200)
def test_text_of_an_interval_is_read_back(parts: tuple[int, int, int]) -> None:
    parts = (parts[0], parts[1], parts[2] % (10**15) - 10**14)
    assert parse_text(spelled(encoded(*parts)), Interval()) == encoded(*parts)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_become_intervals_of_microseconds(unit: str) -> None:
    per_unit = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}[unit]
    ticks = [0, None, -1_000, 1_000]
    stored = from_arrow(pa.array(ticks, pa.int64()).cast(pa.duration(unit)))
    micros = [None if tick is None else tick * per_unit for tick in ticks]
    if unit == "ns":
        micros = [None if tick is None else tick // 1_000 for tick in ticks]
    assert stored.equals(_array([None if us is None else (0, 0, us) for us in micros]))


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(pa.array([(0, 0, 1)], pa.month_day_nano_interval()), id="nanosecond"),
        pytest.param(pa.array([1], pa.int64()).cast(pa.duration("ns")), id="duration in ns"),
        pytest.param(pa.array([2**62], pa.int64()).cast(pa.duration("s")), id="overflow"),
        pytest.param(pa.array([b"short"]), id="bytes of another length"),
        pytest.param(pa.array([7]), id="number"),
        pytest.param(pa.array(["1 day"]), id="text"),
    ],
)
def test_a_value_that_would_change_is_refused(values: pa.Array) -> None:
    with pytest.raises(SchemaMismatch, match="column 'span'"):
        conform_values(values, Interval(), "span")


def test_more_nanoseconds_than_arrow_has_cannot_be_decoded() -> None:
    assert to_arrow(_array([(0, 0, _LIMIT), None])).null_count == 1
    for micros in (_LIMIT + 1, -(2**63)):
        with pytest.raises(OverflowError, match="292 years"):
            to_arrow(_array([(0, 0, micros)]))


@pytest.mark.parametrize("text", ["", "1", "1 fortnight", "1.5 days", "9999999999 months"])
def test_text_that_is_not_an_interval_is_rejected(text: str) -> None:
    with pytest.raises(InvalidPredicate, match="is not an interval"):
        parse_text(text, Interval())


def test_garbage_below_nulls_does_not_matter() -> None:
    data: Any = pa.py_buffer(b"\xff" * 32)
    half = pa.Array.from_buffers(STORAGE, 2, [pa.py_buffer(b"\x01"), data])
    assert total_us(half).null_count == 1
    assert pc.is_null(total_us(half)).to_pylist() == [False, True]
