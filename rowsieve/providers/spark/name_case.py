"""Finds names in SQL text that differ in case from the table's, for case-sensitive sessions.

Text finds a column in any case, as Spark does by default; a name that matches two columns is
refused. Under `spark.sql.caseSensitive` Spark finds the exact name only, so the read is refused for
another case. The rows never depend on the setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.sql.exactness.name_rules import ambiguous_name
from rowsieve.bridges.sql.spark.settings import CASE_SENSITIVE
from rowsieve.errors import UnknownColumn
from rowsieve.predicate import ir
from rowsieve.types.logical import Field, List, LogicalType, Map, Struct
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class OddNames:
    """Names in a text that only sessions with one value of the setting find."""

    other_case: str | None = None  # the table has it in another case
    ambiguous: str | None = None  # the table has it in two cases


def odd_names(text: str, schema: Schema) -> OddNames:
    """The first name of each kind."""
    ambiguous = ambiguous_name(text, schema, "spark")
    return OddNames(name_in_another_case(text, schema), ambiguous)


def check_case(names: OddNames, setting: Callable[[str, str], str]) -> None:
    """Raise UnknownColumn if the text has a name that is not one column in the session."""
    if names == OddNames():
        return
    is_case_sensitive = setting(CASE_SENSITIVE, "false").lower() == "true"
    if (name := names.ambiguous) is not None and not is_case_sensitive:
        raise UnknownColumn(
            f"column {name!r} is ambiguous: the table has it in two cases, and {CASE_SENSITIVE} is "
            "false in this session; set it or rename one of them",
            name=name,
        )
    if (name := names.other_case) is not None and is_case_sensitive:
        raise UnknownColumn(
            f"no column or member {name!r}: the table has it in another case, and "
            f"{CASE_SENSITIVE} is true in this session; write the exact name",
            name=name,
        )


def name_in_another_case(text: str, schema: Schema) -> str | None:
    """Return the first name of a column or member that has another case than the table's."""
    for node in ir.walk(parse_predicate(text, "spark")):
        match node:
            case ir.Column(name=name):
                known = set(schema.names)
            case ir.FieldAccess(operand=operand, name=name):
                known = _member_names(operand, schema)
            case _:
                continue
        if name not in known and any(name.lower() == each.lower() for each in known):
            return name
    return None


def _member_names(operand: ir.Operand, schema: Schema) -> set[str]:
    """Return the names that a member of the operand may have; of any struct if it is not known."""
    match _type_of(operand, schema):
        case Struct(fields=fields):
            return {field.name for field in fields}
        case None:
            return {name for field in schema.fields for name in _all_names(field.type)}
        case _:
            return set()


def _type_of(operand: ir.Operand, schema: Schema) -> LogicalType | None:
    """Return the type of a column, or of a member of one; None of anything else."""
    if isinstance(operand, ir.Column):
        fields = schema.fields
    elif isinstance(operand, ir.FieldAccess):
        outer = _type_of(operand.operand, schema)
        if isinstance(outer, Map):
            return outer.value.type
        fields = outer.fields if isinstance(outer, Struct) else ()
    else:
        return None
    return next((field.type for field in fields if field.name == operand.name), None)


def _all_names(type_: LogicalType) -> Iterator[str]:
    match type_:
        case List(element=element):
            inner: tuple[Field, ...] = (element,)
        case Map(key=key, value=value):
            inner = (key, value)
        case Struct(fields=inner):
            yield from (field.name for field in inner)
        case _:
            return
    for field in inner:
        yield from _all_names(field.type)
