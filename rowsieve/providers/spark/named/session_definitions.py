"""Refuses defaults and constraints that would mean something else than the session says.

A table keeps a default as a value, and a constraint as a condition that means the same to all who
write rows. Spark's text of both is read in the zone UTC and in ANSI mode.

Soundness: a definition that depends on the zone or the mode is refused in a session with another
one; so is text that a setting of the session changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from rowsieve.bridges.sql.alterations import of_columns
from rowsieve.bridges.sql.constraint_actions import AddConstraint
from rowsieve.bridges.sql.spark.settings import ANSI, TIME_ZONE
from rowsieve.errors import UnsupportedOperation
from rowsieve.providers.spark.session_settings import means_the_same, semantics_of_session
from rowsieve.types.evolution import AddColumn, SetDefault, evolve
from rowsieve.types.schema import Schema

_UTC: Final = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})
_FREE_ID: Final = 1 << 30  # of a field that is added only here


def check_definitions(session: Any, changes: Iterable[Any], schema: Schema) -> None:
    """Raise UnsupportedOperation for a definition that depends on the session.

    `schema` has the columns without those that the changes add.
    """
    listed = list(changes)
    for change in listed:
        if isinstance(change, AddColumn | SetDefault):
            _check_default(session, change)
    if conditions := [each for each in listed if isinstance(each, AddConstraint)]:
        columns, _ = evolve(schema, of_columns(listed), _FREE_ID)
        for each in conditions:
            _check_condition(session, each, columns)


def _check_default(session: Any, change: AddColumn | SetDefault) -> None:
    default = change.default
    if not isinstance(default, pa.Scalar) or getattr(default.type, "tz", None) is None:
        return
    if (zone := str(session.conf.get(TIME_ZONE))) not in _UTC:
        raise UnsupportedOperation(
            f"sql: the default of column {'.'.join(change.path)!r} is read in the zone UTC, and "
            f"{TIME_ZONE} is {zone}; nothing was changed. Set it to UTC for this statement, or "
            "call Table.add_column or Table.set_default with a time that has an offset"
        )


def _check_condition(session: Any, constraint: AddConstraint, schema: Schema) -> None:
    text = str(constraint.condition)
    if not means_the_same(text, schema, semantics_of_session(session, text, schema)):
        raise UnsupportedOperation(
            f"sql: the condition of the constraint {constraint.name!r} is read in the zone UTC and "
            f"in ANSI mode, and depends on {TIME_ZONE} or {ANSI} of this session; nothing was "
            "changed. Set them to UTC and true for this statement, or write a condition that does "
            "not depend on them"
        )
