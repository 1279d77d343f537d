"""The columnar table of parts: what goes in comes out, and what cannot be true is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.errors import CorruptData, UnsupportedProtocol
from rowsieve.stats.model import ColumnStatistics, Subject
from rowsieve.storage.manifests.manifest import (
    DeletionVectorRef,
    FileRef,
    NewPart,
    PartEntry,
    PartTable,
)
from rowsieve.types.logical import Decimal, Field, Float, Int, Json, String, Timestamp, Uuid
from rowsieve.types.schema import Schema

KEY = (Field(1, "id", Int(), nullable=False), Field(2, "name", String(), nullable=False))
SCHEMA = Schema(
    3,
    (
        *KEY,
        Field(3, "x", Float()),
        Field(4, "u", Uuid()),
        Field(5, "d", Decimal(38, 2)),
        Field(6, "t", Timestamp(utc=True)),
        Field(7, "j", Json()),
    ),
)


def file_ref(name: str) -> FileRef:
    return FileRef(f"data/{name}.5.parquet", 10, 1000, "xxh3_128:00", 900, "xxh3_128:01")


def new_part(part_id: str, **changes: Any) -> NewPart:
    facts: dict[str, Any] = {
        "part_id": part_id,
        "base_version": 5,
        "schema_id": 3,
        "native_safe": True,
        "data": file_ref(part_id),
        "deletes": None,
        "key_lower": (pa.scalar(1), pa.scalar("a")),
        "key_upper": (pa.scalar(9), None),
        **changes,
    }
    far = pa.scalar(2**62, pa.int64()).cast(pa.timestamp("us", "UTC"))
    statistics: dict[Subject, ColumnStatistics] = {
        1: ColumnStatistics(0, None, pa.scalar(1), pa.scalar(9), lower_exact=True),
        3: ColumnStatistics(2, 1, pa.scalar(-0.0), pa.scalar(0.0)),
        5: ColumnStatistics(1),
        6: ColumnStatistics(0, None, far, far),
        7: ColumnStatistics(4),
    }
    return NewPart(PartEntry(**facts), statistics)


def table_of(*parts: NewPart) -> PartTable:
    return PartTable.of(parts, SCHEMA, KEY)


def test_an_entry_comes_back_as_it_went_in() -> None:
    parts = [
        new_part("a"),
        new_part("b", data=None, deletes=file_ref("b")),
        new_part("c", dv=DeletionVectorRef("data/c.6.dv", 3, 40, "xxh3_128:02"), native_safe=False),
    ]
    table = PartTable.from_ipc(table_of(*parts).to_ipc())
    assert [table.entry(i) for i in range(3)] == [part.entry for part in parts]
    assert table.entries([2, 0]) == [parts[2].entry, parts[0].entry]
    assert table.data_rows().tolist() == [10, 0, 10]
    assert table.key_ids == (1, 2)


def test_statistics_are_columns_with_null_for_unknown() -> None:
    table = table_of(new_part("a"), NewPart(new_part("b").entry)).table
    assert table.column("stats.1.lower").to_pylist() == [1, None]
    assert table.column("stats.1.lower_exact").to_pylist() == [True, False]
    assert table.column("stats.3.nan_count").to_pylist() == [1, None]
    assert str(table.column("stats.3.lower")[0]) == "-0.0"
    assert table.column("stats.6.upper")[0].value == 2**62
    assert table.column("stats.7.null_count").to_pylist() == [4, None]
    assert "stats.7.lower" not in table.column_names
    assert table.schema.field("stats.5.lower").type == pa.decimal128(38, 2)


@pytest.mark.parametrize("count", [0, 1, 100])
def test_the_bytes_hold_everything(count: int) -> None:
    parts = PartTable.empty().append(
        table_of(*(new_part(f"p{i}") for i in range(count))) if count else PartTable.empty()
    )
    assert PartTable.from_ipc(parts.to_ipc()) == parts
    assert len(parts) == count


def test_append_keeps_the_order_and_fills_missing_columns_with_null() -> None:
    narrow = PartTable.of([NewPart(new_part("old").entry)], Schema(2, KEY), KEY)
    both = PartTable.empty().append(narrow, table_of(new_part("new")))
    assert both.part_ids == ("old", "new")
    assert both.table.column("stats.7.null_count").to_pylist() == [None, 4]


def test_subjects_that_no_part_knows_have_no_columns() -> None:
    known = new_part("a")
    only = NewPart(known.entry, {7: known.statistics[7]})
    names = {name for name in table_of(only).table.column_names if name.startswith("stats.")}
    assert names == {"stats.7.null_count"}
    assert not any(name.startswith("stats.") for name in PartTable.empty().table.column_names)
    both = table_of(only).append(table_of(new_part("b")))
    assert both.table.column("stats.1.lower").to_pylist() == [None, 1]


def test_manifests_that_disagree_on_a_type_are_not_mixed() -> None:
    other = Schema(3, (*KEY, Field(3, "x", Int())))
    integers = ColumnStatistics(null_count=0, lower=pa.scalar(1), upper=pa.scalar(2))
    with pytest.raises(CorruptData, match="disagree"):
        table_of(new_part("a")).append(
            PartTable.of([NewPart(new_part("b").entry, {3: integers})], other, KEY)
        )


def test_without_and_take_pick_parts() -> None:
    parts = table_of(*(new_part(name) for name in "abc"))
    assert parts.without({"b", "nothing"}).part_ids == ("a", "c")
    assert parts.without(()).part_ids == ("a", "b", "c")
    assert parts.take([2, 0]).part_ids == ("c", "a")
    assert parts.part_ids == ("a", "b", "c")


def test_i1_a_commit_gives_its_version_to_fresh_parts_only() -> None:
    fresh = new_part("fresh")
    rewritten = new_part("rewritten", commit_ts_min=2, commit_ts_max=4)
    parts = table_of(fresh, rewritten)
    assert parts.entry(0).commit_ts_min is None
    committed = parts.with_commit_ts(7)
    ranges = [(entry.commit_ts_min, entry.commit_ts_max) for entry in committed.entries([0, 1])]
    assert ranges == [(7, 7), (2, 4)]
    assert committed.with_commit_ts(9) == committed


@pytest.mark.parametrize(
    "path",
    [
        "/data/x.parquet",
        "data/../x",
        "../data/x",
        "data/a/b",
        "data/.hidden",
        "data/",
        "data/x\n",
        "x.parquet",
        "data/x y",
        "data\\x",
        "data/" + "x" * 129,
    ],
)
def test_a_path_out_of_the_data_folder_is_refused(path: str) -> None:
    ref = FileRef(path, 1, 1, "", 0, "")
    for where in ("data", "deletes"):
        with pytest.raises(CorruptData, match="names the file"):
            PartTable.from_ipc(table_of(new_part("a", **{where: ref})).to_ipc())


@pytest.mark.parametrize("count", [1, 100])
def test_files_of_others_have_uris(count: int) -> None:
    def placed(path: str) -> PartTable:
        ref = FileRef(path, 1, 1, "", 0, "", "map")
        rest = (new_part(f"p{i}", data=replace(ref, path=f"s3://b/{i}")) for i in range(count - 1))
        return table_of(new_part("a", data=ref), *rest)

    for path in ("file:///a/b%20c", "file:///" + "x" * 4_096):
        assert PartTable.from_ipc(placed(path).to_ipc()) == placed(path)
    for path in ("data/x", "file:///a b", "file:///a\n", "file:///" + "x" * 5_000):
        with pytest.raises(CorruptData, match="names the file"):
            PartTable.from_ipc(placed(path).to_ipc())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"base_version": -1}, "negative base_version"),
        ({"data": FileRef("data/x", -1, 1, "", 0, "")}, "negative data.rows"),
        ({"data": FileRef("data/x", 1, -1, "", 0, "")}, "negative data.size_bytes"),
        ({"data": FileRef("data/x", 1, 1, "", 2, "")}, "end before their tail"),
        ({"schema_id": None}, "without schema_id"),
    ],
)
def test_facts_that_cannot_be_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(CorruptData, match=reason):
        PartTable.from_ipc(table_of(new_part("a", **changes)).to_ipc())


def test_a_part_of_a_newer_format_is_not_read() -> None:
    with pytest.raises(UnsupportedProtocol, match="format version 4"):
        PartTable.from_ipc(table_of(new_part("a", format_version=4)).to_ipc())


def test_a_part_named_twice_is_refused() -> None:
    with pytest.raises(CorruptData, match="more than once"):
        PartTable.from_ipc(table_of(new_part("a"), new_part("a")).to_ipc())


def test_a_missing_or_mistyped_column_is_refused() -> None:
    table = table_of(new_part("a")).table
    with pytest.raises(CorruptData, match=r"lacks its column 'data\.rows'"):
        PartTable.from_ipc(PartTable(table.drop_columns("data.rows")).to_ipc())
    index = table.column_names.index("data.rows")
    text = table.set_column(index, "data.rows", pa.array(["10"]))
    with pytest.raises(CorruptData, match=r"'data\.rows' is string, not int64"):
        PartTable.from_ipc(PartTable(text).to_ipc())


@pytest.mark.parametrize("data", [b"", b"ARROW1", b"x" * 100])
def test_bytes_that_are_not_an_arrow_file_are_rejected(data: bytes) -> None:
    with pytest.raises(CorruptData, match="not a readable Arrow IPC file"):
        PartTable.from_ipc(data)


def test_cut_bytes_are_refused() -> None:
    data = table_of(new_part("a")).to_ipc()
    for length in range(0, len(data) - 1, 501):
        with pytest.raises(CorruptData):
            PartTable.from_ipc(data[:length])
