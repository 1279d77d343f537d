"""Our tree as a `datafusion.Expr`: bound first, so that both sides have one type in every engine.

What DataFusion would do otherwise is guarded where it can say what we mean (NaN of either sign out
of arithmetic, signed zeros in long lists) and refused where it cannot, as are operations on which
the semantics of the tree and those of DataFusion differ. A refusal takes its whole condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.datafusion_exprs import table
from rowsieve.bridges.datafusion_exprs.long_lists import LONG, found_in
from rowsieve.bridges.extras import imported
from rowsieve.bridges.float32 import REASON, may_be_infinite
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.functions.registry import FUNCTIONS, known_of, resolve
from rowsieve.predicate.ir import (
    And,
    BooleanOperand,
    BoundColumn,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    FalsePredicate,
    FieldAccess,
    InList,
    IsNull,
    Like,
    Literal,
    Not,
    Now,
    Opaque,
    Operand,
    Or,
    Predicate,
    TruePredicate,
)
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.literals import scalar
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    List,
    LogicalType,
    String,
    Timestamp,
    is_nested,
    type_name,
)

if TYPE_CHECKING:
    from datafusion import Expr

_INSTANT = pa.timestamp("us", "UTC")
_ORDER: dict[ComparisonOp, Callable[[Any, Any], Any]] = {
    ComparisonOp.EQ: lambda a, b: a == b,
    ComparisonOp.NE: lambda a, b: a != b,
    ComparisonOp.LT: lambda a, b: a < b,
    ComparisonOp.LE: lambda a, b: a <= b,
    ComparisonOp.GT: lambda a, b: a > b,
    ComparisonOp.GE: lambda a, b: a >= b,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "modulo": lambda a, b: a % b,
}
_TEMPORAL_MOVES = ("add_interval", "shift", "shift_timestamp")


class Writer:
    """Writes bound trees that are meant under the semantics given."""

    def __init__(self, semantics: Semantics) -> None:
        datafusion = imported("datafusion", "datafusion")
        self._semantics = semantics
        self._functions: Any = datafusion.functions
        self._expr: Any = datafusion.Expr
        self._column: Any = datafusion.col

    def predicate(self, node: Predicate) -> Expr:
        """The condition, or `UnsupportedOperation` with the reason."""
        match node:
            case TruePredicate():
                return self._constant(pa.scalar(value=True))
            case FalsePredicate():
                return self._constant(pa.scalar(value=False))
            case And(terms=terms):
                return self.conjunction([self.predicate(term) for term in terms])
            case Or(terms=terms):
                empty = self._constant(pa.scalar(value=False))
                return _balanced([self.predicate(term) for term in terms], empty, all_of=False)
            case Not(term=term):
                return ~self.predicate(term)
            case Comparison(op=op, left=left, right=right):
                return self._comparison(op, left, right)
            case InList():
                return self._in_list(node)
            case IsNull(operand=operand):
                return self.operand(operand).is_null()
            case Like():
                return self._like(node)
            case BooleanOperand(operand=operand):
                return self.operand(operand)
            case Opaque(description=description):
                raise UnsupportedOperation(f"{description} is another engine's condition")
            case _:
                assert_never(node)

    def conjunction(self, terms: list[Expr]) -> Expr:
        """AND of expressions."""
        return _balanced(terms, self._constant(pa.scalar(value=True)), all_of=True)

    def operand(self, node: Operand) -> Expr:
        """The value, or `UnsupportedOperation` with the reason."""
        match node:
            case BoundColumn(name=name):
                return self._named(name)
            case Column(name=name):
                raise AssertionError(f"the column {name!r} is not bound")
            case Literal():
                return self._constant(scalar(node))
            case Call():
                return self._call(node)
            case Cast():
                return self._cast(node)
            case FieldAccess(operand=operand, name=name):
                return self._member(self.operand(operand), name, type_of(node))
            case Case(branches=branches, otherwise=otherwise):
                first, *rest = [(self.predicate(w), self.operand(t)) for w, t in branches]
                builder = self._functions.when(*first)
                for when, then in rest:
                    builder = builder.when(when, then)
                return self._exprs(builder.otherwise(self.operand(otherwise)))
            case Now():
                return self._exprs(self._functions.now().cast(_INSTANT))
            case Condition(predicate=predicate):
                return self.predicate(predicate)
            case _:
                assert_never(node)

    def _comparison(self, op: ComparisonOp, left: Operand, right: Operand) -> Expr:
        self._check_order(left)
        self._check_order(right)
        sides = self.operand(left), self.operand(right)
        if op in (ComparisonOp.EQ, ComparisonOp.NE) and _is_zero(right):
            return self._zero(op, sides[0], right)
        if op not in (ComparisonOp.DISTINCT, ComparisonOp.NOT_DISTINCT):
            return self._exprs(_ORDER[op](*sides))
        # Python cannot build IS DISTINCT FROM
        equal = self._functions.coalesce(
            sides[0] == sides[1], self._constant(pa.scalar(value=False))
        )
        same = (sides[0].is_null() & sides[1].is_null()) | equal
        return self._exprs(same if op is ComparisonOp.NOT_DISTINCT else ~same)

    def _zero(self, op: ComparisonOp, operand: Expr, zero: Operand) -> Expr:
        """Equality with both zeros: DataFusion makes lists of ORs, and lists compare bits."""
        storage = arrow_type(type_of(zero))
        plus, minus = (self._constant(pa.scalar(value, storage)) for value in (0.0, -0.0))
        if op is ComparisonOp.EQ:
            return (operand == plus) | (operand == minus)
        return (operand != plus) & (operand != minus)

    def _in_list(self, node: InList) -> Expr:
        self._check_order(node.operand)
        operand, members = self.operand(node.operand), node.values.array
        if not len(members):
            unknown = self._constant(pa.scalar(None, pa.bool_()))
            return operand.is_null() & unknown
        if pa.types.is_floating(members.type):
            if not self._semantics.compares_bits(len(members)):
                members = _with_both_zeros(members)
            elif len(members) < (Semantics.DATAFUSION.bitwise_lists_from or 0):
                raise UnsupportedOperation("a short list of floats compares bits in no DataFusion")
        if len(members) >= LONG:
            unknown = self._constant(pa.scalar(None, pa.bool_()))
            found = found_in(operand, members.drop_null())
            return self._exprs(found | unknown if members.null_count else found)
        listed = self._functions.in_list(operand, [self._constant(item) for item in members])
        return self._exprs(listed)

    def _like(self, node: Like) -> Expr:
        pattern = parse_pattern(node.pattern, node.escape)
        body = pattern.regex.removeprefix("(?s)^").removesuffix("$")
        flags = "si" if node.ignore_case else "s"
        regex = self._constant(pa.scalar(rf"(?{flags})\A{_rust(body)}\z"))
        return self._exprs(self._functions.regexp_like(self.operand(node.operand), regex))

    def _cast(self, node: Cast) -> Expr:
        source, target = type_of(node.operand), node.type
        if source == target:
            return self.operand(node.operand)
        if node.try_:
            raise UnsupportedOperation("TRY_CAST may fail on other values there")
        if (type(source).__name__, type(target).__name__) not in table.CASTS:
            raise UnsupportedOperation(
                f"a cast of {type_name(source)} to {type_name(target)} may give other values there"
            )
        if may_be_infinite(node.operand, source, target):
            raise UnsupportedOperation(REASON)
        zoned = isinstance(source, Timestamp) and isinstance(target, Timestamp | Date)
        if (zoned or isinstance(source, Date)) and self._semantics.time_zone != "UTC":
            raise UnsupportedOperation("the time zone of the session there is not known to be ours")
        return self._exprs(self.operand(node.operand).cast(arrow_type(target)))

    def _call(self, node: Call) -> Expr:
        name, arguments = node.function, node.arguments
        types = [type_of(argument) for argument in arguments]
        result = resolve(name, known_of(arguments, types))[1].result
        if name in _TEMPORAL_MOVES:
            return self._moved(node, types[0], result)
        if name in _ARITHMETIC or name in ("negate", "abs"):
            return self._arithmetic(node, types, result)
        if name == "concat_strict":
            joined = self.operand(arguments[0])
            for argument in arguments[1:]:
                joined = self._concatenated(joined, self.operand(argument))
            return joined
        foreign = table.FUNCTION_NAMES.get(name)
        if foreign is None:
            raise UnsupportedOperation(f"the function {name!r} has no counterpart there")
        check_call(name, arguments, types)
        if name in ("lower", "upper") and not self._semantics.full_case:
            raise UnsupportedOperation("a letter may become several in the other case there")
        if name in table.FLOAT_FUNCTIONS:
            self._check_floats(types[0])
            if name == "round" and (
                self._semantics.rounds_half_to_even != Semantics.DATAFUSION.rounds_half_to_even
            ):
                raise UnsupportedOperation("halves are rounded another way there")
        values: list[Any] = [self.operand(item) for item in arguments]
        if name == "sqrt" and not self._semantics.negative_roots_fail:
            raise UnsupportedOperation("the root of a negative number is an error there")
        if name == "sign" and not self._semantics.nan_has_sign:
            raise UnsupportedOperation("the sign of NaN is NaN there")
        if name in ("date_trunc", "extract", "concat_ws") and isinstance(arguments[0], Literal):
            values[0] = arguments[0].value
        made = getattr(self._functions, foreign)(*values)
        return self._exprs(made if is_nested(result) else made.cast(arrow_type(result)))

    def _arithmetic(self, node: Call, types: Sequence[LogicalType], result: LogicalType) -> Expr:
        ours, theirs = self._semantics, Semantics.DATAFUSION
        match result:
            case Int() if all(type_ == result for type_ in types):
                if ours.integer_overflow is not theirs.integer_overflow:
                    raise UnsupportedOperation("whole numbers that overflow wrap around there")
                if node.function in ("divide", "modulo", "abs"):
                    raise UnsupportedOperation(f"{node.function} of the least number differs there")
            case Float() if all(type_ == result for type_ in types):
                self._check_floats(result)
            case Decimal(precision=precision) if (
                node.function in ("add", "subtract", "multiply") and precision < 38
            ):
                pass
            case _:
                raise UnsupportedOperation(
                    f"{node.function} gives {type_name(result)} here and may not there"
                )
        sides = [self.operand(argument) for argument in node.arguments]
        nan = self._constant(pa.scalar(math.nan, arrow_type(result))) if _is_float(result) else None
        if node.function == "abs":
            made = self._functions.abs(sides[0])
        elif node.function == "negate" and nan is not None:
            made = sides[0] * self._constant(pa.scalar(-1.0, arrow_type(result)))
        elif node.function == "negate":
            made = self._constant(pa.scalar(0, arrow_type(result))) - sides[0]
        else:
            made = _ARITHMETIC[node.function](*sides)
        if nan is not None:  # a NaN of the other sign would sort below every number
            made = self._functions.nanvl(made, nan)
        return self._exprs(made)

    def _moved(self, node: Call, source: LogicalType, result: LogicalType) -> Expr:
        parts = [item.value for item in node.arguments[1:] if isinstance(item, Literal)]
        months, days, micros = parts if len(parts) == 3 else (None, None, None)
        small = (
            isinstance(months, int)
            and isinstance(days, int)
            and isinstance(micros, int)
            and max(abs(months), abs(days)) < 2**31
            and abs(micros) < 2**63 // 1000
        )
        if not small or source != result:
            raise UnsupportedOperation("only a constant interval can be added there")
        assert isinstance(micros, int)
        step = pa.scalar((months, days, micros * 1000), pa.month_day_nano_interval())
        return self._exprs(self.operand(node.arguments[0]) + self._constant(step))

    def _concatenated(self, left: Expr, right: Expr) -> Expr:
        """`||` as a CASE, for `concat` takes NULL for empty text and Python has no `||`."""
        either = left.is_null() | right.is_null()
        none = self._constant(pa.scalar(None, pa.string()))
        joined = self._functions.concat(left, right).cast(pa.string())
        return self._exprs(self._functions.when(either, none).otherwise(joined))

    def _member(self, struct: Expr, name: str, type_: LogicalType) -> Expr:
        """A member; DataFusion shows what lies hidden under a struct that is NULL."""
        if is_nested(type_):
            raise UnsupportedOperation("a nested member shows through a struct that is NULL")
        none = self._constant(pa.scalar(None, arrow_type(type_)))
        return self._exprs(self._functions.when(struct.is_null(), none).otherwise(struct[name]))

    def _check_order(self, operand: Operand) -> None:
        type_ = type_of(operand)
        if is_nested(type_):
            raise UnsupportedOperation(f"values of {type_name(type_)} are not compared")
        if _is_float(type_) and self._semantics.nan is NanOrder.IEEE:
            raise UnsupportedOperation("NaN compares in another way there")

    def _check_floats(self, type_: LogicalType) -> None:
        ours, theirs = self._semantics, Semantics.DATAFUSION
        if not _is_float(type_) or ours.float_division_by_zero is not theirs.float_division_by_zero:
            raise UnsupportedOperation("floats divided by zero and out of range differ there")

    def _named(self, name: str) -> Expr:
        escaped = name.replace('"', '""')
        return self._exprs(self._column(f'"{escaped}"'))

    def _constant(self, value: pa.Scalar) -> Expr:
        return self._exprs(self._expr.literal(value))

    def _exprs(self, made: Any) -> Expr:
        expression: Expr = made
        return expression


def check_call(name: str, arguments: Sequence[Operand], types: Sequence[LogicalType]) -> None:
    """Refuse what the table's note of the function leaves out."""
    constants = [item.value if isinstance(item, Literal) else None for item in arguments]
    numbers = [value for value in constants[1:] if type(value) is int]
    ok = True
    match name:
        case "substr":
            ok = len(numbers) == len(arguments) - 1 and numbers[0] >= 1 and numbers[-1] >= 0
        case "left" | "right":
            ok = len(numbers) == 1 and abs(numbers[0]) < 2**31
        case "floor" | "ceil" | "round":
            ok = len(types) == 1 and _is_float(types[0])
        case "coalesce":
            ok = all(type_ == types[0] for type_ in types)
        case "nullif" | "greatest" | "least":
            ok = all(type_ == types[0] for type_ in types) and not _is_float(types[0])
        case "list_length":
            ok = isinstance(types[0], List)
        case "list_element":
            ok = len(numbers) == 1 and 1 <= numbers[0] < 2**31
        case "date_trunc":
            ok = str(constants[0]).lower() in table.UNITS and isinstance(types[1], Timestamp)
        case "extract":
            ok = str(constants[0]).lower() in table.PARTS
        case "is_nan":
            ok = len(types) == 1 and _is_float(types[0])
        case "concat_ws":
            ok = isinstance(constants[0], str) and all(isinstance(t, String) for t in types)
        case _ if name in table.REALS:
            ok = len(types) == 1 and types[0] == Float(64)
        case _ if name in table.COUNTED:
            given = len(numbers) + sum(
                isinstance(value, str) and bool(value) for value in constants
            )
            ok = isinstance(types[0], String) and given == len(arguments) - 1
            ok = ok and _is_known(name, arguments, types)
        case "translate":
            ok = _is_known(name, arguments, types)
        case _ if name in table.TEXT_FUNCTIONS:
            ok = all(isinstance(type_, String) for type_ in types)
    if not ok:
        note = next((row.note for row in table.FUNCTIONS if row.ours == name), "")
        raise UnsupportedOperation(f"{name} means the same there only {note}")


def _is_known(name: str, arguments: Sequence[Operand], types: Sequence[LogicalType]) -> bool:
    """Whether the constants are such that engines agree on them."""
    return FUNCTIONS[name].resolve(known_of(arguments, types)) is not None


def _balanced(terms: list[Expr], empty: Expr, *, all_of: bool) -> Expr:
    """The terms joined two by two: DataFusion recurses as deep as the tree is."""
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        joined = [a & b if all_of else a | b for a, b in pairs]
        terms = joined + terms[len(joined) * 2 :]
    return terms[0] if terms else empty


def _is_zero(operand: Operand) -> bool:
    return isinstance(operand, Literal) and isinstance(operand.value, float) and not operand.value


def _with_both_zeros(members: pa.Array) -> pa.Array:
    if not pc.any(pc.equal(members, 0.0)).as_py():
        return members
    return pa.concat_arrays([members, pa.array([0.0, -0.0], members.type)])


def _rust(regex: str) -> str:
    """Python's escapes of whitespace and the like, which Rust's syntax spells otherwise."""
    for space in " \t\n\r\v\f":
        regex = regex.replace(f"\\{space}", f"\\x{ord(space):02x}")
    return regex


def _is_float(type_: LogicalType) -> bool:
    return isinstance(type_, Float)
