"""Calls whose arguments of several types an engine brings to another type than we do.

Text that a constant has in quotes is a number here next to a number; DuckDB computes decimals with
it as float64, and DataFusion makes text of the number. Soundness: text in which that shows is
rejected, whatever the values.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rowsieve.bridges.sql.exactness.unbound_types import UnboundTyper
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import Date, Decimal, Float, LogicalType, String, Timestamp, type_name

_LONG = frozenset({"decade", "century", "millennium"})
_WITHIN_DAYS = frozenset({"hour", "minute", "second", "millisecond", "microsecond"})
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "modulo"})
_LAST_LONG = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Mixture:
    """A call, the types of its arguments, None for quoted text and NULL, and the session's zone.

    `uncast`: the type of the first argument below its outermost cast.
    """

    call: ir.Call
    types: Sequence[LogicalType | None]
    uncast: LogicalType | None
    zone: str

    @property
    def has_quoted(self) -> bool:
        return any(map(_is_quoted, self.call.arguments))


_Finds: TypeAlias = Callable[[_Mixture], bool]


def check_mixtures(predicate: ir.Predicate, typer: UnboundTyper) -> None:
    """Raise for a call that the engine computes from other types; the predicate is unbound."""
    rows = _ROWS.get(typer.semantics.name, {})
    for node in ir.walk(predicate) if rows else ():
        if isinstance(node, ir.Case) and None in rows:
            values = (*(then for _, then in node.branches), node.otherwise)
            _check(rows[None], ir.Call("CASE", values), typer)
        elif isinstance(node, ir.Call) and node.function in rows:
            _check(rows[node.function], node, typer)


def check_quoted_operand(
    what: str,
    members: Sequence[ir.Operand],
    typer: UnboundTyper,
    *,
    is_list: bool,
) -> None:
    """Raise for quoted text that the engine compares with text as with a number or a time.

    `members`: an operand and the items of its list, BETWEEN or CASE, which get one type there; here
    each item gives the text its type.
    """
    operand, *items = members
    converted = _CONVERTED.get(typer.semantics.name)
    if converted is None or not _is_quoted(operand):
        return
    items = converted(items, is_list)
    types = [String() if _is_quoted(item) else typer.of_member(item) for item in items]
    others = [type_ for type_ in types if type_ not in (None, String())]
    if String() in types and others:
        raise UnsupportedOperation(
            f"{what} of quoted text, with text and {type_name(others[0])}: {typer.semantics.name} "
            f"converts all of them to one type; {_QUOTED}"
        )


def _all_items(items: Sequence[ir.Operand], _: bool) -> list[ir.Operand]:
    return list(items)


def _constants_of_lists(items: Sequence[ir.Operand], is_list: bool) -> list[ir.Operand]:
    return [item for item in items if is_list and isinstance(item, ir.Literal)]


_CONVERTED: Mapping[str, Callable[[Sequence[ir.Operand], bool], list[ir.Operand]]] = {
    "duckdb": _all_items,
    "datafusion": _all_items,
    "postgres": _constants_of_lists,
}
"""The items that an engine converts to one type, with the operand."""


def _check(rows: Sequence[tuple[_Finds, str]], call: ir.Call, typer: UnboundTyper) -> None:
    types = [typer.of_member(item) for item in call.arguments]
    first = call.arguments[0]
    uncast = typer.of_member(first.operand) if isinstance(first, ir.Cast) else types[0]
    mixture = _Mixture(call, types, uncast, typer.semantics.time_zone)
    for finds, reason in rows:
        if finds(mixture):
            raise UnsupportedOperation(reason)


def _is_quoted(item: ir.Operand) -> bool:
    return isinstance(item, ir.Literal) and item.type is None and isinstance(item.value, str)


def _is_large(item: ir.Operand) -> bool:
    value = item.value if isinstance(item, ir.Literal) else None
    if isinstance(value, decimal.Decimal):
        return value == int(value) and abs(value) > _LAST_LONG
    return type(value) is int and abs(value) > _LAST_LONG


def _truncates_to_clock(mixture: _Mixture) -> bool:
    first = mixture.call.arguments[0]
    short = isinstance(first, ir.Literal) and str(first.value).lower() in _WITHIN_DAYS
    return short and isinstance(mixture.types[1], Date)


def _truncates_to_decades(mixture: _Mixture) -> bool:
    unit = mixture.call.arguments[0]
    return isinstance(unit, ir.Literal) and str(unit.value).lower() in _LONG


def _keeps_first_type(mixture: _Mixture) -> bool:
    first, second = mixture.types[:2]
    if _is_quoted(mixture.call.arguments[0]):
        return not isinstance(second, String | None)
    if isinstance(first, Timestamp) and isinstance(second, Timestamp):
        return first.utc != second.utc
    return None not in (first, second) and type(first) is not type(second)


def _quotes_beside_decimals(mixture: _Mixture) -> bool:
    return mixture.has_quoted and any(isinstance(type_, Decimal) for type_ in mixture.types)


def _is_beyond_longs(mixture: _Mixture) -> bool:
    return any(map(_has_large, mixture.call.arguments))


def _has_large(item: ir.Operand) -> bool:
    """Whether it may be a constant beyond 2^63 in the type that the engine gives it."""
    match item:
        case ir.Call(arguments=arguments):
            return any(map(_has_large, arguments))
        case ir.Case(branches=branches, otherwise=otherwise):
            return any(map(_has_large, (*(then for _, then in branches), otherwise)))
        case _:
            return _is_large(item)


def _divides_float32(mixture: _Mixture) -> bool:
    """A quotient that the engine computes as float32; the reader has cast the dividend."""
    types = (mixture.uncast, *mixture.types[1:])
    return Float(32) in types and Float(64) not in types


def _bins_instants(mixture: _Mixture) -> bool:
    return mixture.zone != "UTC" and any(
        isinstance(type_, Timestamp) and type_.utc for type_ in mixture.types
    )


def _bins_by_an_instant(mixture: _Mixture) -> bool:
    """Local times or days in bins that begin at an instant: the session's zone converts them."""
    time, origin = mixture.types[2:4]
    is_instant = isinstance(origin, Timestamp) and origin.utc
    return mixture.zone != "UTC" and is_instant and time != origin


def _quotes_beside_others(mixture: _Mixture) -> bool:
    others = [type_ for type_ in mixture.types if type_ is not None]
    return mixture.has_quoted and any(not isinstance(type_, String) for type_ in others)


_QUOTED = "write a number without quotes, and a time with its type (`TIMESTAMP '…'`)"
_OF_SUMS = (
    (
        _quotes_beside_decimals,
        f"duckdb computes a decimal with a number in quotes as a double; {_QUOTED}",
    ),
    (
        _is_beyond_longs,
        "duckdb has other types for numbers beyond 2^63; compare without arithmetic, or cast them",
    ),
)
_OF_DUCKDB: Mapping[str | None, Sequence[tuple[_Finds, str]]] = {
    **dict.fromkeys(_ARITHMETIC, _OF_SUMS),
    "divide": (
        (
            _divides_float32,
            "duckdb divides a float32 by another type, and by it, as float32; cast both to DOUBLE",
        ),
        *_OF_SUMS,
    ),
    "date_trunc": (
        (
            _truncates_to_clock,
            "duckdb truncates a date to less than a day as another date; cast it to TIMESTAMP",
        ),
        (
            _truncates_to_decades,
            "duckdb begins decades, centuries and millennia in other years than Rowsieve",
        ),
    ),
    "nullif": ((_keeps_first_type, "duckdb's nullif of two types has the first type; cast one"),),
    "date_bin": (
        (
            _bins_instants,
            "duckdb counts the bins of an instant in UTC; write time_bucket of x AT TIME ZONE '…'",
        ),
    ),
}
_OF_DATAFUSION: Mapping[str | None, Sequence[tuple[_Finds, str]]] = {
    **dict.fromkeys(
        (*_ARITHMETIC, "truncated_quotient"),
        ((_is_beyond_longs, "datafusion wraps numbers beyond 2^63; cast them to a decimal"),),
    ),
    None: (
        (
            _quotes_beside_others,
            f"datafusion makes text of each value of a CASE with text in quotes; {_QUOTED}",
        ),
    ),
}
_OF_POSTGRES: Mapping[str | None, Sequence[tuple[_Finds, str]]] = {
    "nullif": ((_keeps_first_type, "postgres's nullif of two types has the first type; cast one"),),
    "date_bin": (
        (
            _bins_by_an_instant,
            "postgres bins local times from an instant as instants; write the origin as TIMESTAMP",
        ),
    ),
}
# By the name of the function; None: the values of CASE.
_ROWS: Mapping[str, Mapping[str | None, Sequence[tuple[_Finds, str]]]] = {
    "duckdb": _OF_DUCKDB,
    "datafusion": _OF_DATAFUSION,
    "postgres": _OF_POSTGRES,
}
