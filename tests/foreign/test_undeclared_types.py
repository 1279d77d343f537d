"""Columns whose type a file shows by its values only, or not at all: text, nanoseconds, void."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve.errors import SchemaMismatch
from rowsieve.parquet.foreign_footer.footer_fields import SCHEMA
from rowsieve.parquet.foreign_footer.schema_tree import CONVERTED, LOGICAL
from rowsieve.parquet.thrift import (
    I32,
    encoded_value,
    join_fields,
    raw_fields,
    read_list_head,
    read_struct,
)
from tests.foreign.damaged import Fields, edit_footer, edit_list
from tests.foreign.test_from_delta import field, write_log

TEXTS = ["a", "é", None, "", "zz"]
DEEP = pa.struct([("b", pa.binary()), ("l", pa.list_(pa.map_(pa.binary(), pa.binary())))])
AS_TEXT = pa.struct([("b", pa.string()), ("l", pa.list_(pa.map_(pa.string(), pa.string())))])
SCALE, PRECISION, DECIMAL = 7, 8, 5  # fields of a schema element, and a converted type
NANOS = {"ARROW:extension:name": "rowsieve.timestamp_ns.1"}


def write_bytes(path: Path, texts: list[str | None] = TEXTS) -> list[dict[str, Any]]:
    """Write texts without the annotation UTF8; returns the rows as text."""
    rows = [
        {
            "n": i,
            "b": text,
            "s": None if text is None else {"b": text, "l": [None, [(text, None), ("k", text)]]},
        }
        for i, text in enumerate(texts)
    ]
    types = pa.schema([("n", pa.int64()), ("b", pa.string()), ("s", AS_TEXT)])
    stored = pa.schema([("n", pa.int64()), ("b", pa.binary()), ("s", DEEP)])
    own = pa.Table.from_pylist(rows, types).cast(stored)
    pq.write_table(
        own, path, row_group_size=2, store_schema=False, bloom_filter_options={"b": True}
    )
    return rows


def test_bytes_are_text_by_request_or_by_schema(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = write_bytes(path)
    assert rs.open_parquet(path).schema.field("b").type == pa.binary()
    schema = pa.schema([("n", pa.int64()), ("b", pa.string()), ("s", AS_TEXT)])
    for number, options in enumerate(({"binary_as_string": True}, {"schema": schema})):
        opened = rs.open_parquet(path, **options)
        imported = rs.from_parquet(path, tmp_path / str(number), **options)
        for table in (opened, imported):
            assert table.to_arrow().to_pylist() == rows
            scan = table.scan("b = 'zz'", pruning="soft")
            assert [row["n"] for row in scan.to_arrow().to_pylist()] == [4]
            scan = table.scan("b > 'z' AND s.b LIKE 'z%'")
            assert scan.to_arrow()["n"].to_pylist() == [4]
            assert scan.metrics.row_groups_pruned == 1
            assert table.count("b = 'é'") == 1
        imported.compact()
        assert imported.to_arrow().to_pylist() == rows


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"b": [b"\xff\xfe", b"a"], "n": [1, 2]}), tmp_path / "a.parquet")
    table = rs.open_parquet(tmp_path / "a.parquet", binary_as_string=True)
    with pytest.raises(SchemaMismatch, match="column 'b'"):
        table.to_arrow()
    assert table.scan(columns=["n"]).to_arrow()["n"].to_pylist() == [1, 2]


def test_bytes_of_a_fixed_size_and_geometries_stay_bytes(tmp_path: Path) -> None:
    rows = pa.table({"f": pa.array([b"ab"], pa.binary(2)), "b": [b"x"]})
    pq.write_table(rows, tmp_path / "a.parquet")
    table = rs.open_parquet(tmp_path / "a.parquet", binary_as_string=True)
    assert table.to_arrow().to_pylist() == [{"f": b"ab", "b": "x"}]
    with pytest.raises(SchemaMismatch):
        rs.open_parquet(tmp_path / "a.parquet", schema=pa.schema([("f", pa.string())]))


def test_a_table_with_text_takes_files_with_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rows = write_bytes(folder / "a.parquet")
    catalog = rs.Catalog(tmp_path / "lake")
    schema = pa.schema([("n", pa.int64()), ("b", pa.string()), ("s", AS_TEXT)])
    for copy in (False, True):
        table = catalog.create_table(f"db.t{int(copy)}", schema)
        source = f"table => 'db.t{int(copy)}', source => '{folder}', copy => {copy}"
        catalog.call(f"CALL system.add_files({source})")
        table.refresh()
        assert table.to_arrow().to_pylist() == rows, copy
    bad = tmp_path / "bad"
    bad.mkdir()
    pq.write_table(pa.table({"n": [1], "b": [b"\xff"], "s": pa.nulls(1, DEEP)}), bad / "a.parquet")
    for copy in (False, True):
        source = f"table => 'db.t{int(copy)}', source => '{bad}', copy => {copy}"
        with pytest.raises(SchemaMismatch, match="'b'"):
            catalog.call(f"CALL system.add_files({source})")


def test_a_delta_table_with_text_has_files_with_bytes(tmp_path: Path) -> None:
    pq.write_table(pa.table({"b": [b"a", None], "l": [[b"x"], None]}), tmp_path / "a.parquet")
    size = (tmp_path / "a.parquet").stat().st_size
    array = {"type": "array", "elementType": "string", "containsNull": True}
    files = [{"path": "a.parquet", "size": size}]
    write_log(tmp_path, [field("b", "string"), field("l", array)], files, [])
    table = rs.from_delta(tmp_path)
    assert table.to_arrow().to_pylist() == [{"b": "a", "l": ["x"]}, {"b": None, "l": None}]


def test_enums_of_parquet_are_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"e": ["x", None], "s": [{"e": "y"}, None]}), path, store_schema=False)
    _mark_as_enums(path)
    assert pq.read_schema(path).field("e").type == pa.binary()
    table = rs.open_parquet(path)
    assert table.to_arrow().to_pylist() == [{"e": "x", "s": {"e": "y"}}, {"e": None, "s": None}]
    assert table.count("e = 'x'") == 1


def _mark_as_enums(path: Path) -> None:
    """Change the annotation of all text leaves to ENUM."""
    data = path.read_bytes()
    stop = len(data) - 8
    start = stop - int.from_bytes(data[stop:-4], "little")
    footer = data[start:stop]
    changed = []
    for each in raw_fields(footer, 0)[0]:
        value = footer[each.start : each.stop]
        if each.number == SCHEMA:
            count, position = read_list_head(footer, each.start)
            elements = []
            for _ in range(count):
                element, position_after = read_struct(footer, position)
                raw, position = raw_fields(footer, position)
                assert position == position_after
                values = {own.number: (own.kind, footer[own.start : own.stop]) for own in raw}
                if element.get(6) == 0:  # UTF8
                    values[6] = encoded_value(I32(4))
                    values[10] = encoded_value({4: {}})
                elements.append(join_fields((n, *own) for n, own in sorted(values.items())))
            value = encoded_value(elements)[1]
        changed.append((each.number, each.kind, value))
    new = join_fields(changed)
    path.write_bytes(data[:start] + new + len(new).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_whose_bounds_have_nanoseconds_keep_them(zone: str | None, tmp_path: Path) -> None:
    type_ = pa.timestamp("ns", zone)
    values = [1_704_067_200_123_456_789, None, 1_704_067_200_000_000_000]
    rows = pa.table(
        {
            "t": pa.array(values, type_),
            "s": pa.array([{"t": value} for value in values], pa.struct([("t", type_)])),
            "l": pa.array([[value] for value in values], pa.list_(type_)),
            "m": pa.array([[("k", value)] for value in values], pa.map_(pa.string(), type_)),
        }
    )
    pq.write_table(rows, tmp_path / "a.parquet")
    imported = rs.from_parquet(tmp_path / "a.parquet", tmp_path / "own")
    for table in (rs.open_parquet(tmp_path / "a.parquet"), imported):
        found = table.to_arrow()
        assert found["t"].combine_chunks().view(pa.int64()).to_pylist() == values
        assert found.to_pylist() == rows.to_pylist()
    imported.compact()
    assert imported.to_arrow().to_pylist() == rows.to_pylist()


def test_times_without_such_digits_stay_microseconds(tmp_path: Path) -> None:
    rows = pa.table({"t": pa.array([1_000, None], pa.timestamp("ns"))})
    pq.write_table(rows, tmp_path / "a.parquet")
    table = rs.open_parquet(tmp_path / "a.parquet")
    assert table.schema.field("t").type == pa.timestamp("us")
    assert table.to_arrow()["t"].to_pylist() == [datetime(1970, 1, 1, 0, 0, 0, 1), None]


@pytest.mark.parametrize("order", ["abc", "cba"])
def test_files_with_and_without_nanoseconds_are_joined(order: str, tmp_path: Path) -> None:
    for name, (unit, value) in zip(order, {"us": 1, "ns": 1_001, "s": 0}.items(), strict=True):
        inner = pa.array([{"t": value}], pa.struct([("t", pa.timestamp(unit))]))
        rows = pa.table({"t": pa.array([value], pa.timestamp(unit)), "s": inner})
        pq.write_table(rows, tmp_path / f"{name}.parquet", version="2.6")
    found = rs.open_parquet(tmp_path).to_arrow()
    assert found.schema.field("t").type == pa.timestamp("ns")
    counted = sorted(found["t"].combine_chunks().view(pa.int64()).to_pylist())
    assert counted == [0, 1_000, 1_001]
    assert sorted(row["s"]["t"].value for row in found.to_pylist()) == counted


def test_digits_that_no_bound_shows_name_the_schema_to_give(tmp_path: Path) -> None:
    rows = pa.table({"t": pa.array([1_001], pa.timestamp("ns"))})
    pq.write_table(rows, tmp_path / "a.parquet", write_statistics=False)
    with pytest.raises(SchemaMismatch, match="read the files with schema="):
        rs.open_parquet(tmp_path / "a.parquet").to_arrow()
    schema = pa.schema([pa.field("t", pa.timestamp("ns"), metadata=NANOS)])
    table = rs.open_parquet(tmp_path / "a.parquet", schema=schema)
    assert table.to_arrow()["t"].combine_chunks().view(pa.int64()).to_pylist() == [1_001]


def test_a_column_without_values_is_an_int32(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "n": [1],
            "v": pa.nulls(1),
            "s": pa.array([{"n": 1, "v": None}], pa.struct([("n", pa.int64()), ("v", pa.null())])),
            "l": pa.array([[None, None]], pa.list_(pa.null())),
            "m": pa.array([[("k", None)]], pa.map_(pa.string(), pa.null())),
        }
    )
    pq.write_table(rows, tmp_path / "a.parquet")
    imported = rs.from_parquet(tmp_path / "a.parquet", tmp_path / "own")
    for table in (rs.open_parquet(tmp_path / "a.parquet"), imported):
        assert table.schema.field("v").type == pa.int32()
        assert table.to_arrow().to_pylist() == rows.to_pylist()
        assert table.count("v IS NULL AND s.v IS NULL") == 1
        assert table.count("v = 1") == 0
    imported.compact()
    assert imported.to_arrow().to_pylist() == rows.to_pylist()


def test_a_column_without_values_has_the_type_of_another_file(tmp_path: Path) -> None:
    inner = pa.struct([("v", pa.null())])
    pq.write_table(pa.table({"v": pa.nulls(1), "s": [{"v": None}]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"v": ["x"], "s": [{"v": 1.5}]}), tmp_path / "b.parquet")
    pq.write_table(
        pa.table({"v": pa.nulls(1), "s": pa.array([{"v": None}], inner)}), tmp_path / "c.parquet"
    )
    table = rs.open_parquet(tmp_path)
    assert table.scan("v = 'x' AND s.v > 1").to_arrow().num_rows == 1
    assert table.to_arrow()["v"].to_pylist() == [None, "x", None]


def test_a_void_column_of_delta_is_null(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    size = (tmp_path / "a.parquet").stat().st_size
    files = [{"path": "a.parquet", "size": size}]
    write_log(tmp_path, [field("n", "long"), field("v", "void")], files, [])
    assert rs.from_delta(tmp_path).to_arrow().to_pylist() == [{"n": 1, "v": None}]
    imported = rs.import_delta(tmp_path, tmp_path.parent / f"{tmp_path.name}-own")
    assert imported.to_arrow().to_pylist() == [{"n": 1, "v": None}]


LONG = [Decimal("300.00"), None, Decimal("-70000.00"), Decimal("5.00")]


def _write_long_decimals(path: Path, physical: pa.DataType, *, statistics: bool = True) -> None:
    """A file whose footer declares four digits; its values have up to seven."""

    def declare(element: int, fields: Fields) -> None:
        if element > 0:
            fields.pop(LOGICAL, None)
            fields.update({PRECISION: encoded_value(I32(4)), SCALE: encoded_value(I32(2))})
            fields[CONVERTED] = encoded_value(I32(DECIMAL))

    def change(footer: Fields) -> None:
        kind, elements = footer[SCHEMA]
        footer[SCHEMA] = kind, edit_list(elements, declare)

    numbers = pa.array(LONG, pa.decimal128(38, 2))
    if pa.types.is_integer(physical):
        numbers = pa.array([value and int(value * 100) for value in LONG], physical)
    pq.write_table(pa.table({"d": numbers}), path, store_schema=False, write_statistics=statistics)
    edit_footer(path, change)


@pytest.mark.parametrize("physical", [pa.int32(), pa.int64(), pa.decimal128(38, 2)], ids=str)
def test_decimals_whose_bounds_are_longer_than_declared_keep_all_digits(
    physical: pa.DataType, tmp_path: Path
) -> None:
    _write_long_decimals(tmp_path / "a.parquet", physical)
    table = rs.open_parquet(tmp_path / "a.parquet")
    assert table.schema.field("d").type == pa.decimal128(38, 2)
    assert table.to_arrow()["d"].to_pylist() == LONG
    assert [table.scan(f"d = {value}").count() for value in LONG if value is not None] == [1, 1, 1]
    context = SessionContext()
    context.register_table("t", table)
    assert context.sql("SELECT d FROM t WHERE d = 300").to_pydict() == {"d": [LONG[0]]}
    assert context.sql("SELECT min(d) AS d FROM t").to_pydict() == {"d": [LONG[2]]}


@pytest.mark.parametrize("physical", [pa.int32(), pa.int64(), pa.decimal128(38, 2)], ids=str)
def test_digits_that_no_bound_shows_are_refused(physical: pa.DataType, tmp_path: Path) -> None:
    _write_long_decimals(tmp_path / "a.parquet", physical, statistics=False)
    with pytest.raises(
        SchemaMismatch,
        match=r"does not fit decimal\(4,2\): -70000\.00 has more digits; choose .* schema=",
    ):
        rs.open_parquet(tmp_path / "a.parquet").to_arrow()
    schema = pa.schema([pa.field("d", pa.decimal128(38, 2))])
    rows = rs.open_parquet(tmp_path / "a.parquet", schema=schema).to_arrow()
    assert rows["d"].to_pylist() == LONG


WIDE = [Decimal("300.00"), None, Decimal("-" + "9" * 36 + ".99"), Decimal("0.00")]


def _write_wide_decimals(path: Path, digits: int, *, logical: bool) -> None:
    """A file that declares 38 digits, in as many bytes as `digits` take: 17 for 40, 32 for 76."""

    def declare(_: int, fields: Fields) -> None:
        if PRECISION not in fields:
            return
        for number in (LOGICAL, CONVERTED, SCALE, PRECISION):
            fields.pop(number, None)
        if logical:
            fields[LOGICAL] = encoded_value({DECIMAL: {1: I32(2), 2: I32(38)}})
        else:
            fields[CONVERTED] = encoded_value(I32(DECIMAL))
            fields |= {SCALE: encoded_value(I32(2)), PRECISION: encoded_value(I32(38))}

    def change(footer: Fields) -> None:
        kind, elements = footer[SCHEMA]
        footer[SCHEMA] = kind, edit_list(elements, declare)

    wide = pa.decimal256(digits, 2)
    inside = pa.array([{"d": each, "l": [each, None]} for each in WIDE],
                      pa.struct([("d", wide), ("l", pa.list_(wide))]))  # fmt: skip
    rows = pa.table({"n": range(4), "d": pa.array(WIDE, wide), "s": inside})
    pq.write_table(rows, path, store_schema=False, row_group_size=2, write_page_index=True)
    edit_footer(path, change)


@pytest.mark.parametrize("logical", [True, False])
@pytest.mark.parametrize("digits", [40, 76])
def test_decimals_in_more_bytes_than_they_need_are_read(
    digits: int, logical: bool, tmp_path: Path
) -> None:
    """DuckDB reads them; pyarrow takes the number of bytes from the precision, and fails."""
    path = tmp_path / "a.parquet"
    _write_wide_decimals(path, digits, logical=logical)
    with pytest.raises(pa.ArrowInvalid, match="must be between 1 and 16"):
        pq.read_table(path)
    opened = rs.open_parquet(path)
    assert opened.schema.field("d").type == pa.decimal128(38, 2)
    imported = rs.from_parquet(path, tmp_path / "t")
    copied = rs.create_table(tmp_path / "u", opened.schema)
    copied.append(path)
    for table in (opened, imported, copied):
        rows = table.to_arrow().sort_by("n")
        assert rows["d"].to_pylist() == WIDE
        assert rows["s"].to_pylist() == [{"d": each, "l": [each, None]} for each in WIDE]
        for value in WIDE:
            for where in ("d IS NULL",) if value is None else (f"d = {value}", f"s.d = {value}"):
                assert table.count(where) == table.scan(where).to_arrow().num_rows == 1
        assert table.count("d < 0") == 1
    imported.compact()
    assert imported.to_arrow().sort_by("n")["d"].to_pylist() == WIDE
