"""Columns that files name in another case, or have without a field id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import rowsieve as rs
from rowsieve.errors import InvalidInput, SchemaMismatch, UnsupportedOperation
from tests.foreign.test_from_delta import field, write_log


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_names_that_differ_only_in_case_are_told(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", id=[1], v=[1])
    write(tmp_path / "b.parquet", ID=[2], v=[2])
    with pytest.raises(
        SchemaMismatch, match=r"'id' in .*a\.parquet and 'ID' in .*b\.parquet differ"
    ):
        rs.open_parquet(tmp_path)
    with pytest.raises(SchemaMismatch, match="differ only in case"):
        rs.from_parquet(tmp_path, tmp_path.parent / f"{tmp_path.name}-own")
    for name in ("id", "ID", "Id"):  # the advice of the message
        one = rs.open_parquet(tmp_path, schema=pa.schema([(name, pa.int64())]))
        assert one.to_arrow()[name].to_pylist() == [1, 2]
        assert one.count(f'"{name}" = 2') == 1
    both = rs.open_parquet(tmp_path, schema=pa.schema([("id", pa.int64()), ("ID", pa.int64())]))
    assert both.to_arrow().to_pylist() == [{"id": 1, "ID": None}, {"id": None, "ID": 2}]


def test_names_inside_columns_are_told_too(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", s=[{"x": 1}])
    write(tmp_path / "b.parquet", s=[{"X": 2}])
    with pytest.raises(SchemaMismatch, match=r"'s.x' in .* and 's.X' in .* differ only in case"):
        rs.open_parquet(tmp_path)
    inner = pa.struct([("x", pa.int64()), ("X", pa.int64())])
    both = rs.open_parquet(tmp_path, schema=pa.schema([("s", inner)]))
    assert both.to_arrow()["s"].to_pylist() == [{"x": 1, "X": None}, {"x": None, "X": 2}]


def test_two_names_of_one_file_are_two_columns(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", v=[1], V=[2])
    write(tmp_path / "b.parquet", v=[3])
    assert rs.open_parquet(tmp_path).to_arrow().to_pylist() == [
        {"v": 1, "V": 2},
        {"v": 3, "V": None},
    ]
    with pytest.raises(SchemaMismatch, match="'w', which no file"):
        rs.open_parquet(tmp_path, schema=pa.schema([("w", pa.int64())]))


def test_two_columns_for_one_wanted_name_are_told(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", iD=[1], Id=[2])
    with pytest.raises(SchemaMismatch, match="'iD' and 'Id', which differ from it only in case"):
        rs.open_parquet(tmp_path, schema=pa.schema([("id", pa.int64())]))


def test_a_directory_for_a_column_in_another_case_is_told(tmp_path: Path) -> None:
    write(tmp_path / "year=2024" / "a.parquet", Year=[1])
    with pytest.raises(InvalidInput, match="column 'Year' is in the files and in the names"):
        rs.open_parquet(tmp_path)
    assert rs.open_parquet(tmp_path, hive=False).to_arrow().to_pylist() == [{"Year": 1}]


def test_delta_finds_names_in_another_case_as_spark_does(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ID=[1])
    files = [{"path": "a.parquet", "size": (tmp_path / "a.parquet").stat().st_size}]
    write_log(tmp_path, [field("id", "long")], files, [])
    assert rs.from_delta(tmp_path).to_arrow().to_pylist() == [{"id": 1}]


DEEP = {"s": {"A": 1, "l": [{"B": 2}], "m": [("k", {"C": 3})]}}
DEEP_TYPE = pa.struct(
    [
        ("A", pa.int64()),
        ("l", pa.list_(pa.struct([("B", pa.int64())]))),
        ("m", pa.map_(pa.string(), pa.struct([("C", pa.int64())]))),
    ]
)


def lower_fields(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([(each.name.lower(), lower_fields(each.type)) for each in type_])
    if pa.types.is_list(type_):
        return pa.list_(lower_fields(type_.value_type))
    return pa.map_(type_.key_type, lower_fields(type_.item_type)) if type_.num_fields else type_


def test_fields_in_another_case_are_found_at_any_depth(tmp_path: Path) -> None:
    """A field that is not found would be NULL in every row."""
    rows = pa.table({"s": pa.array([DEEP["s"]], DEEP_TYPE)})
    pq.write_table(rows, tmp_path / "a.parquet")
    wanted = lower_fields(DEEP_TYPE)
    expected = [{"s": {"a": 1, "l": [{"b": 2}], "m": [("k", {"c": 3})]}}]
    table = rs.open_parquet(tmp_path / "a.parquet", schema=pa.schema([("s", wanted)]))
    assert table.to_arrow().to_pylist() == expected
    assert table.count("s.a = 1") == 1
    for false in (pa.struct([("a", pa.bool_())]), pa.struct([("L", pa.int64())])):
        with pytest.raises(SchemaMismatch, match="does not fit"):
            rs.open_parquet(tmp_path / "a.parquet", schema=pa.schema([("s", false)]))
    inner = {
        "type": "struct",
        "fields": [
            field("a", "long"),
            field("l", _array({"type": "struct", "fields": [field("b", "long")]})),
            field("m", _map({"type": "struct", "fields": [field("c", "long")]})),
        ],
    }
    files = [{"path": "a.parquet", "size": (tmp_path / "a.parquet").stat().st_size}]
    write_log(tmp_path, [field("s", inner)], files, [])
    delta = rs.from_delta(tmp_path)
    assert delta.to_arrow().to_pylist() == expected
    assert (delta.count("s.a = 1"), delta.count("s.a IS NULL")) == (1, 0)


def test_two_fields_for_one_wanted_name_are_told(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", s=[{"iD": 1, "Id": 2}])
    files = [{"path": "a.parquet", "size": (tmp_path / "a.parquet").stat().st_size}]
    write_log(
        tmp_path, [field("s", {"type": "struct", "fields": [field("id", "long")]})], files, []
    )
    with pytest.raises(SchemaMismatch, match="'iD' and 'Id', which differ from it only in case"):
        rs.from_delta(tmp_path)


def _array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def _map(value: Any) -> dict[str, Any]:
    whole = {"keyType": "string", "valueType": value, "valueContainsNull": True}
    return {"type": "map", **whole}


def with_id(name: str, type_: pa.DataType, number: int | None) -> pa.Field:
    metadata = None if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(name, type_, metadata=metadata)


def mapped(name: str, type_: Any, number: int) -> dict[str, Any]:
    keys = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"p{number}"}
    return field(name, type_, **keys)


def write_mapped(folder: Path, columns: list[pa.Field], rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(columns)), folder / "a.parquet")
    inner = {"type": "struct", "fields": [mapped("x", "long", 3), mapped("new", "long", 4)]}
    files = [{"path": "a.parquet", "size": (folder / "a.parquet").stat().st_size}]
    fields = [mapped("id", "long", 1), mapped("s", inner, 2)]
    mode = {"delta.columnMapping.mode": "id"}
    write_log(folder, fields, files, ["columnMapping"], **mode)


def test_a_column_without_an_id_belongs_to_the_file_only(tmp_path: Path) -> None:
    inner = pa.struct([with_id("a", pa.int64(), 3), with_id("extra", pa.string(), None)])
    columns = [with_id("p1", pa.int64(), 1), with_id("s", inner, 2)]
    columns += [with_id("extra", pa.string(), None), with_id("id", pa.int64(), None)]
    rows = [{"p1": 7, "s": {"a": 1, "extra": "?"}, "extra": "?", "id": 99}]
    write_mapped(tmp_path, columns, rows)
    assert DeltaTable(tmp_path).version() == 0
    wanted = [{"id": 7, "s": {"x": 1, "new": None}}]
    assert rs.from_delta(tmp_path).to_arrow().to_pylist() == wanted
    imported = rs.import_delta(tmp_path, tmp_path.parent / f"{tmp_path.name}-own")
    assert imported.to_arrow().to_pylist() == wanted
    assert imported.count("id = 99") == 0


@pytest.mark.parametrize("inside", [False, True])
def test_columns_without_any_id_are_refused(inside: bool, tmp_path: Path) -> None:
    inner = pa.struct([with_id("x", pa.int64(), None)])
    columns = [with_id("id", pa.int64(), 1 if inside else None)]
    columns += [with_id("s", inner, 2 if inside else None)]
    write_mapped(tmp_path, columns, [{"id": 7, "s": {"x": 1}}])
    with pytest.raises(
        UnsupportedOperation, match="no field ids at " + ("'x'" if inside else "'id'")
    ):
        rs.from_delta(tmp_path)
    assert rs.open_parquet(tmp_path / "a.parquet").to_arrow()["id"].to_pylist() == [7]
