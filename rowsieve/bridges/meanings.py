"""Rewrite a condition of one engine so that it keeps the same rows under another engine's rules.

If the rules differ and the tree can express the difference (NaN, zeros in lists), the result
contains guards; otherwise `UnsupportedOperation` names the difference.

Soundness: a guard preserves TRUE, FALSE and NULL on every row, so it may be nested under NOT and
OR. An operation whose rules differ is never passed on without one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.cased_letters import case_that_decides
from rowsieve.bridges.differences.rule_texts import RULE_TEXTS, disagreement
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.casting.casts import cast_rule
from rowsieve.predicate.functions.casting.unbounded_numbers import NUMERIC_PARTS
from rowsieve.predicate.functions.registry import names_by_time_use
from rowsieve.predicate.functions.row import TimeUse
from rowsieve.predicate.functions.texts.young_letters import has_young
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, Nanoseconds, Semantics, TimestampText
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    Nanos,
    String,
    Timestamp,
    is_nested,
    type_name,
)

_WHOLE = frozenset({"add", "subtract", "multiply", "negate", "abs", "divide", "modulo", "round"})
# Functions that depend on each rule; for floats only, where marked.
_CALLS: Mapping[str, frozenset[str]] = {
    "full_case": frozenset({"lower", "upper", "initcap"}),
    "capital_sharp_s": frozenset({"upper", "initcap"}),
    "negative_roots_fail": frozenset({"sqrt"}),
    "float_domain": frozenset({"ln", "exp", "power"}),
    "nan_has_sign": frozenset({"sign"}),
    "shifts_wrap": frozenset({"shift_left"}),
}
# Functions of an instant that use the session's zone, unless binding has named one.
_OF_SESSION = names_by_time_use(TimeUse.FIELDS, TimeUse.START, TimeUse.BIN, TimeUse.MOVED)
_INSTANTS = frozenset({Timestamp(utc=True), Nanos(utc=True)})
_CALLS_OF_FLOATS: Mapping[str, frozenset[str]] = {
    "float_division_by_zero": _WHOLE - {"round"},
    "float_range": frozenset({"add", "subtract", "multiply", "divide"}),
    "rounds_half_to_even": frozenset({"round"}),
    "digit_rounding": frozenset({"round"}),
    "floors_are_longs": frozenset({"floor", "ceil"}),
    "nan": frozenset({"greatest", "least", "nullif"}),
    "nested_zeros_differ": frozenset({"nullif"}),
}
_PARTS_OF_NUMBERS: Mapping[str, str] = {"numeric_bytes": "exact", "numeric_approx": "approx"}
_WITHOUT_NUMBERS = frozenset({"trino", "iceberg"})
_DIGITS = 38  # with fewer digits, the result type holds every result
_NARROW = (Int(64), Float(32))
# Rules that the guards of comparisons and lists handle.
GUARDED = frozenset({"name", "nan", "bitwise_lists_from", "case_version"})
# Rules that binding writes into the tree: as arguments of calls, as `interval_us` and casts.
WRITTEN = frozenset(
    {"repeated_time", "skipped_time", "skipped_midnight", "moved_time", "truncated_clock"}
    | {"hours_make_days", "thirty_day_months", "compares_storage", "orders_enums"}
    | {"casts_json"}
)
# Rules for years outside 1 to 9999 only, for which translations promise nothing.
OF_FAR_YEARS = frozenset({"far_years", "float_seconds_from"})
# What `bind` accepts; a bound condition means the same with and without it.
OF_BINDING = frozenset({"has_session_zone"})
RULES = GUARDED | WRITTEN | OF_FAR_YEARS | OF_BINDING | frozenset(RULE_TEXTS)


def differ(ours: Semantics, theirs: Semantics) -> bool:
    """Whether two semantics differ in anything but their names."""
    return replace(ours, name="") != replace(theirs, name="")


def keep_meaning(root: ir.Predicate, ours: Semantics, theirs: Semantics) -> ir.Predicate:
    """Rewrite a bound condition under `ours` to one with the same meaning under `theirs`."""
    # Conditions that depend on the sign of NaN were rejected; DataFusion's writers clear the sign.
    ours, theirs = unsigned(ours), unsigned(theirs)
    if not differ(ours, theirs):
        return root
    if ours.case_version != theirs.case_version and (name := case_that_decides(root)) is not None:
        raise UnsupportedOperation(
            f"{name} of letters whose case is new in Unicode differs between {ours.name} and "
            f"{theirs.name}; compare the result with a constant"
        )
    return _Guards(ours, theirs).predicate(root)


def unsigned(semantics: Semantics) -> Semantics:
    """Return equivalent rules for conditions that do not depend on the sign of a NaN."""
    if semantics.nan is not NanOrder.SIGNED:
        return semantics
    return replace(semantics, nan=NanOrder.GREATEST)


@dataclass(frozen=True, slots=True)
class _Guards:
    ours: Semantics
    theirs: Semantics

    def predicate(self, node: ir.Predicate) -> ir.Predicate:
        match node:
            case ir.Comparison(op=op, left=left, right=right):
                return self.comparison(op, self.operand(left), self.operand(right))
            case ir.InList(operand=operand, values=values):
                return self.in_list(self.operand(operand), values)
            case ir.Like(ignore_case=True):  # where they lower both sides, theirs is LIKE of lower
                self.check("ILIKE", ("lowers_patterns",))
                if has_young(node.pattern):
                    self.check("ILIKE", ("fold_version",))
                return ir.map_children(node, self.predicate, self.operand)
            case _:
                return ir.map_children(node, self.predicate, self.operand)

    def operand(self, node: ir.Operand) -> ir.Operand:
        if isinstance(node, ir.Call):
            if (part := self.part_of_number(node)) is not None:
                return part
            self.check_call(node)
        elif isinstance(node, ir.Cast):
            self.check_cast(node)
        return ir.map_children(node, self.predicate, self.operand)

    # Unbounded numbers

    def part_of_number(self, node: ir.Call) -> ir.Operand | None:
        """Return the field of the struct that the other engine sees; None for other calls.

        Every engine orders bytes as unsigned, which orders these numbers correctly.
        """
        name = _PARTS_OF_NUMBERS.get(node.function)
        if name is None:
            return None
        if self.theirs.name in _WITHOUT_NUMBERS:
            raise UnsupportedOperation(
                f"{self.theirs.name} has no numbers of any size; cast the column to a decimal, "
                "such as decimal(38,10)"
            )
        if not self.theirs.compares_storage:
            return None
        (column,) = node.arguments
        if not isinstance(column, ir.BoundColumn):
            return None
        return ir.FieldAccess(ir.BoundColumn(column.field_id, column.name, NUMERIC_PARTS), name)

    # NaN

    def comparison(self, op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand) -> ir.Predicate:
        if is_nested(type_of(left)):
            self.check(f"{op.value} of lists or structs", ("nested_nulls", "nested_zeros_differ"))
            return ir.Comparison(op, left, right)
        if self.ours.nan is self.theirs.nan or not isinstance(type_of(left), Float):
            return ir.Comparison(op, left, right)
        if op.is_null_safe:
            return self.distinct(op, left, right)
        if op is ir.ComparisonOp.NE:
            return ir.Not(self.comparison(ir.ComparisonOp.EQ, left, right))
        if op.is_order and op.holds_if_greater:
            return self.ordered(op.mirrored, right, left, ir.Comparison(op, left, right))
        return self.ordered(op, left, right, ir.Comparison(op, left, right))

    def distinct(self, op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand) -> ir.Predicate:
        nulls = ir.IsNull(left), ir.IsNull(right)
        equal = self.comparison(ir.ComparisonOp.EQ, left, right)
        same = ir.Or((ir.And(nulls), ir.And((ir.Not(nulls[0]), ir.Not(nulls[1]), equal))))
        return same if op is ir.ComparisonOp.NOT_DISTINCT else ir.Not(same)

    def ordered(
        self, op: ir.ComparisonOp, a: ir.Operand, b: ir.Operand, plain: ir.Predicate
    ) -> ir.Predicate:
        """Guard `a = b`, `a < b` or `a <= b`; `plain` is the other engine's comparison.

        The two differ only if `b` is NaN, and for `=` only if both are.
        """
        if _never_nan(b) or (op is ir.ComparisonOp.EQ and _never_nan(a)):
            return plain
        known = _never_nan(a) and not (isinstance(a, ir.Literal) and a.value is None)
        if self.ours.nan is NanOrder.GREATEST:
            above: ir.Predicate = ir.And((self.is_nan(b), ir.Not(ir.IsNull(a))))
            if known:
                above = self.is_nan(b)
            elif op is ir.ComparisonOp.LT:
                above = ir.And((self.is_nan(b), ir.Not(self.is_nan(a))))
            elif op is ir.ComparisonOp.EQ:
                above = ir.And((self.is_nan(a), self.is_nan(b)))
            return ir.Or((plain, above))
        below = ir.Not(self.is_nan(b))
        return ir.And((plain, below if known else ir.Or((below, ir.IsNull(a)))))

    def is_nan(self, operand: ir.Operand) -> ir.Predicate:
        """Build a test for NaN, NULL for NULL; of a constant, its result."""
        if isinstance(operand, ir.Literal) and operand.value is not None:
            return ir.FALSE if _never_nan(operand) else ir.TRUE
        if self.theirs.nan is NanOrder.IEEE:
            return ir.Comparison(ir.ComparisonOp.NE, operand, operand)
        return ir.Comparison(ir.ComparisonOp.EQ, operand, ir.Literal(math.nan, type_of(operand)))

    # Lists

    def in_list(self, operand: ir.Operand, values: ir.ValueSet) -> ir.Predicate:
        members = values.array
        if not pa.types.is_floating(members.type):
            return ir.InList(operand, values)
        if self.ours.nan is not self.theirs.nan:
            marked = pc.fill_null(pc.is_nan(members), fill_value=False)
            if pc.any(marked).as_py():
                rest = ir.InList(
                    operand, ir.ValueSet(members.filter(pc.invert(marked)), values.type)
                )
                membership = self.zeros(rest, len(members))
                if self.ours.nan is NanOrder.IEEE:
                    return membership
                return ir.Or((membership, self.is_nan(operand)))
        return self.zeros(ir.InList(operand, values), len(members))

    def zeros(self, node: ir.InList, count: int) -> ir.Predicate:
        """Guard a list of `count` members, if our engine distinguishes -0.0 from 0.0 in it."""
        members = node.values.array
        if not pc.any(pc.equal(members, 0.0)).as_py():
            return node
        if self.ours.compares_bits(count):
            if not self.theirs.compares_bits(len(members)):
                raise UnsupportedOperation(
                    f"a list that distinguishes -0.0 from 0.0 in {self.ours.name} finds both in "
                    f"{self.theirs.name}; give both, or neither"
                )
            return node
        if self.theirs.bitwise_lists_from is None:
            return node
        others = members.filter(pc.fill_null(pc.not_equal(members, 0.0), fill_value=True))
        both = pa.concat_arrays([others, pa.array([0.0, -0.0], members.type)])
        return ir.InList(node.operand, ir.ValueSet(both, node.values.type))

    # Operations

    def check_call(self, node: ir.Call) -> None:
        name, types, result = (
            node.function,
            [type_of(item) for item in node.arguments],
            type_of(node),
        )
        floats = any(isinstance(type_, Float) for type_ in (*types, result))
        zoned = name in _OF_SESSION and not _INSTANTS.isdisjoint(types)
        touched = [field for field, names in _CALLS.items() if name in names]
        if isinstance(result, Int) and name in _WHOLE:
            overflow = "quotient_overflow" if name == "divide" else "integer_overflow"
            touched += [overflow, "integer_division_by_zero"]
            if name == "modulo" and _may_be_minus_one(node.arguments[1]):
                touched.append("remainders_overflow")
        if isinstance(result, Decimal) and result.precision >= _DIGITS and name in _WHOLE:
            touched.append("decimal_overflow")
        if floats:
            touched += [field for field, names in _CALLS_OF_FLOATS.items() if name in names]
            if name in ("divide", "modulo") and _may_be_zero(node.arguments[1]):
                touched.append("nan_by_zero")
            if len(types) == 1 and "digit_rounding" in touched:
                touched.remove("digit_rounding")  # no digits
        if zoned:
            touched.append("time_zone")
        if any(isinstance(type_, Nanos) for type_ in types):
            touched.append("nanoseconds")
        if name.startswith("json"):
            touched.append("first_duplicate_wins")
        self.check(name, touched)

    def check(self, what: str, touched: Iterable[str]) -> None:
        """Raise for an operation that depends on a rule in which the engines differ."""
        for field in touched:
            if getattr(self.ours, field) != getattr(self.theirs, field):
                raise UnsupportedOperation(disagreement(what, field, self.ours, self.theirs))

    def check_cast(self, node: ir.Cast) -> None:
        source, target = type_of(node.operand), node.type
        rule = cast_rule(source, target)
        fails = not node.try_ and (rule is None or rule.can_fail)
        touched = ["failed_cast"] if fails else []
        if fails and isinstance(target, Int) and isinstance(source, Int | Float | Decimal):
            touched.append("casts_wrap")
        if isinstance(target, Int) and isinstance(source, Float | Decimal):
            touched.append("casts_cut_fractions")
        if isinstance(target, Decimal) and isinstance(source, Float):
            touched.append("digit_rounding")
        if isinstance(source, Float) and (isinstance(target, Decimal) or target in _NARROW):
            touched.append("infinite_float32" if target == Float(32) else "lenient_float_casts")
        if (source, target) == (Float(64), Float(32)):
            touched.append("float_range")
        if _meets_zone(source, target):
            touched.append("time_zone")
        refused = self.theirs.nanoseconds is Nanoseconds.REFUSED
        if isinstance(source, Nanos) or (refused and isinstance(target, Nanos)):
            touched.append("nanoseconds")
        if isinstance(source, String) and not isinstance(target, String | Json):
            touched.append("text_reading")
        if isinstance(source, Timestamp | Nanos) and isinstance(target, String):
            spelt = [_in_utc(rules.timestamp_text, source) for rules in (self.ours, self.theirs)]
            if spelt[0] is not spelt[1]:
                touched.append("timestamp_text")
        self.check(f"a cast of {type_name(source)} to {type_name(target)}", touched)


def _may_be_zero(divisor: ir.Operand) -> bool:
    """Whether a divisor may be 0: not a constant other than 0, nor `nullif(x, 0)`."""
    while isinstance(divisor, ir.Cast):
        divisor = divisor.operand
    if isinstance(divisor, ir.Call) and divisor.function == "nullif":
        other = divisor.arguments[1]
        return not (isinstance(other, ir.Literal) and other.value == 0)
    return not (isinstance(divisor, ir.Literal) and divisor.value)


def _may_be_minus_one(operand: ir.Operand) -> bool:
    return not isinstance(operand, ir.Literal) or operand.value == -1


def _never_nan(operand: ir.Operand) -> bool:
    if not isinstance(operand, ir.Literal):
        return False
    return not (isinstance(operand.value, float) and math.isnan(operand.value))


def _in_utc(style: TimestampText, source: Timestamp | Nanos) -> TimestampText:
    """Return the other engine's style, if it formats the type alike: zoned casts are calls."""
    local = not source.utc and style is TimestampText.LOCAL
    if local or style is TimestampText.OFFSET_IN_MINUTES:
        return TimestampText.OFFSET
    return style


def _meets_zone(source: LogicalType, target: LogicalType) -> bool:
    zoned = [type_.utc for type_ in (source, target) if isinstance(type_, Timestamp | Nanos)]
    return any(zoned) and (not all(zoned) or Date() in (source, target) or len(zoned) == 1)
