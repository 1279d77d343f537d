"""Unbounded numbers as a float and bytes: exact both ways, and sorted as the numbers are."""

from __future__ import annotations

import decimal
import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.literal_values import parse_text
from rowsieve.types.logical import Numeric
from rowsieve.types.numeric_bytes import (
    STORAGE,
    approx_of,
    checked,
    encoded,
    exact_of,
    from_exact,
    from_text,
    spelled,
    to_text,
)
from tests.profiles import examples

D = decimal.Decimal
_DIGITS = st.text("0019", min_size=1, max_size=12)
_FINITE = st.builds(
    "{}{}.{}e{}".format, st.sampled_from(["", "-", "+"]), _DIGITS, _DIGITS, st.integers(-20, 20)
) | st.sampled_from(
    ["0", "-0.00", ".5", "-5.", "1e131071", "-1e-16383", "9" * 90, "1e308", "1e-400"]
)
_TEXTS = _FINITE | st.sampled_from(["NaN", "inf", " -Infinity ", "+INF"])
_ROWS = st.lists(st.none() | _TEXTS, max_size=12)


def _number(text: str) -> D:
    with decimal.localcontext(prec=200_000, Emax=10**9, Emin=-(10**9)):
        return D(text.strip())


def _rank(text: str) -> tuple[bool, D]:
    number = _number(text)
    return (number.is_nan(), D(0) if number.is_nan() else number)


@given(_ROWS, st.integers(0, 3))
@examples(150)
def test_numbers_survive_encoding(rows: list[str | None], start: int) -> None:
    stored = from_text(pa.array(rows, pa.string())).slice(start)
    stored.validate(full=True)
    texts = to_text(stored)
    texts.validate(full=True)
    kept = rows[start:]
    assert [text is None for text in texts.to_pylist()] == [row is None for row in kept]
    assert checked(stored).equals(from_text(texts)) or "NaN" in texts.to_pylist()
    for row, text, near in zip(kept, texts.to_pylist(), approx_of(stored).to_pylist(), strict=True):
        if row is not None:
            assert _rank(row) == _rank(text)
            assert "e" not in text.lower() or text in ("Infinity", "-Infinity")
            nearest = float(_number(row))
            assert near == nearest or (math.isnan(near) and math.isnan(nearest))
            assert math.copysign(1, near) == 1 or near != 0


@given(_TEXTS, _TEXTS)
@examples(300)
def test_the_bytes_sort_as_the_numbers(one: str, other: str) -> None:
    a, b = encoded(one), encoded(other)
    assert (a < b) == (_rank(one) < _rank(other))
    assert (a == b) == (_rank(one) == _rank(other))
    assert spelled(a) == to_text(from_exact([a]))[0].as_py()


@given(st.binary(max_size=12), st.floats())
@examples(300)
def test_any_bytes_are_a_canonical_number_or_refused(exact: bytes, approx: float) -> None:
    try:
        found = from_exact([exact])
    except ValueError:
        found = None
    given = pa.array([{"approx": approx, "exact": exact}], STORAGE)
    try:
        kept = checked(given)
    except ValueError:
        return
    assert found is not None
    assert kept.equals(found) or pc.is_nan(approx_of(kept))[0].as_py()
    assert encoded(spelled(exact)) == exact


@pytest.mark.parametrize("damaged", ["", "03", "0380", "03ffffffff01", "010000000001ff", "0602"])
def test_damaged_bytes_are_not_spelled_with_billions_of_digits(damaged: str) -> None:
    with pytest.raises(ValueError, match="exact bytes"):
        spelled(bytes.fromhex(damaged))


@given(_TEXTS, st.integers(0, 20), st.integers(0, 255))
@examples(200)
def test_damaged_bytes_are_refused_or_another_number(text: str, place: int, byte: int) -> None:
    exact = bytearray(encoded(text)[:40])
    exact[place % len(exact)] = byte
    try:
        found = from_exact([bytes(exact)])
    except ValueError:
        return
    assert exact_of(found)[0].as_py() == encoded(spelled(bytes(exact)))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-", ".", "e5", "1e", "--1", "1_000", "1,5", "0x1", "\u0661", "nan(1)", "-nan"),
        *("1 2", "1e131072", "1e-16384", "1e9999999"),
    ],
)
def test_text_that_is_not_a_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        from_text(pa.array(["1", text]))
    with pytest.raises(InvalidPredicate, match="is not a numeric"):
        parse_text(text, Numeric())


def test_garbage_below_nulls_does_not_matter() -> None:
    texts = pa.array(["1.5", "-2", "3"])
    stored = from_text(texts)
    mask = pa.array([False, True, False])
    hidden = pa.StructArray.from_arrays(
        [approx_of(stored), exact_of(stored)], fields=list(STORAGE), mask=mask
    )
    assert to_text(hidden).to_pylist() == ["1.5", None, "3"]
    assert checked(hidden).to_pylist() == hidden.to_pylist()
