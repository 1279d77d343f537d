"""Decimals are rounded as Python rounds them, where Arrow's own rounding is wrong, too."""

from __future__ import annotations

import decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate.functions.numbers import decimals
from rowsieve.predicate.functions.numbers.decimal_rounding import rounded
from rowsieve.types.logical import Decimal
from tests.profiles import examples

WORDS = st.sampled_from([0xFFFFFFFF, 0xFFFFFFFE, 0, 1, 0x80000000]) | st.integers(0, 2**32 - 1)
MODES = {
    "half_towards_infinity": decimal.ROUND_HALF_UP,
    "towards_zero": decimal.ROUND_DOWN,
    "down": decimal.ROUND_FLOOR,
    "up": decimal.ROUND_CEILING,
}


def joined(words: list[int]) -> int:
    return sum(word << (32 * place) for place, word in enumerate(words))


@given(
    words=st.lists(WORDS, min_size=1, max_size=4).map(joined),
    fraction=st.integers(0, 10**18 - 1) | st.sampled_from([0, 1, 5 * 10**17, 5 * 10**17 - 1]),
    negative=st.booleans(),
    digits=st.integers(-20, 18),
    mode=st.sampled_from(sorted(MODES)),
)
@examples(300)
def test_a_decimal_is_rounded_exactly(
    words: int, fraction: int, negative: bool, digits: int, mode: str
) -> None:
    with decimal.localcontext(prec=100):
        value = decimal.Decimal(words % 10**36) + decimal.Decimal(fraction).scaleb(-18)
        value = -value if negative else value
        wanted = value.quantize(decimal.Decimal(1).scaleb(-digits), MODES[mode])
        found = rounded(pa.array([value], pa.decimal256(76, 18)), digits, mode)[0].as_py()
        assert found == wanted


@pytest.mark.parametrize("scale", [9, 10, 18, 37])
@pytest.mark.parametrize("bits", [32, 33, 63, 64, 96, 120])
def test_a_number_of_ones_is_rounded_correctly(bits: int, scale: int) -> None:
    value = decimal.Decimal(2**bits - 1)
    array = pa.array([value], pa.decimal256(76, scale))
    assert rounded(array, 0, "half_towards_infinity")[0].as_py() == value


def test_a_remainder_is_exact_where_the_quotient_holds_many_ones() -> None:
    left = pa.array([decimal.Decimal("36284695465426943.99")], pa.decimal128(20, 2))
    right = pa.array([decimal.Decimal(1)], pa.decimal128(12, 0))
    signature = decimals.resolve("modulo", Decimal(20, 2), Decimal(12, 0))
    assert signature is not None
    assert isinstance(signature.result, Decimal)
    found = decimals.evaluate("modulo", left, right, signature.result)
    assert found.values[0].as_py() == decimal.Decimal("0.99")


@pytest.mark.parametrize("whole", range(24, 39))
def test_a_remainder_of_many_digits_is_exact_or_refused(whole: int) -> None:
    """Its intermediate results have up to 76 digits, and types with more are refused."""
    one, other = Decimal(38, 37), Decimal(whole, 0)
    signature = decimals.resolve("modulo", one, other)
    if signature is None:
        return
    assert isinstance(signature.result, Decimal)
    left = pa.array([decimal.Decimal("7.5")], pa.decimal128(38, 37))
    right = pa.array([decimal.Decimal(2)], pa.decimal128(whole, 0))
    found = decimals.evaluate("modulo", left, right, signature.result)
    assert found.values[0].as_py() == decimal.Decimal("1.5")


@pytest.mark.parametrize("scale", range(20, 38))
def test_a_remainder_of_two_long_scales_is_exact_or_refused(scale: int) -> None:
    one, other = Decimal(38, scale), Decimal(2, 1)
    for pair in ((one, other), (other, one)):
        if (signature := decimals.resolve("modulo", *pair)) is None:
            continue
        assert isinstance(signature.result, Decimal)
        left, right = (
            pa.array([decimal.Decimal(n)], pa.decimal128(each.precision, each.scale))
            for n, each in zip(("7.5", "2"), pair, strict=True)
        )
        found = decimals.evaluate("modulo", left, right, signature.result)
        assert found.values[0].as_py() == decimal.Decimal("1.5")
