"""The registry of functions by name; binding rejects unknown names.

`extract_year(x)` is an alias of `extract('year', x)`; aliases of engines belong to bridges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from rowsieve.errors import InvalidPredicate, did_you_mean
from rowsieve.predicate.functions import conditional, extents
from rowsieve.predicate.functions.casting import text_instants, unbounded_numbers
from rowsieve.predicate.functions.nested import (
    json_access,
    json_equality,
    json_scalars,
    json_shapes,
    jsonb_texts,
    list_values,
    lists,
    nested,
)
from rowsieve.predicate.functions.numbers import (
    bits,
    divisors,
    engine_quotients,
    exponentials,
    floats,
    numeric,
    rounding,
)
from rowsieve.predicate.functions.row import Argument, Function, Signature, TimeUse
from rowsieve.predicate.functions.texts import (
    found_patterns,
    patterns,
    strings,
    substrings,
    text_building,
    text_digests,
)
from rowsieve.predicate.functions.times import (
    ages,
    calendar,
    interval_length,
    java_times,
    moved_times,
    temporal,
    time_parsing,
    time_texts,
    zoned_times,
)
from rowsieve.predicate.functions.times.infinite_times import with_infinite_times
from rowsieve.predicate.functions.times.nanosecond_calls import with_nanoseconds
from rowsieve.predicate.ir import Call, Literal, Operand
from rowsieve.types.logical import LogicalType, String, type_name

_GROUPS = (
    numeric,
    rounding,
    floats,
    exponentials,
    divisors,
    engine_quotients,
    bits,
    strings,
    substrings,
    text_digests,
    text_building,
    conditional,
    temporal,
    moved_times,
    calendar,
    time_texts,
    time_parsing,
    text_instants,
    java_times,
    zoned_times,
    nested,
    lists,
    list_values,
    patterns,
    found_patterns,
    json_access,
    json_scalars,
    json_equality,
    json_shapes,
    jsonb_texts,
    ages,
    interval_length,
    unbounded_numbers,
    extents,
)
_ROWS: dict[str, Function] = {
    row.name: with_infinite_times(with_nanoseconds(row)) for group in _GROUPS for row in group.ROWS
}

BUILT_IN = frozenset(_ROWS)
FUNCTIONS: Mapping[str, Function] = MappingProxyType(_ROWS)


def names_by_time_use(*uses: TimeUse) -> frozenset[str]:
    """Return the built-in functions that use times in these ways; by default in any way."""
    return frozenset(
        row.name
        for row in FUNCTIONS.values()
        if row.times is not None and (not uses or row.times.use in uses)
    )


def add_row(row: Function) -> None:
    """Register a function in this process; its name must be free."""
    if _ROWS.setdefault(row.name, row) is not row:
        raise ValueError(f"the function {row.name!r} exists")


def find(name: str) -> Function:
    """Return the function with this name."""
    row = FUNCTIONS.get(name)
    if row is None:
        raise unknown_function(name)
    return row


def unknown_function(name: str, names: Iterable[str] = ()) -> InvalidPredicate:
    """Return the error for a call of no function, with similar names; first of these `names`."""
    near = did_you_mean(name, names, 3) or did_you_mean(name, FUNCTIONS, 3)
    return InvalidPredicate(f"no function {name!r}{near or '; rs.register_function adds one'}")


def known_of(operands: Sequence[Operand], types: Sequence[LogicalType | None]) -> list[Argument]:
    """Return the types and constants of the arguments of a call, for `resolve`."""
    return [
        Argument(type_, is_constant=True, constant=operand.value)
        if isinstance(operand, Literal)
        else Argument(type_)
        for operand, type_ in zip(operands, types, strict=True)
    ]


def resolve(name: str, arguments: Sequence[Argument]) -> tuple[Function, Signature]:
    """Return the function and the types of one call."""
    row = find(name)
    signature = row.resolve(arguments)
    if signature is None:
        shown = ", ".join(
            repr(argument.constant)
            if argument.is_constant and isinstance(argument.constant, str)
            else "NULL"
            if argument.type is None
            else type_name(argument.type)
            for argument in arguments
        )
        raise InvalidPredicate(
            f"{name}({shown}) has no meaning: it is used as {row.usage}; cast an argument"
        )
    return row, signature


def canonical_call(call: Call) -> tuple[str, tuple[Operand, ...]]:
    """Return the name and the arguments of a call as the table has them: `extract` of a field."""
    name = call.function.lower()
    if name not in FUNCTIONS and name.startswith("extract_"):
        return "extract", (Literal(name.removeprefix("extract_"), String()), *call.arguments)
    return name, call.arguments
