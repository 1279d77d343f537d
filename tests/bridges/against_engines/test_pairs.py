"""A condition of one engine, translated to another, keeps the same rows there, or says why not.

A difference has a name, such as `duckdb|i64|a > 1`, which `python -m
tests.bridges.against_engines.pairs NAME TARGET` replays.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pytest

from tests.bridges.against_engines.generator import cases
from tests.bridges.against_engines.pairs import Condition, condition_of, targets_of, translated
from tests.daily import today
from tests.profiles import IS_DEEP

SOURCES = ("duckdb", "datafusion", "postgres", "polars", "pyarrow")
CONDITIONS = 300 if IS_DEEP else 12
AMONG = 40  # cases drawn for each condition, because most are refused
FEWEST_EXACT = 5


def conditions(source: str, count: int, seed: int) -> list[Condition]:
    """Draw conditions from the cases of an engine."""
    drawn = list(cases(source))
    random.Random(seed).shuffle(drawn)
    read = map(condition_of, drawn[: count * AMONG])
    return list(islice((each for each in read if each is not None), count))


@pytest.mark.parametrize("source", SOURCES)
def test_every_target_keeps_the_rows_of_the_source(source: str) -> None:
    found: dict[str, list[str]] = {}
    kinds: Counter[str] = Counter()
    for condition in conditions(source, CONDITIONS, today().toordinal() if IS_DEEP else 0):
        for target in targets_of(condition):
            outcome = translated(condition, target)
            kinds[outcome.kind] += 1
            if outcome.findings:
                found[f"{condition.case.name} {target}"] = outcome.findings
    assert not found
    assert kinds["exact"] >= FEWEST_EXACT
