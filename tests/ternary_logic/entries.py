"""The entries by which text of a dialect reaches rows: each keeps the rows that a scan keeps.

An entry that joins is a row of `ENTRIES`: a call of a table, of its transactions or of its change
feed, a command, or a statement of our DataFusion session. Those that change rows have a copy of the
table, which is restored after each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from typer.testing import CliRunner

import rowsieve
from rowsieve import Table, errors
from rowsieve.cli.app import app
from rowsieve.errors import ConstraintViolation, RowsieveError
from tests.small_tables import fresh_uri
from tests.ternary_logic.readers import Ids

DIALECTS = ("postgres", "duckdb", "datafusion", "spark")
_MARK = "entry_mark"  # the column that an entry assigns in the rows that it keeps
_FREE_IDS = [1_000_000, 1_000_001]  # no row's


@dataclass
class Copies:
    """A table, and a copy with a column more, which entries change; sessions know them as t, c."""

    table: Table
    copy: Table = field(init=False)

    def __post_init__(self) -> None:
        self.copy = self.table.clone(fresh_uri())
        self.copy.add_column(_MARK, "int64")

    @cached_property
    def session(self) -> Any:
        """A session that reads files natively where it may."""
        return self._session(native=True)

    @cached_property
    def own_reads(self) -> Any:
        """A session in which we read all files."""
        return self._session(native=False)

    def _session(self, *, native: bool) -> Any:
        from rowsieve.providers.datafusion import SessionContext

        context = SessionContext(native=native)
        context.register_table("t", self.table)
        context.register_table("c", self.copy)
        context.from_pydict({"source_id": _FREE_IDS}, name="source")
        return context

    @cached_property
    def catalog(self) -> rowsieve.Catalog:
        """A catalog in which the copy is `db.c`."""
        catalog = rowsieve.Catalog(fresh_uri())
        catalog.register_table("db.c", self.copy.uri)
        return catalog

    @contextmanager
    def changing(self) -> Iterator[Table]:
        """Yield the copy, and undo what was done to it."""
        version = self.copy.version
        try:
            yield self.copy
        finally:
            self.copy.refresh()
            for name in self.copy.constraints:
                self.copy.drop_constraint(name)
            if self.copy.version != version:
                self.copy.restore(version)

    @contextmanager
    def in_transaction(self) -> Iterator[Any]:
        """Yield a transaction of the copy, and roll it back."""
        transaction = self.copy.transaction()
        try:
            yield transaction
        finally:
            transaction.rollback()

    def lost(self, changed: Any) -> Ids:
        """The ids of the rows that the copy has no longer."""
        lost = Counter(_all_ids(self.table))
        lost.subtract(_all_ids(changed))
        assert min(lost.values(), default=0) >= 0
        return sorted(lost.elements())


def _ids_of(rows: pa.Table) -> Ids:
    return sorted(rows["id"].to_pylist())


def _all_ids(table: Any) -> Ids:
    return _ids_of(table.scan(columns=["id"]).to_arrow())


def _marked(table: Any) -> Ids:
    return _ids_where(table.scan(columns=["id", _MARK]).to_arrow())


def _ids_where(rows: pa.Table) -> Ids:
    """The ids in the first column where the second is neither NULL nor 0."""
    ids, marks = (column.to_pylist() for column in rows.columns)
    return sorted(number for number, mark in zip(ids, marks, strict=True) if mark)


# Reads


def scanned(copies: Copies, text: str, dialect: str) -> Ids:
    """What each entry is compared with."""
    return _ids_of(copies.table.scan(text, ["id"], dialect=dialect).to_arrow())


def _whole_scan(copies: Copies, text: str, dialect: str) -> Ids:
    scan = copies.table.scan(text, ["id"], dialect=dialect, pruning="off")
    return _ids_of(scan.to_arrow())


def _copy(copies: Copies, text: str, dialect: str) -> Ids:
    return _ids_of(copies.copy.to_arrow(text, ["id"], dialect=dialect))


def _column(copies: Copies, text: str, dialect: str) -> Ids:
    columns = {"id": "id", "truth": f"({text}) IS TRUE"}
    return _ids_where(copies.table.to_arrow(columns=columns, dialect=dialect))


def _pandas(copies: Copies, text: str, dialect: str) -> Ids:
    return sorted(map(int, copies.table.to_pandas(text, ["id"], dialect=dialect)["id"]))


def _polars(copies: Copies, text: str, dialect: str) -> Ids:
    return sorted(copies.table.to_polars(text, ["id"], dialect=dialect)["id"].to_list())


def _limit(copies: Copies, text: str, dialect: str) -> Ids:
    ordered, most = bool(copies.table.key), len(_all_ids(copies.table))
    scan = copies.table.scan(text, ["id"], dialect=dialect, order_by_key=ordered, limit=most + 1)
    return _ids_of(scan.to_arrow())


def _splits(copies: Copies, text: str, dialect: str) -> Ids:
    plan = copies.table.scan(text, ["id"], dialect=dialect).plan()
    reads = [rowsieve.read_split(split).read_all() for split in plan.splits_to_bytes()]
    return sorted(number for read in reads for number in read["id"].to_pylist())


def _feed(copies: Copies, text: str, dialect: str) -> Ids:
    """All rows are deleted: the feed has those that the condition keeps."""
    with copies.changing() as copy:
        copy.delete("TRUE")
        fed = copy.changes(copy.version, where=text, dialect=dialect)
        return _ids_of(fed.read_all())


def _transaction(copies: Copies, text: str, dialect: str) -> Ids:
    with copies.in_transaction() as transaction:
        transaction.update({_MARK: 7})
        return _ids_of(transaction.scan(text, ["id"], dialect=dialect).to_arrow())


# Changes


def _delete(copies: Copies, text: str, dialect: str) -> Ids:
    with copies.changing() as copy:
        copy.delete(text, dialect=dialect)
        return copies.lost(copy)


def _update(copies: Copies, text: str, dialect: str) -> Ids:
    with copies.changing() as copy:
        copy.update({_MARK: 1}, where=text, dialect=dialect)
        return _marked(copy)


def _update_of_a_case(copies: Copies, text: str, dialect: str) -> Ids:
    with copies.changing() as copy:
        copy.update({_MARK: f"CASE WHEN {text} THEN 1 ELSE 0 END"}, dialect=dialect)
        return _marked(copy)


def _overwrite(copies: Copies, text: str, dialect: str) -> Ids:
    """Rows are overwritten by themselves with a mark."""
    rows = copies.copy.to_arrow(text, dialect=dialect)
    if not rows.num_rows:
        return []
    place = rows.schema.get_field_index(_MARK)
    marks = pa.array([1] * rows.num_rows, pa.int64())
    with copies.changing() as copy:
        rows = rows.set_column(place, rows.schema.field(place), marks)
        copy.overwrite(rows, where=text, dialect=dialect)
        assert not copies.lost(copy)
        return _marked(copy)


def _delete_in_transaction(copies: Copies, text: str, dialect: str) -> Ids:
    with copies.in_transaction() as transaction:
        transaction.delete(text, dialect=dialect)
        return copies.lost(transaction)


def _update_in_transaction(copies: Copies, text: str, dialect: str) -> Ids:
    with copies.in_transaction() as transaction:
        transaction.update({_MARK: 1}, where=text, dialect=dialect)
        return _marked(transaction)


def _constraint(copies: Copies, text: str, dialect: str) -> Ids:
    """The rows that a table refuses which forbids the condition."""
    rows = copies.copy.to_arrow()
    refused: Ids = []
    with copies.changing() as copy:
        copy.delete("TRUE")
        copy.add_constraint("forbidden", f"NOT ({text})", dialect=dialect)
        write = copy.upsert if copy.key else copy.append
        if _is_accepted(write, rows):
            return []
        for place in range(rows.num_rows):
            if not _is_accepted(write, rows.slice(place, 1)):
                refused += rows["id"].slice(place, 1).to_pylist()
    return sorted(refused)


def _is_accepted(write: Callable[[pa.Table], Any], rows: pa.Table) -> bool:
    try:
        write(rows)
    except ConstraintViolation:
        return False
    return True


def _fact(copies: Copies, text: str, dialect: str) -> Ids:
    """A scan of rows that all obey the condition, which the table states."""
    with copies.changing() as copy:
        copy.delete(f"NOT ({text})", dialect=dialect)
        copy.add_constraint("fact", text, dialect=dialect)
        return _ids_of(copy.to_arrow(text, ["id"], dialect=dialect))


def _last_changed(copies: Copies, text: str, dialect: str) -> Ids:
    with copies.changing() as copy:
        copy.set_properties({"row_versions": "kept"})
        version = copy.version
        copy.update({_MARK: 7})
        changed = copy.last_changed(version, where=text, dialect=dialect)
        return _ids_of(changed.read_all())


def _vectors(copies: Copies, text: str, dialect: str) -> Ids:
    """Calls that only choose parts refuse what a scan refuses, and lose no row."""
    with copies.changing() as copy:
        copy.key_ranges(text, dialect=dialect)
        if copy.key:
            copy.build_deletion_vectors(text, dialect=dialect)
        return _ids_of(copy.to_arrow(text, ["id"], dialect=dialect))


# Commands


def _run(*arguments: str) -> str:
    """Run a command; raise its error, which stderr names."""
    result = CliRunner().invoke(app, [*arguments])
    if result.exit_code:
        _, name, message = (*result.stderr.split(": ", 2), "", "")[:3]
        kind = getattr(errors, name, RowsieveError)
        raise kind.__new__(kind, message or result.output)  # without the arguments of its own
    return result.stdout


def _show(copies: Copies, text: str, dialect: str) -> Ids:
    options = ("--column", "id", "--output", "json", "--dialect", dialect)
    lines = _run("show", copies.table.uri, *options, "--", text).splitlines()
    return sorted(json.loads(line)["id"] for line in lines)


def _delete_command(copies: Copies, text: str, dialect: str) -> Ids:
    with copies.changing() as copy:
        _run("delete", copy.uri, "--dialect", dialect, "--", text)
        copy.refresh()
        return copies.lost(copy)


def _update_command(copies: Copies, text: str, dialect: str) -> Ids:
    with copies.changing() as copy:
        _run("update", copy.uri, "--set", f"{_MARK}=1", "--dialect", dialect, "--", text)
        copy.refresh()
        return _marked(copy)


def _changes_command(copies: Copies, text: str, dialect: str) -> Ids:
    with copies.changing() as copy:
        copy.delete("TRUE")
        since = ("--from", str(copy.version), "--dialect", dialect)
        lines = _run("changes", copy.uri, *since, "--where", text, "--output", "json")
        return sorted(json.loads(line)["id"] for line in lines.splitlines())


# Statements of our DataFusion session, whose rows are those of its `SELECT`


def _select(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    return _ids_of(copies.session.sql(f"SELECT id FROM t WHERE {text}").to_arrow_table())


def _select_by_us(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    return _ids_of(copies.own_reads.sql(f"SELECT id FROM t WHERE {text}").to_arrow_table())


def _delete_statement(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    with copies.changing() as copy:
        copies.session.sql(f"DELETE FROM c WHERE {text}")
        copy.refresh()
        return copies.lost(copy)


def _delete_returning(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    with copies.changing():
        deleted = copies.session.sql(f"DELETE FROM c WHERE {text} RETURNING id")
        return _ids_of(deleted.to_arrow_table())


def _update_statement(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    with copies.changing() as copy:
        copies.own_reads.sql(f"UPDATE c SET {_MARK} = 1 WHERE {text}")
        copy.refresh()
        return _marked(copy)


def _update_returning(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    case = f"CASE WHEN {text} THEN 1 ELSE 0 END"
    with copies.changing():
        updated = copies.session.sql(f"UPDATE c SET {_MARK} = {case} RETURNING id, {_MARK}")
        return _ids_where(updated.to_arrow_table())


def _delete_in_sql_transaction(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    copies.session.sql("BEGIN")
    try:
        copies.session.sql(f"DELETE FROM c WHERE {text}")
        left = _ids_of(copies.session.sql("SELECT id FROM c").to_arrow_table())
    finally:
        copies.session.sql("ROLLBACK")
    return sorted((Counter(_all_ids(copies.copy)) - Counter(left)).elements())


def _select_in_catalog(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    return _ids_of(copies.catalog.sql(f"SELECT id FROM db.c WHERE {text}").to_arrow_table())


def _update_in_catalog(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    with copies.changing() as copy:
        copies.catalog.sql(f"UPDATE db.c SET {_MARK} = 1 WHERE {text}")
        copy.refresh()
        return _marked(copy)


def _merge_statement(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    with copies.changing() as copy:
        copies.own_reads.sql(
            "MERGE INTO c USING source ON c.id = source.source_id "
            f"WHEN NOT MATCHED BY SOURCE AND ({text}) THEN UPDATE SET {_MARK} = 1"
        )
        copy.refresh()
        return _marked(copy)


def _merge(copies: Copies, text: str, dialect: str) -> Ids:
    del dialect
    with copies.changing() as copy:
        source = {"source_id": sorted({*_all_ids(copy)})}
        merging = copy.merge(source, on="target.id = source.source_id")
        merging.when_matched_delete(text).execute()
        return copies.lost(copy)


Keeps = Callable[[Copies, str, str], Ids]

ENTRIES: Mapping[str, Keeps] = {
    "whole scan": _whole_scan,
    "copy": _copy,
    "column": _column,
    "pandas": _pandas,
    "polars": _polars,
    "limit": _limit,
    "splits": _splits,
    "feed": _feed,
    "transaction": _transaction,
    "delete": _delete,
    "update": _update,
    "update of a case": _update_of_a_case,
    "overwrite": _overwrite,
    "delete in a transaction": _delete_in_transaction,
    "update in a transaction": _update_in_transaction,
    "constraint": _constraint,
    "fact": _fact,
    "last changed": _last_changed,
    "vectors": _vectors,
    "rowsieve show": _show,
    "rowsieve delete": _delete_command,
    "rowsieve update": _update_command,
    "rowsieve changes": _changes_command,
}
"""Entries that take text of each dialect."""

STATEMENTS: Mapping[str, Keeps] = {
    "SELECT": _select,
    "SELECT, files read by us": _select_by_us,
    "DELETE": _delete_statement,
    "DELETE RETURNING": _delete_returning,
    "UPDATE": _update_statement,
    "UPDATE RETURNING": _update_returning,
    "DELETE in a transaction": _delete_in_sql_transaction,
    "SELECT in a catalog": _select_in_catalog,
    "UPDATE in a catalog": _update_in_catalog,
    "MERGE": _merge_statement,
    "merge": _merge,
}
"""Entries whose text DataFusion reads; the first is what the others are compared with."""

VALUES = frozenset({"column", "update of a case", "UPDATE RETURNING"})
"""Entries that compute the condition as a value: some comparisons of two types of numbers are read
as conditions only, and integers in assigned values never wrap around."""
