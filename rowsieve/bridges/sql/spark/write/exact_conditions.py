"""Rewrite a bound condition so that Spark's text or column has the same meaning.

The rules of the condition may differ from those of Spark's session in failures, overflow and
rounding. The result then calls a function that has them (`try_add`, `bround`, TRY_CAST), or the
condition is refused.

Soundness: an operation that depends on the session's time zone is written only if that zone is
known and is the one that the condition names.
"""

from __future__ import annotations

import decimal
import uuid
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.functions.casts import CASTS, kinds_of
from rowsieve.bridges.sql.constructs.templates import Templated
from rowsieve.bridges.sql.exactness.exact import UNKNOWN, Exact
from rowsieve.bridges.sql.spark import rules
from rowsieve.bridges.sql.spark.type_names import held_type
from rowsieve.bridges.sql.spark.write import written_texts
from rowsieve.bridges.sql.spark.write.exact_calls import CALLS
from rowsieve.bridges.sql.spark.write.in_session import InSession
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.casting.casts import cast_rule
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import OnFailure, Semantics
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY
from rowsieve.types.logical import (
    Date,
    Decimal,
    Int,
    Json,
    String,
    Time,
    Timestamp,
    Uuid,
    type_name,
)

_INT64, _LOCAL, _INSTANT = Int(64), Timestamp(utc=False), Timestamp(utc=True)
_LONGEST = Decimal(20, 0)  # holds every uint64
# Our patterns of any case take a long s for an s, and a dotted capital I for no i.
_FOLDED = (ir.Literal("\u017f\u0130", String()), ir.Literal("s\u00e9", String()))


def with_rewritten_rules(semantics: Semantics, theirs: Semantics) -> Semantics:
    """Return the rules of a condition; Spark's own where `SparkExact` rewrites the difference."""
    rewritten = ["integer_division_by_zero", "float_division_by_zero", "rounds_half_to_even"]
    rewritten.append("failed_cast")
    if semantics.integer_overflow is OnFailure.NULL:
        rewritten.append("integer_overflow")
    if semantics.digit_rounding in rules.DIGITS_BY_TEXT:
        rewritten.append("digit_rounding")
    return replace(semantics, **{field: getattr(theirs, field) for field in rewritten})


@dataclass(frozen=True, slots=True)
class SparkExact(InSession):
    """Rewrites conditions for one session."""

    # Conditions

    def in_list(self, node: ir.InList) -> ir.Predicate:
        """Rewrite IN with members of Spark's types; NULL among times becomes a condition."""
        values = node.values
        if isinstance(values.type, Time) and values.array.null_count:
            known = ir.ValueSet(values.array.drop_null(), values.type)
            listed = replace(node, values=known)
            return ir.Or((self.in_list(listed), UNKNOWN)) if len(known) else UNKNOWN
        if isinstance(values.type, Uuid):
            texts = [None if each is None else _uuid(each) for each in values.array.to_pylist()]
            values = ir.ValueSet(pa.array(texts, pa.string()), String())
        elif values.type == Int(64, signed=False) and _is_huge(values.array):
            values = ir.ValueSet(values.array.cast(pa.decimal128(20, 0)), _LONGEST)
        return Exact.in_list(self, replace(node, values=values))

    def like(self, node: ir.Like) -> ir.Predicate:
        """Rewrite LIKE; ILIKE becomes LIKE of lower case."""
        if not node.ignore_case:
            return Exact.like(self, node)
        if not node.pattern.isascii() or (node.escape or "").isalpha():
            raise UnsupportedOperation("a pattern for any case is of ASCII in spark")
        plain = ir.Call("translate", (self.operand(node.operand), *_FOLDED))
        return ir.Like(ir.Call("lower", (plain,)), node.pattern.lower(), node.escape)

    # Values

    def literal(self, node: ir.Literal) -> ir.Operand:
        """Rewrite a constant to Spark's type for it."""
        type_, value = node.type, node.value
        assert type_ is not None
        match type_, value:
            case Time(), None:
                raise UnsupportedOperation("spark casts NULL to time only by a setting of its own")
            case _, None:
                return ir.Literal(None, held_type(type_))
            case Uuid(), bytes():
                return ir.Literal(_uuid(value), String())
            case Json(), str():
                return ir.Literal(value, String())
            case Int(), int() if value >= 2**63:
                return ir.Literal(decimal.Decimal(value), _LONGEST)
            case Date(), int() if not FIRST_DAY <= value <= LAST_DAY:
                return Templated("date_from_unix_date({0})", (ir.Literal(value, _INT64),))
            case Timestamp(utc=True), int() if not FIRST_DAY <= value // DAY_US <= LAST_DAY:
                return Templated("timestamp_micros({0})", (ir.Literal(value, _INT64),))
        return Exact.literal(self, node)

    def cast(self, node: ir.Cast) -> ir.Operand:
        """Rewrite a cast to one with the same values and failures."""
        source, target = type_of(node.operand), node.type
        operand = self.operand(node.operand)
        if source == target or (isinstance(source, Uuid | Json) and target == String()):
            return operand
        if held_type(target) != target:
            raise self.lacks(target)
        if isinstance(source, String) and isinstance(target, written_texts.READ):
            if target == _INSTANT:
                self.check_zone()
            tried = written_texts.is_tried(node, self.semantics, ansi=self.ansi)
            return ir.Cast(operand, target, tried)
        pair = kinds_of(held_type(source), target)
        if pair not in CASTS["spark"]:
            shown = f"a cast of {type_name(source)} to {type_name(target)}"
            raise UnsupportedOperation(
                f"{shown} may give other values in spark; compare the value itself"
            )
        rules.check_cast(held_type(source), target)
        if _INSTANT in (source, target):
            self.check_zone()
        rule = cast_rule(source, target)
        fails = rule is None or rule.can_fail
        if node.try_:
            return ir.Cast(operand, target, try_=True)
        wraps = self.semantics.casts_wrap and pair[0] in ("Int", "Float", "Decimal")
        if fails and not (wraps and isinstance(target, Int)):
            if self.semantics.failed_cast is OnFailure.NULL:
                return ir.Cast(operand, target, try_=True)
            if not self.ansi and pair not in rules.CAST_ANY_MODE:
                raise UnsupportedOperation("a failing cast gives no error where ANSI mode is off")
        if pair == ("Decimal", "String") and not self.ansi:
            raise UnsupportedOperation("spark writes decimals differently if ANSI mode is off")
        return ir.Cast(operand, target)

    def call(self, node: ir.Call) -> ir.Operand:
        """Rewrite a function call."""
        handler = CALLS.get(node.function)
        return Exact.call(self, node) if handler is None else handler(self, node)


def _uuid(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))


def _is_huge(array: pa.Array) -> bool:
    return bool(len(array) and (pc.max(array).as_py() or 0) >= 2**63)
