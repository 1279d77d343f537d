"""DataFusion's `arrow_cast` to timestamps of any unit, as conditions on microseconds.

A cast of a timestamp to seconds or milliseconds truncates toward zero. A constant that is compared
with it is truncated, too: DataFusion converts it to the type of the cast. A cast of constant text
rounds down. Columns are compared as they are.

Soundness: such a cast is read only where DataFusion's result type does not matter otherwise: in
comparisons, IN, BETWEEN, IS NULL, EXTRACT and a cast to DATE. (In another cast of it, the optimiser
truncates constants, too.) Types with a zone other than UTC are rejected, because DataFusion uses
their zone for fields and for text that is compared with them.

Source: DataFusion 55, as run by `tests/bridges/sql/reading/test_arrow_times.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp

from rowsieve.bridges.sql.constructs.sql_literals import finer_constant
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate import ir
from rowsieve.types.logical import Int, Nanos, String, Timestamp

_UNITS: Final[Mapping[str, int]] = {  # nanoseconds
    **dict.fromkeys(("s", "Second"), 1_000_000_000),
    **dict.fromkeys(("ms", "Millisecond"), 1_000_000),
    **dict.fromkeys(("us", "µs", "Microsecond"), 1_000),
    **dict.fromkeys(("ns", "Nanosecond"), 1),
}
_TRUNCATED: Final[Mapping[int, str]] = {1_000_000: "second", 1_000: "millisecond"}
_NAME = re.compile(
    rf"Timestamp\(({'|'.join(_UNITS)})(?:, ?(?:None|\"([^\"]*)\"|Some\(\"([^\"]*)\"\)))?\)"
)
_UTC: Final = frozenset({"UTC", "+00:00"})
_COMPARISONS: Final = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
)
_READ_IN: Final = (*_COMPARISONS, exp.Between, exp.In, exp.Is, exp.Extract)
ONLY_IN: Final = (
    "a cast to seconds or milliseconds is read in comparisons, IN, BETWEEN, IS NULL, EXTRACT and "
    "a cast to DATE only; use date_trunc elsewhere"
)


@dataclass(frozen=True, slots=True)
class ArrowTimestamp:
    """A timestamp type of Arrow: its type here, and its unit in nanoseconds."""

    type: Timestamp
    unit_ns: int

    @property
    def is_coarse(self) -> bool:
        """Whether a cast to it may lose microseconds."""
        return self.unit_ns > 1_000

    @property
    def unit_us(self) -> int:
        """The unit in microseconds, at least 1."""
        return max(self.unit_ns // 1_000, 1)


def timestamp_named(name: str) -> ArrowTimestamp | None:
    """Return the timestamp type with this name; None for others, and for zones except UTC."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    zone = match[2] or match[3]
    if zone is not None and zone not in _UTC:
        return None
    return ArrowTimestamp(Timestamp(utc=zone is not None), _UNITS[match[1]])


def zone_of_cast(node: Any) -> str | None:
    """Return the zone of a cast to micro- or nanoseconds of a zone; None for other nodes."""
    match = _NAME.fullmatch(str(node.expressions[1].this)) if _is_arrow_cast(node) else None
    if match is None or _UNITS[match[1]] > 1_000:
        return None
    return match[2] or match[3]


def is_read_in_place(reader: Reads, node: Any) -> bool:
    """Whether the node stands where a cast to a coarse unit is read."""
    parent = _parent(node)
    if not _is_arrow_cast(node):
        return False
    if isinstance(parent, exp.In):
        return all(_is_constant(reader, item) for item in parent.expressions)
    if type(parent) is exp.Cast:
        return bool(parent.to.this == exp.DataType.Type.DATE)
    return _is_constant(reader, node) or isinstance(parent, _READ_IN)


def unit_beside(reader: Reads, node: Any) -> ArrowTimestamp | None:
    """Return the coarse type of a cast that a constant is compared with; None for other nodes."""
    parent = _parent(node)
    if not isinstance(parent, (*_COMPARISONS, exp.Between, exp.In)):
        return None
    if not _is_constant(reader, node):
        return None
    for key in ("this", "expression", "low", "high"):
        side = parent.args.get(key)
        while isinstance(side, exp.Paren):
            side = side.this
        if side is not None and _is_arrow_cast(side) and not _is_constant(reader, side):
            timestamp = timestamp_named(str(side.expressions[1].this))
            if timestamp is not None and timestamp.is_coarse:
                return timestamp
    return None


def as_compared(reader: Reads, node: Any, operand: ir.Operand) -> ir.Operand:
    """Truncate a constant that is compared with a cast to a coarse unit."""
    if (to := unit_beside(reader, node)) is None:
        return operand
    if not (isinstance(operand, ir.Literal) and operand.type == to.type):
        operand = reader.cast(node, operand, to.type)
    if isinstance(operand, ir.Literal) and isinstance(operand.value, int):
        whole = abs(operand.value) // to.unit_us * to.unit_us
        return ir.Literal(whole if operand.value >= 0 else -whole, to.type)
    return _toward_zero(operand, operand, to)


def as_timestamp(reader: Reads, node: Any, operand: ir.Operand, to: ArrowTimestamp) -> ir.Operand:
    """Cast to the type: constant text rounds down, a timestamp toward zero, a number counts units.

    The comparison with 1970 rejects text columns, of which each text would round down.
    """
    if isinstance(operand, ir.Literal):
        if operand.type == Int(64) and isinstance(operand.value, int):
            micros, rest = divmod(operand.value * to.unit_ns, 1_000)
            if not rest and -(2**63) <= micros < 2**63:
                return ir.Literal(micros, to.type)
            if to.unit_ns == 1 and -(2**63) <= operand.value < 2**63:
                return ir.Literal(operand.value, Nanos(to.type.utc))
        if to.unit_ns == 1 and (fine := finer_constant(operand, to.type)) is not None:
            return fine
        if operand.type is None:
            return _floor(reader.cast(node, operand, to.type), to)
    return _toward_zero(operand, reader.cast(node, operand, to.type), to)


def _toward_zero(operand: ir.Operand, time: ir.Operand, to: ArrowTimestamp) -> ir.Operand:
    """Truncate a time, which is the operand cast to the type."""
    if not to.is_coarse:
        return time
    parts = (ir.Literal(part, Int(64)) for part in (0, 0, to.unit_us - 1))
    earlier = ir.Comparison(ir.ComparisonOp.LT, operand, ir.Literal(0, to.type))
    later = ir.Call("add_interval", (time, *parts))
    return ir.Case(((earlier, _floor(later, to)),), _floor(time, to))


def _floor(time: ir.Operand, to: ArrowTimestamp) -> ir.Operand:
    match time:
        case _ if not to.is_coarse:
            return time
        case ir.Literal(value=int(micros)):
            return ir.Literal(micros // to.unit_us * to.unit_us, to.type)
        case ir.Literal():
            return time
        case _:
            return ir.Call("date_trunc", (ir.Literal(_TRUNCATED[to.unit_us], String()), time))


def _parent(node: Any) -> Any:
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent


def _is_arrow_cast(node: Any) -> bool:
    return (
        isinstance(node, exp.Anonymous)
        and node.name.lower() == "arrow_cast"
        and len(node.expressions) == 2
        and isinstance(node.expressions[1], exp.Literal)
    )


def _is_constant(reader: Reads, node: Any) -> bool:
    """Whether DataFusion computes the node before it reads rows; names may stand for constants."""
    constants = reader.source.lifted.constants
    return all(column.name in constants for column in node.find_all(exp.Column))
