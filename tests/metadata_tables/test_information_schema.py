"""The information schema of a catalog: namespaces, tables, columns and constraints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.metadata_tables.information_schema import VIEWS, view_of


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    """Two namespaces; `db.seen` has a key of two columns, a default, a comment and a constraint."""
    catalog = rs.Catalog(str(tmp_path))
    columns = pa.schema([("b", pa.string()), ("a", pa.int64()), ("n", pa.float32())])
    seen = catalog.create_table("db.seen", columns, key=["a", "b"])
    seen.set_default("n", 1.5)
    seen.set_comment("n", "how often")
    seen.add_constraint("primary_key", "n > 0")
    catalog.create_table("db.plain", pa.schema([("x", pa.int32())]))
    catalog.create_namespace("empty")
    return catalog


def rows(catalog: Any, name: str, *columns: str) -> list[tuple[Any, ...]]:
    shown = view_of(catalog, "lake", name)
    assert shown is not None
    return [tuple(row.values()) for row in shown.select(list(columns)).to_pylist()]


def test_namespaces_and_tables_are_listed(catalog: rs.Catalog) -> None:
    assert rows(catalog, "schemata", "catalog_name", "schema_name") == [
        ("lake", "db"),
        ("lake", "empty"),
    ]
    names = ("table_catalog", "table_schema", "table_name", "table_type")
    assert rows(catalog, "tables", *names) == [
        ("lake", "db", "plain", "BASE TABLE"),
        ("lake", "db", "seen", "BASE TABLE"),
    ]
    assert rows(catalog, "views", "table_name", "view_definition") == []


def test_columns_have_places_types_defaults_and_comments(catalog: rs.Catalog) -> None:
    facts = ("column_name", "ordinal_position", "data_type", "is_nullable", "column_default")
    assert rows(catalog, "columns", "table_name", *facts, "comment") == [
        ("plain", "x", 1, "int32", "YES", None, None),
        ("seen", "b", 1, "string", "NO", None, None),
        ("seen", "a", 2, "int64", "NO", None, None),
        ("seen", "n", 3, "float32", "YES", "1.5", "how often"),
    ]


def test_a_key_and_a_constraint_may_have_one_name(catalog: rs.Catalog) -> None:
    names = ("constraint_schema", "constraint_name", "table_name", "constraint_type")
    assert rows(catalog, "table_constraints", *names) == [
        ("db", "primary_key", "seen", "PRIMARY KEY"),
        ("db", "primary_key", "seen", "CHECK"),
    ]
    assert rows(catalog, "key_column_usage", "column_name", "ordinal_position") == [
        ("a", 1),
        ("b", 2),
    ]
    ((name, clause),) = rows(catalog, "check_constraints", "constraint_name", "check_clause")
    assert (name, clause) == ("primary_key", catalog.open_table("db.seen").constraints[name])


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_an_empty_catalog_has_the_same_columns(
    name: str, catalog: rs.Catalog, tmp_path: Path
) -> None:
    none = rs.Catalog(str(tmp_path / "none"))
    empty, full = (view_of(each, "lake", name) for each in (none, catalog))
    assert empty is not None
    assert full is not None
    assert (empty.num_rows, empty.schema) == (0, full.schema)


def test_names_are_listed_without_opening_a_table(catalog: rs.Catalog, tmp_path: Path) -> None:
    (tmp_path / "db/plain/_rowsieve/log/00000000000000000000.json").write_text("damaged")
    assert len(rows(catalog, "tables", "table_name")) == 2
    with pytest.raises(rs.errors.CorruptData, match="plain"):
        view_of(catalog, "lake", "columns")


def test_an_unknown_view_is_none(catalog: rs.Catalog) -> None:
    assert view_of(catalog, "lake", "nothing") is None
    assert view_of(catalog, "lake", "TABLES") is not None
