"""Read the columns, the key and the constraints of a CREATE TABLE, as written in its brackets.

Soundness: an allow-list, as for ALTER TABLE: whatever else is written is refused, never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rowsieve.bridges.sql.action_texts import reason_against
from rowsieve.bridges.sql.alterations import TableChange, column_definition
from rowsieve.bridges.sql.constraint_actions import (
    AddConstraint,
    check_texts,
    numbered,
    table_constraint,
)
from rowsieve.bridges.sql.dialects import Dialect, dialect_named
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.types.evolution import AddColumn, SetComment, SetDefault

_LONGEST = 1_000_000  # characters


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """The columns of a table to create, its key, and what is altered when it is there.

    `schema` has no column if the statement defines none, as before AS query.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    changes: tuple[TableChange, ...]


def table_definition_of(text: str, dialect: str, *, folds: bool = False) -> TableDefinition:
    """Read `id bigint PRIMARY KEY, n int DEFAULT 5 CHECK (n > 0), CONSTRAINT c CHECK (n < id)`.

    `folds`: names of columns without quotes are folded to lower case. InvalidInput or
    UnsupportedOperation names what is not understood.
    """
    known = dialect_named(dialect)
    if len(text) > _LONGEST:
        raise InvalidInput(f"the columns have {len(text):,} characters, at most {_LONGEST:,}")
    try:
        return _definition(text, known, folds=folds)
    except InvalidInput as error:
        if (reason := reason_against(text, known, creates=True)) is not None:
            raise UnsupportedOperation(f"{reason}; nothing was created") from error
        raise


def _definition(text: str, dialect: Dialect, *, folds: bool) -> TableDefinition:
    from sqlglot import exp  # noqa: PLC0415 - it takes 0.1 s to import

    columns: list[AddColumn] = []
    keys: list[tuple[str, ...]] = []
    constraints: list[AddConstraint] = []
    nodes, texts = _parsed(text, dialect, folds=folds)
    checks = iter(texts)
    for node in nodes:
        match node:
            case exp.ColumnDef():
                column = column_definition(node, checks, dialect)
                columns.append(column.added)
                constraints += column.constraints
                keys += [(column.added.field.name,)] if column.is_key else []
            case exp.PrimaryKey():
                keys.append(_key(node))
            case exp.Constraint(expressions=[exp.PrimaryKey() as named]):
                keys.append(_key(named))
            case _ if (constraint := table_constraint(node, checks, dialect)) is not None:
                constraints.append(constraint)
            case _:
                raise _not_read(node.sql())
    if next(checks, None) is not None:
        raise _not_read(text)
    if len(keys) > 1:
        raise InvalidInput("a table has one key: write PRIMARY KEY once, with all of its columns")
    key = keys[0] if keys else ()
    return TableDefinition(_schema(columns, key), key, (*_later(columns), *numbered(constraints)))


def _parsed(text: str, dialect: Dialect, *, folds: bool) -> tuple[Sequence[Any], list[str]]:
    """The definitions in a text, and the texts of all CHECK conditions in their order."""
    import sqlglot  # noqa: PLC0415 - as above
    from sqlglot import exp  # noqa: PLC0415

    from rowsieve.bridges.sql.grammars import damage_as_parse_error  # noqa: PLC0415
    from rowsieve.bridges.sql.reading.text_limits import too_deep  # noqa: PLC0415

    whole = f"CREATE TABLE t ({text})"
    try:
        tokens = sqlglot.tokenize(whole, read=dialect.grammar)
        if too_deep(tokens) is not None:
            raise InvalidInput("the columns are nested too deep")
        with damage_as_parse_error():
            (node,) = sqlglot.parse(whole, read=dialect.grammar)
    except (sqlglot.ParseError, sqlglot.TokenError, ValueError) as error:
        raise _not_read(text) from error
    if not isinstance(node, exp.Create) or not isinstance(node.this, exp.Schema):
        raise _not_read(text)
    if {name for name, value in node.args.items() if value} - {"this", "kind"}:
        raise _not_read(text)
    if folds:
        for name in node.find_all(exp.Identifier):
            name.set("this", name.this if name.quoted else str(name.this).lower())
    return node.this.expressions, check_texts(whole, tokens)


def _key(node: Any) -> tuple[str, ...]:
    from sqlglot import exp  # noqa: PLC0415 - as above

    names = [each for each in node.expressions if isinstance(each, exp.Identifier)]
    if len(names) < len(node.expressions) or not names:
        raise _not_read(node.sql())
    return tuple(str(name.this) for name in names)


def _schema(columns: Sequence[AddColumn], key: Sequence[str]) -> pa.Schema:
    names = [".".join(column.path) for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"the column {name!r} is defined twice; define each once")
    if columns and (unknown := [name for name in key if name not in names]):
        raise InvalidInput(
            f"PRIMARY KEY: no column {unknown[0]!r} in ({', '.join(names)}); name one of these"
        )
    return pa.schema(
        [
            each.field.with_nullable(each.field.nullable and each.field.name not in key)
            for each in columns
        ]
    )


def _later(columns: Iterable[AddColumn]) -> list[TableChange]:
    """Defaults and comments, which a table gets when it is there."""
    changes: list[TableChange] = []
    for column in columns:
        if column.default is not None:
            changes.append(SetDefault(column.path, column.default))
        if column.comment is not None:
            changes.append(SetComment(column.path, column.comment))
    return changes


def _not_read(text: str) -> InvalidInput:
    return InvalidInput(
        f"cannot read the definition {text!r}; write name type [NOT NULL] [DEFAULT constant] "
        "[COMMENT text] [PRIMARY KEY] [CHECK (condition)], PRIMARY KEY (names) or "
        "[CONSTRAINT name] CHECK (condition), separated by commas"
    )
