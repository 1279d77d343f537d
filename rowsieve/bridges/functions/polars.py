"""Functions as methods of polars' expressions: the row of a function writes and reads its calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rowsieve.bridges.functions.arguments import (
    Arguments,
    Use,
    not_floats,
    of_list,
    of_text,
    one_float,
    one_type,
)
from rowsieve.types.logical import String

_MOST = 2**31


@dataclass(frozen=True, slots=True)
class Method:
    """A function of ours as polars calls it, and the arguments for which it gives our values.

    `name`: a method of the first argument, such as `str.head`, or a function of the module.
    `node`: its name in a serialised expression. `plain`: constants are handed over as they are.
    """

    function: str
    name: str
    node: str
    case: Arguments
    plain: bool = False
    of_module: bool = False


def _on_text(use: Use) -> bool:
    return isinstance(use.types[0], String)


_given_text = Arguments(
    "text, with constant text that is given",
    lambda use: (
        _on_text(use) and len(use.types) == 2 and all(isinstance(v, str) for v in use.constants)
    ),
)
_constant_count = Arguments(
    "text, with a constant count",
    lambda use: _on_text(use) and all(-_MOST <= number < _MOST for number in use.numbers),
)

ROWS: tuple[Method, ...] = (
    *(Method(name, name, name.title(), one_float) for name in ("abs", "floor", "ceil")),
    Method("coalesce", "coalesce", "Coalesce", one_type, of_module=True),
    Method("greatest", "max_horizontal", "MaxHorizontal", not_floats, of_module=True),
    Method("least", "min_horizontal", "MinHorizontal", not_floats, of_module=True),
    Method("starts_with", "str.starts_with", "StringExpr.StartsWith", of_text),
    Method("ends_with", "str.ends_with", "StringExpr.EndsWith", of_text),
    Method("lower", "str.to_lowercase", "StringExpr.Lowercase", of_text),
    Method("upper", "str.to_uppercase", "StringExpr.Uppercase", of_text),
    Method("length", "str.len_chars", "StringExpr.LenChars", of_text),
    Method("left", "str.head", "StringExpr.Head", _constant_count, plain=True),
    Method("right", "str.tail", "StringExpr.Tail", _constant_count, plain=True),
    Method("trim", "str.strip_chars", "StringExpr.StripChars", _given_text, plain=True),
    Method("ltrim", "str.strip_chars_start", "StringExpr.StripCharsStart", _given_text, plain=True),
    Method("rtrim", "str.strip_chars_end", "StringExpr.StripCharsEnd", _given_text, plain=True),
    Method("list_length", "list.len", "ListExpr.Length", of_list),
)
BY_FUNCTION: Mapping[str, Method] = {row.function: row for row in ROWS}
BY_NODE: Mapping[str, Method] = {row.node: row for row in ROWS}
