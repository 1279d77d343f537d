"""Expressions of polars and pyarrow from Python text, without `eval`, and the texts to try.

A text such as `a.dt.year() + 1` or `pc.year(a)` has the columns `a` and `b`, the module of its
engine, constants, operators, attributes and calls.
"""

from __future__ import annotations

import ast
import decimal
import inspect
import math
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import product
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

_VALUES: Mapping[str, Any] = {
    "D": decimal.Decimal,
    "date": date,
    "datetime": datetime,
    "time": time,
    "NAN": math.nan,
    "INF": math.inf,
}
_NAMES: Mapping[str, Mapping[str, Any]] = {
    "polars": {"a": pl.col("a"), "b": pl.col("b"), "pl": pl, **_VALUES},
    "pyarrow": {"a": pc.field("a"), "b": pc.field("b"), "pa": pa, "pc": pc, **_VALUES},
}
_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Invert: operator.invert,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def expression(text: str, engine: str) -> Any:
    """Return the expression of an engine that the text builds; its API's own errors pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of comparisons with None, and deprecated methods
        return _built(ast.parse(text, mode="eval").body, _NAMES[engine])


def _built(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.Attribute(value=inner, attr=name):
            return getattr(_built(inner, names), name)
        case ast.List(elts=items):
            return [_built(item, names) for item in items]
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_built(operand, names))
        case ast.BinOp(op=op, left=left, right=right):
            return _OPERATORS[type(op)](_built(left, names), _built(right, names))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _OPERATORS[type(op)](_built(left, names), _built(right, names))
        case ast.Call(func=function, args=arguments, keywords=keywords):
            named = {str(each.arg): _built(each.value, names) for each in keywords}
            return _built(function, names)(*(_built(item, names) for item in arguments), **named)
        case _:
            raise ValueError(f"no such expression: {ast.unparse(node)}")


CONSTANTS = (
    *("0", "1", "-1", "2", "3", "1.5", "0.1", "127", "128", "255", "2147483648"),
    *("9007199254740993", "9223372036854775807", "18446744073709551615", "0.0", "-0.0", "1e300"),
    *("NAN", "INF", "None", "True", "'a'", "''", "'B'", "'2013-03-10'", "'1'"),
    *("D('1.5')", "D('0.01')", "D('9007199254740993')", "date(1970, 1, 1)", "date(9999, 12, 31)"),
    *("datetime(2013, 3, 10, 2, 30)", "datetime(1969, 12, 31, 23, 59, 59, 500000)"),
    "time(12, 30, 1, 500000)",
)
_A, _B = "{0}", "{1}"  # places of columns in a text
_LITERALS: Mapping[str, str] = {"polars": "pl.lit({})", "pyarrow": "pc.scalar({})"}
_RELATIONS = ("==", "!=", "<", "<=", ">", ">=")
_OF_TWO: Mapping[str, tuple[str, ...]] = {
    "polars": (
        *(f"{{0}} {op} {{1}}" for op in (*_RELATIONS, *"+-*/%&|^", "//", "**")),
        *("{0}.eq_missing({1})", "{0}.ne_missing({1})", "{0}.truediv({1})", "{0}.floordiv({1})"),
        *("{0}.is_between({1}, {0})", "{0}.is_in([{1}, 1])", "pl.coalesce({0}, {1})"),
        *("pl.max_horizontal({0}, {1})", "pl.min_horizontal({0}, {1})", "{0}.fill_null({1})"),
        *("pl.when({0}.is_null()).then({1}).otherwise({0})", "pl.concat_str({0}, {1})"),
        *("{0}.str.contains({1})", "{0}.str.starts_with({1})", "{0}.str.ends_with({1})"),
        *("({0} + {1}) * 2", "{0} - {1} < 0", "{0} / {1} * 3", "({0} == {1}) | ({0} > {1})"),
    ),
    "pyarrow": (
        *(f"{{0}} {op} {{1}}" for op in (*_RELATIONS, "+", "-", "*", "/", "&", "|")),
        *(
            f"pc.{name}({{0}}, {{1}})"
            for name in (
                *("add_checked", "subtract_checked", "multiply_checked", "divide_checked"),
                *("divide", "power", "power_checked", "shift_left", "bit_wise_and", "xor"),
                *("starts_with", "ends_with", "match_substring", "match_like", "coalesce"),
                *("atan2", "max_element_wise", "min_element_wise", "equal", "less"),
            )
        ),
        *("pc.if_else({0} > {1}, {0}, {1})", "pc.if_else(pc.is_null({0}), {1}, {0})"),
        *("{0}.isin([{1}, 1])", "({0} == {1}) | ({0} > {1})", "{0} - {1} < 0"),
    ),
}
_POLARS_TYPES = (
    *("Boolean", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("Float32", "Float64", "Decimal(10, 2)", "Decimal(38, 10)", "Decimal(4, 1)", "String", "Date"),
    *("Datetime('us')", "Datetime('us', 'UTC')", "Time", "Int128"),
)
_ARROW_TYPES = (
    *("bool_()", "int8()", "int16()", "int32()", "int64()", "uint8()", "uint32()", "uint64()"),
    *("float32()", "float64()", "decimal128(10, 2)", "decimal128(38, 10)", "decimal128(4, 1)"),
    *("string()", "date32()", "timestamp('us')", "timestamp('us', 'UTC')", "timestamp('s')"),
    *("time64('us')", "binary()"),
)
_UNITS = ("1us", "1ms", "1s", "1m", "1h", "1d", "1w", "1mo", "1q", "1y", "2h", "7d", "-1mo")
_ARROW_UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_ZONE = "America/New_York"
_OF_ONE: Mapping[str, tuple[str, ...]] = {
    "polars": (
        *("~{0}", "-{0}", "{0}.is_null()", "{0}.is_not_null()", "{0}.is_nan()", "{0}.abs()"),
        *("{0}.is_finite()", "{0}.is_infinite()", "{0}.sign()", "{0}.sqrt()", "{0}.exp()"),
        *("{0}.floor()", "{0}.ceil()", "{0}.round()", "{0}.round(1)", "{0}.log()", "{0}.log10()"),
        *("{0}.is_in([0, 1, 2])", "{0}.is_in([1, None])", "{0}.is_in(['a', 'B'])"),
        *("{0}.is_in([0.0, 1.5, NAN])", "{0}.is_in([D('2.50'), D('1')])", "{0}.is_in([])"),
        *("{0}.is_between(0, 1)", "{0}.is_between(-1.5, 2.5)", "{0}.is_between('a', 'b')"),
        *(f"{{0}}.cast(pl.{type_})" for type_ in _POLARS_TYPES),
        *(f"{{0}}.cast(pl.{type_}, strict=False)" for type_ in _POLARS_TYPES),
        *(f"{{0}}.str.{name}()" for name in ("len_chars", "len_bytes", "to_uppercase")),
        *(f"{{0}}.str.{name}()" for name in ("to_lowercase", "strip_chars", "to_titlecase")),
        *("{0}.str.contains('^a')", "{0}.str.contains('(?i)A')", "{0}.str.slice(1, 2)"),
        *("{0}.str.contains('A', literal=True)", "{0}.str.head(2)", "{0}.str.tail(2)"),
        *("{0}.str.strip_chars('a')", "{0}.str.replace_all('a', 'b', literal=True)"),
        *(f"{{0}}.dt.{name}()" for name in ("year", "quarter", "month", "week", "day", "weekday")),
        *(f"{{0}}.dt.{name}()" for name in ("hour", "minute", "second", "millisecond", "iso_year")),
        *(f"{{0}}.dt.{name}()" for name in ("microsecond", "nanosecond", "ordinal_day", "date")),
        *(f"{{0}}.dt.{name}()" for name in ("century", "millennium", "month_end", "month_start")),
        *("{0}.dt.epoch('s')", "{0}.dt.epoch('us')", "{0}.dt.timestamp('ms')", "{0}.dt.time()"),
        *(f"{{0}}.dt.truncate('{unit}')" for unit in _UNITS),
        *(f"{{0}}.dt.offset_by('{unit}')" for unit in _UNITS),
        *(f"{{0}} + pl.duration({unit}=1)" for unit in ("days", "hours", "weeks", "microseconds")),
        f"{{0}}.dt.convert_time_zone('{_ZONE}').dt.hour()",
        f"{{0}}.dt.convert_time_zone('{_ZONE}').dt.date()",
        f"{{0}}.dt.convert_time_zone('{_ZONE}').dt.replace_time_zone(None)",
        *(
            f"{{0}}.dt.replace_time_zone('{_ZONE}', ambiguous='{rule}', "
            f"non_existent='{missing}').dt.convert_time_zone('UTC')"
            for rule, missing in product(("earliest", "latest", "null"), ("null", "raise"))
        ),
    ),
    "pyarrow": (
        *("~{0}", "{0}.is_null()", "{0}.is_valid()", "{0}.is_nan()"),
        *("{0}.isin([0, 1, 2])", "{0}.isin([1, None])", "{0}.isin(['a', 'B'])"),
        *("{0}.isin([0.0, 1.5, NAN])", "{0}.isin([D('2.50'), D('1')])"),
        *(f"{{0}}.cast(pa.{type_})" for type_ in _ARROW_TYPES),
        *(f"{{0}}.cast(pa.{type_}, safe=False)" for type_ in _ARROW_TYPES),
        *(f"pc.round({{0}}, {digits})" for digits in (0, 1, -1)),
        *(
            f"pc.floor_temporal({{0}}, {count}, unit='{unit}')"
            for count, unit in product((1, 2), _ARROW_UNITS)
        ),
        *(f"pc.utf8_slice_codeunits({{0}}, {start}, {start + 2})" for start in (0, 1)),
        *(f"pc.utf8_trim({{0}}, '{marks}')" for marks in ("a", " ", "")),
        *(f"pc.match_like({{0}}, '{pattern}')" for pattern in ("a%", "%B%", "a_c%", "a\\\\%")),
        f"pc.hour(pc.local_timestamp({{0}}.cast(pa.timestamp('us', '{_ZONE}'))))",
        f"pc.local_timestamp({{0}}.cast(pa.timestamp('us', '{_ZONE}')))",
        *(
            f"pc.assume_timezone({{0}}, '{_ZONE}', ambiguous='{rule}', nonexistent='{rule}')"
            for rule in ("earliest", "latest", "raise")
        ),
    ),
}


def templates(engine: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts with a place for one value, and for two."""
    return _OF_ONE[engine], _OF_TWO[engine]


def texts(engine: str, types: tuple[str, ...], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Types of columns, and text with places for them; `names`: of the engine's own catalogue."""
    for template in _OF_ONE[engine]:
        for type_ in types:
            yield type_, template.format(_A)
    for template in _OF_TWO[engine]:
        for first, second in product(types, types):
            yield f"{first},{second}", template.format(_A, _B)
        for type_, constant in product(types, CONSTANTS):
            yield type_, template.format(_A, constant)
            literal = _LITERALS[engine].format(constant) if template[3] == "." else constant
            yield type_, template.format(literal, _A)
    for name in names:
        for form in (f"{name}({{0}})", f"{name}({{0}}, {{1}})", f"{name}({{0}}, {{1}}, {{2}})"):
            template = form if engine == "pyarrow" else _as_method(form)
            for type_ in types:
                if "{1}" not in template:
                    yield type_, template.format(_A)
                    continue
                for constant in (_B, "0", "2", "'a'", "0.1"):
                    of = type_ if constant != _B else f"{type_},{type_}"
                    yield of, template.format(_A, constant, "1")


def _as_method(form: str) -> str:
    return f"{{0}}.{form}".replace("({0}, ", "(").replace("({0})", "()")


_NAMESPACES = ("dt", "str", "bin", "arr", "list", "struct", "name", "cat", "meta", "ext")


def names_of(engine: str) -> list[str]:
    """Names of the functions of values, in order: methods of polars, `pc.…` of pyarrow."""
    if engine == "pyarrow":
        return [f"pc.{name}" for name in sorted(pc.list_functions()) if hasattr(pc, name)]
    found = [*_methods(pl.Expr, "")]
    for space in _NAMESPACES[:2]:
        found += _methods(type(getattr(pl.col("a"), space)), f"{space}.")
    return sorted(found)


def _methods(of: type, prefix: str) -> Iterator[str]:
    for name, _ in inspect.getmembers(of, inspect.isfunction):
        if not name.startswith("_") and name not in _LEFT_OUT:
            yield prefix + name


# Python functions, results of other lengths, and what differs each time.
_LEFT_OUT = frozenset(
    {"map_batches", "map_elements", "pipe", "inspect", "shuffle", "sample", "rolling_map", "hash"}
    | {"deserialize", "from_json", "register_plugin", "explode", "json_decode"}
)
