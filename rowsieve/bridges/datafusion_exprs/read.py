"""A `datafusion.Expr` as our tree, with DataFusion's choices of types written out as casts.

What a row of `table` does not list is refused by name. Soundness: DataFusion brings the sides of an
operator to one type by rules of its own; where ours differ (a float32 beside whole numbers, a
decimal beside a float) the conversion is written into the tree, or the operator is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.datafusion_exprs import table
from rowsieve.bridges.datafusion_exprs.constants import (
    as_decimal,
    as_float,
    constant,
    is_steady,
    is_zero,
    member_type,
    plain_members,
    single,
    type_named,
)
from rowsieve.bridges.datafusion_exprs.long_lists import members_of
from rowsieve.bridges.datafusion_exprs.write import check_call
from rowsieve.bridges.float32 import REASON, may_be_infinite
from rowsieve.bridges.pyarrow_exprs.literals import stored
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.ir import (
    FALSE,
    TRUE,
    And,
    BooleanOperand,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    FieldAccess,
    InList,
    IsNull,
    Like,
    Literal,
    Not,
    Now,
    Operand,
    Or,
    Predicate,
    ValueSet,
    walk,
)
from rowsieve.predicate.limits import MAX_DEPTH
from rowsieve.predicate.literals import scalar
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    type_name,
)
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    from datafusion import Expr

_TRUTHS = {
    "IsTrue": (ComparisonOp.NOT_DISTINCT, True),
    "IsFalse": (ComparisonOp.NOT_DISTINCT, False),
    "IsNotTrue": (ComparisonOp.DISTINCT, True),
    "IsNotFalse": (ComparisonOp.DISTINCT, False),
}


def conditions(expression: Expr) -> list[Expr]:
    """The terms of the AND at the top, in the order written; aliases are seen through."""
    return _chain(expression, "AND")


def joined(terms: Sequence[Expr]) -> Expr:
    """AND of expressions."""
    whole = terms[0]
    for term in terms[1:]:
        whole = whole & term
    return whole


def _chain(expression: Expr, operator: str) -> list[Expr]:
    found: list[Expr] = []
    stack = [expression]
    while stack:
        item = stack.pop()
        kind = item.variant_name()
        if kind == "Alias":
            stack.append(item.to_variant().expr())
        elif kind == "BinaryExpr" and item.rex_call_operator() == operator:
            stack.extend(reversed(item.rex_call_operands()))
        else:
            found.append(item)
    return found


class Reader:
    """Reads expressions over the columns of one schema; recursion ends at `MAX_DEPTH`."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._depth = 0

    def predicate(self, expression: Expr) -> Predicate:
        """The expression as a condition."""
        node = self._node(expression)
        if isinstance(node, Condition):
            return node.predicate
        if isinstance(node, Literal) and isinstance(node.value, bool):
            return TRUE if node.value else FALSE
        return node if isinstance(node, Predicate) else BooleanOperand(node)

    def operand(self, expression: Expr) -> Operand:
        """The expression as a value."""
        node = self._node(expression)
        if isinstance(node, BooleanOperand):
            return node.operand
        return Condition(node) if isinstance(node, Predicate) else node

    def _node(self, expression: Expr) -> Predicate | Operand:
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise UnsupportedOperation(f"it nests deeper than {MAX_DEPTH} levels")
            kind = expression.variant_name()
            row = table.VARIANT_ROWS.get(kind)
            if row is None or row.reads is not Exactness.EXACT:
                raise UnsupportedOperation(f"{kind}: {row.note if row else 'not known here'}")
            return self._variant(kind, expression)
        finally:
            self._depth -= 1

    def _variant(self, kind: str, expression: Expr) -> Predicate | Operand:
        if kind == "Literal":
            return single(expression.python_value())
        if kind == "ScalarFunction":
            return self._function(expression)
        inner: Any = expression.to_variant()
        match kind:
            case "Column":
                return Column(inner.name())
            case "Alias":
                return self._node(inner.expr())
            case "BinaryExpr":
                return self._binary(expression)
            case "Not":
                return Not(self.predicate(inner.expr()))
            case "IsNull" | "IsUnknown":
                return IsNull(self.operand(inner.expr()))
            case "IsNotNull" | "IsNotUnknown":
                return Not(IsNull(self.operand(inner.expr())))
            case "IsTrue" | "IsFalse" | "IsNotTrue" | "IsNotFalse":
                op, truth = _TRUTHS[kind]
                return Comparison(op, self.operand(inner.expr()), Literal(truth, Bool()))
            case "InList":
                listed = self._in_list(self.operand(inner.expr()), inner.list())
                return Not(listed) if inner.negated() else listed
            case "Between":
                between = self._between(inner)
                return Not(between) if inner.negated() else between
            case "Like":
                return self._like(expression, inner)
            case "Case":
                return self._case(inner)
            case "Cast" | "TryCast":
                return self._cast(expression, inner, try_=kind == "TryCast")
            case "Negative":
                operand = self.operand(inner.expr())
                if isinstance(self._type(operand), Float) and not isinstance(operand, Literal):
                    raise UnsupportedOperation("- of a float: NaN changes its sign")
                return Call("negate", (operand,))
        raise AssertionError(kind)

    # Operators

    def _binary(self, expression: Expr) -> Predicate | Operand:
        operator = expression.rex_call_operator()
        row = table.OPERATOR_ROWS.get(operator)
        if row is None or row.reads is not Exactness.EXACT:
            raise UnsupportedOperation(
                f"the operator {operator}: {row.note if row else 'not known here'}"
            )
        if operator in ("AND", "OR"):
            terms = tuple(self.predicate(term) for term in _chain(expression, operator))
            junction = And(terms) if operator == "AND" else Or(terms)
            _refuse_lists_in_the_making(junction)
            return junction
        left, right = (self._moving_operand(item) for item in expression.rex_call_operands())
        if operator in table.COMPARISONS:
            a, b = self._met(self._plain(left), self._plain(right))
            return Comparison(table.COMPARISONS[operator], a, b)
        if operator == "||":
            sides = self._plain(left), self._plain(right)
            self._only_text("||", sides)
            return Call("concat_strict", sides)
        if operator in table.BITS:
            sides = self._met(self._plain(left), self._plain(right))
            types = [self._type(side) for side in sides]
            if not all(isinstance(type_, Int) and type_.signed for type_ in types):
                raise UnsupportedOperation(f"{operator} is of signed numbers here")
            return Call(table.BITS[operator], sides)
        if isinstance(left, tuple) or isinstance(right, tuple):
            return _moved(operator, left, right)
        return self._arithmetic(table.ARITHMETIC[operator], left, right)

    def _moving_operand(self, expression: Expr) -> Operand | tuple[int, int, int]:
        """An operand, or a constant interval as months, days and nanoseconds."""
        if expression.variant_name() == "Literal":
            value: pa.Scalar = expression.python_value()
            if pa.types.is_interval(value.type) and value.is_valid:
                months, days, nanos = value.as_py()
                return months, days, nanos
        return self.operand(expression)

    def _plain(self, side: Operand | tuple[int, int, int]) -> Operand:
        if isinstance(side, tuple):
            raise UnsupportedOperation("an interval can only be added to a date or a timestamp")
        return side

    def _arithmetic(self, name: str, left: Operand, right: Operand) -> Operand:
        if {_family(t) for t in (self._type(left), self._type(right)) if t} == {"Decimal", "Float"}:
            raise UnsupportedOperation(f"{name} of a decimal and a float; cast one side")
        left, right = self._met(left, right)
        types = [type_ for side in (left, right) if (type_ := self._type(side)) is not None]
        if any(isinstance(type_, Float) for type_ in types):
            steady = any(is_steady(side) for side in (left, right))
            if name == "modulo" or not steady or not all(isinstance(t, Float) for t in types):
                raise UnsupportedOperation(f"{name} of floats may give a NaN of either sign")
        elif not all(isinstance(type_, Int | Decimal) for type_ in types):
            shown = ", ".join(map(type_name, types))
            raise UnsupportedOperation(f"{name} of {shown} has no counterpart here")
        elif len({type_.signed for type_ in types if isinstance(type_, Int)}) > 1:
            raise UnsupportedOperation(f"{name} of signed and unsigned numbers; cast one side")
        elif name in ("divide", "modulo") and any(isinstance(type_, Decimal) for type_ in types):
            raise UnsupportedOperation(f"{name} of decimals keeps other digits; cast to a float")
        return Call(name, (left, right))

    def _between(self, inner: Any) -> Predicate:
        value = self.operand(inner.expr())
        bounds = []
        for op, side in ((ComparisonOp.GE, inner.low()), (ComparisonOp.LE, inner.high())):
            bounds.append(Comparison(op, *self._met(value, self.operand(side))))
        return And(tuple(bounds))

    def _in_list(self, operand: Operand, members: Sequence[Expr]) -> Predicate:
        if (values := plain_members(members)) is not None:
            if values.type is not None and (own := self._type(operand)) is not None:
                self._same_family("IN", [own, values.type])
            return self._listing(operand, values)
        literals = []
        for member in members:
            value = self.operand(member)
            if not isinstance(value, Literal):
                raise UnsupportedOperation("IN takes constants here; write OR of comparisons")
            literals.append(value)
        type_ = member_type(literals)
        if type_ is None:
            return InList(operand, ValueSet(pa.nulls(len(literals))))
        if (own := self._type(operand)) is not None:
            self._same_family("IN", [own, type_])
        members_ = [scalar(Literal(item.value, type_)) for item in literals]
        return self._listing(operand, ValueSet(pa.array(members_, arrow_type(type_)), type_))

    def _listing(self, operand: Operand, values: ValueSet) -> Predicate:
        """A short list is comparisons there only where a column itself is looked for."""
        plain = isinstance(operand, Column) and self._type(operand) == values.type
        short = not Semantics.DATAFUSION.compares_bits(len(values))
        if isinstance(values.type, Float) and short and len(values) > 1 and not plain:
            zeros = values.array.filter(pc.equal(values.array, 0.0)).to_pylist()
            if len({math.copysign(1.0, zero) for zero in zeros}) == 1:
                raise UnsupportedOperation(
                    "a list of floats with 0.0, of what is no column of their type, compares bits"
                )
        return InList(operand, values)

    def _listed(self, arguments: Sequence[Expr]) -> Predicate:
        members = members_of(arguments)
        if members is None or members.null_count:
            raise UnsupportedOperation("array_has takes a constant list without NULL here")
        operand, values = self.operand(arguments[1]), ValueSet(*stored(members))
        if values.type is None or self._type(operand) != values.type:
            raise UnsupportedOperation("array_has of another type; cast the value to the list's")
        return InList(operand, values)

    def _like(self, expression: Expr, inner: Any) -> Predicate:
        operator = expression.rex_call_operator()
        pattern = self.operand(inner.pattern())
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            raise UnsupportedOperation("LIKE takes a constant pattern here")
        escape = inner.escape_char()
        operand = self.operand(inner.expr())
        self._only_text("LIKE", (operand,))
        ignore_case = "ilike" in operator
        like = Like(operand, pattern.value, escape or "\\", ignore_case)
        return Not(like) if inner.negated() else like

    def _case(self, inner: Any) -> Operand:
        subject = inner.expr()
        value = None if subject is None else self.operand(subject)
        branches: list[tuple[Predicate, Operand]] = []
        for when, then in inner.when_then_expr():
            if value is None:
                condition = self.predicate(when)
            else:
                sides = self._met(value, self.operand(when))
                if any(isinstance(self._type(side), Float) for side in sides):
                    raise UnsupportedOperation("CASE of a float compares bits; write WHEN x = y")
                condition = Comparison(ComparisonOp.EQ, *sides)
            branches.append((condition, self.operand(then)))
        last = inner.else_expr()
        otherwise = Literal(None) if last is None else self.operand(last)
        self._one_type("CASE", [*(then for _, then in branches), otherwise])
        return Case(tuple(branches), otherwise)

    def _cast(self, expression: Expr, inner: Any, *, try_: bool) -> Operand:
        operand = self.operand(inner.expr())
        text = expression.canonical_name()
        spelled = text[text.rindex(" AS ") + 4 : -1]
        target = type_named(spelled)
        source = self._type(operand)
        if (
            isinstance(operand, Literal)
            and isinstance(source, String)
            and operand.value is not None
        ):
            return constant(operand.value, spelled, target, try_=try_)
        if target is None:
            raise UnsupportedOperation(f"a cast to {spelled} has no type here")
        if source is None or source == target:
            return Cast(operand, target, try_)
        if try_ and isinstance(source, Int | Decimal) and isinstance(target, Int | Decimal):
            raise UnsupportedOperation("beside a comparison datafusion's optimiser drops TRY_CAST")
        if may_be_infinite(operand, source, target):
            raise UnsupportedOperation(REASON)
        if (type(source).__name__, type(target).__name__) not in table.CASTS:
            raise UnsupportedOperation(
                f"a cast from {type_name(source)} to {type_name(target)} may give other values here"
            )
        return Cast(operand, target, try_)

    # Functions

    def _function(self, expression: Expr) -> Operand:
        foreign = expression.rex_call_operator()
        row = table.FUNCTION_ROWS.get(foreign)
        if foreign == "array_has":
            return Condition(self._listed(expression.rex_call_operands()))
        if row is None:
            raise UnsupportedOperation(f"the function {foreign} has no counterpart here")
        arguments = tuple(self.operand(item) for item in expression.rex_call_operands())
        if foreign == "now":
            return Now()
        if foreign == "current_date":
            return Cast(Now(), Date())
        if foreign == "get_field":
            return _member(arguments)
        if foreign == "round" and len(arguments) == 2 and is_zero(arguments[1]):
            arguments = arguments[:1]
        if foreign in ("date_part", "date_trunc"):
            unit = arguments[0]
            if isinstance(unit, Literal) and isinstance(unit.value, str):
                arguments = (Literal(unit.value.lower()), *arguments[1:])
        types = [self._type(argument) or String() for argument in arguments]
        if row.ours in table.SAME_TYPES:
            self._one_type(foreign, arguments)
        else:
            check_call(row.ours, arguments, types)
        if foreign == "abs" and isinstance(types[0], Decimal | Int):
            raise UnsupportedOperation("abs of a whole number fails or wraps at its least value")
        return Call(row.ours, arguments)

    # Types

    def _type(self, operand: Operand) -> LogicalType | None:
        match operand:
            case Column(name=name):
                return self._schema.field(name).type
            case Literal(type=type_):
                return type_
            case Cast(type=type_):
                return type_
            case Condition():
                return Bool()
            case _:
                return bind_operand(operand, self._schema, Semantics.DATAFUSION).type

    def _met(self, left: Operand, right: Operand) -> tuple[Operand, Operand]:
        """Both sides with the conversions that DataFusion makes and we would not."""
        types = self._type(left), self._type(right)
        match types:
            case (None, _) | (_, None):
                return left, right
            case (Float(bits=64), Int()):
                return left, as_float(right)
            case (Int(), Float(bits=64)):
                return as_float(left), right
            case (Float(bits=32), Int()):
                return left, Cast(right, Float(32))
            case (Int(), Float(bits=32)):
                return Cast(left, Float(32)), right
            case (Decimal(), Float()):
                return left, as_decimal(right)
            case (Float(), Decimal()):
                return as_decimal(left), right
            case (a, b):
                self._same_family("an operator", [a, b])
        return left, right

    def _same_family(self, what: str, types: Sequence[LogicalType]) -> None:
        families = {_family(type_) for type_ in types}
        narrow = Float(32) in types and any(type_ != Float(32) for type_ in types)
        if families in ({"Int", "Decimal"}, {"Date", "Timestamp"}):
            return
        if families == {"Int", "Float"} and Float(32) not in types:
            return
        if narrow and families == {"Float"} and what == "an operator":
            return
        if len(families) > 1 or narrow:
            shown = " and ".join(map(type_name, types))
            raise UnsupportedOperation(f"{what} on {shown}: cast one to the type of the other")

    def _one_type(self, what: str, operands: Sequence[Operand]) -> None:
        types = [type_ for item in operands if (type_ := self._type(item)) is not None]
        whole = {type_.signed for type_ in types if isinstance(type_, Int)}
        if len(whole) == 1 and all(isinstance(type_, Int) for type_ in types):
            return
        if any(type_ != types[0] for type_ in types):
            shown = ", ".join(map(type_name, types))
            raise UnsupportedOperation(f"{what} of {shown}: cast all to one type")
        if what in table.NO_FLOATS and any(isinstance(type_, Float) for type_ in types):
            raise UnsupportedOperation(f"{what} of floats orders them by their bits there")

    def _only_text(self, what: str, operands: Sequence[Operand]) -> None:
        for operand in operands:
            if not isinstance(self._type(operand), String | None):
                raise UnsupportedOperation(f"{what} is of text here; cast the other side")


def _refuse_lists_in_the_making(junction: Predicate) -> None:
    """Equals that DataFusion's optimiser would turn into a list, which tells -0.0 from 0.0."""
    equals = 0
    zeros: set[float] = set()
    for node in walk(junction):
        if isinstance(node, InList):
            equals += len(node.values)
        elif isinstance(node, Comparison) and node.op in (ComparisonOp.EQ, ComparisonOp.NE):
            equals += 1
            zeros.update(math.copysign(1.0, zero) for zero in _float_zeros(node))
    if Semantics.DATAFUSION.compares_bits(equals) and len(zeros) == 1:
        raise UnsupportedOperation(
            "so many comparisons of a float, one of them with 0.0, become a list that tells it "
            "from -0.0; compare with both, or write IN"
        )


def _float_zeros(node: Comparison) -> Iterable[float]:
    for side in (node.left, node.right):
        is_float = isinstance(side, Cast | Literal) and isinstance(side.type, Float)
        inner = side.operand if isinstance(side, Cast) else side
        if is_float and isinstance(inner, Literal) and inner.value == 0:
            assert isinstance(inner.value, int | float)
            yield float(inner.value)


def _family(type_: LogicalType) -> str:
    return type(type_).__name__


def _member(arguments: Sequence[Operand]) -> Operand:
    name = arguments[1].value if isinstance(arguments[1], Literal) else None
    if not isinstance(name, str):
        raise UnsupportedOperation("get_field takes a constant name here")
    node = FieldAccess(arguments[0], name)
    for argument in arguments[2:]:
        node = FieldAccess(node, str(argument.value)) if isinstance(argument, Literal) else node
    return node


def _moved(
    operator: str, left: Operand | tuple[int, int, int], right: Operand | tuple[int, int, int]
) -> Operand:
    if operator == "+" and isinstance(left, tuple):
        left, right = right, left
    if isinstance(left, tuple) or not isinstance(right, tuple) or operator not in "+-":
        raise UnsupportedOperation("an interval can only be added to a date or a timestamp")
    months, days, nanos = right
    if nanos % 1000:
        raise UnsupportedOperation("an interval of less than a microsecond")
    sign = 1 if operator == "+" else -1
    parts = tuple(Literal(sign * part, Int(64)) for part in (months, days, nanos // 1000))
    return Call("shift_timestamp" if nanos else "shift", (left, *parts))
