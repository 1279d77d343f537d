"""What the registry claims of its functions holds between the ends of every range drawn."""

from __future__ import annotations

import zlib

import pytest

from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.predicate.semantics import Semantics
from tests.predicate.claims import SAMPLES, cast_samples, violations
from tests.profiles import DEEP_FACTOR, IS_DEEP
from tests.strategies import SEMANTICS

ROUNDS = DEEP_FACTOR if IS_DEEP else 1


def test_every_function_has_samples() -> None:
    assert set(SAMPLES) == BUILT_IN


@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda semantics: semantics.name)
@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_function_gives_nothing_that_its_row_excludes(name: str, semantics: Semantics) -> None:
    for round_ in range(ROUNDS):
        for index, sample in enumerate(SAMPLES[name]):
            seed = zlib.crc32(f"{name} {index} {round_}".encode())
            assert violations(sample, semantics, seed) == []


@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda semantics: semantics.name)
def test_a_cast_gives_nothing_that_its_row_excludes(semantics: Semantics) -> None:
    for round_ in range(ROUNDS):
        for index, sample in enumerate(cast_samples()):
            assert violations(sample, semantics, round_ * 10_000 + index) == []
