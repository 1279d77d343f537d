"""Columns read by their text: what they say in Spark's SQL, read as that dialect is.

Soundness: where the time zone of the session is not known, a condition is read in two of them, and
refused unless it is the same in both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rowsieve.bridges.conditions import read_conditions
from rowsieve.bridges.spark_columns import connect
from rowsieve.bridges.spark_columns.sessions import ColumnSession
from rowsieve.bridges.spark_columns.write import balanced
from rowsieve.bridges.sql import parse, parse_predicate
from rowsieve.bridges.sql.dialects import SPARK
from rowsieve.bridges.sql.stand_ins import StandIns
from rowsieve.bridges.sql.translation import as_meant
from rowsieve.bridges.translation import Translation
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

_TOO_DEEP = "its values nest too deeply to be read"
_ANOTHER = "Asia/Kathmandu"
# The column that a condition is of, and how it is read, or why it is not.
Condition = tuple[Any, Callable[[], Predicate] | UnsupportedOperation]


def from_client(
    column: Any, schema: Schema, session: ColumnSession, *, strict: bool
) -> Translation[Predicate, Any]:
    """Read a column of a Connect client, meant under the rules of the session."""
    found: list[Condition] = []
    for expression in connect.conditions(column._expr):
        own = type(column)(expression)
        if type(expression).__name__ == "SQLExpression":
            pieces = _pieces(str(expression._expr))
            found += [(own, partial(_piece, piece, session)) for piece in pieces]
        else:
            found.append((own, _said(expression, schema, session)))
    return _read(found, schema, session, strict=strict)


def _pieces(text: str) -> list[str]:
    """The conditions of the AND at the top of SQL text."""
    try:
        return [piece for piece, _ in parse.conditions(text, "spark")]
    except InvalidPredicate:
        return [text]  # it is refused where it is read


def _piece(text: str, session: ColumnSession) -> Predicate:
    session.check_formats(text)
    return parse_predicate(text, "spark")


def _said(
    expression: Any, schema: Schema, session: ColumnSession
) -> Callable[[], Predicate] | UnsupportedOperation:
    words = connect.Words(
        schema,
        size_of_null=session.size_of_null,
        null_in_empty_list=session.null_in_empty_list,
    )
    try:
        text = words.text(expression)
        session.check_formats(text)
    except UnsupportedOperation as error:
        return error
    except RecursionError:
        return UnsupportedOperation(_TOO_DEEP)
    return lambda: _whole(text, words.stand_ins)


def _whole(text: str, stand_ins: StandIns) -> Predicate:
    """The condition of a text, and of those that stand in it by a name."""

    def read(piece: str) -> Predicate:
        known = stand_ins.conditions
        return parse.predicate(piece, "spark", known) if known else parse_predicate(piece, "spark")

    return stand_ins.read_whole(text, read)


def _read(
    found: list[Condition], schema: Schema, session: ColumnSession, *, strict: bool
) -> Translation[Predicate, Any]:
    def read(condition: Condition) -> Predicate:
        if isinstance(condition[1], UnsupportedOperation):
            raise condition[1]
        try:
            return _meant(condition[1](), schema, session)
        except RecursionError:
            raise UnsupportedOperation(_TOO_DEEP) from None

    return read_conditions(
        found,
        read,
        _residual,
        schema,
        session.rules,
        shown=lambda condition: _shown(condition[0]),
        strict=strict,
    )


def _meant(parsed: Predicate, schema: Schema, session: ColumnSession) -> Predicate:
    predicate, root = as_meant(parsed, schema, SPARK, session.rules)
    if session.time_zone is None:
        rules = Semantics.of_spark(ansi=session.ansi, time_zone=_ANOTHER)
        if as_meant(parsed, schema, SPARK, rules)[1] != root:
            raise UnsupportedOperation(
                "the session's time zone is not known, and UTC is not assumed; give time_zone="
            )
    return predicate


def _shown(column: Any) -> str:
    try:
        return str(column).removeprefix("Column<'").removesuffix("'>")
    except RecursionError:  # a client writes its columns recursively
        return "a deep column"
    except ValueError:  # and its instants by the clocks of this machine, which had no year 0
        return "a column of times that PySpark cannot show"


def _residual(left: list[Condition]) -> Any:
    """AND of the columns that conditions were left out of, each once."""
    columns = {id(column): column for column, _ in left}
    return balanced(list(columns.values()), all_of=True)
