"""The slow, obvious evaluator: one row at a time in plain Python, for unbound predicates.

It knows no kernel and no binder. Numbers compare as fractions, floats as SQL says, text by its
bytes. A failure is the exception `Failed`. Only the result type of a call is asked of the registry.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from rowsieve.predicate import ir
from rowsieve.predicate.functions.registry import resolve
from rowsieve.predicate.functions.row import Argument
from rowsieve.predicate.literal_values import natural_type
from rowsieve.predicate.semantics import NanOrder, OnFailure, Semantics, TextReading
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests import oracle_zones
from tests.oracle_functions import PIECES, json_function, moved, rounded
from tests.oracle_spark_texts import knows as spark_knows
from tests.oracle_spark_texts import spark_reads_one
from tests.oracle_values import (
    DAY_US,
    TEXT_FUNCTIONS,
    Cell,
    Failed,
    adapted,
    cast_text,
    comparable,
    exact_arithmetic,
    extracted,
    fitted_decimal,
    float_arithmetic,
    float_as_decimal,
    half_away,
    is_out_of_range,
    like,
    limits,
    member_cell,
    nan_ordered,
    rounded_float,
    spelled,
    truncated,
    whole_number,
)


class Answer(Enum):
    """What a predicate is on a row."""

    TRUE = "T"
    FALSE = "F"
    NULL = "N"
    FAILED = "E"


@dataclass(frozen=True)
class Oracle:
    schema: Schema
    semantics: Semantics

    def judge(self, predicate: ir.Predicate, row: Mapping[str, Any]) -> Answer:
        """The answer at the top: conjuncts judge each for itself."""
        answers = [self.predicate(term, row) for term in top_terms(predicate)]
        if Answer.FALSE in answers:
            return Answer.FALSE
        if Answer.NULL in answers:
            return Answer.NULL
        return Answer.FAILED if Answer.FAILED in answers else Answer.TRUE

    def predicate(self, node: ir.Predicate, row: Mapping[str, Any]) -> Answer:
        try:
            truth = self.truth(node, row)
        except Failed:
            return Answer.FAILED
        return Answer.NULL if truth is None else Answer.TRUE if truth else Answer.FALSE

    def truth(self, node: ir.Predicate, row: Mapping[str, Any]) -> bool | None:
        match node:
            case ir.TruePredicate():
                return True
            case ir.FalsePredicate():
                return False
            case ir.Not(term=term):
                inner = self.truth(term, row)
                return None if inner is None else not inner
            case ir.And(terms=terms):
                answers = [self.predicate(term, row) for term in terms]
                return junction(answers, Answer.FALSE)
            case ir.Or(terms=terms):
                answers = [self.predicate(term, row) for term in terms]
                return junction(answers, Answer.TRUE)
            case ir.Comparison(op=op, left=left, right=right):
                return self.compare(op, self.operand(left, row), self.operand(right, row))
            case ir.InList():
                return self.in_list(node, row)
            case ir.IsNull(operand=operand):
                return self.operand(operand, row).value is None
            case ir.Like(operand=operand, pattern=pattern, escape=escape, ignore_case=ignore):
                text = self.operand(operand, row).value
                return None if text is None else like(text, pattern, escape, ignore_case=ignore)
            case ir.BooleanOperand(operand=operand):
                value = adapted(self.operand(operand, row), Bool()).value
                return None if value is None else bool(value)
        raise AssertionError(node)

    def compare(self, op: ir.ComparisonOp, a: Cell, b: Cell) -> bool | None:
        a, b = self.in_zone(*(adapted(a, b.type), adapted(b, a.type)), bare=(a.type, b.type))
        if op in (ir.ComparisonOp.DISTINCT, ir.ComparisonOp.NOT_DISTINCT):
            wanted = op is ir.ComparisonOp.DISTINCT
            if a.value is None or b.value is None:
                return ((a.value is None) != (b.value is None)) == wanted
            different = self.ordered(ir.ComparisonOp.NE, a, b)
            return different == wanted
        if a.value is None or b.value is None:
            return None
        return self.ordered(op, a, b)

    def in_zone(self, *cells: Cell, bare: tuple[LogicalType | None, ...]) -> tuple[Cell, ...]:
        """Dates, local times and bare texts beside an instant as instants of the session."""
        if oracle_zones.is_utc(self.semantics) or INSTANT not in [cell.type for cell in cells]:
            return cells
        made = []
        for cell, given in zip(cells, bare, strict=True):
            source = cell.type if given is not None else Timestamp()
            if cell.value is None or source == INSTANT or not isinstance(source, Date | Timestamp):
                made.append(cell)
            elif given is None:
                made.append(Cell(INSTANT, oracle_zones.instant(cell.value, self.semantics)))
            else:
                made.append(Cell(INSTANT, self.converted(cell, INSTANT)))
        return tuple(made)

    def ordered(self, op: ir.ComparisonOp, a: Cell, b: Cell) -> bool:
        x, y = comparable(a, b)
        if isinstance(x, float):
            if self.semantics.nan is NanOrder.IEEE and (math.isnan(x) or math.isnan(y)):
                return op is ir.ComparisonOp.NE
            signed = self.semantics.nan is NanOrder.SIGNED
            x, y = nan_ordered(x, signed=signed), nan_ordered(y, signed=signed)
        outcomes: dict[ir.ComparisonOp, Callable[[], bool]] = {
            ir.ComparisonOp.EQ: lambda: x == y,
            ir.ComparisonOp.NE: lambda: x != y,
            ir.ComparisonOp.LT: lambda: x < y,
            ir.ComparisonOp.LE: lambda: x <= y,
            ir.ComparisonOp.GT: lambda: x > y,
            ir.ComparisonOp.GE: lambda: x >= y,
        }
        return outcomes[op]()

    def in_list(self, node: ir.InList, row: Mapping[str, Any]) -> bool | None:
        cell = self.operand(node.operand, row)
        if cell.value is None:
            return None
        members = [member_cell(item, node.values) for item in node.values.array]
        for member in members:
            (_, other) = self.in_zone(
                cell, adapted(member, cell.type), bare=(cell.type, member.type)
            )
            if other.value is None or self.compare(ir.ComparisonOp.EQ, cell, other) is not True:
                continue
            x, y = comparable(cell, other)
            bitwise = self.semantics.compares_bits(len(members)) and isinstance(x, float)
            if not bitwise or math.isnan(x) or math.copysign(1, x) == math.copysign(1, y):
                return True
        return None if any(member.value is None for member in members) else False

    def operand(self, node: ir.Operand, row: Mapping[str, Any]) -> Cell:
        match node:
            case ir.Column(name=name):
                field = self.schema.field(name)
                return Cell(field.type, row[field.name])
            case ir.BoundColumn(name=name, type=type_):
                return Cell(type_, row[name])
            case ir.Literal(value=value, type=type_):
                return Cell(type_ or natural_type(value), value)
            case ir.Call(function=function, arguments=arguments):
                return self.call(function, arguments, row)
            case ir.Cast(operand=operand, type=type_, try_=try_):
                return self.cast(self.operand(operand, row), type_, try_=try_)
            case ir.FieldAccess(operand=operand, name=name):
                cell = self.operand(operand, row)
                assert isinstance(cell.type, Struct)
                member = next(field for field in cell.type.fields if field.name == name)
                return Cell(member.type, None if cell.value is None else cell.value[name])
            case ir.Case():
                return self.case(node, row)
            case ir.Condition(predicate=predicate):
                return Cell(Bool(), self.truth(predicate, row))
            case ir.Now():
                raise AssertionError("now() is folded by bind")
        raise AssertionError(node)

    def case(self, node: ir.Case, row: Mapping[str, Any]) -> Cell:
        for when, then in node.branches:
            if self.truth(when, row):
                return self.operand(then, row)
        return self.operand(node.otherwise, row)

    def call(
        self, function: str, arguments: tuple[ir.Operand, ...], row: Mapping[str, Any]
    ) -> Cell:
        if function == "coalesce":
            cells = []
            for argument in arguments:
                cells.append(self.operand(argument, row))
                if cells[-1].value is not None:
                    break
            return cells[-1]
        cells = [self.operand(argument, row) for argument in arguments]
        if function == "timezone":
            return self.at_time_zone(str(cells[0].value), cells[1])
        known = [
            Argument(cell.type, is_constant=isinstance(node, ir.Literal), constant=cell.value)
            for node, cell in zip(arguments, cells, strict=True)
        ]
        _, signature = resolve(function, known)
        values = [
            adapted(cell, type_).value
            for cell, type_ in zip(cells, signature.arguments, strict=True)
        ]
        if function == "concat":
            return Cell(String(), "".join(value or "" for value in values))
        if function in ("greatest", "least"):
            return self.extreme(function, cells)
        if function == "nullif":
            equal = self.compare(ir.ComparisonOp.EQ, cells[0], cells[1])
            if equal and self.semantics.nested_zeros_differ:
                x, y = comparable(cells[0], cells[1])
                equal = not isinstance(x, float) or math.copysign(1, x) == math.copysign(1, y)
            return Cell(cells[0].type, None if equal else cells[0].value)
        if any(value is None for value in values):
            return Cell(signature.result, None)
        if function in PIECES:
            return Cell(signature.result, PIECES[function](*values))
        zoned = INSTANT in signature.arguments and not oracle_zones.is_utc(self.semantics)
        if function in ("add_interval", "shift", "shift_timestamp"):
            start = self.cast(cells[0], signature.arguments[0], try_=False).value
            months, days, micros = values[1:]
            if zoned and (months or days or self.semantics.hours_make_days):
                later = oracle_zones.shifted(start, months, days, micros, self.semantics)
                return Cell(signature.result, later)
            return Cell(signature.result, moved(start, months, days, micros, signature.result))
        if function.startswith("json_"):
            return Cell(signature.result, json_function(function, values, self.semantics))
        if function == "round":
            digits = values[1] if len(values) > 1 else 0
            found = rounded(values[0], digits, signature.result, self.semantics)
            return Cell(signature.result, found)
        if function in ("floor", "ceil"):
            found = whole_number(function, values[0], signature.result)
            if self.semantics.floors_are_longs and isinstance(found, float) and math.isnan(found):
                found = 0.0
            fits = not isinstance(found, float) or -(2.0**63) <= found < 2.0**63
            if self.semantics.floors_are_longs and not fits:
                raise Failed
            return Cell(signature.result, found)
        if function in ARITHMETIC:
            return Cell(signature.result, self.arithmetic(function, values, signature.result))
        if function == "date_trunc":
            micros = self.cast(cells[1], signature.result, try_=False).value
            if zoned:
                cut = oracle_zones.date_trunc(signature.option, micros, self.semantics)
                return Cell(signature.result, cut)
            return Cell(signature.result, truncated(signature.option, micros))
        if function == "extract":
            if zoned and signature.option != "epoch":
                values[1] = oracle_zones.local_time(values[1], self.semantics.time_zone)
            return Cell(
                signature.result, extracted(signature.option, signature.arguments[1], values[1])
            )
        return Cell(signature.result, TEXT_FUNCTIONS[function](*values))

    def at_time_zone(self, name: str, cell: Cell) -> Cell:
        """The local time of an instant, or the instant of a local time."""
        if cell.type == INSTANT:
            found = None if cell.value is None else oracle_zones.local_time(cell.value, name)
            return Cell(Timestamp(), found)
        local = self.cast(cell, Timestamp(), try_=False).value
        if local is None:
            return Cell(INSTANT, None)
        return Cell(INSTANT, oracle_zones.instant(local, self.semantics, name=name))

    def extreme(self, function: str, cells: list[Cell]) -> Cell:
        op = ir.ComparisonOp.GT if function == "greatest" else ir.ComparisonOp.LT
        best = cells[0]
        for cell in cells[1:]:
            if best.value is None or (cell.value is not None and self.compare(op, cell, best)):
                best = cell
        return best

    def arithmetic(self, function: str, values: list[Any], type_: LogicalType) -> Any:
        if function in ("divide", "modulo") and values[1] == 0:
            if not isinstance(type_, Float):
                self.without_value(self.semantics.integer_division_by_zero)
                return None
            if self.semantics.nan_by_zero and isinstance(type_, Float) and math.isnan(values[0]):
                return math.nan
            if self.semantics.float_division_by_zero is not OnFailure.IEEE:
                self.without_value(self.semantics.float_division_by_zero)
                return None
        if isinstance(type_, Float):
            floats = [float(v) for v in values]
            signs = {math.copysign(1, v) for v in floats if math.isnan(v)}
            signed = self.semantics.nan is NanOrder.SIGNED
            if signed and len(signs) > 1 and function in ("add", "multiply"):
                raise Failed  # which of the two NaNs comes out is left to the processor
            result = rounded_float(float_arithmetic(function, floats), type_.bits)
            if self.semantics.float_range is OnFailure.ERROR and is_out_of_range(
                function, floats, result
            ):
                raise Failed
            return result
        exact = exact_arithmetic(function, [Fraction(value) for value in values], type_)
        if isinstance(type_, Decimal):
            return self.fitted(exact, type_)
        low, high = limits(type_)
        if function == "modulo" and self.semantics.remainders_overflow and values == [low, -1]:
            self.without_value(self.semantics.integer_overflow)
            return None
        if low <= exact <= high:
            return int(exact)
        if function == "abs":
            raise Failed  # no engine wraps it
        if function == "divide":
            return self.overflowed(int(exact), type_, self.semantics.quotient_overflow)
        return self.overflowed(int(exact), type_, self.semantics.integer_overflow)

    def fitted(self, exact: Fraction, type_: Decimal) -> decimal.Decimal | None:
        try:
            return fitted_decimal(exact, type_)
        except Failed:
            self.without_value(self.semantics.decimal_overflow)
            return None

    def overflowed(self, exact: int, type_: LogicalType, rule: OnFailure) -> int | None:
        assert isinstance(type_, Int)
        if rule is not OnFailure.WRAP:
            self.without_value(rule)
            return None
        wrapped = exact % (1 << type_.bits)
        negative = type_.signed and wrapped >> (type_.bits - 1)
        return wrapped - (1 << type_.bits) if negative else wrapped

    def without_value(self, rule: OnFailure) -> None:
        """NULL, or a failure where the rule says so."""
        if rule is OnFailure.ERROR:
            raise Failed

    def cast(self, cell: Cell, target: LogicalType, *, try_: bool) -> Cell:
        if cell.value is None:
            return Cell(target, None)
        try:
            return Cell(target, self.converted(cell, target, try_=try_))
        except Failed:
            wraps = self.semantics.casts_wrap and isinstance(cell.type, Int | Float | Decimal)
            if wraps and isinstance(target, Int) and not try_:
                return Cell(target, lowest_bits(cell.value, target))
            quiet = try_ or self.semantics.failed_cast is OnFailure.NULL
            if quiet and not isinstance(target, String):  # engines have a text for any year
                return Cell(target, None)
            raise

    def converted(self, cell: Cell, target: LogicalType, *, try_: bool = False) -> Any:
        value, source = cell.value, cell.type or String()
        if source == target:
            return value
        by_spark = self.semantics.text_reading is TextReading.SPARK
        if source == String() and by_spark and spark_knows(target):
            return self.read_by_spark(value, target, try_=try_)
        if not oracle_zones.is_utc(self.semantics) and INSTANT in (source, target):
            return self.in_session(value, source, target)
        match source, target:
            case (String(), _):
                return cast_text(value, target, self.semantics.text_reading)
            case (_, String()):
                return spelled(
                    value, source, self.semantics.timestamp_text, self.semantics.far_years
                )
            case (Bool(), Int()):
                return int(value)
            case (_, Bool()):
                return value != 0
            case (_, Int()):
                return self.whole(value, target)
            case (_, Float()):
                lenient = self.semantics.infinite_float32 and isinstance(source, Float)
                narrow = rounded_float(float(value), target.bits, overflow=not lenient)
                if self.semantics.float_range is OnFailure.ERROR and value and not narrow:
                    raise Failed
                return narrow
            case (Float(), Decimal()):
                if not math.isfinite(value):
                    self.without_value(
                        OnFailure.NULL if self.semantics.lenient_float_casts else OnFailure.ERROR
                    )
                    return None
                return float_as_decimal(value, source, target, self.semantics)
            case (_, Decimal()):
                return fitted_decimal(Fraction(value), target)
            case (Date(), Timestamp()):
                if abs(value) > (2**63 - 1) // DAY_US:
                    raise Failed
                return value * DAY_US
            case (Timestamp(), Date()):
                return value // DAY_US
            case (Timestamp(), Time()):
                return value % DAY_US
            case (Timestamp(), Timestamp()) | (Uuid(), Binary()):
                return value
        raise AssertionError((source, target))

    def read_by_spark(self, text: str, target: LogicalType, *, try_: bool) -> Any:
        def instant(local: int, name: str | None) -> int:
            return oracle_zones.instant(local, self.semantics, name=name)

        cuts = self.semantics.failed_cast is OnFailure.NULL and not try_
        found = spark_reads_one(text, target, cuts=cuts, instant=instant)
        if found is None:
            raise Failed
        return found

    def in_session(self, value: Any, source: LogicalType, target: LogicalType) -> Any:
        """A cast from or to an instant by way of local time."""
        match source, target:
            case (String(), _):
                found = cast_text(value, target, self.semantics.text_reading)
                has_offset = re.search(r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)\s*$", value.strip()[10:])
                return found if has_offset else oracle_zones.instant(found, self.semantics)
            case (_, String()):
                return oracle_zones.instant_text(value, self.semantics)
            case (Date(), _):
                local = self.converted(Cell(source, value), Timestamp())
                return oracle_zones.instant(local, self.semantics, midnight=True)
            case (_, Timestamp(utc=True)):
                return oracle_zones.instant(value, self.semantics)
        local = oracle_zones.local_time(value, self.semantics.time_zone)
        return self.converted(Cell(Timestamp(), local), target)

    def whole(self, value: Any, target: LogicalType) -> int:
        if isinstance(value, float) and not math.isfinite(value):
            raise Failed
        if self.semantics.casts_cut_fractions:
            result: int = math.trunc(value)
        elif isinstance(value, float):
            result = round(value)
        else:
            result = half_away(Fraction(value))
        low, high = limits(target)
        lenient = self.semantics.lenient_float_casts and isinstance(value, float)
        if lenient and target == Int(64) and result == 2**63:
            return high
        if not low <= result <= high:
            raise Failed
        return result


INSTANT = Timestamp(utc=True)
ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "modulo", "negate", "abs"})


def lowest_bits(value: Any, target: Int) -> int:
    """What Java keeps of a number as a whole one."""
    if isinstance(value, float):
        low, high = limits(Int(max(target.bits, 32)))
        value = 0 if math.isnan(value) else min(max(value, low), high)
    kept: int = math.trunc(value) % (1 << target.bits)
    return kept - (1 << target.bits) if target.signed and kept >> (target.bits - 1) else kept


def junction(answers: list[Answer], decision: Answer) -> bool | None:
    """AND, decided by FALSE, or OR, decided by TRUE, below the top."""
    decided = decision is Answer.TRUE
    if decision in answers:
        return decided
    if Answer.FAILED in answers:
        raise Failed
    return None if Answer.NULL in answers else not decided


def top_terms(predicate: ir.Predicate) -> list[ir.Predicate]:
    """The conjuncts at the top, seen through what only wraps them."""
    match predicate:
        case ir.And(terms=terms):
            return [inner for term in terms for inner in top_terms(term)]
        case ir.Or(terms=(only,)):
            return top_terms(only)
        case ir.Not(term=ir.Not(term=inner)):
            return top_terms(inner)
        case ir.BooleanOperand(operand=ir.Condition(predicate=inner)):
            return top_terms(inner)
    return [predicate]
