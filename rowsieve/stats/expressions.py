"""What statistics say of expressions, beyond what follows from the columns they read.

A member of a struct is a subject of its own. Everything else is judged by the interpreter from the
arguments alone.

Soundness: a value is claimed only for expressions that read nothing but the subject, and under
every `Semantics`.
"""

from __future__ import annotations

from typing import Protocol

from rowsieve.predicate.abstract import AbstractColumn, AbstractValue, from_column
from rowsieve.predicate.ir import BoundColumn, FieldAccess, Operand
from rowsieve.stats.model import Subject
from rowsieve.types.logical import LogicalType, Struct


class Subjects(Protocol):
    """Statistics by subject, of n parts; `PartStatistics` is one."""

    part_count: int

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """What every part says of a subject."""
        ...


def value_of(operand: Operand, statistics: Subjects) -> AbstractValue | None:
    """What the statistics say of a call, a cast or a member; None if nothing."""
    member = as_member(operand)
    return None if member is None else _value(member, member.field_id, member.type, statistics)


def as_member(operand: Operand) -> BoundColumn | None:
    """A column, or a member of a struct in one however deep, as a column of its own."""
    match operand:
        case BoundColumn():
            return operand
        case FieldAccess(operand=parent, name=name):
            outer = as_member(parent)
            if outer is None or not isinstance(outer.type, Struct):
                return None
            found = [field for field in outer.type.fields if field.name == name]
            if len(found) != 1:
                return None
            return BoundColumn(found[0].id, f"{outer.name}.{name}", found[0].type)
        case _:
            return None


def _value(
    column: BoundColumn, subject: Subject, type_: LogicalType, statistics: Subjects
) -> AbstractValue | None:
    known = statistics.subject(subject)
    if known is None:
        return None
    return from_column(
        BoundColumn(column.field_id, column.name, type_), known, statistics.part_count
    )
