"""What texts between two bounds begin with, and the bound above all texts with a prefix."""

from __future__ import annotations

from itertools import takewhile

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate.interpretation.prefixes import above_prefix, common_prefix, is_ascii
from rowsieve.predicate.like import after_prefix
from tests.profiles import examples

TEXTS = st.text(st.sampled_from("a\x7eb\x7fé€\ue000\ud7ff\U0010ffff\U00010000\0"), max_size=5)
PAIRS = st.lists(st.none() | st.tuples(TEXTS, TEXTS), min_size=1, max_size=6)


def shared(low: str, high: str) -> str:
    return "".join(a for a, _ in takewhile(lambda ab: ab[0] == ab[1], zip(low, high, strict=False)))


@examples(200)
@given(PAIRS, st.integers(0, 3))
def test_prefixes_agree_with_plain_python(pairs: list[tuple[str, str] | None], start: int) -> None:
    lower = pa.array([pair and pair[0] for pair in pairs], pa.string()).slice(start)
    upper = pa.array([pair and pair[1] for pair in pairs], pa.string()).slice(start)
    wanted = [None if pair is None else shared(*pair) for pair in pairs[start:]]
    common = common_prefix(lower, upper)
    common.validate(full=True)
    assert common.to_pylist() == wanted
    above = above_prefix(common)
    above.validate(full=True)
    assert above.to_pylist() == [None if text is None else after_prefix(text) for text in wanted]
    assert is_ascii(common).tolist() == [text is not None and text.isascii() for text in wanted]


def test_long_bounds_are_compared_up_to_a_limit() -> None:
    text = "é" * 1_000
    found = common_prefix(pa.array([text, text + "a"]), pa.array([text + "b", "é"]))
    assert found.to_pylist() == ["é" * 128, "é"]
