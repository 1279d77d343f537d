"""Page indexes of files that are not ours: they skip rows, never one that matches."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import CorruptData
from rowsieve.parquet import group_slices
from rowsieve.parquet.thrift import I32, I64, encoded_value, read_struct
from tests.foreign import damaged
from tests.parquet.files import tail_start
from tests.profiles import examples

OFFSET, OFFSET_BYTES, COLUMN, COLUMN_BYTES = 4, 5, 6, 7  # of a column chunk
NULL_PAGES, LOWER, UPPER, NULLS = 1, 2, 3, 5  # of a column index
TYPES = pa.schema(
    {
        "i": pa.int64(),
        "u": pa.uint32(),
        "f": pa.float64(),
        "s": pa.string(),
        "d": pa.date32(),
        "t": pa.timestamp("ms"),
        "c": pa.decimal128(12, 2),
        "b": pa.bool_(),
    }
)
CONDITIONS = (
    *("i = 7", "i > 15", "i IN (3, 18)", "i < 5 AND s > 'm'", "i = 2 AND u = 3", "i IS NULL"),
    *("u >= 4000000000", "u = 3", "f = 0", "f > 10", "f < 3", "f IS NULL", "f = 'NaN'::double"),
    *(
        "s = 'kk'",
        "s LIKE 'a%'",
        "s IS NOT NULL AND d IS NULL",
        "s >= 'é'",
        "d > date '1970-01-09'",
    ),
    *("t = timestamp '1970-01-01 00:00:00.007'", "c < 0", "c = 2.25", "b", "NOT b", "b IS NULL"),
    *("i > 5 OR f < 2", "NOT (i > 5 AND c > 1)", "10 / i = 2", "coalesce(i, 9) = 9"),
)
small = st.integers(0, 20)
values = st.fixed_dictionaries(
    {
        "i": st.none() | small,
        "u": st.none() | st.sampled_from((0, 3, 7, 2**32 - 1)),
        "f": st.none() | st.sampled_from((0.0, -0.0, 1.5, float("nan"), 12.0, float("inf"))),
        "s": st.none() | st.sampled_from(("", "a", "kk", "z" * 90, "éé", "\U0001f600" * 30)),
        "d": st.none() | small.map(lambda n: date.fromordinal(719163 + n)),
        "t": st.none() | small.map(lambda n: datetime(1970, 1, 1, 0, 0, 0, n * 1000)),
        "c": st.none() | small.map(lambda n: Decimal(n - 10) / 4),
        "b": st.none() | st.booleans(),
    }
)


def write(path: Path, rows: pa.Table, page_rows: int = 3, group_rows: int = 30) -> None:
    pq.write_table(
        rows, path, write_page_index=True, row_group_size=group_rows, data_page_size=1,
        write_batch_size=page_rows, use_dictionary=["s"],
    )  # fmt: skip


def same_rows(table: rs.Table, condition: str) -> None:
    try:
        full = table.scan(condition, pruning="off").to_arrow()
    except rs.errors.EvaluationError:
        with pytest.raises(rs.errors.EvaluationError):
            table.scan(condition).to_arrow()
        return
    for pruning in ("on", "soft"):
        found = table.scan(condition, pruning=pruning).to_arrow()
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, full.to_pylist()))
    assert table.count(condition) == full.num_rows


@given(
    st.lists(values, min_size=1, max_size=60), st.integers(1, 9), st.integers(5, 40), st.booleans()
)
@examples(60)
def test_no_row_that_matches_is_skipped(
    rows: list[dict[str, Any]], page_rows: int, group_rows: int, ordered: bool
) -> None:
    if ordered:
        rows = sorted(rows, key=lambda row: (row["i"] is None, row["i"] or 0))
    with tempfile.TemporaryDirectory() as folder:
        data = pa.Table.from_pylist(rows, TYPES)
        write(Path(folder) / "a.parquet", data, page_rows, group_rows)
        table = rs.open_parquet(Path(folder) / "a.parquet")
        for condition in CONDITIONS:
            same_rows(table, condition)


def ordered_rows(count: int = 120) -> pa.Table:
    numbers = range(count)
    return pa.table(
        {"i": numbers, "s": [f"k{i // 10:03}" for i in numbers], "w": [-i for i in numbers]}
    )


def test_pages_skip_rows_and_row_groups(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ordered_rows(), page_rows=4)
    table = rs.open_parquet(tmp_path / "a.parquet")
    scan = table.scan("i = 50")
    assert scan.to_arrow()["w"].to_pylist() == [-50]
    assert scan.metrics.pages_pruned > 0
    # each conjunct may hold somewhere in the row group, but both in none of its pages
    both = table.scan("i < 5 AND w < -20")
    assert both.to_arrow().num_rows == 0
    assert both.metrics.row_groups_read == 0
    assert table.scan("s = 'k003'").count() == 10
    placed = rs.from_parquet(tmp_path / "a.parquet", tmp_path / "t", ["i"])
    placed.upsert(pa.table({"i": [50], "s": ["new"], "w": [0]}))
    assert placed.scan("w = -50").to_arrow().num_rows == 0  # trap T1
    assert placed.scan("w = 0 AND i > 20").to_arrow()["s"].to_pylist() == ["new"]
    placed.add_column("n", "int64", default=5)
    assert placed.scan("n = 5 AND i = 51").count() == 1
    assert placed.scan("n = 6 AND i = 51").count() == 0


def test_files_of_arrow_rs_are_skipped_too(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ordered_rows(50_000))
    table = rs.from_delta(tmp_path)
    scan = table.scan("i = 40000")
    assert scan.to_arrow()["w"].to_pylist() == [-40000]
    assert scan.metrics.pages_pruned > 0


def thrift(field: int, value: Any) -> tuple[int, bytes]:
    """Encode a field of an index, whose integers have different widths."""
    if field == NULL_PAGES and not isinstance(value[0], dict):
        return 9, bytes([len(value) << 4 | 1, *(1 if each else 2 for each in value)])
    if field == 1:  # page locations
        value = [{1: I64(page[1]), 2: I32(page[2]), 3: I64(page[3])} for page in value]
    elif isinstance(value, list) and isinstance(value[0], int):  # counts, histograms of levels
        value = [I64(count) for count in value]
    return encoded_value(I32(value) if isinstance(value, int) else value)


def edit_chunks(path: Path, changes: dict[int, Any]) -> None:
    """Change fields of every column chunk in the footer; None removes a field."""

    def of_chunk(_: int, chunk: damaged.Fields) -> None:
        for number, value in changes.items():
            chunk.pop(number, None)
            if value is not None:
                chunk[number] = encoded_value(value)

    def of_group(_: int, group: damaged.Fields) -> None:
        kind, data = group[damaged.COLUMNS]
        group[damaged.COLUMNS] = kind, damaged.edit_list(data, of_chunk)

    def of_footer(footer: damaged.Fields) -> None:
        kind, data = footer[damaged.ROW_GROUPS]
        footer[damaged.ROW_GROUPS] = kind, damaged.edit_list(data, of_group)

    damaged.edit_footer(path, of_footer)


@pytest.mark.parametrize(
    "changes",
    [
        {OFFSET: None},
        {COLUMN: None},
        {COLUMN: I64(4)},
        {COLUMN: I64(-5)},
        {COLUMN: I64(10**12)},
        {COLUMN_BYTES: I32(1)},
        {OFFSET_BYTES: I32(10**6)},
        {OFFSET: I64(4), OFFSET_BYTES: I32(40)},
    ],
)
def test_an_index_that_does_not_fit_is_not_used(changes: dict[int, Any], tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ordered_rows(), page_rows=4)
    edit_chunks(tmp_path / "a.parquet", changes)
    table = rs.open_parquet(tmp_path / "a.parquet")
    for condition in ("i = 50", "s = 'k003'", "w < -110", "i < 5 AND w < -20"):
        same_rows(table, condition)
    assert table.scan("i = 50").count() == 1


Index = Callable[[dict[int, Any]], object]


def edit_index(path: Path, group: int, leaf: int, place: int, change: Index) -> None:
    """Change the decoded column index (`place` COLUMN) or offset index (OFFSET) of a chunk."""
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    chunk = read_struct(data[start:-8], 0)[0][4][group][1][leaf]
    index, _ = read_struct(data[chunk[place] : chunk[place] + chunk[place + 1]], 0)
    change(index)
    written = damaged.struct_of({number: thrift(number, index[number]) for number in index})
    path.write_bytes(data[:start] + written + data[start:])

    def of_chunk(number: int, fields: damaged.Fields) -> None:
        if number == leaf:
            fields[place] = encoded_value(I64(start))
            fields[place + 1] = encoded_value(I32(len(written)))

    def of_group(number: int, fields: damaged.Fields) -> None:
        if number == group:
            kind, chunks = fields[damaged.COLUMNS]
            fields[damaged.COLUMNS] = kind, damaged.edit_list(chunks, of_chunk)

    def of_footer(footer: damaged.Fields) -> None:
        kind, groups = footer[damaged.ROW_GROUPS]
        footer[damaged.ROW_GROUPS] = kind, damaged.edit_list(groups, of_group)

    damaged.edit_footer(path, of_footer)


def number(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def put(field: int, page: int, value: Any) -> Index:
    return lambda index: index[field].__setitem__(page, value)


def without_last(*fields: int) -> Index:
    return lambda index: [index[field].pop() for field in fields]


# Row group 1 of `ordered_rows` has i from 30 to 59 in 8 pages of up to 4 rows.
@pytest.mark.parametrize(
    ("place", "change"),
    [
        pytest.param(COLUMN, put(NULL_PAGES, 5, value=True), id="a page of NULLs with values"),
        pytest.param(COLUMN, put(NULLS, 5, 4), id="NULLs only, and values"),
        pytest.param(COLUMN, put(NULLS, 5, 1), id="NULLs that the chunk has not"),
        pytest.param(COLUMN, put(UPPER, 7, number(58)), id="a bound of the chunk is missing"),
        pytest.param(COLUMN, put(LOWER, 0, number(31)), id="the lower bound is missing"),
        pytest.param(COLUMN, put(UPPER, 5, number(10**9)), id="a bound beyond the chunk"),
        pytest.param(COLUMN, put(LOWER, 5, number(54)), id="lower above upper"),
        pytest.param(COLUMN, put(UPPER, 5, number(0)), id="not in the order that it claims"),
        pytest.param(
            COLUMN,
            lambda index: [index[side].reverse() for side in (LOWER, UPPER)],
            id="descending, and claims to ascend",
        ),
        pytest.param(COLUMN, without_last(NULL_PAGES, LOWER, UPPER, NULLS), id="a page less"),
        pytest.param(COLUMN, without_last(LOWER), id="lists of two lengths"),
        pytest.param(OFFSET, without_last(1), id="a location less"),
        pytest.param(OFFSET, lambda index: index[1][2].update({3: 90}), id="rows outside"),
        pytest.param(OFFSET, lambda index: index[1][0].update({3: 1}), id="begins too late"),
        pytest.param(OFFSET, lambda index: index[1][2].update({1: 4}), id="pages out of place"),
    ],
)
def test_an_index_that_contradicts_itself_is_not_used(
    place: int, change: Index, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    write(path, ordered_rows(), page_rows=4)
    edit_index(path, 1, 0, place, change)
    table = rs.open_parquet(path)
    for value in range(30, 60):
        assert table.scan(f"i = {value}").to_arrow().num_rows == 1, value
    assert table.scan("i = 70").to_arrow().num_rows == 1


def test_a_page_less_in_both_indexes_loses_no_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, ordered_rows(), page_rows=4)
    edit_index(path, 1, 1, COLUMN, without_last(NULL_PAGES, LOWER, UPPER, NULLS))
    edit_index(path, 1, 1, OFFSET, without_last(1))
    assert rs.open_parquet(path).scan("s = 'k005'").to_arrow().num_rows == 10


@pytest.mark.parametrize(
    ("side", "value"), [(LOWER, b"k004"), (UPPER, b"k0041"), (UPPER, b"k005\0")]
)
def test_bounds_of_text_that_are_not_those_of_the_chunk(
    side: int, value: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    write(path, ordered_rows(), page_rows=4)
    edit_index(path, 1, 1, COLUMN, lambda index: index.update({side: [value] * 8}))
    table = rs.open_parquet(path)
    for text in ("k003", "k004", "k005"):
        assert table.scan(f"s = '{text}'").to_arrow().num_rows == 10


def test_indexes_without_declared_orders_are_not_used(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ordered_rows(), page_rows=4)
    damaged.without_orders(tmp_path / "a.parquet")
    scan = rs.open_parquet(tmp_path / "a.parquet").scan("i = 50")
    assert scan.to_arrow().num_rows == 1
    assert scan.metrics.pages_pruned == 0


def test_an_index_that_changes_later_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, ordered_rows(), page_rows=4)
    rs.from_parquet(path, tmp_path / "t")
    data = bytearray(path.read_bytes())
    data[tail_start(pq.read_metadata(path)) + 9] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(CorruptData, match="page index"):
        rs.open_table(tmp_path / "t").scan("i = 50").to_arrow()


def test_empty_row_groups_take_no_rows_from_their_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = ordered_rows(40)
    with pq.ParquetWriter(path, rows.schema, write_page_index=True, data_page_size=1) as writer:
        for part in (rows.slice(0, 20), rows.slice(0, 0), rows.slice(20)):
            writer.write_table(part)
    table = rs.open_parquet(path)
    for condition in ("i >= 20", "i > 10", "i < 25", "w <= -20 OR s = 'k001'"):
        same_rows(table, condition)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "slices"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1, 2], None, [], [3], [4, 5]], pa.list_(pa.int32())),
        pa.array([[("a", 1)], None, [], [("b", 2), ("c", 3)]], pa.map_(pa.string(), pa.int32())),
        pa.array([{"l": [[1], []]}, None, {"l": None}, {"l": [None, [2, 3]]}]),
        pa.array([[{"x": 1, "y": [1]}], [{"x": None, "y": [4, 5]}]]),
    ],
    ids=["list", "map", "lists of lists in a struct", "lists in a list of structs"],
)
def test_a_page_header_with_too_few_values_never_shortens_a_list(
    column: pa.Array,
    version: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_cut: bool,
) -> None:
    """A decoder leaves out the last values, and the number of rows is right."""
    if is_cut:
        monkeypatch.setattr(group_slices, "WHOLE_ROWS", 1)
        monkeypatch.setattr(group_slices, "SLICE_ROWS", 2)
    path, rows = tmp_path / "a.parquet", pa.table({"c": column})
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    pq.write_table(rows, path, data_page_version=version, **options)
    assert rs.open_parquet(path).to_arrow()["c"].to_pylist() == column.to_pylist()
    whole = path.read_bytes()
    begin = b"\x2c\x15" if version == "1.0" else b"\x5c\x15"  # the number of values of a page
    place = whole.rindex(begin, 0, tail_start(pq.read_metadata(path))) + len(begin)
    path.write_bytes(whole[:place] + bytes([whole[place] - 2]) + whole[place + 1 :])
    with pytest.raises(CorruptData, match=r"a\.parquet"):
        rs.open_parquet(path).to_arrow()


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "slices"])
def test_columns_of_lists_in_another_order_have_their_own_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_cut: bool
) -> None:
    """A decoder returns columns as they are requested, and leaves inside of one as in the file."""
    if is_cut:
        monkeypatch.setattr(group_slices, "WHOLE_ROWS", 1)
        monkeypatch.setattr(group_slices, "SLICE_ROWS", 2)
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "short": [[1], [], None],
            "points": [[{"x": [1, 2], "y": "a"}, {"x": None, "y": "b"}], None, [{"x": [3]}]],
            "long": [[1, 2, 3], [4], [5, 6]],
        }
    )
    folder = tmp_path / "files"
    folder.mkdir()
    pq.write_table(rows, folder / "a.parquet")
    for number, names in enumerate(itertools.permutations(rows.column_names)):
        pq.write_table(rows.select(names), folder / f"b{number}.parquet")
    read = rs.open_parquet(folder).to_arrow().select(rows.column_names)
    assert read.to_pylist() == rows.to_pylist() * 25
