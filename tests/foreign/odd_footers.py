"""Parquet files of odd shapes, each with the rows that it holds: siblings of each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tests.foreign.damaged import (
    STATISTICS,
    Fields,
    edit_chunks,
    edit_footer,
    edit_metadata,
    edit_schema,
)

Write = Callable[[Path], pa.Table]

FILE_OFFSET, OFFSET_INDEX, COLUMN_INDEX = 2, (4, 5), (6, 7)  # of a chunk
INDEX_PAGE, ENCODING_COUNTS, SIZES = 10, 13, 16  # of its metadata
FIELD_ID = 9  # of a schema element


def numbers(groups: int, columns: int) -> pa.Table:
    count = groups * 3
    return pa.table({f"c{i}": pa.array(range(i, count + i), pa.int64()) for i in range(columns)})


def mixed(count: int = 60) -> pa.Table:
    """Columns of several types, whose first row group has no NULL and whose texts get longer."""
    return pa.table(
        {
            "n": pa.array([None if i >= 10 and i % 7 == 0 else i * i for i in range(count)]),
            "s": pa.array(
                [None if i >= 20 and i % 5 == 0 else "x" * (i * 3) for i in range(count)]
            ),
            "f": pa.array([i / 8 for i in range(count)], pa.float64()),
            "b": pa.array([i % 3 == 0 for i in range(count)]),
            "small": pa.array([i % 200 - 100 for i in range(count)], pa.int8()),
            "raw": pa.array([bytes([i % 256]) * (i % 9) for i in range(count)], pa.binary()),
        }
    )


def nested(count: int = 24) -> pa.Table:
    """Lists of structs of maps, twelve levels deep, beside flat columns."""
    type_: pa.DataType = pa.int32()
    value: Any = 7
    for _ in range(4):
        type_ = pa.list_(pa.struct([("m", pa.map_(pa.string(), type_)), ("k", pa.int64())]))
        value = [{"m": [("key", value)], "k": 1}]
    cells = [None if i % 5 == 0 else [] if i % 5 == 1 else value for i in range(count)]
    structs = [{"x": i, "y": {"z": str(i)}} for i in range(count)]
    first, last = range(count), range(count, 2 * count)
    return pa.table({"n": first, "deep": pa.array(cells, type_), "st": structs, "m": last})


def by_pyarrow(make: Callable[[], pa.Table], **options: Any) -> Write:
    def write(path: Path) -> pa.Table:
        rows = make()
        pq.write_table(rows, path, **{"row_group_size": 10, **options})
        return rows

    return write


def edited(write: Write, edit: Callable[..., None], change: Callable[..., None]) -> Write:
    def both(path: Path) -> pa.Table:
        rows = write(path)
        edit(path, change)
        return rows

    return both


def without(*fields: int, when: Callable[[int, int], bool]) -> Callable[[int, int, Fields], None]:
    """Remove fields where `when` says so, by row group and leaf."""

    def change(group: int, leaf: int, each: Fields) -> None:
        if when(group, leaf):
            for field in fields:
                each.pop(field, None)

    return change


def later(group: int, _: int) -> bool:
    return group > 0


def every_third(group: int, leaf: int) -> bool:
    return (group + leaf) % 3 == 0


def with_unknown_fields(group: int, leaf: int, chunk: Fields) -> None:
    """Add fields that no version of Parquet has, of several kinds, to some chunks."""
    if every_third(group, leaf):
        chunk[70] = 8, b"\x03abc"
        chunk[71] = 12, b"\x15\x06\x19\x25\x02\x04\x00"
        chunk[72] = 1, b""


def with_index_page(group: int, leaf: int, metadata: Fields) -> None:
    if every_third(group, leaf):
        metadata[INDEX_PAGE] = 6, _varint(4)


def with_long_numbers(group: int, leaf: int, metadata: Fields) -> None:
    """Encode numbers in more bytes than they need, in some chunks."""
    if every_third(group, leaf):
        for number in (5, 6, 7, 9):
            kind, data = metadata[number]
            metadata[number] = kind, data[:-1] + bytes([data[-1] | 128, 128, 0])


def with_field_ids(place: int, element: Fields) -> None:
    if place:
        element[FIELD_ID] = 5, _varint(place * 97)


def with_some_field_ids(place: int, element: Fields) -> None:
    if place % 2:
        element[FIELD_ID] = 5, _varint(place)


def _varint(number: int) -> bytes:
    rest, written = number * 2, b""
    while rest > 127:
        written, rest = written + bytes([rest & 127 | 128]), rest >> 7
    return written + bytes([rest])


def with_other_fields(footer: Fields) -> None:
    """Add fields that no version of Parquet has to the footer."""
    footer[90] = 8, b"\x02hi"
    footer[91] = 9, b"\x35\x02\x04\x06"


def named(*names: str) -> Callable[[], pa.Table]:
    return lambda: pa.table({name: range(i, i + 30) for i, name in enumerate(names)})


NAMES = named("a.b", "a", "line\nbreak", "tab\t", "", "ünï", "x" * 127, "y" * 128, "z" * 300, "`q`")
DATES = partial(
    pa.table,
    {
        "d": pa.array(range(30), pa.date32()),
        "t": pa.array([i * 10**9 for i in range(30)], pa.timestamp("us")),
        "z": pa.array([i * 10**9 for i in range(30)], pa.timestamp("us", "Europe/Berlin")),
        "ms": pa.array([i * 10**7 for i in range(30)], pa.timestamp("ms", "UTC")),
    },
)
TIMES = partial(  # whose elements differ after the field id only
    pa.table,
    {
        "local": pa.array([i * 10**7 for i in range(30)], pa.timestamp("ns")),
        "utc": pa.array([i * 10**7 for i in range(30)], pa.timestamp("ns", "UTC")),
    },
)
ONE_NULL_GROUP = partial(
    pa.table, {"n": [None] * 10 + list(range(10, 20)) + [None] * 5 + [1] * 5, "s": ["a"] * 30}
)


def with_empty_groups(path: Path) -> pa.Table:
    rows = mixed()
    with pq.ParquetWriter(path, rows.schema) as writer:
        for start in range(0, 60, 20):
            writer.write_table(rows.slice(0, 0))
            writer.write_table(rows.slice(start, 20))
    return rows


def without_groups(path: Path) -> pa.Table:
    rows = mixed(0)
    pq.ParquetWriter(path, rows.schema).close()
    return rows


MIXED: Final = by_pyarrow(mixed)
INDEXED: Final = by_pyarrow(mixed, write_page_index=True)
MANY: Final = by_pyarrow(partial(numbers, 40, 12), row_group_size=3)

SHAPES: Final[Mapping[str, Write]] = {
    "one column of 5,000 groups": by_pyarrow(partial(numbers, 5_000, 1), row_group_size=3),
    "5,000 columns of one group": by_pyarrow(partial(numbers, 1, 5_000)),
    "40 groups of 12 columns": MANY,
    "mixed types": MIXED,
    "mixed types with an index": INDEXED,
    "data pages of version 2": by_pyarrow(mixed, data_page_version="2.0", compression="gzip"),
    "no statistics": by_pyarrow(mixed, write_statistics=False),
    "statistics of one column": by_pyarrow(mixed, write_statistics=["n"]),
    "no dictionaries": by_pyarrow(mixed, use_dictionary=False),
    "dictionary of one column": by_pyarrow(mixed, use_dictionary=["s"]),
    "no Arrow schema": by_pyarrow(mixed, store_schema=False),
    "sorted": by_pyarrow(mixed, sorting_columns=[pq.SortingColumn(0)]),
    "version 1.0": by_pyarrow(mixed, version="1.0"),
    "nested, 12 levels": by_pyarrow(nested, row_group_size=5),
    "nested with an index": by_pyarrow(nested, row_group_size=5, write_page_index=True),
    "nested, many groups": by_pyarrow(partial(nested, 60), row_group_size=2),
    "names": by_pyarrow(NAMES),
    "names, many groups": by_pyarrow(NAMES, row_group_size=2),
    "dates": by_pyarrow(DATES),
    "dates without an Arrow schema": by_pyarrow(DATES, store_schema=False),
    "a group of NULLs first": by_pyarrow(ONE_NULL_GROUP),
    "a group of NULLs first, with an index": by_pyarrow(ONE_NULL_GROUP, write_page_index=True),
    "empty groups": with_empty_groups,
    "no groups": without_groups,
    "one row": by_pyarrow(partial(mixed, 1)),
    "one row a group": by_pyarrow(mixed, row_group_size=1),
    "later groups without statistics": edited(
        MIXED, edit_metadata, without(STATISTICS, when=later)
    ),
    "some chunks without statistics": edited(
        MANY, edit_metadata, without(STATISTICS, when=every_third)
    ),
    "some with the place of an index page": edited(MANY, edit_metadata, with_index_page),
    "later groups without counts of encodings": edited(
        MIXED, edit_metadata, without(ENCODING_COUNTS, when=later)
    ),
    "later groups without sizes": edited(MANY, edit_metadata, without(SIZES, when=later)),
    "some chunks without an index": edited(
        INDEXED, edit_chunks, without(*OFFSET_INDEX, *COLUMN_INDEX, when=every_third)
    ),
    "later groups without an index of bounds": edited(
        INDEXED, edit_chunks, without(*COLUMN_INDEX, when=later)
    ),
    "unknown fields of chunks": edited(MANY, edit_chunks, with_unknown_fields),
    "unknown fields of nested chunks": edited(
        by_pyarrow(partial(nested, 60), row_group_size=2), edit_chunks, with_unknown_fields
    ),
    "numbers in more bytes": edited(MANY, edit_metadata, with_long_numbers),
    "field ids": edited(MIXED, edit_schema, with_field_ids),
    "field ids of 300 columns": edited(
        by_pyarrow(partial(numbers, 2, 300)), edit_schema, with_field_ids
    ),
    "field ids of times": edited(by_pyarrow(TIMES), edit_schema, with_field_ids),
    "some field ids": edited(MANY, edit_schema, with_some_field_ids),
    "unknown fields of the footer": edited(MIXED, edit_footer, with_other_fields),
}


def conditions(rows: pa.Table, count: int, seed: int) -> list[tuple[str, str, Any]]:
    """Comparisons of flat columns with their own values: column, operator, value."""
    chance = random.Random(seed)
    names = [
        field.name
        for field in rows.schema
        if not field.type.num_fields and not pa.types.is_boolean(field.type)
    ]
    drawn = []
    for _ in range(count):
        name = chance.choice(names)
        values = rows.column(name).drop_null()
        operator = chance.choice(["<", "<=", "=", ">=", ">", "null", "known"])
        if operator in ("null", "known") or not len(values):
            drawn.append((name, chance.choice(["null", "known"]), None))
        else:
            drawn.append((name, operator, values[chance.randrange(len(values))]))
    return drawn
