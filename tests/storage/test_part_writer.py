"""Parts as files: what readers find in them, and that the parts of one writer never share a key."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.checksums import checksum
from rowsieve.errors import InvalidInput
from rowsieve.objects import ObjectStore, open_store
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.storage.parts import part_writer
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS, PartWriter, write_parts
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import (
    Bool,
    Decimal,
    Field,
    Float,
    Int,
    Json,
    List,
    String,
    Struct,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests.profiles import examples

KEY = (Field(1, "id", Int(), nullable=False), Field(2, "name", String(), nullable=False))
SCHEMA = Schema(4, (*KEY, Field(3, "x", Float()), Field(4, "note", String())))


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path))


def rows_of(ids: Any, **columns: Any) -> pa.Table:
    ids = np.asarray(ids, dtype=np.int64)
    values = {
        "id": pa.array(ids),
        "name": pa.array(["n"] * len(ids)),
        "x": pa.array(ids / 4),
        "note": pa.array([f"note {i}" for i in ids]),
        **columns,
    }
    return pa.table([values[name] for name in SCHEMA.names], schema=arrow_schema(SCHEMA))


def keys_of(ids: Any) -> pa.Table:
    return rows_of(ids).select(["id", "name"])


def write(
    store: ObjectStore, rows: pa.Table | None, deletes: pa.Table | None = None, **properties: str
) -> PartTable:
    return write_parts(store, SCHEMA, KEY, rows, deletes, base_version=7, properties=properties)


def opened(store: ObjectStore, ref: FileRef | None) -> pq.ParquetFile:
    assert ref is not None
    return pq.ParquetFile(pa.BufferReader(store.get(ref.path)))


def ids_in(store: ObjectStore, ref: FileRef | None) -> list[int]:
    return [] if ref is None else opened(store, ref).read(["id"]).column("id").to_pylist()


def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_writer, "ROW_GROUP_ROWS", 4)


def test_rows_and_tombstones_make_one_part(store: ObjectStore) -> None:
    rows, deletes = rows_of([1, 2, 5]), keys_of([0, 3, 9])
    parts = write(store, rows, deletes)
    assert len(parts) == 1
    entry = parts.entry(0)
    assert opened(store, entry.data).read().equals(rows)
    assert opened(store, entry.deletes).read().equals(deletes)
    assert (entry.base_version, entry.schema_id, entry.native_safe) == (7, 4, True)
    assert (entry.commit_ts_min, entry.commit_ts_max) == (None, None)
    assert [scalar and scalar.as_py() for scalar in entry.key_lower] == [0, "n"]
    assert [scalar and scalar.as_py() for scalar in entry.key_upper] == [9, "n"]


def test_files_are_named_for_the_part_and_the_version_they_are_based_on(store: ObjectStore) -> None:
    entry = write(store, rows_of([1]), keys_of([2])).entry(0)
    assert entry.data is not None
    assert entry.deletes is not None
    assert entry.data.path == f"data/{entry.part_id}.7.parquet"
    assert entry.deletes.path == f"data/{entry.part_id}.7.deletes.parquet"


def test_sizes_and_checksums_are_those_of_the_file(store: ObjectStore) -> None:
    entry = write(store, rows_of(range(100)), keys_of([200])).entry(0)
    for ref, rows in ((entry.data, 100), (entry.deletes, 1)):
        assert ref is not None
        data = store.get(ref.path)
        assert (ref.rows, ref.size_bytes, ref.checksum) == (rows, len(data), checksum(data))
        assert ref.tail_checksum == checksum(data[ref.tail_start :])


def test_an_empty_write_makes_no_part(store: ObjectStore, tmp_path: Path) -> None:
    parts = write(store, rows_of([]), keys_of([]))
    assert len(parts) == 0
    assert parts == PartTable.empty()
    assert not (tmp_path / "data").exists()


def test_a_part_may_hold_tombstones_only(store: ObjectStore) -> None:
    parts = write(store, None, keys_of([3, 4]))
    entry = parts.entry(0)
    assert entry.data is None
    assert ids_in(store, entry.deletes) == [3, 4]
    assert parts.data_rows().tolist() == [0]
    assert [parts.table.column(f"stats.1.{side}")[0].as_py() for side in ("lower", "upper")] == [
        3,
        4,
    ]


def test_row_groups_have_65536_rows_however_rows_arrive(store: ObjectStore) -> None:
    writer = PartWriter(store, SCHEMA, KEY, {}, 0)
    rows = rows_of(range(2 * ROW_GROUP_ROWS + 11))
    for start in range(0, rows.num_rows, 50_000):
        piece = rows.slice(start, 50_000)
        writer.write(piece if start else piece.combine_chunks().to_batches()[0])
    parts = writer.finish()
    file = opened(store, parts.entry(0).data)
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert groups == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 11]
    assert file.read().equals(rows)


def test_what_native_readers_find(store: ObjectStore) -> None:
    count = 30_000
    rows = rows_of(range(count), note=pa.array(["a", "b", None] * (count // 3)))
    file = opened(store, write(store, rows).entry(0).data)
    group = file.metadata.row_group(0)
    chunks = {group.column(i).path_in_schema: group.column(i) for i in range(4)}
    assert [column.column_index for column in group.sorting_columns] == [0, 1]
    assert {chunk.compression for chunk in chunks.values()} == {"ZSTD"}
    assert all(chunk.has_offset_index for chunk in chunks.values())
    assert all(chunk.has_column_index for chunk in chunks.values())
    assert {name for name, chunk in chunks.items() if chunk.has_dictionary_page} == {"name", "note"}
    blooms = {name for name, chunk in chunks.items() if chunk.bloom_filter_offset is not None}
    assert blooms == {"id", "name"}
    metadata = file.metadata.metadata
    assert (metadata[b"rowsieve.format"], metadata[b"rowsieve.schema"]) == (b"1", b"4")
    ids = [field.metadata[b"PARQUET:field_id"] for field in file.schema_arrow]
    assert ids == [b"1", b"2", b"3", b"4"]


def test_nested_members_carry_their_field_ids(store: ObjectStore) -> None:
    member = Struct((Field(5, "x", Float()), Field(6, "y", Int(16), nullable=False)))
    schema = Schema(0, (*KEY[:1], Field(3, "l", List(Field(4, "item", member)))))
    rows = pa.table(
        [
            pa.array([1, 2]),
            pa.array([[{"x": 1.0, "y": 1}, None], None], arrow_schema(schema).field("l").type),
        ],
        schema=arrow_schema(schema),
    )
    parts = write_parts(store, schema, KEY[:1], rows, None, base_version=0, properties={})
    file = opened(store, parts.entry(0).data)
    assert file.read().equals(rows)
    item = file.schema_arrow.field("l").type.value_field
    assert item.metadata[b"PARQUET:field_id"] == b"4"
    assert item.type.field("y").metadata[b"PARQUET:field_id"] == b"6"
    assert not file.metadata.row_group(0).column(1).is_stats_set


def test_every_type_can_be_a_key_or_a_column(store: ObjectStore) -> None:
    key = (
        Field(1, "b", Bool(), nullable=False),
        Field(2, "f", Float(), nullable=False),
        Field(3, "d", Decimal(20, 2), nullable=False),
        Field(4, "u", Uuid(), nullable=False),
        Field(5, "t", Timestamp(utc=True), nullable=False),
    )
    schema = Schema(0, (*key, Field(6, "j", Json())))
    rows = pa.table(
        [
            pa.array([False, True, True]),
            pa.array([-math.inf, 0.0, math.nan]),
            pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)).cast(pa.decimal128(20, 2)),
            pa.array([b"a" * 16, b"b" * 16, b"c" * 16], pa.binary(16)),
            pa.array([-5, 0, 2**60], pa.timestamp("us", "UTC")),
            pa.array(["{}", None, "[1]"]),
        ],
        schema=arrow_schema(schema),
    )
    kept, deletes = rows.slice(0, 2), rows.slice(2).select([field.name for field in key])
    parts = write_parts(store, schema, key, kept, deletes, base_version=0, properties={})
    entry = parts.entry(0)
    assert opened(store, entry.data).read().equals(kept)
    assert opened(store, entry.deletes).metadata.num_rows == 1
    group = opened(store, entry.data).metadata.row_group(0)
    blooms = [group.column(i).bloom_filter_offset is not None for i in range(6)]
    assert blooms == [False, False, True, True, True, False]
    assert [scalar.is_valid for scalar in entry.key_upper if scalar is not None] == [True] * 5


def test_inv25_floats_have_neither_bloom_nor_dictionary(store: ObjectStore) -> None:
    key = (Field(1, "f", Float(), nullable=False),)
    schema = Schema(0, key)
    rows = pa.table([pa.array(np.repeat([1.0, 2.0], 1000))], schema=arrow_schema(schema))
    entry = write_parts(store, schema, key, rows, None, base_version=0, properties={}).entry(0)
    chunk = opened(store, entry.data).metadata.row_group(0).column(0)
    assert chunk.bloom_filter_offset is None
    assert not chunk.has_dictionary_page


def test_inv32_a_float_column_with_nan_has_no_statistics_in_the_file(store: ObjectStore) -> None:
    x = np.arange(100.0)
    x[70] = math.nan
    parts = write(store, rows_of(range(100), x=pa.array(x)))
    chunk = opened(store, parts.entry(0).data).metadata.row_group(0).column(2)
    assert not chunk.is_stats_set
    assert not chunk.has_column_index
    plain = write(store, rows_of(range(100)))
    assert opened(store, plain.entry(0).data).metadata.row_group(0).column(2).is_stats_set
    assert parts.table.column("stats.3.nan_count").to_pylist() == [1]


def test_inv32_a_nan_that_comes_late_opens_another_part(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_groups(monkeypatch)
    writer = PartWriter(store, SCHEMA, KEY, {}, 0)
    writer.write(rows_of(range(6)))
    writer.write(rows_of([6, 7], x=pa.array([math.nan, 1.0])))
    writer.write(rows_of(range(8, 20)))
    parts = writer.finish()
    assert parts.data_rows().tolist() == [6, 14]
    for entry, has_statistics in zip(parts.entries(range(2)), (True, False), strict=True):
        metadata = opened(store, entry.data).metadata
        for i in range(metadata.num_row_groups):
            assert metadata.row_group(i).column(2).is_stats_set == has_statistics


def test_a_long_key_is_cut_and_what_follows_is_infinite(store: ObjectStore) -> None:
    key = (KEY[1], KEY[0])
    long = rows_of([1, 2], name=pa.array(["x" * 200, "y" * 200]))
    entry = write_parts(store, SCHEMA, key, long, None, base_version=0, properties={}).entry(0)
    assert [scalar and scalar.as_py() for scalar in entry.key_lower] == ["x" * 100, None]
    assert [scalar and scalar.as_py() for scalar in entry.key_upper] == ["y" * 99 + "z", None]
    top = rows_of([1], name=pa.array(["\U0010ffff" * 50]))
    entry = write_parts(store, SCHEMA, key, top, None, base_version=0, properties={}).entry(0)
    assert entry.key_upper == (None, None)


def test_a_table_without_a_key(store: ObjectStore) -> None:
    parts = write_parts(store, SCHEMA, (), rows_of([2, 1]), None, base_version=0, properties={})
    entry = parts.entry(0)
    assert ids_in(store, entry.data) == [2, 1]
    assert (entry.key_lower, parts.key_ids) == ((), ())
    assert not opened(store, entry.data).metadata.row_group(0).sorting_columns


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "big", "", "\u0661"])
def test_a_target_size_that_is_none_is_refused(store: ObjectStore, text: str) -> None:
    with pytest.raises(InvalidInput, match="target_part_bytes"):
        write(store, rows_of([1]), target_part_bytes=text)


def test_parts_roll_between_row_groups_when_they_are_full(store: ObjectStore) -> None:
    rows = rows_of(range(3 * ROW_GROUP_ROWS))
    parts = write(store, rows, target_part_bytes="1")
    assert parts.data_rows().tolist() == [ROW_GROUP_ROWS] * 3
    whole = write(store, rows, target_part_bytes=str(10**9))
    assert whole.data_rows().tolist() == [3 * ROW_GROUP_ROWS]


@given(
    st.dictionaries(st.integers(0, 60), st.booleans(), max_size=40), st.sampled_from(["1", "3000"])
)
@examples(60)
def test_inv10_parts_of_one_writer_hold_disjoint_ranges_and_every_key_once(
    actions: dict[int, bool], target: str
) -> None:
    store = open_store("memory:///parts")
    upserted = sorted(key for key, upsert in actions.items() if upsert)
    deleted = sorted(key for key, upsert in actions.items() if not upsert)
    with pytest.MonkeyPatch.context() as patch:
        small_groups(patch)
        parts = write(store, rows_of(upserted), keys_of(deleted), target_part_bytes=target)
    entries = parts.entries(range(len(parts)))
    assert [i for entry in entries for i in ids_in(store, entry.data)] == upserted
    assert [i for entry in entries for i in ids_in(store, entry.deletes)] == deleted
    end = -1
    for entry in entries:
        lower, upper = entry.key_lower[0], entry.key_upper[0]
        assert lower is not None
        assert upper is not None
        keys = sorted(ids_in(store, entry.data) + ids_in(store, entry.deletes))
        assert end < lower.as_py() == keys[0]
        assert keys[-1] == upper.as_py()
        end = upper.as_py()
