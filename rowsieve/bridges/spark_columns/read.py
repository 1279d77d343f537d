"""Read columns as text of Spark SQL.

Soundness: if the session's time zone is unknown, a condition is read in two zones, and refused
unless the results are equal.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from rowsieve.bridges.chains import balanced
from rowsieve.bridges.extras import imported
from rowsieve.bridges.spark_columns import classic, client, sessions
from rowsieve.bridges.spark_columns.sessions import ColumnSession
from rowsieve.bridges.sql.dialects import SPARK
from rowsieve.bridges.sql.encoded import read_encoded
from rowsieve.bridges.sql.placeholders import StandIns
from rowsieve.bridges.sql.spark.column_words import Form, Names, Words
from rowsieve.bridges.translation import Translation
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

_OTHER_ZONE = "Asia/Kathmandu"
Condition = tuple[Any, Any]  # the column of a condition, and its tree, text or refusal


def from_classic(
    column: Any, schema: Schema, session: ColumnSession, *, strict: bool
) -> Translation[Predicate, Any]:
    """Read a classic column under the rules of its session."""
    try:
        sessions.check_settings()
        conjuncts = classic.conditions(column)
    except UnsupportedOperation as error:
        conjuncts = [(column, error)]
    form_of = partial(classic.form_of, names=Names(schema, session.is_case_sensitive))
    read = partial(_read, forms=lambda _: form_of, schema=schema, session=session)
    if (at_once := read(conjuncts, strict=False)).residual is None:
        return at_once
    folded = [
        (conjunct, classic.folded(item) if isinstance(item, classic.Node) else item)
        for conjunct, item in conjuncts
    ]
    return read(folded, strict=strict)


def from_client(
    column: Any, schema: Schema, session: ColumnSession, *, strict: bool
) -> Translation[Predicate, Any]:
    """Read a column of a Connect client under the rules of the session."""
    conjuncts = client.conditions(column)

    def forms(stand_ins: StandIns) -> Callable[[Any], Form]:
        return partial(client.form_of, stand_ins=stand_ins)

    return _read(conjuncts, forms, schema, session, strict=strict)


def _read(
    conditions: list[Condition],
    forms: Callable[[StandIns], Callable[[Any], Form]],
    schema: Schema,
    session: ColumnSession,
    *,
    strict: bool,
) -> Translation[Predicate, Any]:
    def spell(condition: Condition, stand_ins: StandIns) -> str:
        item = condition[1]
        if isinstance(item, UnsupportedOperation):
            raise item
        if isinstance(item, str):
            session.check_formats(item)
            return item
        return _words(schema, session, stand_ins, forms(stand_ins)).text(item)

    def shown(condition: Condition) -> str:
        column, item = condition
        pieces = [each for each, _ in conditions if each is column]
        if isinstance(item, classic.Node) and len(pieces) > 1:  # of SQL text that is an AND
            return str(item.source().sql())
        return _shown(column)

    unknown = session.time_zone is None
    return read_encoded(
        conditions,
        spell,
        _residual,
        schema,
        SPARK,
        semantics=session.rules,
        elsewhere=Semantics.of_spark(ansi=session.ansi, time_zone=_OTHER_ZONE) if unknown else None,
        shown=shown,
        strict=strict,
    )


def _words(
    schema: Schema, session: ColumnSession, stand_ins: StandIns, form_of: Callable[[Any], Form]
) -> Words:
    """Return the formatter of one condition."""
    return Words(
        Names(schema, session.is_case_sensitive),
        stand_ins,
        form_of,
        imported("pyspark.sql.functions", "spark"),
        session.check_formats,
        size_of_null=session.size_of_null,
        null_in_empty_list=session.null_in_empty_list,
    )


def _shown(column: Any) -> str:
    try:
        return str(column).removeprefix("Column<'").removesuffix("'>")
    except RecursionError:  # a client writes its columns recursively
        return "a deep column"
    except ValueError:  # it shows instants in the local zone, in which Python has no year 0
        return "a column of times that PySpark cannot show"


def _residual(left: list[Condition]) -> Any:
    """Return the AND of the columns of omitted conditions, each once."""
    columns = {id(column): column for column, _ in left}
    return balanced(list(columns.values()), operator.and_)
