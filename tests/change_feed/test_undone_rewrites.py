"""Net changes across compactions read the parts that the commits wrote, not the compacted ones."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.change_feed.undone_rewrites import net_parts, parts_without_moves
from tests.change_feed.test_changes import feed
from tests.profiles import examples
from tests.small_tables import fresh_uri, keyed, kv

BASE = {"k": list(range(20_000)), "v": list(range(20_000))}


def of_net(table: rs.Table, first: int) -> tuple[set[str], set[str]]:
    """The ids of the touched parts, and those of all parts that the net changes need."""
    log = table.handle.log
    before = log.at(first - 1)
    commit = net_parts(log, before, table.handle.newest)
    assert commit is not None
    return set(commit.touched), {*commit.before.part_ids, *commit.after.part_ids}


def added_by(table: rs.Table, *versions: int) -> set[str]:
    entries = table.handle.log.loaded_entries(versions)
    return {
        part_id
        for entry in entries
        if entry is not None and entry.added is not None
        for part_id in entry.added.part_ids
    }


def test_a_compaction_of_the_last_version_is_undone() -> None:
    table = keyed(BASE, {"k": [1], "v": [10]}, {"k": [7, 30_000], "v": [70, 3]})
    table.compact()
    assert of_net(table, 2)[0] == added_by(table, 2, 3)
    assert feed(table, 2, net=True) == [
        ("<", 1, 1),
        (">", 1, 10),
        ("<", 7, 7),
        (">", 7, 70),
        ("+", 30_000, 3),
    ]


def test_changes_after_a_compaction_and_between_two_are_read_too() -> None:
    table = keyed(BASE, {"k": [1], "v": [10]})
    table.compact()  # version 3
    table.upsert(kv((1, 11), (2, 20)))
    table.set_properties({"inline_bytes": "0"})
    table.compact()
    table.delete(keys={"k": [3]})
    assert of_net(table, 2)[0] == added_by(table, 2, 4, 7)


def test_a_compaction_of_new_rows_only_stays() -> None:
    table = keyed(BASE, {"k": [1], "v": [10]})
    table.compact()
    table.upsert(kv((5, 50)))
    log = table.handle.log
    before = log.at(3)
    assert parts_without_moves(log, before, table.handle.newest) is table.handle.newest.parts


def test_a_compaction_stays_if_a_part_went_since() -> None:
    """The compacted part lacks a row that a part hides, which goes as a whole."""
    table = keyed({"k": [5], "v": [0]}, BASE, {"k": [30_000], "v": [1]})
    log = table.handle.log
    for where in ("k < 10", "k = 5", "v >= 0"):
        table.compact()
        table.upsert(kv((5, 50)))
        table.delete(where)
        newest = table.handle.newest
        for first in range(1, newest.version):
            before = log.at(first)
            assert {*parts_without_moves(log, before, newest).part_ids} == {*newest.parts.part_ids}


def test_no_added_part_follows_an_undone_compaction_in_an_event_order() -> None:
    schema = pa.schema([*COLUMNS, pa.field("s", pa.int64(), nullable=False)])
    table = rs.create_table(fresh_uri(), schema, key=["k"], sequence="s")
    table.upsert(pa.table(BASE | {"s": [0] * 20_000}))
    table.upsert(pa.table({"k": [1], "v": [1], "s": [5]}))
    table.compact()
    assert of_net(table, 2)[0] == added_by(table, 2)
    table.upsert(pa.table({"k": [2], "v": [2], "s": [4]}))
    assert of_net(table, 2)[0] == {*added_by(table, 1), *table.handle.newest.parts.part_ids}


ACTIONS = ("upsert", "upsert", "compact", "compact", "delete", "where", "update", "restore")
COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])


def act(table: rs.Table, rng: random.Random, sequence: int) -> None:
    rows: dict[str, Any] = {"k": rng.sample(range(12), rng.randrange(1, 4))}
    rows["v"] = [rng.randrange(1_000) for _ in rows["k"]]
    if table.handle.newest.table.sequence:
        rows["s"] = [sequence + rng.randrange(-3, 3) for _ in rows["k"]]
    low = rng.randrange(12)
    match rng.choice(ACTIONS):
        case "upsert":
            table.upsert(pa.table(rows))
        case "compact":
            table.compact()
        case "delete":
            table.delete(f"k = {low}")
        case "where":
            table.delete(f"k BETWEEN {low} AND {low + rng.randrange(8)}")
        case "update":
            table.update({"v": "v + 1"}, where=f"k > {low}")
        case "restore":
            table.restore(rng.randrange(max(1, table.version - 2), table.version + 1))


@pytest.mark.parametrize("ordered", [False, True])
@examples(40)
@given(seed=st.integers(0, 2**32))
def test_net_changes_are_the_difference_of_both_versions(ordered: bool, seed: int) -> None:
    rng = random.Random(seed)
    schema = COLUMNS.append(pa.field("s", pa.int64(), nullable=False)) if ordered else COLUMNS
    order: dict[str, Any] = {"sequence": "s"} if ordered else {}
    table = rs.create_table(fresh_uri(), schema, key=["k"], **order)
    whole: dict[str, Any] = {"k": list(range(12)), "v": [0] * 12}
    table.upsert(pa.table(whole | {"s": [0] * 12} if ordered else whole))
    versions = [rows_of(table)]
    for turn in range(10):
        act(table, rng, turn)
        versions += [rows_of(table)] * (table.version - len(versions))
    for _ in range(5):
        first = rng.randrange(2, table.version + 2)
        changes = table.changes(first, net=True).read_all().to_pylist()
        rows = dict(versions[first - 2])
        for change in changes:
            row = tuple(change[name] for name in schema.names)
            if change["_change_type"] in ("delete", "update_preimage"):
                assert rows.pop(row[0]) == row
            else:
                rows[row[0]] = row
        assert rows == versions[-1], first


def rows_of(table: rs.Table) -> dict[int, tuple[Any, ...]]:
    return {row["k"]: tuple(row.values()) for row in table.to_arrow().to_pylist()}
