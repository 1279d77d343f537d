"""The methods of `Table` that change its columns and properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import pyarrow as pa

from rowsieve.arguments import checked_methods
from rowsieve.arguments.annotations import (
    ColumnNames,
    ColumnPath,
    Metadata,
    Properties,
    PropertyNames,
    RetryTimeout,
)
from rowsieve.arguments.kinds import described
from rowsieve.bridges.sql.alterations import TableChange, alterations_of, of_columns
from rowsieve.bridges.sql.column_list import type_from_text
from rowsieve.bridges.sql.constraint_actions import AddConstraint, DropConstraint
from rowsieve.bridges.sql.dialects import DialectName, dialect_named
from rowsieve.changes.change import nothing_done
from rowsieve.changes.column_changes import alter_columns
from rowsieve.changes.constraint_changes import Proof, changes_constraints
from rowsieve.changes.constraint_texts import text_to_add
from rowsieve.changes.method_base import TableMethods, changes
from rowsieve.changes.property_changes import change_properties, checked_settings, is_set
from rowsieve.errors import InvalidInput, InvalidSchemaChange
from rowsieve.properties import check_name
from rowsieve.statements.alter import AlterTable
from rowsieve.statements.parse_statement import parse
from rowsieve.statements.refused import Refused
from rowsieve.statements.setting_actions import SettingsChange, read_settings_change
from rowsieve.storage.constraints import constraints_of
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_field
from rowsieve.types.evolution import (
    AddColumn,
    DropColumn,
    RelaxNotNull,
    RenameColumn,
    ReorderColumns,
    SetComment,
    SetDefault,
    SetNotNull,
    WidenColumn,
    evolve,
)
from rowsieve.types.field_paths import Path, shown_path
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema
from rowsieve.types.schema_diff import changes_towards

SchemaMode: TypeAlias = Literal["strict", "merge"]
"""`merge`: a write may add the columns of its data to the table."""


@checked_methods
class Alteration:
    """Several changes of a table's columns, committed together; from `Table.alter`.

    Used in a `with` block: the end of the block commits, an exception in it does not. `commit` is
    the commit, once it is made.
    """

    def __init__(self, schema: Schema, finish: Callable[[Sequence[TableChange]], Commit]) -> None:
        self._schema = schema
        self._finish = finish
        self._changes: list[TableChange] = []
        self.commit: Commit | None = None

    def __repr__(self) -> str:
        if self.commit is not None:
            return f"<rowsieve.Alteration: {self.commit!r}>"
        return (
            f"<rowsieve.Alteration of {len(self._changes)} changes, not committed yet: use it in a "
            "with block>"
        )

    def add_column(
        self,
        name: ColumnPath,
        type: Any,  # noqa: A002 - the word that users expect
        default: Any = None,
        after: str | None = None,
        *,
        nullable: bool = True,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Alteration:
        """Add a column, as `Table.add_column` does."""
        field = _field(name, type, nullable=nullable)
        return self._append(AddColumn(_path(name), field, default, after, comment, if_not_exists))

    def drop_column(self, name: ColumnPath, *, if_exists: bool = False) -> Alteration:
        """Remove a column, as `Table.drop_column` does."""
        return self._append(DropColumn(_path(name), if_exists))

    def rename_column(self, name: ColumnPath, new_name: str) -> Alteration:
        """Rename a column, as `Table.rename_column` does."""
        return self._append(RenameColumn(_path(name), new_name))

    def widen_column(self, name: ColumnPath, type: Any) -> Alteration:  # noqa: A002 - as above
        """Widen a column, as `Table.widen_column` does."""
        return self._append(WidenColumn(_path(name), _field(name, type, nullable=True)))

    def reorder_columns(self, names: ColumnNames) -> Alteration:
        """Reorder the columns, as `Table.reorder_columns` does."""
        return self._append(ReorderColumns(tuple(names)))

    def relax_not_null(self, name: ColumnPath) -> Alteration:
        """Allow NULL in a column, as `Table.relax_not_null` does."""
        return self._append(RelaxNotNull(_path(name)))

    def set_not_null(self, name: ColumnPath) -> Alteration:
        """Disallow NULL in a column, as `Table.set_not_null` does."""
        return self._append(SetNotNull(_path(name)))

    def set_comment(self, name: ColumnPath, comment: str | None) -> Alteration:
        """Describe a column, as `Table.set_comment` does."""
        return self._append(SetComment(_path(name), comment))

    def set_default(self, name: ColumnPath, default: Any) -> Alteration:
        """Change the default of new rows, as `Table.set_default` does."""
        return self._append(SetDefault(_path(name), default))

    def sql(self, text: str, dialect: DialectName = "postgres") -> Alteration:
        """Add the actions of an ALTER TABLE: `ADD COLUMN b bigint DEFAULT 50, DROP COLUMN c`.

        Omit the words `ALTER TABLE` and the table's name. InvalidInput for anything else.
        """
        return self.extend(alterations_of(text, self._schema, dialect, self._changes))

    def extend(self, changes: Sequence[TableChange]) -> Alteration:
        """Add changes that are values already."""
        for change in changes:
            self._append(change)
        return self

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit = self._finish(tuple(self._changes))

    def _append(self, change: TableChange) -> Alteration:
        self._check_open()
        self._changes.append(change)
        return self

    def _check_open(self) -> None:
        if self.commit is not None:
            raise InvalidInput("alter: these changes are committed already; begin with t.alter()")


class ColumnMethods(TableMethods):
    """Changes of columns and properties; none of them reads or writes a row.

    A column's name may be the path of a field inside a column: "address.city" in a struct,
    "tags.element" in a list, "prices.value" in a map. In a list of the steps, these may have dots.
    """

    def alter(self, *, metadata: Metadata | None = None) -> Alteration:
        """Return an `Alteration` that makes several changes of columns in one commit.

        `with t.alter() as a: a.drop_column("b"); a.add_column("b", "int64", default=50)`
        """
        self.handle.require_writable("alter")
        base = self.handle.latest()
        return Alteration(base.schema, lambda wanted: self._finish(base, wanted, metadata))

    @changes("alter")
    def add_column(
        self,
        name: ColumnPath,
        type: Any,  # noqa: A002 - the word that users expect
        default: Any = None,
        after: str | None = None,
        *,
        nullable: bool = True,
        comment: str | None = None,
        if_not_exists: bool = False,
        metadata: Metadata | None = None,
    ) -> Commit:
        """Add a column as the last one, or behind the column `after`.

        A path such as "address.city" adds a field to a struct, behind its field `after`.
        `type` is a pyarrow type, or text such as "int64" or "decimal(10,2)". All rows that exist
        have the value `default`, for ever; an append that lacks the column gets it too. No file is
        written or read. InvalidSchemaChange if the table has a column of that name; with
        `if_not_exists`, nothing is changed then.
        """
        field = _field(name, type, nullable=nullable)
        change = AddColumn(_path(name), field, default, after, comment, if_not_exists)
        return self._alter(self.handle.latest(), (change,), metadata)

    @changes("alter")
    def drop_column(
        self, name: ColumnPath, *, if_exists: bool = False, metadata: Metadata | None = None
    ) -> Commit:
        """Remove a column from the next version on; earlier versions still show it.

        A column that is added later under the same name is another column: it has none of the
        values of this one. InvalidSchemaChange for a key column and for the last column.
        """
        return self._alter(self.handle.latest(), (DropColumn(_path(name), if_exists),), metadata)

    @changes("alter")
    def rename_column(
        self, name: ColumnPath, new_name: str, *, metadata: Metadata | None = None
    ) -> Commit:
        """Rename a column from the next version on; its values and statistics stay.

        A key column keeps its place in the key. InvalidSchemaChange if the name is taken.
        """
        return self._alter(self.handle.latest(), (RenameColumn(_path(name), new_name),), metadata)

    @changes("alter")
    def widen_column(
        self,
        name: ColumnPath,
        type: Any,  # noqa: A002 - the word that users expect
        *,
        metadata: Metadata | None = None,
    ) -> Commit:
        """Give a column a type that holds all values of its present one, in the same order.

        An integer may become a larger integer, a decimal with enough digits or, up to 32 bits,
        float64; float32 may become float64, a decimal one with no fewer digits before and behind
        the point, and a date a time without a zone. Files are cast when they are read.
        InvalidSchemaChange for any other type, and if dates may be out of the time's range.
        """
        field = _field(name, type, nullable=True)
        return self._alter(self.handle.latest(), (WidenColumn(_path(name), field),), metadata)

    @changes("alter")
    def reorder_columns(self, names: ColumnNames, *, metadata: Metadata | None = None) -> Commit:
        """Put columns in this order; those that are not named follow in the order they have.

        Paths put the fields of one struct in an order: `["address.zip", "address.city"]`.
        """
        return self._alter(self.handle.latest(), (ReorderColumns(tuple(names)),), metadata)

    @changes("alter")
    def relax_not_null(self, name: ColumnPath, *, metadata: Metadata | None = None) -> Commit:
        """Allow NULL in a column. InvalidSchemaChange for a key column."""
        return self._alter(self.handle.latest(), (RelaxNotNull(_path(name)),), metadata)

    @changes("alter")
    def set_not_null(self, name: ColumnPath, *, metadata: Metadata | None = None) -> Commit:
        """Disallow NULL in a column; InvalidSchemaChange if a row has NULL in it.

        Rows are read only where the statistics of the parts do not show that there is none.
        """
        return self._alter(self.handle.latest(), (SetNotNull(_path(name)),), metadata)

    @changes("alter")
    def set_comment(
        self, name: ColumnPath, comment: str | None, *, metadata: Metadata | None = None
    ) -> Commit:
        """Describe a column or field in words, for people; None removes the comment."""
        return self._alter(self.handle.latest(), (SetComment(_path(name), comment),), metadata)

    @changes("alter")
    def sql(
        self, text: str, dialect: DialectName = "postgres", *, metadata: Metadata | None = None
    ) -> Commit:
        """Execute `ALTER TABLE name …`, whose actions are those of `Alteration.sql`, in one commit.

        Also `SET TBLPROPERTIES (…)`, `UNSET TBLPROPERTIES (…)` and `SET PROPERTIES …`. The name is
        the last step of the table's URI, or `this`. InvalidInput for any other statement.
        """
        self.handle.require_writable("alter")
        base = self.handle.latest()
        table_name = self.handle.store.uri.rstrip("/").rpartition("/")[2]
        statement = parse(text, dialect)
        if isinstance(statement, Refused):
            raise statement.error
        if not isinstance(statement, AlterTable) or not statement.actions:
            raise InvalidInput(
                f"sql: {text[:100]!r} is not ALTER TABLE with actions on columns; query the table "
                "with an engine, such as DataFusion, and change rows with update, delete and the "
                "others"
            )
        name = statement.target.parts[-1]
        if name.lower() not in (table_name.lower(), "this"):
            raise InvalidInput(
                f"sql: the statement changes the table {name!r}, and this one is {table_name!r}; "
                f"write ALTER TABLE {table_name} or this"
            )
        settings = read_settings_change(statement.actions, dialect_named(dialect))
        if settings is not None:
            return self._set_and_unset(base, settings, metadata)
        changes = alterations_of(statement.actions, base.schema, dialect)
        return self._alter(base, changes, metadata)

    @changes("alter")
    def set_default(
        self, name: ColumnPath, default: Any, *, metadata: Metadata | None = None
    ) -> Commit:
        """Change the value that an appended row gets if the data lacks the column; None is NULL.

        Rows that exist keep what they have.
        """
        return self._alter(self.handle.latest(), (SetDefault(_path(name), default),), metadata)

    @changes("alter")
    def evolve(self, schema: pa.Schema, *, metadata: Metadata | None = None) -> Commit:
        """Add the columns that only `schema` has, and widen those that are narrower than there.

        No column is dropped or renamed. Commits nothing if the table has all of it already.
        InvalidSchemaChange for a column whose type differs otherwise.
        """
        self.handle.require_writable("alter")
        base = self.handle.latest()
        wanted = changes_towards(base.schema, schema)
        return self._alter(base, wanted, metadata) if wanted else nothing_done("alter", base)

    @changes("alter")
    def _finish(
        self, base: Snapshot, wanted: Sequence[TableChange], metadata: Metadata | None
    ) -> Commit:
        return self._alter(base, wanted, metadata)

    def _alter(
        self, base: Snapshot, wanted: Sequence[TableChange], metadata: Metadata | None
    ) -> Commit:
        if not wanted:
            raise InvalidInput("alter: no change was given; add, drop or rename a column")
        change = self.handle.change("alter", metadata, None)
        unchanged, _ = evolve(base.schema, of_columns(wanted), base.next_field_id, base.table.key)
        same_columns = unchanged.fields == base.schema.fields  # of changes that were conditional
        if same_columns and not changes_constraints(base, wanted):
            return nothing_done("alter", base)
        proof = Proof()
        return self.handle.commit(
            change, base, lambda head: alter_columns(change, base, head, wanted, proof)
        )

    # Constraints

    @property
    def constraints(self) -> dict[str, str]:
        """The constraints of the pinned version: name and condition.

        The condition is text that `add_constraint` reads, in PostgreSQL's dialect if it has the
        same meaning there, else in the dialect in which it was added.
        """
        pinned = self.handle.pinned
        return {
            each.name: text_to_add(each, pinned.schema)
            for each in constraints_of(pinned.table.properties)
        }

    @changes("alter")
    def add_constraint(
        self,
        name: str,
        condition: Any,
        *,
        dialect: DialectName = "postgres",
        metadata: Metadata | None = None,
    ) -> Commit:
        """Allow only rows for which the condition is TRUE or NULL, from the next version on.

        `condition` is SQL text or a condition of another engine, on the columns of one row.
        ConstraintViolation if a row violates it. Rows are read only where the statistics of the
        parts do not show that none does.
        """
        change = AddConstraint(name, condition, dialect)
        return self._alter(self.handle.latest(), (change,), metadata)

    @changes("alter")
    def drop_constraint(
        self, name: str, *, if_exists: bool = False, metadata: Metadata | None = None
    ) -> Commit:
        """Remove a constraint from the next version on. InvalidInput for an unknown name."""
        return self._alter(self.handle.latest(), (DropConstraint(name, if_exists),), metadata)

    # Properties

    @changes("set_properties")
    def set_properties(
        self,
        properties: Properties,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Set table properties from the next version on; the others keep their values.

        A property applies to writes and reads of that version and later ones. InvalidInput for an
        unknown name or an invalid value. Commits nothing if all properties have these values.
        """
        self.handle.require_writable("set_properties")
        head = self.handle.latest()
        return self._set(
            "set_properties", head, checked_settings(properties, head), metadata, retry_timeout_s
        )

    @changes("unset_properties")
    def unset_properties(
        self,
        names: PropertyNames,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Reset table properties to their defaults, from the next version on.

        Commits nothing if none of them is set.
        """
        self.handle.require_writable("unset_properties")
        for name in names:
            check_name(name)
        wanted = dict.fromkeys(names)
        return self._set(
            "unset_properties", self.handle.latest(), wanted, metadata, retry_timeout_s
        )

    def _set_and_unset(
        self, head: Snapshot, change: SettingsChange, metadata: Metadata | None
    ) -> Commit:
        for name in change.unset:
            check_name(name)
        checked = checked_settings(change.settings, head)
        wanted = {**checked, **dict.fromkeys(change.unset)}
        operation = "set_properties" if checked else "unset_properties"
        return self._set(operation, head, wanted, metadata, RETRY_TIMEOUT_S)

    def _set(
        self,
        operation: str,
        head: Snapshot,
        wanted: Mapping[str, str | None],
        metadata: Metadata | None,
        retry_timeout_s: float | None,
    ) -> Commit:
        if not wanted:
            raise InvalidInput(f"{operation}: no property was given; name at least one")
        notes: dict[str, Any] = {**(metadata or {}), "properties": dict(wanted)}
        change = self.handle.change(operation, notes, None, retry_timeout_s)
        if is_set(head, wanted):
            return nothing_done(operation, head)
        return self.handle.commit(
            change, head, lambda head: change_properties(change, head, wanted)
        )


def _path(name: ColumnPath) -> Path:
    """Return text as it is, and a list of steps as a tuple; InvalidInput without a step."""
    if isinstance(name, str):
        return name
    if not name:
        raise InvalidInput("name is an empty list; give a column's name, such as 'address.city'")
    return tuple(name)


def _field(path: ColumnPath, type_: Any, *, nullable: bool) -> pa.Field:
    """Return the Arrow field of a column; `type_` is an Arrow type, a field with one, or text."""
    name = shown_path(_path(path))
    if isinstance(type_, pa.Field):
        return type_.with_name(name).with_nullable(nullable and bool(type_.nullable))
    if isinstance(type_, pa.DataType):
        return pa.field(name, type_, nullable)
    if isinstance(type_, str):
        return arrow_field(Field(0, name, type_from_text(type_), nullable))
    shown = repr(type_) if isinstance(type_, type) else described(type_)
    raise InvalidSchemaChange(
        f"column {name!r}: the type is {shown}; give a pyarrow type, or text such as 'int64'"
    )
