"""Wrong arguments of `Table.alter`, and changes that properties forbid or allow."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.changes.column_methods import Alteration
from rowsieve.errors import InvalidInput, InvalidSchemaChange, SchemaMismatch


@pytest.fixture
def table() -> Table:
    rows = pa.table({"id": [1], "b": [2], "j": pa.array(['{"k": 1}'], pa.json_())})
    return rowsieve.create_table(f"memory:///altering-{uuid.uuid4().hex}", rows, key=["id"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda a: a.drop_column(5), "name is 5", id="name"),
        pytest.param(lambda a: a.rename_column("b", None), "new_name is None", id="new name"),
        pytest.param(lambda a: a.add_column("\ud800", "int64"), "surrogate", id="surrogate"),
        pytest.param(lambda a: a.add_column("c", "int64", after=5), "after is 5", id="after"),
        pytest.param(
            lambda a: a.add_column("c", "int64", nullable="no"), "nullable is 'no'", id="nullable"
        ),
        pytest.param(lambda a: a.reorder_columns("bid"), "names is 'bid'", id="letters"),
        pytest.param(lambda a: a.reorder_columns(5), "names is 5", id="number for names"),
        pytest.param(lambda a: a.sql(None), "text is None", id="sql"),
        pytest.param(lambda a: a.add_column("c", "decimal(39,2)"), "1 to 38", id="39 digits"),
        pytest.param(lambda a: a.add_column("c", "decimal(0,0)"), "1 to 38", id="no digits"),
        pytest.param(lambda a: a.add_column("c", "decimal(3,4)"), "1 to 38", id="scale"),
    ],
)
def test_a_wrong_argument_is_refused_at_once(
    table: Table, change: Callable[[Alteration], Any], words: str
) -> None:
    with table.alter() as alteration:
        with pytest.raises(InvalidInput, match=words):
            change(alteration)
        alteration.drop_column("b")
    assert table.schema.names == ["id", "j"]


def test_a_type_may_be_written_with_a_space(table: Table) -> None:
    table.add_column("c", "decimal(5, 2)", default=1)
    assert table.schema.field("c").type == pa.decimal128(5, 2)


def test_a_committed_alteration_cannot_be_entered_again(table: Table) -> None:
    with table.alter() as change:
        change.drop_column("b")
    with pytest.raises(InvalidInput, match="committed already"), change:
        pass
    assert table.version == 1


def test_a_default_that_does_not_fit_is_called_a_default(table: Table) -> None:
    with pytest.raises(SchemaMismatch, match="the default of column 'c' does not fit"):
        table.add_column("c", "int8", default="5")
    with pytest.raises(SchemaMismatch, match="the default of column 'b' does not fit"):
        table.set_default("b", 0.5)


@pytest.mark.parametrize("name", ["ts", "err", "last_seen", "createdat"])
def test_a_column_that_is_critical_by_its_name_may_be_added(table: Table, name: str) -> None:
    table.set_properties({"json_statistics": "j.k", "critical_columns": "b"})
    table.add_column(name, "timestamp")
    table.rename_column(name, "other")
    table.drop_column("other")
    assert table.schema.names == ["id", "b", "j"]


def test_a_name_in_a_property_does_not_pass_to_another_column(table: Table) -> None:
    table.add_column("other", pa.json_())
    table.set_properties({"json_statistics": "j.k"})

    def exchange(old: str, new: str) -> None:
        with table.alter() as change:
            change.rename_column(old, "x")
            change.rename_column(new, old)

    with pytest.raises(InvalidSchemaChange, match="json_statistics"):
        exchange("j", "other")
    replaced = table.alter().drop_column("j").add_column("j", pa.json_())
    with pytest.raises(InvalidSchemaChange, match="json_statistics"), replaced:
        pass
    assert table.refresh() == 2


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("bigint", pa.int64()),
        ("INT", pa.int32()),
        ("text", pa.string()),
        ("double precision", pa.float64()),
        ("timestamp with time zone", pa.timestamp("us", tz="UTC")),
        ("numeric(9, 2)", pa.decimal128(9, 2)),
        ("uint64", pa.uint64()),
    ],
)
def test_a_type_is_named_as_by_us_or_by_postgresql(
    table: Table, text: str, type_: pa.DataType
) -> None:
    table.add_column("x", text)
    assert table.schema.field("x").type == type_


@pytest.mark.parametrize("text", ["bigint NOT NULL", "int, y int", "int DEFAULT 5", "strin", ""])
def test_text_that_is_no_type_is_refused(table: Table, text: str) -> None:
    with pytest.raises(InvalidInput, match="there is no type"):
        table.add_column("x", text)


def test_a_class_of_python_is_no_type(table: Table) -> None:
    with pytest.raises(InvalidInput, match="the type is <class 'int'>; give a pyarrow type"):
        table.add_column("x", int)
