"""Parameters of procedures, and the binding of a call's arguments to them.

An argument is a plain value: text, a whole number, a boolean, a map of texts, or None. Positional
arguments bind in the order of the parameters, named ones by name, in any order after them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from rowsieve.errors import InvalidInput, did_you_mean

Value: TypeAlias = str | int | bool | Mapping[str, str] | None
"""A value of an argument."""


class ParameterType(Enum):
    """The type of a parameter, by its name in messages and in DESCRIBE PROCEDURE."""

    TEXT = "varchar"
    WHOLE = "bigint"
    FLAG = "boolean"
    OPTIONS = "map(varchar, varchar)"


_EXAMPLES: Mapping[ParameterType, str] = {
    ParameterType.TEXT: "'text'",
    ParameterType.WHOLE: "5",
    ParameterType.FLAG: "TRUE",
    ParameterType.OPTIONS: "MAP(ARRAY['rewrite-all'], ARRAY['true'])",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its name, type, and its default unless the caller must give it."""

    name: str
    type: ParameterType
    required: bool = False
    default: Value = None
    meaning: str = ""

    @property
    def example(self) -> str:
        """An example of the argument in a call."""
        return f"{self.name} => {_EXAMPLES[self.type]}"


def bind_arguments(
    procedure: str,
    parameters: Sequence[Parameter],
    positional: Sequence[Value],
    named: Mapping[str, Value],
) -> dict[str, Value]:
    """Return the value of every parameter; InvalidInput names the argument, type and an example."""
    if len(positional) > len(parameters):
        raise InvalidInput(
            f"{procedure} takes at most {len(parameters)} arguments "
            f"({', '.join(each.name for each in parameters)}), and {len(positional)} were given"
        )
    given = {
        parameter.name: value for parameter, value in zip(parameters, positional, strict=False)
    }
    by_name = {parameter.name.lower(): parameter.name for parameter in parameters}
    for name, value in named.items():
        if (known := by_name.get(name.lower())) is None:
            raise InvalidInput(_unknown(procedure, name, parameters))
        if known in given:
            raise InvalidInput(f"{procedure}: the argument {known} is given twice; remove one")
        given[known] = value
    return {parameter.name: _bound(procedure, parameter, given) for parameter in parameters}


def _bound(procedure: str, parameter: Parameter, given: Mapping[str, Value]) -> Value:
    value = given.get(parameter.name)
    if value is None:
        if parameter.required:
            raise InvalidInput(
                f"{procedure} needs the argument {parameter.name} ({parameter.type.value}); "
                f"add for example {parameter.example}"
            )
        return parameter.default
    if not _fits(value, parameter.type):
        raise InvalidInput(
            f"{procedure}: the argument {parameter.name} is {parameter.type.value}, and "
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
        case ParameterType.OPTIONS:
            return isinstance(value, Mapping)


def _unknown(procedure: str, name: str, parameters: Sequence[Parameter]) -> str:
    names = [each.name for each in parameters]
    hint = did_you_mean(name, names)
    return f"{procedure} has no argument {name!r}; it takes {', '.join(names) or 'none'}{hint}"
