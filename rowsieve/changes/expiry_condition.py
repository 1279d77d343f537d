"""The property `expire_rows_when`: a condition on the rows that `maintain` deletes.

It is SQL text in the default dialect, and may depend on the time. A row for which it is NULL stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from rowsieve import clock
from rowsieve.bridges.where import to_predicate
from rowsieve.changes.change import Question
from rowsieve.errors import InvalidInput, InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.semantics import Semantics
from rowsieve.predicate.spelled import text_of
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import Schema

EXPIRE_ROWS_WHEN: Final = "expire_rows_when"
_DIALECT: Final = "postgres"


def condition_of(properties: Mapping[str, str], schema: Schema) -> ir.Predicate | None:
    """The condition of the property; None without it. InvalidInput if it does not fit the columns.

    The names in it are those of the schema.
    """
    text = properties.get(EXPIRE_ROWS_WHEN)
    if text is None:
        return None
    try:
        condition = to_predicate(text, _DIALECT, schema)
        bound = bind(condition, schema, Semantics.SQL, now_us=0)
    except InvalidPredicate as error:
        raise InvalidInput(f"table property {EXPIRE_ROWS_WHEN!r}: {error}") from error
    if not bound.columns and not any(isinstance(each, ir.Column) for each in ir.walk(condition)):
        raise InvalidInput(
            f"table property {EXPIRE_ROWS_WHEN!r} is {text!r}, which uses no column: it would "
            "expire all rows or none; write a condition on the columns of a row"
        )
    return condition


def check_can_hold(properties: Mapping[str, str], schema: Schema) -> None:
    """Raise InvalidInput if a part of the condition fails whatever the row, as `1 / 0` does."""
    condition = condition_of(properties, schema)
    if condition is not None and (failing := _failing_constant(condition)) is not None:
        raise InvalidInput(
            f"table property {EXPIRE_ROWS_WHEN!r} is {properties[EXPIRE_ROWS_WHEN]!r}, in which "
            f"{text_of(failing)} fails for every row, so that maintain would, too; correct it"
        )


def _failing_constant(condition: ir.Predicate) -> ir.Call | None:
    """A call without columns that fails whenever it is evaluated; None if there is none."""
    row = pa.RecordBatch.from_arrays([pa.nulls(1)], ["row"])
    for node in ir.walk(condition):
        if not isinstance(node, ir.Call):
            continue
        if any(isinstance(each, ir.Column | ir.BoundColumn | ir.Now) for each in ir.walk(node)):
            continue
        bound = bind_operand(node, Schema(0, ()), Semantics.SQL, now_us=0)
        if compute(bound, row)[1].any():
            return node
    return None


def ids_used(properties: Mapping[str, str], schema: Schema) -> tuple[int, ...]:
    """The ids of the columns that it uses; InvalidInput if it does not fit the schema."""
    condition = condition_of(properties, schema)
    if condition is None:
        return ()
    return tuple(schema.field(name).id for name in ir.column_names(condition))


def question_of(snapshot: Snapshot) -> Question | None:
    """The condition of a version at this moment; None if its rows do not expire."""
    condition = condition_of(snapshot.table.properties, snapshot.schema)
    return None if condition is None else Question(condition, Semantics.SQL, clock.now_us())
