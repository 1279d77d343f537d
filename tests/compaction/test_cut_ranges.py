"""New parts are cut at the keys of old ones, which stay where they have no new row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.compaction import pick as picking
from rowsieve.compaction.cut_ranges import KeyRanges
from rowsieve.compaction.pick import pick
from rowsieve.types.encodings import schema_of
from rowsieve.types.ordering.keys import KeyOrder
from tests.profiles import examples
from tests.random_tables import tiny_row_groups
from tests.small_tables import fresh_uri

PARTS, ROWS = 10, 500  # of each part
tiny = contextmanager(tiny_row_groups)


def keys_of(kind: str, numbers: Sequence[int]) -> pa.Array:
    match kind:
        case "int":
            return pa.array(numbers, pa.int64())
        case "text":  # longer than what bounds keep
            return pa.array([f"{n // ROWS:03}{'long ' * 30}{n:09}" for n in numbers], pa.string())
        case "one prefix":
            return pa.array([f"{'long ' * 30}{n:09}" for n in numbers], pa.string())
        case "float":
            return pa.array([n - 1e3 for n in numbers], pa.float64())
        case "date":
            days = [dt.date(1900, 1, 1) + dt.timedelta(days=n) for n in numbers]
            return pa.array(days, pa.date32())
        case _:
            return pa.array(numbers, pa.int64()).cast(pa.decimal128(20, 0))


def rows_of(kind: str, numbers: Sequence[int], seed: int = 1) -> pa.Table:
    """Rows with these keys, and values that do not compress."""
    values = np.random.default_rng(seed).integers(10, 2**62, len(numbers))
    return pa.table({"k": keys_of(kind, numbers), "v": values})


def level(kind: str, **properties: str) -> rs.Table:
    """A table of ten parts whose keys do not overlap."""
    table = rs.create_table(
        fresh_uri(),
        rows_of(kind, []).schema,
        ["k"],
        properties={"target_part_bytes": "8000", **properties},
    )
    for part in range(PARTS):
        table.upsert(rows_of(kind, range(part * ROWS, (part + 1) * ROWS)))
    return table


def content(table: rs.Table) -> dict[Any, int]:
    rows = table.scan().to_arrow()
    found = dict(zip(rows.column("k").to_pylist(), rows.column("v").to_pylist(), strict=True))
    assert len(found) == rows.num_rows
    return found


def data_files(table: rs.Table) -> set[str]:
    files = table.files()
    return {f["path"] for f in files.to_pylist() if f["kind"] == "data"}


@pytest.mark.parametrize("kind", ["int", "text", "float", "date", "decimal"])
def test_parts_without_a_new_row_stay(kind: str) -> None:
    table = level(kind)
    before = data_files(table)
    assert len(before) == PARTS
    table.upsert(rows_of(kind, [3, PARTS * ROWS - 3], seed=2))  # in the first and the last part
    table.delete(keys=rows_of(kind, [4, 4 * ROWS + 7]).select(["k"]))
    expected = content(table)
    (one,) = pick(table.handle.pinned).slices
    assert (len(one.parts), len(one.cut_at)) == (2, PARTS)
    commit = table.compact()
    assert commit.committed
    assert len(before & data_files(table)) == PARTS - 3
    assert content(table) == expected
    assert table.maintenance_advice().read_amplification == 1.0
    assert not table.compact().committed
    for version in range(PARTS + 1):  # older versions are as they were
        assert table.scan(version=version).count() == version * ROWS


def test_parts_with_one_prefix_are_rewritten_together() -> None:
    table = level("one prefix")
    table.upsert(rows_of("one prefix", [3, PARTS * ROWS - 3], seed=2))
    expected = content(table)
    table.compact()
    assert content(table) == expected
    assert not table.compact().committed


def test_parts_with_one_prefix_are_not_rewritten_without_end() -> None:
    """Their bounds are as long as it takes to tell them apart."""
    table = rs.create_table(
        fresh_uri(),
        rows_of("one prefix", []).schema,
        ["k"],
        properties={"target_part_bytes": "8000"},
    )
    with tiny(ROWS):
        table.upsert(rows_of("one prefix", range(PARTS * ROWS)))
        before = data_files(table)
        assert len(before) >= PARTS / 2
        assert table.maintenance_advice().is_healthy
        table.upsert(rows_of("one prefix", [3, PARTS * ROWS - 3], seed=2))
        expected = content(table)
        table.compact()
        assert len(before & data_files(table)) == len(before) - 2
        assert not table.compact().committed
    assert content(table) == expected
    assert table.maintenance_advice().read_amplification == 1.0


def test_many_new_rows_are_not_written_twice() -> None:
    table = level("int")
    table.upsert(rows_of("int", range(0, PARTS * ROWS, 5), seed=2))
    assert not pick(table.handle.pinned).slices
    assert table.compact().parts_removed == PARTS + 1


def test_tiers_are_not_cut() -> None:
    table = level("int", compaction="tiered")
    table.upsert(rows_of("int", [3, PARTS * ROWS - 3], seed=2))
    assert not any(one.cut_at for one in pick(table.handle.pinned).slices)


def test_the_next_change_is_cut_at_a_level_of_several_ages() -> None:
    table = level("int")
    for numbers in ([3, 4_000], [700, 4_900], [3, 4_000]):
        table.upsert(rows_of("int", numbers, seed=numbers[0]))
        before, expected = data_files(table), content(table)
        table.compact()
        assert len(before & data_files(table)) == PARTS - 2
        assert content(table) == expected


@pytest.mark.parametrize("kind", ["int", "text", "float", "date", "decimal"])
def test_rows_are_split_where_ranges_begin(kind: str) -> None:
    schema = schema_of(rows_of(kind, []).schema)[0]
    order = KeyOrder.of(schema, ["k"])
    cuts = order.columns(rows_of(kind, [10, 20, 30])).arrays[0].to_pylist()
    ranges = KeyRanges(order, tuple(cuts))
    numbers = [9, 10, 15, 30, 31]
    found = [(n, each.num_rows) for n, each in ranges.split(rows_of(kind, numbers))]
    assert found == [(0, 1), (1, 2), (3, 2)]
    assert [*ranges.split(rows_of(kind, []))] == []
    assert [n for n, _ in KeyRanges(order, ()).split(rows_of(kind, numbers))] == [0]


CHANGE = st.dictionaries(st.integers(0, 59), st.none() | st.integers(0, 99), min_size=1, max_size=5)


@examples(12, promised=200)
@given(
    changes=st.lists(CHANGE, min_size=1, max_size=6),
    compacts=st.lists(st.booleans(), min_size=6, max_size=6),
    kind=st.sampled_from(["int", "text", "one prefix", "float", "decimal"]),
)
def test_cut_parts_keep_every_version(
    changes: list[dict[int, int | None]], compacts: list[bool], kind: str
) -> None:
    table = rs.create_table(
        fresh_uri(), rows_of(kind, []).schema, ["k"], properties={"target_part_bytes": "1"}
    )
    for start in range(0, 60, 5):
        table.upsert(rows_of(kind, range(start, start + 5)))
    versions = [content(table)]
    first = table.version
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(picking, "CUT_RATIO", 0)
        for change, compacted in zip(changes, compacts, strict=False):
            apply(table, kind, change)
            new = dict(zip(keys_of(kind, list(change)).to_pylist(), change.values(), strict=True))
            merged = {**versions[-1], **new}
            versions.append({k: v for k, v in merged.items() if v is not None})
            while compacted and table.compact().committed:
                pass
            versions += [versions[-1]] * (table.refresh() - first + 1 - len(versions))
        table.compact()
        assert not table.compact().committed
    assert table.maintenance_advice().read_amplification == 1.0
    for version, expected in enumerate(versions, first):
        rows = table.scan(version=version).to_arrow()
        found = zip(rows.column("k").to_pylist(), rows.column("v").to_pylist(), strict=True)
        assert sorted(found) == sorted(expected.items())


def apply(table: rs.Table, kind: str, change: dict[int, int | None]) -> None:
    table.apply_changes(
        pa.table(
            {
                "k": keys_of(kind, list(change)),
                "v": pa.array(list(change.values()), pa.int64()),
                "op": ["d" if value is None else "u" for value in change.values()],
                "lsn": range(len(change)),
            }
        ),
        op="op",
        sequence="lsn",
    )
