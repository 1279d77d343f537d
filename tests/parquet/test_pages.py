"""Single pages: the same rows as a whole read gives, nothing else fetched, every byte checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import CorruptData
from rowsieve.objects import Draft, ObjectStore, open_store
from rowsieve.parquet import sealing
from rowsieve.parquet.decode import ParquetReader
from rowsieve.parquet.footer import read_tail
from rowsieve.parquet.leaf_columns import leaves_of
from rowsieve.parquet.page_reader import PageReader, read_pages
from rowsieve.parquet.pages import PAGES_KEY, Pages, page_directory
from rowsieve.parquet.seals import CHUNKS_KEY
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts import part_file, part_writer
from rowsieve.storage.parts.part_writer import write_parts
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    List,
    Map,
    String,
    Struct,
    Timestamp,
)
from rowsieve.types.schema import Schema
from tests.profiles import examples
from tests.small_pages import small_pages
from tests.small_tables import fresh_uri

GROUP_ROWS, PAGE_ROWS = 24, 8
SCHEMA = Schema(
    0,
    (
        Field(1, "id", Int(64), nullable=False),
        Field(2, "dotted.name", Int(32)),
        Field(3, "value", Float(64)),
        Field(4, "place", String()),
        Field(5, "words", List(Field(6, "element", String()))),
        Field(
            7,
            "pair",
            Struct((Field(8, "a", Int(16)), Field(9, "b", List(Field(10, "element", Bool()))))),
        ),
        Field(
            11,
            "counts",
            Map(Field(12, "key", String(), nullable=False), Field(13, "value", Int(64))),
        ),
        Field(14, "price", Decimal(20, 2)),
        Field(15, "day", Date()),
        Field(16, "at", Timestamp(utc=True)),
        Field(17, "raw", Binary()),
        Field(18, "flag", Bool()),
    ),
)
"""Flat and nested columns; one of them with a dot in its name."""


@pytest.fixture(scope="module", autouse=True)
def many_pages() -> Iterator[None]:
    with small_pages(PAGE_ROWS, GROUP_ROWS, dictionary_ratio=0.5):
        yield


def rows(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)

    def some(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.2 else value for value in values]

    numbers = list(range(count))
    columns = [
        numbers,
        some([int(rng.integers(-9, 9)) for _ in numbers]),
        some([float(rng.normal()) for _ in numbers]),
        some([f"place {rng.integers(0, 3)}" for _ in numbers]),
        some([[f"w{j}" for j in range(rng.integers(0, 4))] for _ in numbers]),
        some([{"a": i % 7, "b": [None, True][: rng.integers(0, 3)]} for i in numbers]),
        some([[(f"k{j}", j) for j in range(rng.integers(0, 3))] for _ in numbers]),
        some(numbers),
        some(numbers),
        some([i * 1_000 for i in numbers]),
        some([bytes([i % 256]) * (i % 5) for i in numbers]),
        some([bool(i % 3) for i in numbers]),
    ]
    schema = arrow_schema(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


def write(store: ObjectStore, data: pa.Table, schema: Schema = SCHEMA) -> FileRef:
    parts = write_parts(store, schema, schema.fields[:1], data, None, base_version=0, properties={})
    ref = parts.entry(0).data
    assert ref is not None
    return ref


def read(
    reader: PageReader, row_group: int, names: list[str], pages: Pages
) -> tuple[pa.Table, int]:
    """The pages of one row group, and the bytes read."""
    table, (size_bytes,) = read_pages([(reader, row_group, pages)], names)
    return table, size_bytes


def opened(store: ObjectStore, ref: FileRef) -> PageReader:
    metadata = read_tail(store, ref).metadata
    directory = page_directory(metadata)
    assert directory is not None
    return PageReader(store, ref, directory, leaves_of(metadata))


@given(st.integers(1, 60), st.integers(0, 99), st.data())
@examples(60)
def test_pages_of_several_row_groups_are_the_rows_of_a_whole_read(
    count: int, seed: int, data: st.DataObject
) -> None:
    store = open_store(fresh_uri())
    ref = write(store, rows(count, seed))
    groups = range(-(-count // GROUP_ROWS))
    asked = sorted(data.draw(st.sets(st.sampled_from(groups), min_size=1)))
    names = data.draw(st.lists(st.sampled_from(SCHEMA.names), min_size=1, unique=True))
    reader, whole = opened(store, ref), ParquetReader(store, ref)
    wanted, tables = [], []
    for group in asked:
        in_group = min(GROUP_ROWS, count - group * GROUP_ROWS)
        every = range(-(-in_group // PAGE_ROWS))
        pages = np.array(sorted(data.draw(st.sets(st.sampled_from(every), min_size=1))))
        wanted.append((reader, group, pages))
        table = whole.read(group, range(whole.metadata.num_columns)).select(names)
        kept = np.isin(np.arange(in_group) // PAGE_ROWS, pages)
        tables.append(table.filter(pa.array(kept)))
    found, sizes = read_pages(wanted, names)
    expected = pa.concat_tables([table.cast(found.schema) for table in tables])
    assert found.to_pylist() == expected.to_pylist()
    spans = [reader.spans(group, names, pages) for _, group, pages in wanted]
    assert sizes == [sum(stop - start for start, stop in own) for own in spans]


@given(st.integers(1, 60), st.integers(0, 99), st.data())
@examples(60)
def test_pages_are_the_rows_of_a_whole_read(count: int, seed: int, data: st.DataObject) -> None:
    store = open_store(fresh_uri())
    ref = write(store, rows(count, seed))
    group = data.draw(st.integers(0, (count - 1) // GROUP_ROWS))
    in_group = min(GROUP_ROWS, count - group * GROUP_ROWS)
    every = range(-(-in_group // PAGE_ROWS))
    pages = np.array(sorted(data.draw(st.sets(st.sampled_from(every), min_size=1))))
    names = data.draw(st.lists(st.sampled_from(SCHEMA.names), min_size=1, unique=True))
    found, _ = read(opened(store, ref), group, names, pages)
    reader = ParquetReader(store, ref)
    whole = reader.read(group, range(reader.metadata.num_columns)).select(names)
    kept = np.isin(np.arange(in_group) // PAGE_ROWS, pages)
    assert found.cast(whole.schema).equals(whole.filter(pa.array(kept)))


def test_only_these_pages_are_read(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    ref = write(store, rows(50, 1))
    path = tmp_path / ref.path
    names = ["id", "value"]
    wanted, size_bytes = read(opened(store, ref), 1, names, np.array([1]))
    metadata = read_tail(store, ref).metadata
    directory = page_directory(metadata)
    assert directory is not None
    spans = [directory.chunk(metadata, 1, leaf) for leaf in (0, 2)]
    kept = [span.span(number) for span in spans for number in (-1, 1)]
    assert size_bytes == sum(stop - start for start, stop in kept)
    data = bytearray(path.read_bytes())
    for place in range(4, ref.tail_start):
        if not any(start <= place < stop for start, stop in kept):
            data[place] ^= 0xFF
    path.write_bytes(data)
    assert read(opened(store, ref), 1, names, np.array([1]))[0].equals(wanted)


def test_any_damaged_byte_of_a_page_or_dictionary_is_found(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    ref = write(store, rows(30, 2))
    path = tmp_path / ref.path
    whole = path.read_bytes()
    metadata = read_tail(store, ref).metadata
    directory = page_directory(metadata)
    assert directory is not None
    place = directory.chunk(metadata, 0, 3)
    assert place.span(-1)[0] < place.span(-1)[1]  # "place" has a dictionary
    for number in (-1, 1):
        for offset in range(*place.span(number)):
            path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 4]) + whole[offset + 1 :])
            with pytest.raises(CorruptData, match=r"column 'place', is damaged at bytes"):
                read(opened(store, ref), 0, ["place"], np.array([1]))


def test_a_file_cut_short_is_found(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    ref = write(store, rows(30, 3))
    reader = opened(store, ref)
    path = tmp_path / ref.path
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(CorruptData):
        read(reader, 1, ["raw"], np.array([0]))


def test_pages_that_end_early_are_not_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_file, "PAGE_ROWS", 4_096)
    monkeypatch.setattr(part_file, "_PAGE_BYTES", 10_000)
    monkeypatch.setattr(part_file, "_PAGE_BYTES_OF_LARGE_ROWS", 10_000)
    monkeypatch.setattr(part_writer, "ROW_GROUP_ROWS", 8_192)
    monkeypatch.setattr(part_file, "ROW_GROUP_ROWS", 8_192)
    schema = Schema(0, (Field(1, "id", Int(64), nullable=False), Field(2, "text", String())))
    rng = np.random.default_rng(4)
    texts = [rng.bytes(40).hex() for _ in range(8_192)]
    data = pa.table([pa.array(range(8_192)), pa.array(texts)], arrow_schema(schema))
    store = open_store(fresh_uri())
    ref = write(store, data, schema)
    assert page_directory(read_tail(store, ref).metadata) is None
    assert ParquetReader(store, ref).read(0, [0, 1]).cast(data.schema).equals(data)


@pytest.mark.parametrize("is_split", [False, True])
def test_long_chunks_are_sealed_page_by_page(
    is_split: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if is_split:  # no directory of pages
        monkeypatch.setattr(part_file, "_PAGE_BYTES", 100)
        monkeypatch.setattr(part_file, "_PAGE_BYTES_OF_LARGE_ROWS", 100)
    spans: list[int] = []
    read_span = Draft.read_span

    def noting(draft: Draft, start: int, stop: int) -> memoryview:
        spans.append(stop - start)
        return read_span(draft, start, stop)

    monkeypatch.setattr(Draft, "read_span", noting)
    seals = []
    for limit in (sealing._READ_BYTES, 200):
        spans.clear()
        monkeypatch.setattr(sealing, "_READ_BYTES", limit)
        store = open_store(str(tmp_path / str(limit)))
        metadata = read_tail(store, write(store, rows(60, 5))).metadata
        seals.append([metadata.metadata[key.encode()] for key in (CHUNKS_KEY, PAGES_KEY)])
    assert seals[0] == seals[1]
    group = metadata.row_group(0)
    chunks = [group.column(place).total_compressed_size for place in range(group.num_columns)]
    assert max(chunks) > 200
    assert not set(spans) & {size for size in chunks if size > 1_000}


def test_a_directory_of_other_row_groups_is_none() -> None:
    store = open_store(fresh_uri())
    metadata = read_tail(store, write(store, rows(60, 5))).metadata
    other = read_tail(store, write(store, rows(20, 5))).metadata
    assert metadata.metadata[PAGES_KEY.encode()] != other.metadata[PAGES_KEY.encode()]
    assert len(metadata.metadata[PAGES_KEY.encode()]) == 16 * 14 * (5 + 5 + 4)
    assert len(other.metadata[PAGES_KEY.encode()]) == 16 * 14 * 5


def test_others_read_the_file(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    data = rows(60, 6)
    ref = write(store, data)
    found = pq.read_table(tmp_path / ref.path, page_checksum_verification=True)
    assert found.cast(data.schema).equals(data)
