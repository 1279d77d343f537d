"""Orders of a rewrite: their text, and rows in that order in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cmp_to_key, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import CorruptData, InvalidInput, UnknownColumn
from rowsieve.executor.sorted_rows import sorted_rows
from rowsieve.types.encodings import schema_of
from rowsieve.types.ordering.curves import Curve
from rowsieve.types.ordering.sort_order import SortOrder, SortTerm
from tests.profiles import examples

COLUMNS = pa.schema(
    [
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("t", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.decimal128(9, 2)),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("two words", pa.int8()),
    ]
)
SCHEMA, _ = schema_of(COLUMNS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i", [("i", False, True)]),
        ("i desc", [("i", True, False)]),
        (" i ASC NULLS LAST ,t DESC nulls first", [("i", False, False), ("t", True, True)]),
        ('"two words"', [("two words", False, True)]),
        ("`two words` DESC", [("two words", True, False)]),
    ],
)
def test_order_reads_like_order_by(text: str, expected: list[tuple[str, bool, bool]]) -> None:
    assert SortOrder.of(text, SCHEMA) == SortOrder(tuple(SortTerm(*each) for each in expected))


def test_zorder_names_its_columns() -> None:
    order = SortOrder.of("ZORDER(i, t)", SCHEMA)
    assert (order.columns, order.curve) == (("i", "t"), Curve.ZORDER)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read"),
        ("i,", "cannot be read"),
        ("i DOWN", "cannot be read"),
        ("i; DROP", "cannot be read"),
        ("i, i DESC", "twice"),
        ("m", "have no order"),
        ("zorder(i)", "has 1 columns"),
        ("hilbert(i)", "has 1 columns"),
        ("hilbert(i, t, i)", "twice"),
        ("zorder()", "cannot be read"),
    ],
)
def test_unreadable_orders_are_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        SortOrder.of(text, SCHEMA)


def test_unknown_column_is_named() -> None:
    with pytest.raises(UnknownColumn, match="'nope'"):
        SortOrder.of("nope", SCHEMA)


ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-2, 2),
        st.none() | st.sampled_from([-math.inf, -1.0, 0.0, 2.5, math.nan]),
        st.none() | st.sampled_from(["", "a", "b", "é"]),
        st.none() | st.booleans(),
        st.none() | st.sampled_from([Decimal("-1.50"), Decimal(0), Decimal(7)]),
    ),
    min_size=1,
    max_size=30,
)
TERMS = st.lists(
    st.tuples(st.sampled_from("iftbd"), st.booleans(), st.booleans()),
    min_size=1,
    max_size=3,
    unique_by=lambda term: term[0],
)


def compared(terms: Sequence[SortTerm], left: dict[str, Any], right: dict[str, Any]) -> int:
    """The slow, obvious comparison of two rows."""
    for term in terms:
        a, b = left[term.column], right[term.column]
        if a is None or b is None:
            if (a is None) != (b is None):
                return -1 if (a is None) == term.nulls_first else 1
            continue
        ranks = [(1, 0.0) if isinstance(v, float) and math.isnan(v) else (0, v) for v in (a, b)]
        if ranks[0] != ranks[1]:
            return -1 if (ranks[0] < ranks[1]) != term.is_descending else 1
    return 0


def reader(rows: pa.Table, batch_rows: int) -> Any:
    """What `sorted_rows` reads from."""

    def read(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        taken = rows if columns is None else rows.select(list(columns))
        yield from taken.to_batches(max_chunksize=batch_rows)

    return read


@examples(100, promised=1_000)
@given(ROWS, TERMS, st.sampled_from([1, 3, 100]), st.sampled_from([1, 200, 1 << 20]))
def test_rows_come_in_order_whatever_fits_in_memory(
    cells: list[tuple[Any, ...]],
    terms: list[tuple[str, bool, bool]],
    batch_rows: int,
    most_bytes: int,
) -> None:
    data = [dict(zip("iftbd", row, strict=True)) | {"n": n} for n, row in enumerate(cells)]
    schema = pa.schema([*(COLUMNS.field(name) for name in "iftbd"), ("n", pa.int64())])
    rows = pa.Table.from_pylist(data, schema=schema)
    order = SortOrder(tuple(SortTerm(*term) for term in terms))
    found = list(
        sorted_rows(reader(rows, batch_rows), order, schema_of(schema)[0], most_bytes=most_bytes)
    )
    expected = sorted(data, key=cmp_to_key(partial(compared, order.terms)))
    numbers = [n for table in found for n in table.column("n").to_pylist()]
    assert numbers == [row["n"] for row in expected]


def test_zorder_keeps_neighbours_of_every_column_together() -> None:
    side = 64
    x, y = np.divmod(np.random.default_rng(7).permutation(side * side), side)
    rows = pa.table({"i": x, "n": y, "t": [str(v) for v in x]})
    schema = schema_of(rows.schema)[0]
    ranks = SortOrder.of("zorder(i, n)", schema).ranks(rows, schema)
    assert sorted(ranks) == list(range(side * side))
    for quarter in range(16):  # each sixteenth of the rows is a square of a sixteenth of the area
        chosen = ranks // (side * side // 16) == quarter
        assert np.ptp(x[chosen]) == np.ptp(y[chosen]) == side // 4 - 1


def test_zorder_takes_null_and_every_ordered_type() -> None:
    rows = pa.Table.from_pylist(
        [
            {"i": 1, "f": math.nan, "t": "a", "b": True, "d": Decimal(1)},
            {"i": None, "f": None, "t": None, "b": None, "d": None},
            {"i": -5, "f": -1.0, "t": "", "b": False, "d": Decimal(-1)},
        ],
        schema=pa.schema([COLUMNS.field(name) for name in "iftbd"]),
    )
    schema = schema_of(rows.schema)[0]
    assert SortOrder.of("zorder(i, f, t, b, d)", schema).ranks(rows, schema).tolist() == [1, 2, 0]


def test_rows_that_differ_between_two_reads_are_refused() -> None:
    rows = pa.table({"i": range(1000)})
    reads = iter([rows, rows, rows.slice(1)])

    def read(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        del columns
        yield from next(reads).to_batches(max_chunksize=100)

    schema = schema_of(rows.schema)[0]
    with pytest.raises(CorruptData, match="two reads of one version"):
        list(sorted_rows(read, SortOrder.of("i", schema), schema, most_bytes=1000))
