"""Floors of retention: read from properties, and compared with the files that a commit adds."""

from __future__ import annotations

import pytest

from rowsieve.properties import OLDEST_BASE, OLDEST_VERSION
from rowsieve.storage.log.floors import Floors, floors_of, lowest_base
from rowsieve.storage.manifests.manifest import PartTable
from tests.small_tables import keyed, kv


@pytest.mark.parametrize(
    ("properties", "floors"),
    [
        ({}, Floors()),
        ({OLDEST_VERSION: "3"}, Floors(3, 0)),
        ({OLDEST_BASE: "2"}, Floors(0, 2)),
        ({OLDEST_VERSION: "3", OLDEST_BASE: "2"}, Floors(3, 2)),
    ],
)
def test_each_floor_stands_alone(properties: dict[str, str], floors: Floors) -> None:
    assert floors_of(properties) == floors


def test_the_new_files_of_a_part_that_stays_count_and_no_others() -> None:
    """An update of a table with vectors adds one to a part that is there."""
    table = keyed({"k": [1, 2, 3], "v": [10, 20, 30]}, properties={"visibility": "eager"})
    before = table.handle.newest
    table.upsert(kv((2, 21)))
    after = table.handle.newest
    stays = after.parts.chosen(before.parts.part_ids)
    ids = stays.part_ids
    assert lowest_base(stays, ids, before.parts) == before.version
    assert lowest_base(stays, ids, after.parts) is None
    assert lowest_base(stays, (), before.parts) == before.version - 1  # it is based on another
    assert lowest_base(PartTable.empty(), ids, before.parts) is None
