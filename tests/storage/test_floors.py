"""Floors of retention: read from properties, and compared with the files that a commit adds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowsieve.errors import InvalidInput
from rowsieve.properties import OLDEST_BASE, OLDEST_VERSION
from rowsieve.storage.log.commit_request import (
    CommitRequest,
    must_write_again,
    with_noted_rewrite,
)
from rowsieve.storage.log.floors import (
    Floors,
    check_not_lowered,
    floors_of,
    is_given_up,
    lowest_base,
    raised,
)
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.row_versions import ROW_VERSIONS
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


def test_new_files_below_the_floor_are_given_up() -> None:
    """`remove_orphans` may delete them at any time, so their rows are written again."""
    added = keyed({"k": [1], "v": [1]}).handle.newest.parts
    head = keyed({"k": [1], "v": [1]}).handle.newest
    late = replace(head, table=raised(head.table, oldest_version=0, oldest_base=5))
    assert not is_given_up(added, (), head)
    assert is_given_up(added, (), late)
    assert not is_given_up(PartTable.empty(), (), late)
    assert not is_given_up(late.parts, late.parts.part_ids, late)  # they are in the table


@pytest.mark.parametrize("lowered", [OLDEST_VERSION, OLDEST_BASE])
def test_neither_floor_is_lowered(lowered: str) -> None:
    head = keyed({"k": [1], "v": [1]}).handle.newest
    high = replace(head, table=raised(head.table, oldest_version=5, oldest_base=5))
    low = replace(high.table, properties={**high.table.properties, lowered: "4"})
    check_not_lowered("restore", high.table, high)
    with pytest.raises(InvalidInput, match="this restore lowers a floor"):
        check_not_lowered("restore", low, high)


def test_rows_of_files_that_are_given_up_are_written_again() -> None:
    added = keyed({"k": [1], "v": [1]}).handle.newest.parts
    head = keyed({"k": [1], "v": [1]}).handle.newest
    late = replace(head, table=raised(head.table, oldest_version=0, oldest_base=5))
    assert must_write_again("upsert", added, (), late)
    assert not must_write_again("upsert", added, (), head)


def test_only_a_rewrite_of_a_table_that_keeps_versions_is_noted() -> None:
    plain = keyed({"k": [1], "v": [1]}).handle.newest
    properties = {**plain.table.properties, ROW_VERSIONS: "kept"}
    kept = replace(plain, table=replace(plain.table, properties=properties))
    upsert, rewrite = CommitRequest("upsert"), CommitRequest("rewrite_rows")
    assert with_noted_rewrite(kept, upsert) is upsert
    assert with_noted_rewrite(plain, rewrite) is rewrite
    assert with_noted_rewrite(kept, rewrite) is not rewrite
