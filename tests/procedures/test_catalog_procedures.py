"""Procedures of the catalog, plans of calls, and procedures that change rows in place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, TableExists, TableNotFound
from rowsieve.procedures.built_in import built_in
from rowsieve.procedures.built_ins.rewrite_data_files import RewriteDataFiles, Rows
from rowsieve.procedures.coordinator import Coordinator
from rowsieve.procedures.engine import Job, LocalEngine
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import SCHEMA, TABLE_NAME, CallContext, Handle
from rowsieve.statements.call_values import Value
from rowsieve.statements.calls import Call

REGISTER = "CALL system.register_table('db', 't', '{}')"


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    return rs.Catalog(tmp_path / "lake")


def test_registered_table_has_its_name(catalog: rs.Catalog, tmp_path: Path) -> None:
    elsewhere = rs.create_table(str(tmp_path / "elsewhere"), pa.table({"id": [1]}), ["id"])
    elsewhere.upsert(pa.table({"id": [2]}))
    (row,) = catalog.call(REGISTER.format(elsewhere.uri)).to_pylist()
    assert row == {"version": 1, "data_files_count": 2}
    assert catalog.open_table("db.t").uri == elsewhere.uri
    with pytest.raises(TableExists, match=r"db\.t exists already"):
        catalog.call(REGISTER.format(elsewhere.uri))
    with pytest.raises(TableNotFound):
        catalog.call(f"CALL system.register_table('db', 'u', '{tmp_path}/nothing')")


def test_plan_of_a_procedure_that_is_not_distributed(catalog: rs.Catalog) -> None:
    text = "EXPLAIN CALL system.rollback_to_snapshot('db', 'missing', 3)"
    first, second = catalog.call(text).column("plan").to_pylist()
    assert first.startswith("Output [version, rows_written")
    assert second == (
        "  Call [rollback_to_snapshot(schema => 'db', table_name => 'missing', version => 3)]"
    )
    assert catalog.explain(text) == f"{first}\n{second}"
    with pytest.raises(InvalidInput, match="needs the argument version"):
        catalog.explain("CALL system.rollback_to_snapshot('db', 'missing')")
    with pytest.raises(InvalidInput, match="is not a call of a procedure"):
        catalog.explain("SHOW PROCEDURES")


class Mask(RewriteDataFiles):
    """Replaces a column's values."""

    name = "mask"
    parameters = (SCHEMA, TABLE_NAME, Parameter("column_name", ParameterType.TEXT, required=True))

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """Rewrite all parts."""
        return super().begin(context, {**arguments, "options": {"rewrite-all": "true"}})

    def notes(self, arguments: Mapping[str, Value]) -> dict[str, str]:
        """The column's name."""
        return {"column": str(arguments["column_name"])}

    def changed(self, rows: Rows, notes: Mapping[str, str]) -> Rows:
        """Put -1 everywhere."""
        place = rows.schema.get_field_index(notes["column"])
        return rows.set_column(
            place, rows.schema.field(place), pa.array([-1] * rows.num_rows, pa.int64())
        )


class UpsertingMeanwhile(LocalEngine):
    """Another writer commits a row while the tasks run."""

    def __init__(self, table: rs.Table) -> None:
        super().__init__(1)
        self._table = table

    def run(self, job: Job) -> Any:
        """Upsert, then run."""
        self._table.upsert(pa.table({"id": [2], "v": [22]}))
        return super().run(job)


def test_changed_rows_replace_those_that_were_read_and_no_newer_ones(catalog: rs.Catalog) -> None:
    table = catalog.create_table("db.t", pa.table({"id": [1, 2, 3], "v": [1, 2, 3]}), ["id"])
    table.upsert(pa.table({"id": [3, 4], "v": [30, 40]}))
    catalog.procedures.add(Mask())
    engine = UpsertingMeanwhile(catalog.open_table("db.t"))
    catalog.call("CALL system.mask('db', 't', 'v')", engine=engine)
    rows = catalog.open_table("db.t").scan(order_by_key=True).to_arrow().to_pylist()
    assert [(row["id"], row["v"]) for row in rows] == [(1, -1), (2, 22), (3, -1), (4, -1)]
    with pytest.raises(InvalidInput, match="the column id belongs to the key"):
        catalog.call("CALL system.mask('db', 't', 'id')")


def test_coordinator_without_a_catalog_refuses_its_procedures(catalog: rs.Catalog) -> None:
    coordinator = Coordinator(catalog.procedures, lambda _space, _name: rs.open_table("nowhere"))
    call = Call("register_table", ("db", "t", "somewhere"))
    with pytest.raises(rs.errors.UnsupportedOperation, match=r"use Catalog\.call"):
        coordinator.run(call)


def test_part_of_changed_rows_records_no_order(catalog: rs.Catalog) -> None:
    rows = pa.table({"id": [3, 1, 2], "v": [1, 2, 3]})
    table = catalog.create_table("db.t", rows, properties={"cluster_by": "v"})
    assert table.handle.pinned.parts.sort_orders() == ["2 ASC NULLS FIRST"]
    catalog.procedures.add(Mask())
    catalog.call("CALL system.mask('db', 't', 'v')")
    assert catalog.open_table("db.t").handle.pinned.parts.sort_orders() == [None]


@pytest.mark.parametrize("quoted", ['"d""b".t', '"db.t"', '"db.t".x', "`d``b`.t", "a.b.db.t"])
def test_quotes_in_a_name_do_not_lead_to_another_table(catalog: rs.Catalog, quoted: str) -> None:
    catalog.create_table("db.t", pa.table({"id": [1]}))
    catalog.create_table("t.x", pa.table({"id": [1]}))
    text = quoted.replace("'", "''")
    for statement in (
        f"ALTER TABLE {quoted} EXECUTE optimize",
        f"CALL system.compact(table => '{text}')",
    ):
        with pytest.raises(InvalidInput, match=r"not a name of a namespace|give the namespace"):
            catalog.call(statement)


@pytest.mark.parametrize("quoted", ['"db".t', "`db`.`t`", 'lake."db"."t"', "db.t"])
def test_a_name_may_be_quoted(catalog: rs.Catalog, quoted: str) -> None:
    catalog.create_table("db.t", pa.table({"id": [1]}))
    assert catalog.call(f"ALTER TABLE {quoted} EXECUTE optimize").num_rows == 1
    assert catalog.call(f"CALL system.compact(table => '{quoted}')").num_rows == 1


def test_every_built_in_procedure_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "procedures.md").read_text()
    assert [each.name for each in built_in() if f"\n| `{each.name}(" not in page] == []
