"""Many small parts are merged with one another first, and no version of the table notices."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.compaction import slices
from rowsieve.compaction.pick import pick
from rowsieve.compaction.rewrite_passes import Compaction
from rowsieve.executor.streams import Streams
from rowsieve.types.schema import Schema
from tests.random_tables import tiny_row_groups
from tests.small_tables import keyed, kv, pairs


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Groups are crowded with more than three newer parts; row groups have two rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "MAX_COMMITS", 3)
        patch.setattr(slices, "MIN_COMMITS", 2)
        patch.setattr(slices, "STREAMS_AT_ONCE", 1)
        yield from tiny_row_groups(2)


def picked(table: Table) -> list[tuple[int, ...]]:
    table.refresh()
    return [one.parts for one in pick(table.handle.pinned).slices]


def one_pass(table: Table) -> None:
    """Commit the next pass of a compaction alone."""
    table.handle.commit_mutation(
        table.handle.change("compact", None, None),
        lambda snapshot: Compaction(table.handle.store, {}).plan_pass(snapshot, pick(snapshot)),
        any_columns=True,
    )


def commits_of(table: Table, parts: tuple[int, ...]) -> list[int]:
    return [int(table.handle.pinned.parts.numbers("commit_ts_max")[i]) for i in parts]


def test_few_parts_and_the_oldest_are_left_for_the_last_pass() -> None:
    table = keyed({"k": [1, 9], "v": [0, 0]}, *({"k": [5], "v": [i]} for i in range(3)))
    assert picked(table) == []
    table.upsert(kv((5, 9)))
    (only,) = picked(table)
    assert commits_of(table, only) == [5, 4, 3, 2]


def test_crowded_group_takes_two_commits_and_leaves_one_part() -> None:
    table = keyed({"k": [1, 9], "v": [0, 0]}, *({"k": [k], "v": [k]} for k in (2, 3, 2, 4)))
    table.delete(keys=pa.table({"k": [9]}))
    version = table.refresh()
    commit = table.compact()
    assert (commit.version, commit.parts_removed, commit.parts_added) == (version + 2, 2, 1)
    first = table.history()[1]
    assert (first.operation, first.parts_removed) == ("compact", 5)
    assert pairs(table) == [(1, 0), (2, 2), (3, 3), (4, 4)]
    assert not table.compact().committed


def test_tombstones_survive_while_an_older_part_may_have_their_key() -> None:  # trap T24
    table = keyed({"k": [1, 2, 9], "v": [0, 0, 0]}, {"k": [2], "v": [1]}, {"k": [3], "v": [1]})
    table.delete(keys=pa.table({"k": [2]}))
    table.delete(keys=pa.table({"k": [3, 7]}))
    before = table.refresh()
    one_pass(table)
    assert table.refresh() == before + 1
    assert table.detail()["tombstones"] == 3
    assert pairs(table) == pairs(table, version=before) == [(1, 0), (9, 0)]
    one_pass(table)
    assert table.detail()["tombstones"] == 0
    assert pairs(table) == [(1, 0), (9, 0)]


def test_parts_of_one_commit_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a commit would get the age of the other half, and hide or show wrong rows."""
    table = keyed({"k": [1, 2, 3, 4], "v": [0] * 4})
    table.set_properties({"target_part_bytes": "1"})
    for i in range(1, 7):
        table.upsert(kv(*((k, i) for k in (1, 2, 3, 4))))
    table.set_properties({"target_part_bytes": "100000"})
    sizes = table.handle.pinned.parts.numbers("data.size_bytes")
    assert len(sizes) == 13
    monkeypatch.setattr(slices, "SLICE_BYTES", 5 * int(sizes.min()))
    found = [commits_of(table, one) for one in picked(table)]
    assert found == [[8, 8, 7, 7], [6, 6, 5, 5], [4, 4, 3, 3]]
    one_pass(table)
    assert pairs(table) == [(k, 6) for k in (1, 2, 3, 4)]


def test_large_commits_are_left_for_the_last_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed({"k": [1, 9], "v": [0, 0]}, *({"k": [5], "v": [i]} for i in range(6)))
    sizes = table.handle.pinned.parts.numbers("data.size_bytes")
    monkeypatch.setattr(slices, "SLICE_BYTES", int(sizes.min()))
    assert picked(table) == []
    table.compact()
    assert pairs(table) == [(1, 0), (5, 5), (9, 0)]


def test_writer_beside_a_pass_keeps_its_row() -> None:  # trap T25
    table = keyed({"k": [1, 9], "v": [0, 0]}, *({"k": [5], "v": [i]} for i in range(5)))
    other = rs.open_table(table.uri)
    met = []

    def meddle(read: int, total: int) -> None:
        met.append((read, total))
        if len(met) == 1:
            other.upsert(kv((5, 77)))
            other.delete(keys=pa.table({"k": [9]}))

    table.compact(progress=meddle)
    assert met
    assert pairs(table) == [(1, 0), (5, 77)]


def test_inputs_that_another_compaction_replaced_are_not_replaced_again() -> None:  # trap T25
    table = keyed({"k": [1, 9], "v": [0, 0]}, *({"k": [5], "v": [i]} for i in range(5)))
    other = rs.open_table(table.uri)
    met = []

    def meddle(read: int, total: int) -> None:
        met.append((read, total))
        if len(met) == 1:
            other.compact()
            other.upsert(kv((5, 6)))

    table.compact(progress=meddle)
    assert pairs(table) == [(1, 0), (5, 6), (9, 0)]
    assert len(table.handle.pinned.parts) == 1


def test_each_stream_counts_its_own_rows() -> None:
    """A merge of n parts that counts rows of all streams per stream takes n squared."""
    counted = []

    class Source:
        tombstone_count = 0

        @property
        def row_count(self) -> int:
            counted.append(1)
            return 0

    streams = Streams(None, [Source()] * 9, None, None, 1, None)  # type: ignore[list-item, arg-type]
    sizes = [streams.footprint(stream, Schema(0, ())).batch_bytes for stream in range(18)]
    assert sizes == [0] * 18
    assert len(counted) == 9
