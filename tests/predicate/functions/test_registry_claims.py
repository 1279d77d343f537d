"""What the registry claims of its functions holds between the ends of every range drawn.

`python -m tests.predicate.functions.test_registry_claims` writes `precision.json` anew, after a row
has learnt to say more, or a function was added.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.predicate.semantics import Semantics
from tests.oracle_texts import known_texts
from tests.predicate.functions.claims import precision, violations
from tests.predicate.functions.sample_calls import (
    SAMPLES,
    Sample,
    cast_samples,
    nanosecond_casts,
    nanosecond_samples,
)
from tests.profiles import DEEP_FACTOR, IS_DEEP, some
from tests.strategies import SEMANTICS

ROUNDS = DEEP_FACTOR if IS_DEEP else 1
RANGES = 60 if IS_DEEP else 30  # of each sample


PRECISION = Path(__file__).with_name("precision.json")
KNOWN: dict[str, list[int]] = json.loads(PRECISION.read_text())


def known_now() -> dict[str, list[int]]:
    """What `precision.json` holds if it is up to date."""
    found = {name: precision(SAMPLES[name]) for name in BUILT_IN}
    return dict(sorted({**found, "cast": precision(cast_samples())}.items()))


def test_rows_prove_at_least_as_much_as_before() -> None:
    assert known_now() == KNOWN


def test_every_function_has_samples() -> None:
    assert set(SAMPLES) == BUILT_IN


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_results_of_a_function_agree_with_the_claims_of_its_row(name: str) -> None:
    for index, sample in enumerate(SAMPLES[name]):
        seeds = [zlib.crc32(f"{name} {index} {round_}".encode()) for round_ in range(ROUNDS)]
        check(sample, seeds, index)


def test_results_of_a_cast_agree_with_the_claims_of_its_row() -> None:
    for index, sample in enumerate(cast_samples()):
        check(sample, [round_ * 10_000 + index for round_ in range(ROUNDS)], index)


def test_results_over_nanoseconds_agree_with_the_claims() -> None:
    rules = [*SEMANTICS, replace(Semantics.SQL, time_zone="America/New_York")]
    samples = [*nanosecond_samples(), *nanosecond_casts()]
    bound = 0
    for index, sample in enumerate(samples):
        for semantics in rules if IS_DEEP else (rules[index % len(rules)], Semantics.SQL):
            with contextlib.suppress(InvalidPredicate):  # engines differ in what they have
                assert violations(sample, semantics, index, 20) == []
                bound += 1
    assert bound > len(samples)


def check(sample: Sample, seeds: list[int], place: int) -> None:
    """The same rows under every semantics; the small profile takes a half of them in turn."""
    for seed, semantics in itertools.product(seeds, some(SEMANTICS, 2, place)):
        with known_texts():
            assert violations(sample, semantics, seed, RANGES) == []


def write() -> None:
    """Write `precision.json`, a line per function."""
    lines = [f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in known_now().items()]
    PRECISION.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
