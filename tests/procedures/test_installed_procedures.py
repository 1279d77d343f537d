"""Procedures that installed packages offer by entry points, on both engines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, NotFound
from rowsieve.procedures import procedure_registry
from rowsieve.procedures.procedure_registry import ProcedureRegistry

MODULE = """
import pyarrow as pa
from rowsieve.procedures.procedure import SCHEMA, TABLE_NAME, Procedure

class Rows(Procedure):
    name = "rows_of"
    meaning = "count the rows"
    parameters = (SCHEMA, TABLE_NAME)
    columns = pa.schema([("rows", pa.int64())])

    def call(self, table, arguments):
        return pa.table({"rows": [table.count()]})

other = Rows()
number = 5
"""
POINTS = """
[rowsieve.procedures]
rows_of = rows_package:Rows
misnamed = rows_package:other
number = rows_package:number
missing = rows_package.nowhere:Rows
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with entry points, some of them broken."""
    (tmp_path / "rows_package.py").write_text(MODULE)
    facts = tmp_path / "rows_package-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: rows-package\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    procedure_registry._entry_points.cache_clear()
    yield
    procedure_registry._entry_points.cache_clear()
    sys.modules.pop("rows_package", None)


@pytest.mark.usefixtures("installed")
def test_offered_procedure_is_loaded_at_its_first_use(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    catalog.create_table("db.t", pa.table({"id": [1, 2, 3]}))
    assert "rows_package" not in sys.modules
    assert catalog.call("CALL system.rows_of('db', 't')").to_pylist() == [{"rows": 3}]
    assert "rows_package" in sys.modules


@pytest.mark.usefixtures("installed")
def test_listing_leaves_out_what_cannot_be_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    names = catalog.call("SHOW PROCEDURES").column("procedure").to_pylist()
    assert "rows_of" in names
    assert not {"misnamed", "number", "missing"} & set(names)
    assert len(caplog.records) == 3


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "cannot be loaded from the entry point missing = rows_package.nowhere:Rows"),
        ("number", "is not a procedure but int"),
        ("misnamed", "a procedure with another name, 'rows_of'"),
    ],
)
def test_broken_entry_point_is_named(tmp_path: Path, name: str, reason: str) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    with pytest.raises(InvalidInput, match=reason):
        catalog.call(f"CALL system.{name}('db', 't')")


@pytest.mark.usefixtures("installed")
def test_removed_procedure_is_not_offered_again(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    catalog.procedures.remove("rows_of")
    with pytest.raises(NotFound, match="the procedure 'rows_of' does not exist"):
        catalog.procedures.resolve("rows_of")


def test_registry_without_a_group_reads_no_entry_points() -> None:
    assert list(ProcedureRegistry()) == []
