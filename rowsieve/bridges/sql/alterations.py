"""Changes of columns as SQL: the actions of `ALTER TABLE`, `ADD COLUMN b bigint DEFAULT 50`.

Soundness: an allow-list. Whatever else the grammar finds in an action is refused by name, so that
nothing that was written is left out. A default is a constant, or an expression that is evaluated
once; it is never evaluated per row.
"""

from __future__ import annotations

import decimal
import logging
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from rowsieve import clock
from rowsieve.bridges.sql.action_texts import actions_in, reason_against
from rowsieve.bridges.sql.constraint_actions import (
    AddConstraint,
    ConstraintChange,
    DropConstraint,
    check_texts,
    dropped_constraints,
    table_constraint,
)
from rowsieve.bridges.sql.dialects import Dialect, dialect_named
from rowsieve.errors import InvalidInput, InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundOperand, bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.types.encodings import arrow_field, arrow_type
from rowsieve.types.evolution import (
    AddColumn,
    DropColumn,
    RelaxNotNull,
    RenameColumn,
    ReorderColumns,
    SchemaChange,
    SetComment,
    SetDefault,
    SetNotNull,
    WidenColumn,
    evolve,
)
from rowsieve.types.field_paths import Path, resolve
from rowsieve.types.logical import Enum, Field, Float, Json, LogicalType, String, type_name
from rowsieve.types.schema import Schema

_LONGEST = 100_000  # characters
_FREE_ID = 2**31  # for columns that are added only to know the types of the next actions
_DROPPED = re.compile(
    r"\s*DROP\s+COLUMNS?\s+(?P<exists>IF\s+EXISTS\s+)?"
    r"(?:\((?P<listed>[^()]+)\)|(?P<bare>[^(]+))\s*",
    re.IGNORECASE,
)
"""`DROP COLUMN a, b`, and Spark's `DROP COLUMNS (a, b)`."""
_LISTED = re.compile(r"""(?:`(?:[^`]|``)*`|"(?:[^"]|"")*"|[^,`"])+""")
_UNNAMED_CHECK = re.compile(r"\s*ADD\s+(?=CHECK\b)", re.IGNORECASE)
_BETWEEN = "\x1f"  # the steps of a path that is one name for the grammar

TableChange: TypeAlias = SchemaChange | ConstraintChange
"""One action of ALTER TABLE."""
_TypeAt: TypeAlias = Callable[[Path], LogicalType]


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Keep sqlglot from logging, in this thread, what an error says better."""
    thread, log = threading.get_ident(), logging.getLogger("sqlglot")

    def of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    log.addFilter(of_others)
    try:
        yield
    finally:
        log.removeFilter(of_others)


@_no_warnings()
def alterations_of(
    text: str, schema: Schema, dialect: str = "postgres", before: Sequence[TableChange] = ()
) -> tuple[TableChange, ...]:
    """Read actions of ALTER TABLE, separated by commas, without `ALTER TABLE` and the table's name.

    `schema` has the columns that there are, which the changes `before` and each action change for
    the next one. InvalidInput names what is not understood; ADD COLUMN, DROP COLUMN, RENAME COLUMN,
    ALTER COLUMN, ADD CONSTRAINT and DROP CONSTRAINT are.
    """
    known = dialect_named(dialect)
    if len(text) > _LONGEST:
        raise InvalidInput(
            f"the change has {len(text):,} characters, at most {_LONGEST:,} are read"
        )
    changes: list[TableChange] = []
    try:
        for action in actions_in(text, known):
            changes += _read_action(action, schema, [*before, *changes], known)
    except InvalidInput as error:
        if (reason := reason_against(text, known)) is not None:
            raise UnsupportedOperation(f"{reason}; nothing was changed") from error
        raise
    return tuple(changes)


def _read_action(
    text: str, schema: Schema, before: Sequence[TableChange], dialect: Dialect
) -> list[TableChange]:
    """Read one action, which may be of several columns: `DROP COLUMN a, b`."""
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import
    from sqlglot import exp  # noqa: PLC0415

    from rowsieve.bridges.sql.grammars import damage_as_parse_error  # noqa: PLC0415
    from rowsieve.bridges.sql.reading.text_limits import too_deep  # noqa: PLC0415

    if (dropped := _DROPPED.fullmatch(text)) is not None:  # the grammars drop one at a time
        listed = _LISTED.findall(dropped["listed"] or dropped["bare"])
        text = ", ".join(f"DROP COLUMN {dropped['exists'] or ''}{name}" for name in listed)
    is_named = (unnamed := _UNNAMED_CHECK.match(text)) is None
    if unnamed is not None:  # the grammars read it only with a name
        name = exp.to_identifier("check", quoted=True).sql(dialect.grammar)
        text = f"ADD CONSTRAINT {name} {text[unnamed.end() :]}"
    try:
        whole = f"ALTER TABLE t {text}"
        tokens = sqlglot.tokenize(whole, read=dialect.grammar)
        if too_deep(tokens) is not None:
            raise InvalidInput("the change is nested too deep")
        with damage_as_parse_error():
            statements = sqlglot.parse(
                _one_name(whole, tokens, dialect.grammar), read=dialect.grammar
            )
    except (sqlglot.ParseError, sqlglot.TokenError) as error:
        raise _not_read(text) from error
    (node,) = statements if len(statements) == 1 else (None,)
    if not isinstance(node, exp.Alter) or _extra(node, "this", "kind", "actions"):
        raise _not_read(text)
    changes: list[TableChange] = []
    checks = iter(check_texts(whole, tokens))

    def type_at(path: Path) -> LogicalType:
        now, _ = evolve(schema, of_columns([*before, *changes]), _FREE_ID)
        return resolve(now, path)[-1].type

    for action in node.args["actions"]:
        changes += [*_changes(action, type_at, checks, dialect)]
    if not changes or next(checks, None) is not None:
        raise _not_read(text)
    if is_named:
        return changes
    return [replace(each, is_named=False) for each in changes if isinstance(each, AddConstraint)]


def of_columns(changes: Sequence[TableChange]) -> list[SchemaChange]:
    """The changes that are not of constraints."""
    return [each for each in changes if not isinstance(each, AddConstraint | DropConstraint)]


def _changes(
    action: Any, type_at: _TypeAt, checks: Iterator[str], dialect: Dialect
) -> Iterator[TableChange]:
    from sqlglot import exp  # noqa: PLC0415

    match action:
        case exp.ColumnDef():
            column = column_definition(action, checks, dialect)
            if column.is_key:
                raise _not_read(action.sql())
            yield column.added
            if column.is_first:
                yield ReorderColumns((column.added.path,))
            yield from column.constraints
        case exp.Drop() if action.args.get("kind") == "COLUMN":
            _only(action, "kind", "tables", "exists")
            for column in action.args["tables"]:
                yield DropColumn(_path(column), bool(action.args.get("exists")))
        case exp.RenameColumn():
            _only(action, "this", "to")
            yield RenameColumn(_path(action.this), _name(action.args["to"]))
        case exp.AddConstraint(expressions=[constraint]):
            if (added := table_constraint(constraint, checks, dialect)) is None:
                raise _not_read(action.sql())
            yield added
        case exp.Drop() if (dropped := dropped_constraints(action)) is not None:
            yield from dropped
        case exp.AlterColumn():
            yield _altered(action, type_at, dialect)
        case _:
            raise _not_read(action.sql())


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column with what is written behind its type; `is_first`: it is to be the first column."""

    added: AddColumn
    constraints: tuple[AddConstraint, ...]
    is_key: bool
    is_first: bool


def column_definition(action: Any, checks: Iterator[str], dialect: Dialect) -> ColumnDefinition:
    """Read the definition of a column; `checks` are the texts of the conditions to come."""
    from sqlglot import exp  # noqa: PLC0415

    _only(action, "this", "kind", "constraints", "position", "exists")
    path, after, first = _path(action.this), None, False
    name = path[-1]
    if (position := action.args.get("position")) is not None:
        first = position.args.get("position") == "FIRST"
        after = None if first else _name(position.this)
    if action.args.get("kind") is None:
        raise InvalidInput(f"the column {name!r} has no type; write it behind the name")
    type_ = _type(action.args["kind"], name, dialect)
    nullable, default, comment, is_key = True, None, None, False
    constraints: list[AddConstraint] = []
    for constraint in action.args.get("constraints") or ():
        match constraint.args.get("kind"):
            case exp.NotNullColumnConstraint() as limit:
                nullable = bool(limit.args.get("allow_null"))
            case exp.DefaultColumnConstraint(this=value):
                default = _constant(value, name, type_, dialect)
            case exp.CommentColumnConstraint(this=exp.Literal(is_string=True, this=text)):
                comment = str(text)
            case exp.PrimaryKeyColumnConstraint() if constraint.this is None:
                is_key = True
            case exp.CheckColumnConstraint() as check if not check.args.get("enforced"):
                own_name = constraint.this
                shown = f"{name}_check" if own_name is None else str(own_name.this)
                is_named = own_name is not None
                constraints.append(AddConstraint(shown, next(checks), dialect.name, is_named))
            case _:
                raise _not_read(constraint.sql())
    added = AddColumn(
        path,
        arrow_field(Field(0, name, type_, nullable)),
        default,
        after,
        comment,
        bool(action.args.get("exists")),
    )
    return ColumnDefinition(added, tuple(constraints), is_key, first)


def _altered(action: Any, type_at: _TypeAt, dialect: Dialect) -> SchemaChange:
    path = _path(action.this)
    name = path[-1]
    parts = {key for key, value in action.args.items() if value not in (None, False)} - {"this"}
    if parts == {"dtype"}:
        type_ = _type(action.args["dtype"], name, dialect)
        return WidenColumn(path, arrow_field(Field(0, name, type_)))
    if parts == {"default"}:
        return SetDefault(path, _constant(action.args["default"], name, type_at(path), dialect))
    if parts == {"drop"}:
        return SetDefault(path, None)
    if parts == {"drop", "allow_null"}:
        return RelaxNotNull(path)
    if action.args.get("allow_null") is False and not parts:
        return SetNotNull(path)
    if parts == {"comment"} and action.args["comment"].is_string:
        return SetComment(path, str(action.args["comment"].this))
    raise _not_read(action.sql())


def _constant(node: Any, name: str, type_: LogicalType, dialect: Dialect) -> object:
    """Return the value of a constant; quoted text is cast to the column's type, as SQL does."""
    from sqlglot import exp  # noqa: PLC0415

    match node:
        case exp.Null():
            return None
        case exp.Boolean(this=value):
            return bool(value)
        case exp.Literal(is_string=True, this=text):
            return (
                str(text)
                if isinstance(type_, String | Json | Enum)
                else _cast(text, type_, name, dialect)
            )
        case exp.Literal(is_string=False, this=text):
            return _number(text, type_, name)
        case exp.Neg(this=exp.Literal(is_string=False, this=text)):
            return _number(f"-{text}", type_, name)
        case exp.Cast(this=exp.Literal(is_string=True, this=text)):
            return _cast(text, _type(node.args["to"], name, dialect), name, dialect)
        case _:
            return _evaluated(node, type_, name, dialect)


def _evaluated(node: Any, type_: LogicalType, name: str, dialect: Dialect) -> pa.Scalar:
    """Evaluate an expression without columns, once: `now()` is the time of this call for ever."""
    from rowsieve.bridges.sql import parse_expression  # noqa: PLC0415 - it imports sqlglot

    shown = node.sql(dialect.grammar)
    try:
        operand = parse_expression(shown, dialect.name)
        bound = bind_operand(
            operand,
            Schema(0, ()),
            dialect.semantics,
            now_us=clock.now_us(),
            target=type_,
        )
    except (InvalidPredicate, UnsupportedOperation) as error:
        from rowsieve.bridges.sql.error_places import placed  # noqa: PLC0415 - for errors only

        there = placed(error, shown, dialect.name, Schema(0, ()), dialect.semantics, is_value=True)
        raise InvalidInput(
            f"the default {shown} of column {name!r} is not a constant: {there}; write a number, a "
            "quoted text, TRUE, FALSE, NULL, a type before a quoted text, or an expression without "
            "columns, such as now()"
        ) from error
    return _value(bound, f"the default {shown} of column {name!r} has no value of type", type_)


def _value(bound: BoundOperand, failure: str, type_: LogicalType) -> pa.Scalar:
    """Evaluate a bound operand without columns; InvalidInput if it fails."""
    values, failed = compute(bound, pa.RecordBatch.from_arrays([pa.nulls(1)], ["row"]))
    if failed.any():
        raise InvalidInput(f"{failure} {type_name(type_)}")
    return values[0]


def _number(text: str, type_: LogicalType, name: str) -> object:
    try:
        number = decimal.Decimal(text)
    except decimal.InvalidOperation as error:
        raise InvalidInput(f"the default {text} of column {name!r} is not a number") from error
    if isinstance(type_, Float):
        rounded = pa.scalar(float(text), pa.float64()).cast(arrow_type(type_))
        if math.isinf(rounded.as_py()):
            raise InvalidInput(
                f"the default {text} of column {name!r} is out of the range of {type_name(type_)}"
            )
        return rounded
    return int(text) if text.lstrip("-").isdigit() else number


def _cast(text: str, type_: LogicalType, name: str, dialect: Dialect) -> pa.Scalar:
    operand = ir.Cast(ir.Literal(text, String()), type_)
    try:
        bound = bind_operand(operand, Schema(0, ()), dialect.semantics)
    except InvalidPredicate as error:
        raise InvalidInput(
            f"the default {text!r} of column {name!r} cannot be written as text: {error}; add the "
            "column without a default, or with Table.add_column"
        ) from error
    failure = f"the default {text!r} of column {name!r} is not a value of type"
    return _value(bound, failure, type_)


def _type(node: Any, name: str, dialect: Dialect) -> LogicalType:
    from rowsieve.bridges.sql.typenames import column_type  # noqa: PLC0415

    try:
        return column_type(node, dialect, name)
    except ValueError as error:
        raise InvalidInput(f"the column {name!r}: {error}") from error


def _one_name(text: str, tokens: Sequence[Any], dialect: str | None) -> str:
    """Return the text with each path `a.b` as one quoted name: the grammars do not read all paths.

    InvalidInput for a name with the character that separates the steps in it.
    """
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.tokenizer_core import TokenType  # noqa: PLC0415

    if _BETWEEN in text:
        raise _not_read(text)
    pieces, done, place = [], 0, 0
    while place + 2 < len(tokens):
        last = place
        while last + 2 < len(tokens) and tokens[last + 1].token_type == TokenType.DOT:
            last += 2
        if last > place:
            steps = _BETWEEN.join(token.text for token in tokens[place : last + 1 : 2])
            quoted = exp.to_identifier(steps, quoted=True).sql(dialect)
            pieces += [text[done : tokens[place].start], quoted]
            done = tokens[last].end + 1
        place = last + 1
    return "".join([*pieces, text[done:]])


def _path(node: Any) -> tuple[str, ...]:
    """Return the steps of a column's name: `address.city` is a field of the column `address`."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Column | exp.Table) and _extra(node, "this"):
        raise _not_read(node.sql())
    return tuple(str(node.name).split(_BETWEEN))


def _name(node: Any) -> str:
    """Return the name of a column; InvalidInput for a path."""
    path = _path(node)
    if len(path) > 1:
        raise InvalidInput(
            f"{'.'.join(path)!r} is a path; write only the name inside what the field belongs to"
        )
    return path[0]


def _extra(node: Any, *allowed: str) -> set[str]:
    return {key for key, value in node.args.items() if value} - set(allowed)


def _only(node: Any, *allowed: str) -> None:
    if extra := _extra(node, *allowed):
        raise InvalidInput(
            f"{node.sql()!r} has {', '.join(sorted(extra)).upper()}, which is not supported; leave "
            "it out"
        )


def _not_read(text: str) -> InvalidInput:
    return InvalidInput(
        f"cannot read the change {text.replace(_BETWEEN, '.')!r}; write ADD COLUMN name type [NOT "
        "NULL] [DEFAULT constant] [COMMENT text] [FIRST | AFTER name], DROP COLUMN name, RENAME "
        "COLUMN name TO name, ALTER COLUMN name TYPE type, ALTER COLUMN name SET DEFAULT constant, "
        "DROP DEFAULT, SET NOT NULL, DROP NOT NULL or COMMENT text, ADD CONSTRAINT name CHECK "
        "(condition) or DROP CONSTRAINT name; IF NOT EXISTS or IF EXISTS may stand before the name "
        "of what is added or dropped, except that of a constraint to add"
    )
