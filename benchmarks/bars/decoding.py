"""Bar: decoding stored values of structured types, beside a codec of one value at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.bars.sizes import Sizes
from benchmarks.measure import take_turns
from benchmarks.result import Bar, Case, expect
from rowsieve.types import interval_bytes, numeric_bytes

LEAST_RATIO = 5.0
OURS, BY_VALUE = "all at once", "one by one"
_SPECIAL = {0: "-Infinity", 2: "0", 4: "Infinity", 5: "NaN"}


def measure(sizes: Sizes, _: Path) -> Bar:
    """Decode numerics to text and intervals to Arrow's type."""
    count = sizes.expression_rows // 2
    chooser = np.random.default_rng(7)
    works = {"numeric to text": _numerics(chooser, count), "interval": _intervals(chooser, count)}
    cases = []
    for name, (ours, by_value) in works.items():
        expect(f"{name}: the values of both", ours().equals(by_value()), expected=True)
        cases.append(Case(name, take_turns({OURS: ours, BY_VALUE: by_value}, sizes.repeats)))
    ratios = {case.name: case.of(BY_VALUE).cpu_s() / case.of(OURS).cpu_s() for case in cases}
    return Bar(
        name="decoding",
        promise=f"{count:,} values of structured types: decoded with at most a {LEAST_RATIO:g}th "
        "of the CPU of a codec that takes one value at a time",
        found="; ".join(f"{name} {ratio:.1f}x" for name, ratio in ratios.items()),
        met=all(ratio >= LEAST_RATIO for ratio in ratios.values()),
        cases=cases,
        facts={"ratios": ratios},
    )


_Works = tuple[Callable[[], pa.Array], Callable[[], pa.Array]]


def _numerics(chooser: np.random.Generator, count: int) -> _Works:
    digits = chooser.integers(-(10**18), 10**18, (count, 2))
    texts = [f"{one}{abs(other)}e{other % 40 - 30}" for one, other in digits.tolist()]
    stored = numeric_bytes.from_text(pa.array(texts))
    exact = numeric_bytes.exact_of(stored)
    return (
        partial(numeric_bytes.to_text, stored),
        lambda: pa.array([_number(value) for value in exact.to_pylist()], pa.string()),
    )


def _number(exact: bytes) -> str:
    if (named := _SPECIAL.get(exact[0])) is not None:
        return named
    negative = exact[0] == 1
    flipped = 2**32 - 1 if negative else 0
    exponent = (int.from_bytes(exact[1:5], "big") ^ flipped) - 2**31
    pairs = (254 - pair for pair in exact[5:-1]) if negative else exact[5:]
    digits = "".join([f"{pair:02}" for pair in pairs]).rstrip("0")
    if exponent <= 0:
        digits = f"0.{'0' * -exponent}{digits}"
    elif exponent < len(digits):
        digits = f"{digits[:exponent]}.{digits[exponent:]}"
    return ("-" if negative else "") + digits.ljust(exponent, "0")


def _intervals(chooser: np.random.Generator, count: int) -> _Works:
    parts = chooser.integers(-(10**6), 10**6, (count, 3)).tolist()
    type_ = pa.month_day_nano_interval()
    given = pa.array([(months, days, us * 1_000) for months, days, us in parts], type_)
    stored = interval_bytes.from_arrow(given)

    def by_value() -> pa.Array:
        found = map(interval_bytes.decoded, stored.to_pylist())
        return pa.array([(months, days, us * 1_000) for months, days, us in found], type_)

    return partial(interval_bytes.to_arrow, stored), by_value
