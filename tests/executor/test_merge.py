"""The windowed merge against a dictionary, and against the merge of whole tables."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.executor.merging.merge import merge
from rowsieve.executor.merging.windows import Numbered, Stream
from rowsieve.types.logical import Field, Int, String
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from tests.profiles import examples

SCHEMA = Schema(
    0,
    (
        Field(1, "a", Int(64), nullable=False),
        Field(2, "b", String(), nullable=False),
        Field(3, "v", Int(64)),
    ),
)
ORDER = KeyOrder.of(SCHEMA, ("a", "b"))
ARROW = pa.schema([("a", pa.int64()), ("b", pa.string()), ("v", pa.int64())])

DECODED = [pa.dictionary(pa.int32(), pa.string()), pa.string(), pa.large_string()]

keys = st.tuples(st.integers(0, 6), st.sampled_from(["", "x", "é", "z"]))
runs = st.lists(
    st.tuples(st.dictionaries(keys, st.integers(0, 99), max_size=12), st.booleans()), max_size=5
)


def table_of(rows: dict[tuple[int, str], int]) -> pa.Table:
    ordered = sorted(rows.items())
    return pa.table(
        {
            "a": [key[0] for key, _ in ordered],
            "b": [key[1] for key, _ in ordered],
            "v": [value for _, value in ordered],
        },
        schema=ARROW,
    )


def in_batches(table: pa.Table, size: int) -> Iterator[Numbered]:
    for start in range(0, table.num_rows, size):
        yield start, table.slice(start, size).combine_chunks().to_batches()[0]


def newest_per_key(
    newest_first: list[tuple[dict[tuple[int, str], int], bool]],
) -> list[tuple[int, str, int]]:
    live: dict[tuple[int, str], int | None] = {}
    for rows, deletes in reversed(newest_first):
        live.update(dict.fromkeys(rows) if deletes else rows)
    return [(*key, value) for key, value in sorted(live.items()) if value is not None]


@examples(400)
@given(runs, st.integers(1, 4))
def test_the_newest_version_of_each_key_survives(
    newest_first: list[tuple[dict[tuple[int, str], int], bool]], batch_rows: int
) -> None:
    tables = [(table_of(rows), deletes) for rows, deletes in newest_first]
    streams = [
        Stream(in_batches(table.select(["a", "b"]) if deletes else table, batch_rows), deletes)
        for table, deletes in tables
    ]
    merged = [
        (row["a"], row["b"], row["v"])
        for batch in merge(streams, ORDER)
        for row in batch.to_pylist()
    ]
    assert merged == newest_per_key(newest_first)


@examples(200)
@given(runs, st.lists(st.sampled_from(DECODED), min_size=5, max_size=5), st.integers(1, 4))
def test_types_of_the_decoder_become_those_of_the_table(
    newest_first: list[tuple[dict[tuple[int, str], int], bool]],
    types: list[pa.DataType],
    batch_rows: int,
) -> None:
    streams = []
    for (rows, deletes), type_ in zip(newest_first, types, strict=False):
        table = table_of(rows)
        text = table.column("v").cast(pa.string())
        encoded = text.dictionary_encode() if pa.types.is_dictionary(type_) else text.cast(type_)
        table = table.set_column(2, "v", encoded)
        keys = table.select(["a", "b"]) if deletes else table
        streams.append(Stream(in_batches(keys, batch_rows), deletes))
    target = ARROW.set(2, pa.field("v", pa.string()))
    merged = list(merge(streams, ORDER, target))
    assert all(batch.schema == target for batch in merged)
    found = [row for batch in merged for row in batch.to_pylist()]
    assert [(row["a"], row["b"], int(row["v"])) for row in found] == newest_per_key(newest_first)


def test_disjoint_streams_pass_through_uncopied() -> None:
    batch = table_of({(1, "x"): 1, (2, "x"): 2}).to_batches()[0]
    (merged,) = merge([Stream(iter([(0, batch)]), deletes=False)], ORDER)
    assert merged.column("v").buffers()[1].address == batch.column("v").buffers()[1].address
