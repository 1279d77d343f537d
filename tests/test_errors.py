"""Bad input: each mistake its own error: what, where and what to do; nothing is written."""

# ruff: noqa: E501 - a mistake is one line of the table

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    EmptyData,
    EvaluationError,
    InvalidData,
    InvalidInput,
    InvalidPredicate,
    KeyViolation,
    RowsieveError,
    SchemaMismatch,
    TableExists,
    TableNotFound,
    UnknownColumn,
    UnsupportedOperation,
    VersionNotFound,
)

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(6, 2)),
        pa.field("pair", pa.struct({"a": pa.int64()})),
    ]
)
ROW = {"id": 1, "name": "a", "price": None, "pair": None}


def data(*rows: dict[str, Any], **changed: Any) -> pa.Table:
    return pa.Table.from_pylist([{**ROW, **row, **changed} for row in rows or ({},)], SCHEMA)


@dataclass
class Tables:
    """A table with a key and one without, each with one commit after its creation."""

    root: Path
    keyed: Table
    plain: Table

    @property
    def both(self) -> tuple[Table, Table]:
        return self.keyed, self.plain


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template")
    rowsieve.create_table(str(root / "keyed"), data(), key=["id"]).upsert(data({"id": 2}))
    rowsieve.create_table(str(root / "plain"), data()).append(data({"id": 2}))
    return root


@pytest.fixture
def t(template: Path, tmp_path: Path) -> Tables:
    root = tmp_path / "tables"
    shutil.copytree(template, root)
    keyed, plain = (rowsieve.open_table(str(root / name)) for name in ("keyed", "plain"))
    return Tables(root, keyed, plain)


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


Call = Callable[[Tables], object]
Mistake = tuple[str, Call, type[RowsieveError], tuple[str, ...]]
LATER = datetime(2100, 1, 1, tzinfo=UTC)
TEXT_PRICE = data().set_column(2, "price", pa.array(["x"]))
CHANGES = data().append_column("op", pa.array(["u"])).append_column("lsn", pa.array([1]))


def changes(op: Any = "u", lsn: Any = 1, **row: Any) -> pa.Table:
    return (
        data(row)
        .append_column("op", pa.array([op], pa.string()))
        .append_column("lsn", pa.array([lsn], pa.int64() if lsn is None else None))
    )


# fmt: off
MISTAKES: tuple[Mistake, ...] = (
    # Names
    ("unknown column in where", lambda t: t.keyed.scan("nme = 'a'"), UnknownColumn, ("'nme'", "did you mean 'name'?", "id, name, price, pair")),
    ("unknown column asked for", lambda t: t.keyed.scan(columns=["nam"]), UnknownColumn, ("'nam'", "did you mean 'name'?")),
    ("a column asked for twice", lambda t: t.keyed.scan(columns=["id", "ID"]), InvalidInput, ("twice", "id")),
    ("columns as text", lambda t: t.keyed.scan(columns="id"), InvalidInput, ("list of names", "'id'")),
    ("unknown column updated", lambda t: t.keyed.update({"prize": "1"}), UnknownColumn, ("'prize'", "did you mean 'price'?")),
    ("unknown column in an assignment", lambda t: t.keyed.update({"name": "nam"}), UnknownColumn, ("'nam'",)),
    ("unknown column in delete", lambda t: t.plain.delete("idd = 1"), UnknownColumn, ("'idd'", "did you mean 'id'?")),
    ("unknown key column", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA, key=["idd"]), UnknownColumn, ("'idd'", "did you mean 'id'?")),
    ("key as text", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA, key="id"), InvalidInput, ("key=['id']",)),
    ("key column twice", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA, key=["id", "id"]), InvalidInput, ("twice",)),
    ("key of nested type", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA, key=["pair"]), InvalidInput, ("'pair'", "struct", "cannot be part of a key", "another key")),
    ("mode without key", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA, mode="upsert"), InvalidInput, ("key=",)),
    ("mode with key", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA, key=["id"], mode="append"), InvalidInput, ("append", "id")),
    # Data
    ("a type that does not fit", lambda t: t.keyed.upsert(TEXT_PRICE), SchemaMismatch, ("'price'", "string", "decimal(6,2)")),
    ("a value out of range", lambda t: t.keyed.upsert(data().set_column(2, "price", pa.array([12345678]))), InvalidData, ("'price'",)),
    ("a column too many", lambda t: t.keyed.upsert(data().append_column("more", pa.array([1]))), SchemaMismatch, ("'more'",)),
    ("a column missing in upsert", lambda t: t.keyed.upsert(data().drop_columns(["name"])), SchemaMismatch, ("'name'",)),
    ("a column too many in append", lambda t: t.plain.append(data().append_column("more", pa.array([1]))), SchemaMismatch, ("'more'",)),
    ("NULL where NOT NULL", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA).append(pa.table({"name": ["a"]})), SchemaMismatch, ("'id'",)),
    ("a duplicate key", lambda t: t.keyed.upsert(data({}, {})), KeyViolation, ("repeat the key", "{'id': 1}", "on_duplicate='last'")),
    ("a duplicate key at creation", lambda t: rowsieve.create_table(str(t.root / "new"), data({}, {}), key=["id"]), KeyViolation, ("{'id': 1}",)),
    ("a NULL key", lambda t: t.keyed.upsert(pa.table({**data().to_pydict(), "id": pa.array([None], pa.int64())})), KeyViolation, ("'id'", "NULL in 1 of 1 rows")),
    ("a NULL key to delete", lambda t: t.keyed.delete(keys=pa.table({"id": pa.array([None], pa.int64())})), KeyViolation, ("'id'", "NULL")),
    ("no rows to overwrite with", lambda t: t.keyed.overwrite(SCHEMA.empty_table()), EmptyData, ("no rows",)),
    ("no data", lambda t: t.keyed.upsert([1]), InvalidInput, ("Arrow data", "a list of dicts", "not a list of int")),
    ("keys with other columns", lambda t: t.keyed.delete(keys=data().select(["id", "name"])), SchemaMismatch, ("'name'",)),
    ("keys without the key", lambda t: t.keyed.delete(keys=data().select(["name"])), SchemaMismatch, ("'id'",)),
    # Change streams
    ("no op column", lambda t: t.keyed.apply_changes(CHANGES, op="operation", sequence="lsn"), SchemaMismatch, ("'operation'", "op=")),
    ("no sequence column", lambda t: t.keyed.apply_changes(CHANGES, op="op", sequence="seq"), SchemaMismatch, ("'seq'", "sequence=")),
    ("an unknown op", lambda t: t.keyed.apply_changes(changes(op="merge"), op="op", sequence="lsn"), InvalidData, ("'merge'", "valid are")),
    ("a NULL op", lambda t: t.keyed.apply_changes(changes(op=None), op="op", sequence="lsn"), InvalidData, ("'op'", "NULL in 1 rows")),
    ("a NULL sequence", lambda t: t.keyed.apply_changes(changes(lsn=None), op="op", sequence="lsn"), InvalidData, ("'lsn'", "NULL")),
    ("a NaN sequence", lambda t: t.keyed.apply_changes(changes(lsn=float("nan")), op="op", sequence="lsn"), InvalidData, ("'lsn'", "NaN")),
    ("a nested sequence", lambda t: t.keyed.apply_changes(changes(lsn=[1]), op="op", sequence="lsn"), SchemaMismatch, ("'lsn'", "cannot be sorted")),
    ("a tied sequence", lambda t: t.keyed.apply_changes(pa.concat_tables([changes(), changes(op="d")]), op="op", sequence="lsn"), KeyViolation, ("same 'lsn'", "unique per key")),
    # What the table is
    ("append to a table with a key", lambda t: t.keyed.append(data()), UnsupportedOperation, ("has the key (id)", "use upsert")),
    ("upsert without a key", lambda t: t.plain.upsert(data()), UnsupportedOperation, ("no key", "append")),
    ("delete keys without a key", lambda t: t.plain.delete(keys=data().select(["id"])), UnsupportedOperation, ("no key",)),
    ("changes without a key", lambda t: t.plain.apply_changes(CHANGES, op="op", sequence="lsn"), UnsupportedOperation, ("no key",)),
    ("key order without a key", lambda t: t.plain.scan(order_by_key=True), InvalidInput, ("order_by_key", "key")),
    ("a write through an old version", lambda t: rowsieve.open_table(t.keyed.uri, version=0).upsert(data()), UnsupportedOperation, ("upsert", "version 0", "read-only")),
    ("update of a key column", lambda t: t.keyed.update({"id": "id + 1"}), UnsupportedOperation, ("'id'", "key", "delete the row and upsert")),
    ("update of nothing", lambda t: t.keyed.update({}), InvalidInput, ("assignments",)),
    ("update with another type", lambda t: t.keyed.update({"pair": "1"}), RowsieveError, ("struct",)),
    ("update that fails on a row", lambda t: t.keyed.update({"price": "1 / (id - 1)"}), EvaluationError, ("'price'", "'id': 1")),
    ("update out of range", lambda t: t.keyed.update({"price": "id * 100000"}), EvaluationError, ("'price'",)),
    ("delete of nothing said", lambda t: t.keyed.delete(), InvalidInput, ("a predicate, keys= and plan=", "'TRUE'")),
    ("delete of both", lambda t: t.keyed.delete("TRUE", keys=data().select(["id"])), InvalidInput, ("a predicate, keys= and plan=",)),
    ("overwrite outside where", lambda t: t.keyed.overwrite(data(), where="id = 2"), InvalidData, ("do not match where=", "'id': 1", "nothing was written")),
    ("overwrite that moves a key", lambda t: t.keyed.overwrite(data(), where="name = 'a' AND id = 1 AND price > 1 OR price IS NULL AND id > 0 AND name IS NOT NULL AND id <> 1"), InvalidData, ("do not match",)),
    # Predicates
    ("not SQL", lambda t: t.keyed.scan("id = = 1"), InvalidPredicate, ("=",)),
    ("a statement", lambda t: t.keyed.delete("DELETE FROM t"), InvalidPredicate, ("",)),
    ("a query", lambda t: t.keyed.scan("SELECT 1"), InvalidPredicate, ("",)),
    ("a second statement", lambda t: t.keyed.delete("TRUE; DROP TABLE t"), InvalidPredicate, ("",)),
    ("a number as predicate", lambda t: t.keyed.scan("id + 1"), InvalidPredicate, ("",)),
    ("empty text", lambda t: t.keyed.scan(""), InvalidPredicate, ("",)),
    ("unknown function", lambda t: t.keyed.scan("frobnicate(id) = 1"), InvalidPredicate, ("frobnicate",)),
    ("aggregate", lambda t: t.keyed.scan("sum(id) = 1"), InvalidPredicate, ("sum",)),
    ("subquery", lambda t: t.keyed.scan("id IN (SELECT 1)"), InvalidPredicate, ("",)),
    ("text for a number", lambda t: t.keyed.scan("id = 'x'"), InvalidPredicate, ("'x'",)),
    ("number against text", lambda t: t.keyed.scan("name > 1"), InvalidPredicate, ("",)),
    ("struct beside a number", lambda t: t.keyed.scan("pair = 1"), InvalidPredicate, ("struct",)),
    ("a deep predicate", lambda t: t.keyed.scan("(" * 5000 + "id = 1" + ")" * 5000), InvalidPredicate, ("nest",)),
    ("no predicate at all", lambda t: t.keyed.scan(7), InvalidInput, ("SQL text", "int")),
    ("unknown dialect", lambda t: t.keyed.scan("id = 1", dialect="klingon"), InvalidInput, ("'klingon'", "postgres")),
    # Options
    ("negative limit", lambda t: t.keyed.scan(limit=-1), InvalidInput, ("limit", "-1")),
    ("unknown pruning", lambda t: t.keyed.scan(pruning="maybe"), InvalidInput, ("'maybe'",)),  # type: ignore[arg-type]
    ("unknown property", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA, properties={"target_part_byte": "1"}), InvalidInput, ("did you mean 'target_part_bytes'?",)),
    ("a property that is no count", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA, properties={"target_part_bytes": "0"}), InvalidInput, ("'target_part_bytes'", "'0'")),
    ("a property that is a power", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA, properties={"target_part_bytes": "²"}), InvalidInput, ("target_part_bytes",)),
    ("unknown if_exists", lambda t: rowsieve.create_table(str(t.root / "new"), SCHEMA, if_exists="overwrite"), InvalidInput, ("'overwrite'",)),  # type: ignore[arg-type]
    ("unknown on_duplicate", lambda t: t.keyed.upsert(data(), on_duplicate="first"), InvalidInput, ("first",)),  # type: ignore[arg-type]
    ("storage options of a local table", lambda t: rowsieve.open_table(t.keyed.uri, storage_options={"region": "x"}), InvalidInput, ("storage_options", "region")),
    ("a scheme without a store", lambda t: rowsieve.open_table("ftp://host/t"), InvalidInput, ("'ftp'",)),
    ("metadata that is not text", lambda t: t.keyed.upsert(data(), metadata={"a": object()}), InvalidInput, ("metadata['a']", "text")),  # type: ignore[dict-item]
    ("metadata of a creation", lambda t: rowsieve.create_table(str(t.root / "new"), data(), metadata={"a": object()}), InvalidInput, ("metadata['a']", "text")),  # type: ignore[dict-item]
    ("an empty token", lambda t: t.keyed.upsert(data(), token=("", 1)), InvalidInput, ("token",)),
    ("a negative token", lambda t: t.keyed.upsert(data(), token=("app", -1)), InvalidInput, ("token",)),
    # Versions and times
    ("a future version", lambda t: t.keyed.scan(version=7), VersionNotFound, ("version 7", "newest is 1")),
    ("a negative version", lambda t: t.keyed.scan(version=-1), VersionNotFound, ("-1", "start at 0")),
    ("a version that is text", lambda t: rowsieve.open_table(t.keyed.uri, version="1"), InvalidInput, ("'1'", "whole number")),
    ("restore of the future", lambda t: t.keyed.restore(7), VersionNotFound, ("version 7",)),
    ("a time before creation", lambda t: t.keyed.scan(as_of="2001-01-01T00:00:00+00:00"), VersionNotFound, ("2001-01-01", "created at")),
    ("a time without zone", lambda t: t.keyed.scan(as_of="2100-01-01T00:00:00"), InvalidInput, ("no time zone", "+00:00")),
    ("a naive datetime", lambda t: t.keyed.scan(as_of=LATER.replace(tzinfo=None)), InvalidInput, ("no time zone",)),
    ("no time at all", lambda t: t.keyed.scan(as_of="yesterday"), InvalidInput, ("'yesterday'", "ISO-8601")),
    ("version and time", lambda t: rowsieve.open_table(t.keyed.uri, version=0, as_of=LATER), InvalidInput, ("both name",)),
    ("version and time of a scan", lambda t: t.keyed.scan(version=0, as_of=LATER), InvalidInput, ("both name",)),
    # Places
    ("nothing there", lambda t: rowsieve.open_table(str(t.root / "none")), TableNotFound, ("none", "create_table")),
    ("a table there already", lambda t: rowsieve.create_table(t.keyed.uri, SCHEMA, key=["id"]), TableExists, ("keyed", "open_table")),
)
# fmt: on


@pytest.mark.parametrize(
    ("call", "error", "fragments"),
    [mistake[1:] for mistake in MISTAKES],
    ids=[mistake[0].replace(" ", "_") for mistake in MISTAKES],
)
def test_a_mistake_is_named_and_nothing_is_written(
    t: Tables, call: Call, error: type[RowsieveError], fragments: tuple[str, ...]
) -> None:
    before = tree(t.root)
    with pytest.raises(error) as caught:
        call(t)
    for fragment in fragments:
        assert fragment in str(caught.value)
    assert len(str(caught.value)) > 20
    assert [table.refresh() for table in t.both] == [1, 1]
    made = set(tree(t.root)) - set(before)
    assert {name for name in made if not name.startswith("new/")} == set()
    assert {name: tree(t.root)[name] for name in before} == before
    assert [table.scan().count() for table in t.both] == [2, 2]


def test_a_table_whose_first_rows_are_refused_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KeyViolation):
        rowsieve.create_table(str(tmp_path / "t"), data({}, {}), key=["id"])
    with pytest.raises(TableNotFound):
        rowsieve.open_table(str(tmp_path / "t"))
    assert tree(tmp_path) == {}
    assert rowsieve.create_table(str(tmp_path / "t"), data(), key=["id"]).version == 0


@pytest.mark.parametrize(
    ("name", "hint"), [("nme", "; did you mean 'name'?"), ("zzz", ""), ("", "")]
)
def test_a_message_ends_with_the_most_similar_name(name: str, hint: str) -> None:
    assert rowsieve.errors.did_you_mean(name, ["id", "name", "game"]) == hint
