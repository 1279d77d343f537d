"""Requests cover every span, are apart from one another, and read no large gap."""

from __future__ import annotations

import pytest

from rowsieve.parquet.spans import GAP_BYTES, Span, requests


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], []),
        ([(5, 9)], [(5, 9)]),
        ([(20, 30), (0, 10)], [(0, 30)]),
        ([(0, 10), (10 + GAP_BYTES, 10 + GAP_BYTES + 1)], [(0, 11 + GAP_BYTES)]),
        ([(0, 10), (11 + GAP_BYTES, 12 + GAP_BYTES)], [(0, 10), (11 + GAP_BYTES, 12 + GAP_BYTES)]),
        ([(0, 900_000), (10, 20), (900_001, 900_002)], [(0, 900_002)]),
    ],
)
def test_spans_are_joined_over_small_gaps_only(spans: list[Span], expected: list[Span]) -> None:
    assert requests(spans) == expected
