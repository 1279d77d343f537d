"""Conditions that narrow each other: exactly the parts are skipped whose rows they all exclude."""

from __future__ import annotations

import pytest

from benchmarks.bars.tightness import bound_as_planned, judged
from rowsieve.bridges.sql import parse_predicate

TIGHT = [
    "x > 1 AND x < 2",
    "x >= 1 AND x <= 1 AND x <> 1",
    "x <> 1 AND x <> 2 AND x > 0",
    "x NOT IN (0, 1) AND x IN (0, 1, 2)",
    "x IN (1, 3) AND x + 1 > 3",
    "x IN (-3, 0, 2) AND x - 1 = 1",
    "x < y AND x = y",
    "x < y AND y < x",
    "x <= y AND x >= y AND x <> y",
    "x <= y AND x >= y AND y > 2",
    "x < y AND y < 0 AND x > -2",
    "x = y AND x + y > 4",
    "x <= y AND x >= 1 AND y <= 1",
    "x > y AND y > 0 AND x * 2 < 5",
    "x IS NULL AND x <> y",
    "x IS NULL AND x IS NOT NULL",
    "x IS NULL AND (x + y) IS NULL",
    "x IS NULL AND coalesce(x, y) = 2",
    "x IS NOT NULL AND coalesce(x, y) = 2",
    "(x + y) IS NULL AND x <= y",
    "nullif(x, 2) IS NULL AND x < 2",
    "b AND b IS NULL",
    "NOT b AND b IS NOT DISTINCT FROM TRUE",
    "CASE WHEN x < 0 THEN 1 ELSE x END = 0",
    "CASE WHEN x <> 0 THEN 1 ELSE x END > 1",
    "CASE WHEN x IS NULL THEN 0 ELSE x END > 2",
    "CASE WHEN x < 1 OR x > 1 THEN 7 ELSE x END = 0",
    "CASE WHEN x <= 1 THEN 5 ELSE x END = 1",
    "CASE WHEN x >= 1 THEN -5 ELSE x END = 1",
    "x NOT IN (1, 2, 3)",
    "x > 0 AND x NOT IN (1, 2, 3)",
    "f >= 0.5 AND f <= 0.5 AND f * 2.0 > 1.5",
    "s LIKE '%b'",
    "NOT s LIKE 'a_'",
]
SOUND = [  # not all that could be: columns move together, or values between others are missing
    "CASE WHEN x <= 0 THEN x ELSE 5 END = 1",
    "CASE WHEN x IN (1, 2) THEN 0 ELSE x END = 2",
    "CASE WHEN x > y THEN x - y ELSE 1 END <= 0",
    "f > 1 AND f < 1",
    "s LIKE '_'",
    "x < y AND y - x < 1",
    "x + y > 5 AND x < y",
    "s > 'a' AND s < 'ab'",
    "f > 1.0 AND f < 1.1",
    "x / y > 1 AND y < 2 AND x < 2",
    "x IS NULL AND x / y IS NULL",
    "CASE WHEN f < 0.5 THEN 1.0 ELSE f END < 0.5",
    "CASE WHEN x / y = 1 THEN 1 ELSE x END < 0",
    "x > 0 AND 1 / x > 0 AND y = 0",
]


@pytest.mark.parametrize("text", TIGHT)
def test_every_part_is_skipped_that_can_be(text: str) -> None:
    could, are = judged(bound_as_planned(parse_predicate(text)))
    assert could.tolist() == are.tolist()


@pytest.mark.parametrize("text", SOUND)
def test_no_part_is_skipped_that_holds_a_row(text: str) -> None:
    could, are = judged(bound_as_planned(parse_predicate(text)))
    assert not (are & ~could).any()
    assert are.any()
