"""The rules that combine the values of a column, by their names, and the types that they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from rowsieve.arguments import Example
from rowsieve.changes.partial.list_unions import has_equal_items
from rowsieve.errors import InvalidInput, did_you_mean
from rowsieve.properties import COMBINE
from rowsieve.types.logical import (
    Decimal,
    Field,
    Int,
    Json,
    List,
    is_ordered,
    type_name,
)
from rowsieve.types.schema import Schema

Combine: TypeAlias = Annotated[
    Mapping[str, str], Example("{'visits': 'sum'}", "a dict of columns and rules")
]


@dataclass(frozen=True, slots=True)
class Rule:
    """What a rule takes: `takes` says whether a column may have it, `wants` names such columns."""

    takes: Callable[[Field], bool]
    wants: str


def _is_exact(field: Field) -> bool:
    return isinstance(field.type, Int | Decimal) and field.alias is None


def _is_list(field: Field) -> bool:
    return (
        isinstance(field.type, List)
        and field.size is None
        and has_equal_items(field.type.element.type)
    )


_ANY: Final = Rule(lambda _: True, "a column of any type")
_ORDERED: Final = Rule(
    lambda field: is_ordered(field.type), "a number, text, bytes, a time or a boolean"
)
RULES: Final[Mapping[str, Rule]] = {
    "last": _ANY,
    "first": _ANY,
    "last_not_null": _ANY,
    "sum": Rule(
        _is_exact, "integers or decimals; a sum of floats would depend on the order of the changes"
    ),
    "min": _ORDERED,
    "max": _ORDERED,
    "union_of_lists": Rule(
        _is_list, "lists of any length, whose items are no lists, maps, intervals or numerics"
    ),
    "json_merge": Rule(lambda field: isinstance(field.type, Json), "a column of JSON"),
}


def table_rules(
    properties: Mapping[str, str], schema: Schema, key: Sequence[str]
) -> dict[str, str]:
    """The rules of the property; InvalidInput if it does not fit the columns."""
    text = properties.get(COMBINE)
    if text is None:
        return {}
    rules: dict[str, str] = {}
    for each in text.split(","):
        name, colon, rule = (part.strip() for part in each.rpartition(":"))
        if not colon or name not in schema.names or name in rules:
            raise InvalidInput(
                f"table property {COMBINE!r} is {text!r}; it must name columns of the table, each "
                "once, with a rule, as 'visits: sum, day: max'"
            )
        rules[name] = rule
    return check_rules(rules, schema, key, f"table property {COMBINE!r}")


def check_rules(
    combine: Mapping[str, str], schema: Schema, fixed: Sequence[str], operation: str
) -> dict[str, str]:
    """Return the rules by the names of the table's columns; InvalidInput for one that cannot be.

    `fixed` are the columns of the key and of the event order.
    """
    rules: dict[str, str] = {}
    for name, rule in combine.items():
        field = schema.field(name)
        if rule not in RULES:
            raise InvalidInput(
                f"{operation}: combine={{{name!r}: {rule!r}}} is not a rule; known are "
                f"{', '.join(RULES)}{did_you_mean(str(rule), RULES)}"
            )
        if field.name in fixed:
            raise InvalidInput(
                f"{operation}: combine= names column {field.name!r}, which identifies its row or "
                "orders its changes, and is never combined"
            )
        if field.name in rules:
            raise InvalidInput(f"{operation}: combine= names column {field.name!r} twice")
        if not RULES[rule].takes(field):
            raise InvalidInput(
                f"{operation}: combine={{{name!r}: {rule!r}}}: the column is "
                f"{type_name(field.type)}, and {rule} takes {RULES[rule].wants}"
            )
        rules[field.name] = rule
    return rules
