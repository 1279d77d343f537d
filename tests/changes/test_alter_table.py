"""`Table.sql` with ALTER TABLE, comments, NOT NULL that the rows prove, and computed defaults."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    InvalidSchemaChange,
    RowsieveError,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedOperation,
)
from tests.small_tables import fresh_uri, overtake


@pytest.fixture(params=("keyed", "plain"))
def table(request: pytest.FixtureRequest) -> Table:
    rows = pa.table({"id": [1, 2], "b": pa.array([5, None], pa.int64())})
    key = ["id"] if request.param == "keyed" else None
    return rowsieve.create_table(f"memory:///sql-{uuid.uuid4().hex}/Orders", rows, key=key)


def column(table: Table, name: str) -> list[Any]:
    found = table.scan(columns=[name, "id"]).to_arrow().to_pylist()
    return [row[name] for row in sorted(found, key=lambda row: row["id"])]


def put(table: Table, rows: pa.Table) -> None:
    (table.upsert if table.key else table.append)(rows)


def test_a_statement_names_the_table(table: Table) -> None:
    commit = table.sql("ALTER TABLE orders ADD COLUMN c bigint DEFAULT 7, DROP COLUMN b;")
    assert (commit.operation, table.version) == ("alter", 1)
    assert table.schema.names == ["id", "c"]
    table.sql('alter table if exists "Orders" rename column c to d')
    table.sql("ALTER TABLE this ALTER COLUMN d SET DEFAULT 8", metadata={"why": "test"})
    assert column(table, "d") == [7, 7]
    for text in (
        "ALTER TABLE other DROP COLUMN d",
        "DROP TABLE this",
        "SELECT 1",
        "",
        "ALTER TABLE",
        "ALTER TABLE this",
        "ALTER TABLE this DROP COLUMN d; DROP COLUMN id",
        "ALTER TABLE this 'x",
    ):
        with pytest.raises(InvalidInput):
            table.sql(text)
    assert table.refresh() == 3


def test_a_change_may_be_conditional(table: Table) -> None:
    assert table.sql("ALTER TABLE this DROP COLUMN IF EXISTS c").committed is False
    assert table.sql("ALTER TABLE this ADD COLUMN IF NOT EXISTS b text").committed is False
    assert table.add_column("b", "string", if_not_exists=True).committed is False
    assert table.drop_column("c", if_exists=True).committed is False
    assert table.version == 0
    with table.alter() as change:
        change.sql("DROP COLUMN b, ADD COLUMN IF NOT EXISTS b text DEFAULT 'new'")
    assert column(table, "b") == ["new", "new"]
    with pytest.raises(UnknownColumn):
        table.sql("ALTER TABLE this DROP COLUMN c")


def test_a_default_is_computed_once(table: Table) -> None:
    before = dt.datetime.now(dt.UTC)
    table.sql(
        "ALTER TABLE this ADD COLUMN t timestamptz DEFAULT now(), ADD COLUMN d date DEFAULT "
        "CURRENT_DATE, ADD COLUMN n int DEFAULT 6 * 7, ADD COLUMN s text DEFAULT upper('a') || 'b'"
    )
    first, second = column(table, "t")
    assert first == second
    assert before <= first <= dt.datetime.now(dt.UTC)
    assert column(rowsieve.open_table(table.uri), "t") == [first, first]
    assert column(table, "d")[0] - first.date() in (dt.timedelta(0), dt.timedelta(1))
    assert column(table, "n") == [42, 42]
    assert column(table, "s") == ["Ab", "Ab"]
    table.sql("ALTER TABLE this ALTER COLUMN n SET DEFAULT 1 + 1")
    for default in ("id", "b + 1", "1 / 0", "random()", "(SELECT 1)", "sum(1)", "'x' || 1 > 5"):
        with pytest.raises(InvalidInput):
            table.sql(f"ALTER TABLE this ADD COLUMN x int DEFAULT {default}")


def test_a_comment_describes_a_column(table: Table) -> None:
    table.add_column("c", "int64", comment="seconds")
    table.set_comment("b", "how often")
    table.sql("ALTER TABLE this ADD COLUMN d text COMMENT 'free', ALTER COLUMN id COMMENT 'key'")

    def comments() -> list[Any]:
        opened = rowsieve.open_table(table.uri)
        return [(field.metadata or {}).get(b"comment") for field in opened.schema]

    assert comments() == [b"key", b"how often", b"seconds", b"free"]
    put(table, pa.table({"id": [3], "b": [1], "c": [1], "d": ["x"]}))
    assert table.to_arrow().schema.field("b").metadata.get(b"comment") is None
    table.set_comment("b", None)
    assert comments()[1] is None
    with pytest.raises(InvalidSchemaChange, match="this comment already"):
        table.set_comment("b", None)
    table.add_column("e", pa.struct([("x", pa.int64())]))
    table.set_comment("e.x", "inside")
    assert table.handle.pinned.schema.fields[-1].type.fields[0].comment == "inside"  # type: ignore[union-attr]


def test_null_is_disallowed_where_no_row_has_it(table: Table) -> None:
    with pytest.raises(InvalidSchemaChange, match="1 rows of version 0 have NULL"):
        table.set_not_null("b")
    table.update({"b": "0"}, where="b IS NULL")
    table.sql("ALTER TABLE this ALTER COLUMN b SET NOT NULL")
    assert table.schema.field("b").nullable is False
    with pytest.raises(SchemaMismatch, match="NOT NULL"):
        put(table, pa.table({"id": [3], "b": pa.array([None], pa.int64())}))
    assert table.scan("b IS NULL").count() == 0
    with pytest.raises(UnsupportedOperation, match="disallowed NULL in b"):
        table.restore(0)
    with pytest.raises(InvalidSchemaChange, match="NOT NULL already"):
        table.set_not_null("b")
    table.compact()
    assert column(table, "b") == [5, 0]
    table.relax_not_null("b")
    table.restore(0)
    assert column(table, "b") == [5, None]
    table.add_column("s", pa.list_(pa.struct([("x", pa.int64())])))
    for inside in ("s.element", "s.element.x"):
        with pytest.raises(InvalidSchemaChange, match="inside a list or a map"):
            table.set_not_null(inside)


NESTED = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.int64())]))])
FINE = [{"x": 1, "y": {"z": 1}}, {"x": 2, "y": None}, None]


@pytest.mark.parametrize("key", [["id"], []])
def test_null_is_disallowed_inside_structs(key: list[str], tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", NESTED)])
    table = rowsieve.create_table(str(tmp_path / "t"), schema, key=key)

    def write(first: int, values: list[Any]) -> None:
        ids = range(first, first + len(values))
        put(table, pa.table({"id": ids, "s": pa.array(values, NESTED)}))

    write(0, FINE)
    write(3, [{"x": None, "y": {"z": None}}])
    for path, count in (("s.x", 1), ("s.y", 1), ("s.y.z", 1), ("s", 1)):
        with pytest.raises(InvalidSchemaChange, match=f"column '{path}': {count} rows"):
            table.set_not_null(path)
    table.delete("id = 3")
    table.set_not_null("s.x")
    table.sql("ALTER TABLE this ALTER COLUMN s.y.z SET NOT NULL")
    with pytest.raises(InvalidSchemaChange, match=r"column 's\.y': 1 rows"):
        table.set_not_null("s.y")
    with pytest.raises(InvalidSchemaChange, match="NOT NULL already"):
        table.set_not_null("s.x")
    before = table.version
    for wrong in ({"x": None, "y": None}, {"x": 1, "y": {"z": None}}):
        with pytest.raises(SchemaMismatch, match="NOT NULL"):
            write(9, [wrong])
    assert table.refresh() == before
    write(4, FINE)
    table.compact()
    assert sorted(map(repr, column(table, "s"))) == sorted(map(repr, FINE + FINE))
    assert table.scan("s IS NOT NULL AND (s).x IS NULL").count() == 0
    with pytest.raises(UnsupportedOperation, match="disallowed NULL in"):
        table.restore(1)
    table.relax_not_null("s.x")
    write(8, [{"x": None, "y": None}])
    assert table.scan("s IS NOT NULL AND (s).x IS NULL").count() == 1


def test_old_structs_have_the_default_when_null_is_disallowed(tmp_path: Path) -> None:
    table = rowsieve.create_table(str(tmp_path / "t"), {"id": [1]}, key=["id"])
    table.add_column("s", pa.struct([("x", pa.int64())]))
    put(table, pa.table({"id": [1, 2], "s": [{"x": 1}, None]}))
    table.add_column("s.y", "int64", default=5)
    table.add_column("s.z", "int64")
    table.set_not_null("s.y")
    with pytest.raises(InvalidSchemaChange, match=r"column 's\.z': 1 rows"):
        table.set_not_null("s.z")
    assert table.scan("(s).y = 5").count() == 1


def test_a_null_inside_a_struct_that_comes_meanwhile_or_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # invariants, rule 14
    type_ = pa.struct([("x", pa.int64())])
    rows = pa.table({"id": [7], "s": pa.array([{"x": None}], type_)})
    table = rowsieve.create_table(str(tmp_path / "t"), {"id": [1], "s": [{"x": 1}]}, key=["id"])
    overtake(table, monkeypatch, lambda t: t.set_not_null("s.x"))
    with pytest.raises(CommitConflict, match="was made NOT NULL"):
        put(table, rows)
    table.refresh()
    table.relax_not_null("s.x")
    overtake(table, monkeypatch, lambda t: put(t, rows))
    with pytest.raises(InvalidSchemaChange, match="have NULL"):
        table.set_not_null("s.x")


def test_old_rows_have_the_default_when_null_is_disallowed(table: Table) -> None:
    table.add_column("c", "int64", default=1)
    table.add_column("d", "int64")
    table.set_not_null("c")
    with pytest.raises(InvalidSchemaChange, match="2 rows"):
        table.set_not_null("d")


def test_a_null_that_comes_meanwhile_keeps_the_column_nullable(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.update({"b": "0"}, where="b IS NULL")
    null = pa.table({"id": [7], "b": pa.array([None], pa.int64())})
    overtake(table, monkeypatch, lambda t: put(t, null))
    with pytest.raises(InvalidSchemaChange, match="have NULL"):
        table.set_not_null("b")


def test_a_null_that_comes_later_is_refused(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    # invariants, rule 14
    table.update({"b": "0"}, where="b IS NULL")
    overtake(table, monkeypatch, lambda t: t.set_not_null("b"))
    with pytest.raises(CommitConflict, match="was made NOT NULL"):
        put(table, pa.table({"id": [7], "b": pa.array([None], pa.int64())}))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        pytest.param(lambda t: t.sql(5), InvalidInput, id="text"),
        pytest.param(lambda t: t.set_comment("b", 5), InvalidInput, id="comment"),
        pytest.param(lambda t: t.set_not_null("x"), UnknownColumn, id="column"),
        pytest.param(lambda t: t.sql("ALTER TABLE this ADD COLUMN x int FIRST AFTER b"),
                     InvalidInput, id="places"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(
    table: Table, change: Callable[[Table], Any], kind: type[RowsieveError]
) -> None:
    with pytest.raises(kind):
        change(table)
    assert table.refresh() == 0


@pytest.mark.parametrize("path", ["c", "s.c"])
def test_a_column_that_is_added_without_a_default_stays_nullable(path: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int64())]))])
    table = rowsieve.create_table(f"memory:///{uuid.uuid4().hex}", schema, key=["id"])
    table.upsert({"id": [1], "s": [{"x": 1}]})
    reason = "same changes add without a default"
    with pytest.raises(InvalidSchemaChange, match=reason), table.alter() as changes:
        changes.add_column(path, "int64").set_not_null(path)
    with table.alter() as changes:
        changes.add_column(path, "int64", default=4).set_not_null(path)
    with table.alter() as changes:
        changes.add_column("t", pa.struct([("c", pa.int64())])).set_not_null("t.c")
    table.upsert({**table.scan().to_arrow().to_pydict(), "id": [2]})
    table.compact()
    assert table.scan(where=f"{path} = 4").to_arrow().num_rows == 2


@pytest.mark.parametrize("dialect", ["postgres", "spark"])
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("DROP COLUMN b, c", ["a", "d, e"]),
        ("DROP COLUMNS (b, c)", ["a", "d, e"]),
        ("drop columns b, {0}d, e{0}", ["a", "c"]),
        ("DROP COLUMN IF EXISTS (b, nope)", ["a", "c", "d, e"]),
    ],
)
def test_several_columns_are_dropped_at_once(dialect: str, text: str, left: list[str]) -> None:
    table = rowsieve.create_table(
        fresh_uri(), pa.table({"a": [1], "b": [2], "c": [3], "d, e": [4]})
    )
    quote = "`" if dialect == "spark" else '"'
    table.sql(f"ALTER TABLE this {text.format(quote)}", dialect)
    assert (table.columns, table.version) == (left, 1)


@pytest.mark.parametrize("text", ["DROP COLUMNS ()", "DROP COLUMN ( )"])
def test_an_empty_list_of_columns_to_drop_is_refused(text: str) -> None:
    table = rowsieve.create_table(fresh_uri(), pa.table({"a": [1], "b": [2]}))
    with pytest.raises(InvalidInput, match="cannot read the change"):
        table.sql(f"ALTER TABLE this {text}")
