"""Readers of functions that DataFusion alone has, or that mean something else there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from sqlglot import exp

from rowsieve.bridges.constant_values import text_of
from rowsieve.bridges.sql.constructs.arrow_times import (
    ONLY_IN,
    as_timestamp,
    is_read_in_place,
    timestamp_named,
)
from rowsieve.bridges.sql.constructs.named_zones import local_time_of
from rowsieve.bridges.sql.constructs.templates import recognise
from rowsieve.bridges.sql.dialects import DATAFUSION_INSTANT
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.reading.dialect_calls import bits, coalesce, power, refused
from rowsieve.bridges.sql.spark.read.grammar_nodes import nanvl
from rowsieve.bridges.sql.typenames import arrow_named
from rowsieve.predicate.ir import Call, Literal, Operand
from rowsieve.types.logical import Date, Int, Uuid


def _power(reader: Reads, node: Any) -> Operand:
    """Read `^`, a bitwise operator that the grammar parses as a power."""
    texts = {token.text.upper() for token in reader.source.tokens}
    if texts & {"POW", "POWER"}:
        if "^" in texts:
            raise reader.source.refusal(
                node, "the grammar confuses power with ^: write a condition for each"
            )
        return power(reader, node)
    beside = isinstance(node.parent, exp.Binary | exp.Neg)
    if beside and not isinstance(node.parent, exp.Predicate | exp.Connector):
        raise reader.source.refusal(node, "put ^ and its sides in parentheses: it binds loosest")
    return bits(reader, exp.BitwiseXor(this=node.this, expression=node.expression))


def _coalesce(reader: Reads, node: Any) -> Operand:
    """Read COALESCE; IFNULL and NVL, which the grammar takes for it, make floats of decimals."""
    if {token.text.upper() for token in reader.source.tokens} & {"IFNULL", "NVL"}:
        raise reader.source.refusal(
            node, "datafusion makes floats of decimals in IFNULL and NVL: write COALESCE"
        )
    return coalesce(reader, node)


def _position(reader: Reads, node: Any) -> Operand:
    """Read `strpos(text, part)` and `position(part IN text)`.

    The grammar swaps the arguments of `position(text, part)`, which is strpos there.
    """
    if any(_has_comma(reader.source.tokens, place) for place in range(len(reader.source.tokens))):
        raise reader.source.refusal(node, "write strpos(text, part) for position(text, part)")
    reader.only(node, "this", "substr")
    return Call("position", (reader.operand(node.this), reader.operand(node.args["substr"])))


def _has_comma(tokens: Sequence[Any], place: int) -> bool:
    """Whether a call of POSITION starts here and has a comma of its own."""
    if tokens[place].text.upper() != "POSITION":
        return False
    depth = 0
    for token in tokens[place + 1 :]:
        depth += {"L_PAREN": 1, "R_PAREN": -1}.get(token.token_type.name, 0)
        if depth < 1:
            return False
        if depth == 1 and token.token_type.name == "COMMA":
            return True
    return False


def _arrow_cast(reader: Reads, node: Any) -> Operand:
    """Read a cast to a type by Arrow's name, the only way to cast to an instant."""
    if (operand := recognise(reader, node)) is not None:
        return operand
    if len(node.expressions) == 2:
        name = text_of(reader.operand(node.expressions[1]))
        inner = node.expressions[0]
        if name is not None and (to := timestamp_named(name)) is not None:
            if to.is_coarse and not is_read_in_place(reader, node):
                raise reader.source.refusal(node, ONLY_IN)
            return as_timestamp(reader, node, reader.operand(inner), to)
        if name is not None and (type_ := arrow_named(name)) is not None:
            value = reader.operand(inner)
            if type_ == Uuid() and isinstance(value, Literal) and type(value.value) is bytes:
                return Literal(value.value, type_)
            if type_ == Date() and _is_number(value, Int(32)):
                return Literal(value.value, type_)
            return reader.cast(node, value, type_)
    raise reader.source.refusal(
        node,
        "arrow_cast is read to numbers, text, bytes, Date32 and timestamps without a zone or with "
        f"the zone UTC, as in {DATAFUSION_INSTANT!r}",
    )


def _is_number(operand: Operand, type_: Int) -> TypeGuard[Literal]:
    return isinstance(operand, Literal) and operand.type == type_ and operand.value is not None


_OF_NVL2 = ("this", "true", "false")
NODES: Mapping[type[Any], Callable[[Reads, Any], Operand]] = {
    exp.Nanvl: nanvl,
    exp.Pow: _power,
    exp.Coalesce: _coalesce,
    exp.StrPosition: _position,
    exp.Nvl2: refused("datafusion gives nvl2 the type of all three; write CASE", *_OF_NVL2),
}
NAMES: Mapping[str, Callable[[Reads, Any], Operand | None]] = {
    "arrow_cast": _arrow_cast,
    "to_local_time": local_time_of,
}
