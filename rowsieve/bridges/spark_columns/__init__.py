"""Spark's columns as predicates and back.

A classic column is resolved by Spark's own analyser, a Connect column has its tree on the client;
either becomes the same tree of Catalyst's classes, which `table` lists and `read` and `functions`
turn into ours. Soundness: a condition that means the same on every row is kept, any other is left
out whole and named, so that what is left is TRUE wherever the original is. PySpark is imported at
its first use, and nothing of it but what the caller's column came from.
"""

from __future__ import annotations

import sys
from typing import Any

from rowsieve.bridges.conditions import read_conditions
from rowsieve.bridges.session import Session
from rowsieve.bridges.spark_columns import sessions
from rowsieve.bridges.spark_columns.sessions import ColumnSession
from rowsieve.bridges.spark_columns.tree import Junction, Leaf, Node
from rowsieve.bridges.translation import Exactness, Translation
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.predicate.ir import And, Or, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

__all__ = ["from_spark_column", "is_spark_column", "rules_of", "running_session", "to_spark_column"]


def is_spark_column(value: object) -> bool:
    """Whether this is a Spark column, classic or Connect; PySpark is not imported for it."""
    module = sys.modules.get("pyspark.sql")
    return module is not None and isinstance(value, module.Column)


def running_session() -> Session | None:
    """The settings of the session that columns written now belong to; None of a client alone."""
    found = sessions.settings_for(None)
    return None if found.time_zone is None else Session(found.time_zone, ansi=found.ansi)


def rules_of(column: Any, session: Session | None = None) -> Semantics:
    """The rules that a column is meant by once read: in the mode of its session, zones named."""
    return sessions.settings_of(column, session).rules


def from_spark_column(
    column: Any,
    schema: Schema,
    *,
    strict: bool = False,
    session: Session | None = None,
    ansi: bool | None = None,
    time_zone: str | None = None,
) -> Translation[Predicate, Any]:
    """Read a column over the columns of a schema, meant under `rules_of` it.

    The residual is a column of the conditions left out. A classic column wants the active session
    in which it was made: its ANSI mode and time zone decide what is exact, and `session` cannot say
    otherwise. For a Connect column they are those of `session` (or `ansi` and `time_zone`), or of
    the client's active session if it has one.
    """
    if not hasattr(column, "_jc"):
        from rowsieve.bridges.spark_columns import read_text  # noqa: PLC0415 - large

        if session is not None:
            ansi, time_zone = session.ansi is not False, session.time_zone
        settings = sessions.client_session(ansi=ansi, time_zone=time_zone)
        return read_text.from_client(column, schema, settings, strict=strict)
    if session is not None:
        raise InvalidInput(
            "session=: a classic Spark column is meant by the settings of its own running session; "
            "leave session= out, or set them there"
        )
    from rowsieve.bridges.spark_columns import read_classic  # noqa: PLC0415 - an extra

    settings = sessions.settings_of(column, None)
    at_once = _translated(read_classic.whole_of(column, schema), schema, settings)
    if at_once.exactness is Exactness.EXACT:
        return at_once
    return _translated(read_classic.trees_of(column, schema), schema, settings, strict=strict)


def to_spark_column(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.SPARK,
    *,
    session: Session | None = None,
    strict: bool = False,
) -> Translation[Any, Predicate]:
    """Write a predicate, meant under the semantics given, as a column over the schema.

    `session` has the settings of the session that runs it: those of the one that is running now,
    unless given. A Connect client without a session has no time zone, and what goes by one is left
    out. A row on which an operation fails may fail there even where another
    condition excludes the row.
    """
    from rowsieve.bridges.spark_columns import write  # noqa: PLC0415 - an extra

    sessions.check_session()
    settings = sessions.settings_for(session)
    return write.written(predicate, schema, semantics, settings, strict=strict)


def _translated(
    trees: Junction | Leaf, schema: Schema, settings: ColumnSession, *, strict: bool = False
) -> Translation[Predicate, Any]:
    parts = trees.terms if isinstance(trees, Junction) and trees.all_of else (trees,)
    conditions = [(part, node) for part in parts for node in _conditions(part)]
    return read_conditions(
        conditions,
        lambda condition: _read(condition[1], schema, wraps=not settings.ansi),
        _residual,
        schema,
        settings.rules,
        shown=lambda condition: _shown(*condition),
        strict=strict,
    )


def _conditions(part: Junction | Leaf) -> list[Junction | Leaf | Node]:
    """The conditions of a part that is not an AND of columns: those of its own AND, if any."""
    if isinstance(part, Junction) or not isinstance(part.node, Node):
        return [part]
    found: list[Junction | Leaf | Node] = []
    stack = [part.node]
    while stack:
        node = stack.pop()
        if node.kind == "And":
            stack.extend(reversed(node.children))
        else:
            found.append(node)
    return found


def _read(part: Junction | Leaf | Node, schema: Schema, *, wraps: bool) -> Predicate:
    from rowsieve.bridges.spark_columns.functions import reader_of  # noqa: PLC0415 - as large as it is
    from rowsieve.bridges.spark_columns.zones import check_repeated  # noqa: PLC0415 - same

    if isinstance(part, Node):
        found = reader_of(schema, wraps=wraps).predicate(part)
        check_repeated(found)
        return found
    if isinstance(part, Leaf):
        if isinstance(part.node, UnsupportedOperation):
            raise part.node
        return _read(part.node, schema, wraps=wraps)
    terms = tuple(_read(term, schema, wraps=wraps) for term in part.terms)
    return And(terms) if part.all_of else Or(terms)


def _shown(part: Junction | Leaf, node: Junction | Leaf | Node) -> str:
    if isinstance(part, Leaf):
        if isinstance(node, Node) and node is not part.node and node.source is not None:
            return str(node.source().sql())  # one of several conditions of SQL text
        try:
            return str(part.column).removeprefix("Column<'").removesuffix("'>")
        except RecursionError:  # a client writes its columns recursively
            return "a deep column"
        except ValueError:  # and its instants by the clocks of this machine, which had no year 0
            return "a column of times that PySpark cannot show"
    return (" AND " if part.all_of else " OR ").join(_shown(term, term) for term in part.terms[:4])


def _residual(left: list[tuple[Junction | Leaf, Any]]) -> Any:
    """AND of the columns that conditions were left out of, each once."""
    columns = [_column(part) for part in {id(part): part for part, _ in left}.values()]
    from rowsieve.bridges.spark_columns.write import balanced  # noqa: PLC0415 - as large as it is

    return balanced(columns, all_of=True)


def _column(part: Junction | Leaf) -> Any:
    if isinstance(part, Leaf):
        return part.column
    from rowsieve.bridges.spark_columns.write import balanced  # noqa: PLC0415 - as large as it is

    return balanced([_column(term) for term in part.terms], all_of=part.all_of)
