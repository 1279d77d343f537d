"""Aliases: the name of another system's type over storage of ours, kept but not compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve.errors import InvalidPredicate, SchemaMismatch

_RANGE = pa.struct(
    [
        ("lower", pa.int64()),
        ("upper", pa.int64()),
        ("lower_inclusive", pa.bool_()),
        ("upper_inclusive", pa.bool_()),
        ("empty", pa.bool_()),
    ]
)
_DIMENSION = pa.struct([("lower", pa.int32()), ("length", pa.int32())])
_ARRAY = pa.struct([("dimensions", pa.list_(_DIMENSION)), ("elements", pa.list_(pa.string()))])
ALIASES: dict[str, tuple[pa.DataType, Any, str]] = {
    "range.1": (
        _RANGE,
        dict(zip(_RANGE.names, (1, 5, True, False, False), strict=True)),
        "(c).lower < 3",
    ),
    "array.1": (
        _ARRAY,
        {"dimensions": [{"lower": 1, "length": 2}], "elements": ["a", None]},
        "cardinality((c).elements) = 2",
    ),
    "system_timestamp.1": (pa.uint64(), 2**64 - 1, "c > 5"),
    "acl_item.1": (pa.binary(), b"\x01\x02", "c IS NOT NULL"),
    "int2vector.1": (pa.list_(pa.int16()), [1, -5], "cardinality(c) = 2"),
    "geometry.1": (pa.binary(), b"\x01", "c IS NOT NULL"),
    "numeric.0": (pa.binary(), b"\xff\x00", "c IS NOT NULL"),
}


def _field(alias: str, type_: pa.DataType, name: str = "c") -> pa.Field:
    return pa.field(name, type_, metadata={"ARROW:extension:name": f"rowsieve.{alias}"})


def _table(path: Path, alias: str) -> rs.Table:
    type_, value, _ = ALIASES[alias]
    schema = pa.schema([pa.field("id", pa.int64()), _field(alias, type_)])
    table = rs.create_table(str(path / "t"), schema, key=["id"])
    values = pa.array([value, None], type_)
    table.upsert(pa.table({"id": [1, 2], "c": values}))
    return table


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_kept_with_its_values(alias: str, tmp_path: Path) -> None:
    type_, value, where = ALIASES[alias]
    table = rs.open_table(_table(tmp_path, alias).uri)
    for _ in range(2):
        rows = table.scan(order_by_key=True).to_arrow()
        extension = rows.schema.field("c").metadata[b"ARROW:extension:name"]
        assert extension == f"rowsieve.{alias}".encode()
        assert rows.column("c").to_pylist() == [value, None]
        assert table.scan(where=where).to_arrow().column("id").to_pylist() == [1]
        table.upsert(rows)
        table.compact()
    again = rs.create_table(str(tmp_path / "again"), rows, key=["id"])
    assert again.scan().to_arrow().schema.field("c").metadata[b"ARROW:extension:name"] == extension
    context = SessionContext()
    context.register_table("t", table)
    seen = context.sql("SELECT id FROM t WHERE c IS NOT NULL").to_arrow_table()
    assert seen.column("id").to_pylist() == [1]
    assert table.to_dataset().to_table().column("c").type == type_


@pytest.mark.parametrize("where", ["c <= c", "c < c", "NOT c >= c", "c BETWEEN c AND c"])
@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_only_an_alias_with_the_order_of_its_storage_is_compared(
    alias: str, where: str, tmp_path: Path
) -> None:
    table = _table(tmp_path, alias)
    if alias in ("range.1", "system_timestamp.1"):
        assert table.scan(where=where).count() == ("<=" in where or "BETWEEN" in where)
        return
    with pytest.raises(InvalidPredicate, match=f"'c' is a {alias}, which cannot be compared"):
        table.scan(where=where).to_arrow()


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_values_with_one_form_are_equal_by_it(alias: str, tmp_path: Path) -> None:
    table = _table(tmp_path, alias)
    if alias in ("geometry.1", "numeric.0"):
        for where in ("c = c", "c IS DISTINCT FROM c"):
            with pytest.raises(InvalidPredicate, match=f"a {alias}, which cannot be compared"):
                table.scan(where=where).to_arrow()
        return
    assert table.scan(where="c = c").to_arrow()["id"].to_pylist() == [1]
    assert table.scan(where="c IS NOT DISTINCT FROM c").count() == 2
    assert table.scan(where="c IS DISTINCT FROM c").count() == 0
    assert table.scan(where="c <> c").count() == 0


def test_members_with_an_alias_are_not_ordered_either(tmp_path: Path) -> None:
    nested = pa.field("s", pa.struct([_field("array.1", _ARRAY, "r"), pa.field("n", pa.int8())]))
    schema = pa.schema([pa.field("id", pa.int64()), nested])
    table = rs.create_table(str(tmp_path / "t"), schema, key=["id"])
    assert table.scan().to_arrow().schema.field("s").type.field("r").metadata is not None
    with pytest.raises(InvalidPredicate, match=r"array\.1"):
        table.scan(where="(s).r < (s).r").to_arrow()
    assert table.scan(where="(s).r = (s).r").count() == 0
    assert table.scan(where="(s).n = 1 AND (s).r IS NULL").count() == 0


def test_an_alias_is_added_and_filled_with_null(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), {"id": [1]}, key=["id"])
    table.evolve(pa.schema([pa.field("id", pa.int64()), _field("array.1", _ARRAY)]))
    assert table.scan(where="c IS NULL").count() == 1
    with pytest.raises(InvalidPredicate, match=r"array\.1"):
        rs.open_table(table.uri).scan(where="c < c").to_arrow()


def test_opaque_bytes_have_no_statistics(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            _field("numeric.0", pa.binary(), "old"),
            _field("numeric.1", pa.string(), "new"),
        ]
    )
    table = rs.create_table(str(tmp_path / "t"), schema, key=["id"])
    for start in (0, 10):
        rows = {"id": [start], "old": [b"\x07"], "new": [str(start)]}
        table.upsert(pa.table(rows, schema=pa.schema({
            "id": pa.int64(), "old": pa.binary(), "new": pa.string()
        })))  # fmt: skip
    assert table.scan(where="new > 5").explain().parts_read == 1
    assert table.scan(where="old IS NULL").explain().parts_read == 2
    assert table.scan(where="new > 5 AND old IS NOT NULL").count() == 1


@pytest.mark.parametrize(
    ("alias", "type_"),
    [
        ("range.1", pa.int64()),
        ("range.1", pa.struct([("lower", pa.int64()), ("upper", pa.int64())])),
        ("range.2", _RANGE),
        ("array.1", pa.struct([("dimensions", pa.int64()), ("elements", pa.list_(pa.int8()))])),
        ("int2vector.1", pa.list_(pa.int32())),
        ("numeric.0", pa.string()),
        ("money.0", pa.binary()),
    ],
)
def test_another_storage_or_version_is_refused_by_name(
    alias: str, type_: pa.DataType, tmp_path: Path
) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), _field(alias, type_)])
    with pytest.raises(SchemaMismatch, match=f"'c' has the extension type 'rowsieve.{alias}'"):
        rs.create_table(str(tmp_path / "t"), schema, key=["id"])
    assert list(tmp_path.iterdir()) == []
