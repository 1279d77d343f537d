"""Parameters of procedures, and the binding of a call's arguments to them.

An argument is a plain value: text, a whole number, a boolean, a map of texts, or None; or the text
of a time, which becomes an instant when it binds. Positional arguments bind in the order of the
parameters, named ones by name, in any order after them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from rowsieve.errors import InvalidInput, InvalidPredicate, did_you_mean
from rowsieve.statements.call_values import Argument, TimeLiteral, Value
from rowsieve.types.instants import from_microseconds, to_microseconds
from rowsieve.types.time_zones import zone_info

_ZONED: Final = re.compile(r"(.+?)\s+([A-Za-z][\w/+-]*)", re.ASCII)
"""A time and the name of its zone."""


class ParameterType(Enum):
    """The type of a parameter, by its name in messages and in DESCRIBE PROCEDURE."""

    TEXT = "varchar"
    WHOLE = "bigint"
    FLAG = "boolean"
    INSTANT = "timestamp with time zone"
    OPTIONS = "map(varchar, varchar)"


_EXAMPLES: Mapping[ParameterType, str] = {
    ParameterType.TEXT: "'text'",
    ParameterType.WHOLE: "5",
    ParameterType.FLAG: "TRUE",
    ParameterType.INSTANT: "TIMESTAMP '2026-01-31 12:00:00'",
    ParameterType.OPTIONS: "MAP(ARRAY['rewrite-all'], ARRAY['true'])",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its name, type, and its default unless the caller must give it.

    `also`: the names that other systems have for it, which callers may use as well.
    """

    name: str
    type: ParameterType
    required: bool = False
    default: Value = None
    meaning: str = ""
    also: tuple[str, ...] = ()

    @property
    def example(self) -> str:
        """An example of the argument in a call."""
        return f"{self.name} => {_EXAMPLES[self.type]}"


def bind_arguments(
    procedure: str,
    parameters: Sequence[Parameter],
    positional: Sequence[Argument],
    named: Mapping[str, Argument],
    time_zone: str = "UTC",
    by_place: Sequence[Parameter] | None = None,
) -> dict[str, Value]:
    """Return the value of every parameter; InvalidInput names the argument, type and an example.

    Times without a zone are in `time_zone`. `by_place`: the parameters that positional arguments
    are for, by default all.
    """
    by_place = parameters if by_place is None else by_place
    if len(positional) > len(by_place):
        where = "" if by_place is parameters else " after the table"
        names = ", ".join(each.name for each in by_place) or "none"
        raise InvalidInput(
            f"CALL {procedure} takes at most {len(by_place)} arguments{where} ({names}), and "
            f"{len(positional)} were given"
        )
    bound = {parameter.name: value for parameter, value in zip(by_place, positional, strict=False)}
    by_name = {name.lower(): each.name for each in parameters for name in (each.name, *each.also)}
    for name, value in named.items():
        if (known := by_name.get(name.lower())) is None:
            raise InvalidInput(_unknown(procedure, name, parameters))
        if known in bound:
            raise InvalidInput(f"CALL {procedure}: the argument {known} is given twice; remove one")
        bound[known] = value
    return {each.name: _bound(procedure, each, bound, time_zone) for each in parameters}


def literal(value: Value) -> str:
    """The value as a plan shows it."""
    return f"TIMESTAMP '{value}'" if isinstance(value, datetime) else repr(value)


def _bound(
    procedure: str, parameter: Parameter, arguments: Mapping[str, Argument], time_zone: str
) -> Value:
    value = arguments.get(parameter.name)
    if value is None:
        if parameter.required:
            raise InvalidInput(
                f"CALL {procedure} needs the argument {parameter.name} ({parameter.type.value}); "
                f"add for example {parameter.example}"
            )
        return parameter.default
    if parameter.type is ParameterType.INSTANT and isinstance(value, str | TimeLiteral):
        return _instant(procedure, parameter, value, time_zone)
    if isinstance(value, TimeLiteral):
        value = value.text
    if not _fits(value, parameter.type):
        raise InvalidInput(
            f"CALL {procedure}: the argument {parameter.name} is {parameter.type.value}, and "
            f"{value!r} is not; give for example {parameter.example}"
        )
    return value


def _fits(value: Value, type_: ParameterType) -> bool:
    match type_:
        case ParameterType.TEXT:
            return isinstance(value, str)
        case ParameterType.WHOLE:
            return isinstance(value, int) and not isinstance(value, bool)
        case ParameterType.FLAG:
            return isinstance(value, bool)
        case ParameterType.INSTANT:
            return isinstance(value, datetime)
        case ParameterType.OPTIONS:
            return isinstance(value, Mapping)


def _instant(
    procedure: str, parameter: Parameter, value: str | TimeLiteral, time_zone: str
) -> datetime:
    """The point in time of a text; only the time of a literal may lack an offset.

    A local time that occurs twice is the earlier one.
    """
    try:
        if isinstance(value, str):
            return from_microseconds(to_microseconds(value))
        text, name = value.text.strip(), time_zone
        if (zoned := _ZONED.fullmatch(text)) is not None:
            text, name = zoned.groups()
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone_info(name))
        return from_microseconds(to_microseconds(moment))
    except (ValueError, InvalidInput, InvalidPredicate) as error:
        raise InvalidInput(
            f"CALL {procedure}: the argument {parameter.name} is {parameter.type.value}, and "
            f"{value.text if isinstance(value, TimeLiteral) else value!r} is not: {error}; give "
            f"for example {parameter.example}, a time of the session's zone"
        ) from error


def _unknown(procedure: str, name: str, parameters: Sequence[Parameter]) -> str:
    names = [each.name for each in parameters]
    hint = did_you_mean(name, names)
    return f"CALL {procedure} has no argument {name!r}; it takes {', '.join(names) or 'none'}{hint}"
