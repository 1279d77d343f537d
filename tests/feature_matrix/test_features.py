"""Each feature holds after each way; `make test` takes a diagonal, the deep profile all, and pairs.

A feature joins in `features.py`, a way in `ways.py`.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from rowsieve.errors import UnsupportedOperation
from tests.daily import today
from tests.feature_matrix.features import FEATURES
from tests.feature_matrix.holding import check
from tests.feature_matrix.ways import WAYS
from tests.profiles import IS_DEEP

STEP = 1 if IS_DEEP else 7  # no divisor of the number of ways: each feature and way comes by
CELLS = [*itertools.product(FEATURES, WAYS)][::STEP]
OF_THE_DAY = 101  # a prime: the days go through all cells
IN_PLACE = ("compact", "vacuum", "restore", "evolve", "rewrite", "publish")
PAIRS = [*itertools.product(FEATURES, itertools.permutations(IN_PLACE, 2))]


@pytest.mark.parametrize(("feature", "way"), CELLS)
def test_a_feature_holds_after(feature: str, way: str, tmp_path: Path) -> None:
    check_cell(feature, way, tmp_path)


def test_a_feature_holds_after_the_way_of_the_day(tmp_path: Path) -> None:
    """And after the two ways of the day."""
    every, day = [*itertools.product(FEATURES, WAYS)], today().toordinal()
    check_cell(*every[day * OF_THE_DAY % len(every)], tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    check_pair(*PAIRS[day * OF_THE_DAY % len(PAIRS)], other)


def check_cell(feature: str, way: str, tmp_path: Path) -> None:
    """Make the table of a feature, and check it after a way, or that the way is refused."""
    folder = tmp_path / "table"
    FEATURES[feature].make(str(folder))
    if way in FEATURES[feature].refused:
        with pytest.raises(UnsupportedOperation):
            WAYS[way](feature, FEATURES[feature], folder)
        return
    check(WAYS[way](feature, FEATURES[feature], folder), FEATURES[feature])


@pytest.mark.parametrize(("feature", "ways"), PAIRS if IS_DEEP else PAIRS[::97])
def test_a_feature_holds_after_two(feature: str, ways: tuple[str, str], tmp_path: Path) -> None:
    check_pair(feature, ways, tmp_path)


def check_pair(feature: str, ways: tuple[str, str], tmp_path: Path) -> None:
    """Make the table of a feature, and check it after each of two ways."""
    folder = tmp_path / "table"
    FEATURES[feature].make(str(folder))
    for way in (way for way in ways if way not in FEATURES[feature].refused):
        check(WAYS[way](feature, FEATURES[feature], folder), FEATURES[feature])


def test_the_diagonal_has_every_feature_and_every_way() -> None:
    assert {feature for feature, _ in CELLS} == set(FEATURES)
    assert {way for _, way in CELLS} == set(WAYS)
