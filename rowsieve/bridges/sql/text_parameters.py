"""Texts with parameters: `$name` or `:name` in SQL, and values that are bound to them.

Soundness: a value is never text. The reader of a condition gets a name that no column has in the
place of each parameter, and takes the value as a constant with its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa

from rowsieve.bridges.python_constants import lit
from rowsieve.bridges.sql.dialects import Dialect, dialect_named
from rowsieve.bridges.sql.exactness.name_rules import check_names
from rowsieve.bridges.sql.language import accepted_as_engine, typed_as_engine
from rowsieve.bridges.sql.placeholders import StandIns
from rowsieve.bridges.text_with_values import TextWithValues
from rowsieve.errors import InvalidInput
from rowsieve.predicate.ir import (
    FALSE,
    InList,
    Literal,
    Operand,
    Predicate,
    ValueSet,
    map_children,
)
from rowsieve.predicate.limits import check_text
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Bool, Decimal, Float, Int, LogicalType
from rowsieve.types.schema import Schema

_QUOTED: Final = (
    r"\$(?P<tag>\w*)\$.*?\$(?P=tag)\$",  # PostgreSQL's and DuckDB's strings between dollars
    r'"(?:""|[^"])*"',
    r"`(?:``|[^`])*`",
    r"--[^\n]*",
    r"/\*.*?\*/",
)
_ESCAPED: Final = (r"[eE]'(?:\\.|''|[^'\\])*'", r"'(?:''|[^'])*'")
_BACKSLASH: Final = (r"'(?:\\.|''|[^'\\])*'", r'"(?:\\.|""|[^"\\])*"')
_NAME: Final = r"(?<![\w\]):$])[$:](?P<name>[A-Za-z_]\w*)"
_IN: Final = re.compile(r"\bIN\s*(\(\s*)?$", re.IGNORECASE)
_TYPES: Final[Mapping[type, LogicalType]] = {float: Float(64), bool: Bool()}
_INTEGERS: Final[tuple[tuple[range, LogicalType], ...]] = (
    (range(-(2**63), 2**63), Int(64)),
    (range(2**64), Int(64, signed=False)),
    (range(1 - 10**38, 10**38), Decimal(38, 0)),
)
_LISTS: Final = (list, tuple, set, frozenset, range, pa.Array, pa.ChunkedArray)
_CLOSING: Final = re.compile(r"\s*\)")


def read_with_values(
    where: TextWithValues, schema: Schema, dialect: str, semantics: Semantics | None = None
) -> Predicate:
    """Read the condition with its values; InvalidInput if a name is missing or unused."""
    from rowsieve.bridges.sql.reading import parse  # noqa: PLC0415 - sqlglot takes 0.1 s to import

    known = dialect_named(dialect)
    if known.variables is not None and (variable := known.variables.search(where.text)):
        raise InvalidInput(
            f"params: {variable[0]!r} in the condition is replaced by a setting of {dialect}'s "
            "session, even inside a string; write its value, or name a parameter $name"
        )
    check_text(where.text)
    stand_ins = StandIns(schema, known)
    text = with_names(
        where,
        known,
        lambda _, value: stand_ins.constant(value),
        lambda _, values: stand_ins.members(values),
    )
    check_names(text, schema, dialect)
    predicate = _without_empty_lists(parse.encoded(text, stand_ins, known))
    read = accepted_as_engine if known.listed_only else typed_as_engine
    return read(predicate, schema, known, semantics or known.semantics).source


def with_names(
    text: TextWithValues,
    dialect: Dialect,
    constant: Callable[[str, Literal], str],
    members: Callable[[str, ValueSet], str],
) -> str:
    """Return the text with what `constant` and `members` name in the place of each parameter.

    Both get the name of the parameter and its value. `members` returns a list with its
    parentheses. InvalidInput if a name is missing or unused.
    """
    pieces: list[str] = []
    used: set[str] = set()
    end = 0
    for match in _pattern(dialect).finditer(text.text):
        name = match["name"]
        if name is None or match.start() < end:
            continue
        if name not in text.values:
            raise _missing(name, match.start(), text)
        used.add(name)
        pieces.append(text.text[end : match.start()])
        value, end = _listed(text.values[name]), match.end()
        if isinstance(value, _LISTS):
            before = "".join(pieces)
            place = _IN.search(before)
            closing = _CLOSING.match(text.text, end)
            if place is None or (place[1] and closing is None):
                raise InvalidInput(
                    f"params: {name!r} is a list of values, which stands after IN only, as in "
                    f"x IN (${name})"
                )
            pieces = [before[: place.start()], "IN ", members(name, _members(name, value))]
            end = closing.end() if place[1] and closing is not None else end
        else:
            pieces.append(constant(name, _constant(name, value)))
    if unused := sorted(text.values.keys() - used):
        raise InvalidInput(
            f"params: the {text.kind} has no parameter {', '.join(map(repr, unused))}; write "
            f"${unused[0]} or :{unused[0]} where the value belongs, or leave it out"
        )
    return "".join([*pieces, text.text[end:]])


def _listed(value: Any) -> Any:
    """Return an array of NumPy, or a column of pandas or Polars, as Arrow's; else the value."""
    if isinstance(value, _LISTS) or getattr(value, "ndim", 1) != 1:
        return value
    if hasattr(value, "__arrow_c_stream__"):
        return pa.chunked_array(value)
    return pa.array(value) if hasattr(value, "__array__") else value


def _pattern(dialect: Dialect) -> re.Pattern[str]:
    strings = _BACKSLASH if dialect.backslash_strings else _ESCAPED
    return re.compile("|".join((*strings, *_QUOTED, _NAME)), re.DOTALL)


def _missing(name: str, place: int, text: TextWithValues) -> InvalidInput:
    near = get_close_matches(name, list(text.values), n=1)
    hint = f"did you mean ${near[0]}?" if near else f"give it as params={{{name!r}: …}}"
    return InvalidInput(
        f"params: the parameter {name!r} at offset {place} of the {text.kind} has no value; {hint}"
    )


def _constant(name: str, value: Any) -> Literal:
    constant = lit(value)
    if not isinstance(constant, Literal):
        raise InvalidInput(
            f"params: the value of {name!r} is {type(value).__name__}; give a Python or Arrow value"
        )
    if constant.type is not None:
        return constant
    if type(value) is int:
        return Literal(value, _integer_type([value]))
    return Literal(constant.value, _TYPES.get(type(value)))


def _integer_type(values: Sequence[int]) -> LogicalType | None:
    """The narrowest type of 64 bits or more with all of the numbers; None if none has them."""
    holding = (type_ for known, type_ in _INTEGERS if min(values) in known and max(values) in known)
    return next(holding, None)


def _without_empty_lists(predicate: Predicate) -> Predicate:
    """Nothing is in an empty list, not even NULL, as Spark, DuckDB and PostgreSQL have it."""
    if isinstance(predicate, InList) and not len(predicate.values):
        return FALSE
    return map_children(predicate, _without_empty_lists, _without_empty_lists_inside)


def _without_empty_lists_inside(operand: Operand) -> Operand:
    return map_children(operand, _without_empty_lists, _without_empty_lists_inside)


def _members(name: str, values: Any) -> ValueSet:
    """Return the members of a list, all of one type; NULL among them is allowed."""
    values = list(values)
    numbers = [value for value in values if value is not None]
    if numbers and all(type(value) is int for value in numbers):
        return _value_set(name, values, _integer_type(numbers))
    constants = [_constant(name, value) for value in values]
    types = {constant.type for constant in constants if constant.value is not None}
    kinds = {type(constant.value) for constant in constants if constant.value is not None}
    if len(types) > 1 or len(kinds) > 1:
        raise InvalidInput(f"params: the list {name!r} has values of several types; give one type")
    type_ = next(iter(types), None)
    return _value_set(name, [constant.value for constant in constants], type_)


def _value_set(name: str, values: Sequence[Any], type_: LogicalType | None) -> ValueSet:
    try:
        return ValueSet(pa.array(values, None if type_ is None else arrow_type(type_)), type_)
    except (pa.ArrowException, OverflowError) as error:
        raise InvalidInput(f"params: the list {name!r} is not of one type: {error}") from error
