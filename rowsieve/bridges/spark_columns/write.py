"""Our bound tree as a Spark column, through PySpark's functions and without SQL text.

Soundness: a node is written only where Spark gives the same value, under the rules that the
predicate is meant by and in the session's mode; where Spark differs the output says what is meant,
or the node is refused by name. Trees of AND and OR are balanced, for Spark recurses as deep as a
column is. PySpark is imported at its first use; its functions make classic columns or Connect's.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.extras import imported
from rowsieve.bridges.spark_columns import lists, table
from rowsieve.bridges.spark_columns.patterns import FOLDED, spark_pattern
from rowsieve.bridges.spark_columns.sessions import ColumnSession, check_session, is_client
from rowsieve.bridges.spark_columns.types import ddl_of, held_type
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.functions.casts import cast_rule
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
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, OnFailure, Semantics
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
    is_nested,
    type_name,
)

_AS_THEY_ARE = (Int(32), Int(64), Float(64), String())  # constants of Python's in a list
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


Write: TypeAlias = Callable[["Writer", Call], Any]


class Writer:
    """Writes bound trees that are meant under the semantics, for a session with these settings.

    `calls` are what writes the calls of our functions, by their names.
    """

    def __init__(
        self, semantics: Semantics, calls: Mapping[str, Write], session: ColumnSession
    ) -> None:
        functions = imported("pyspark.sql.functions", "spark")
        check_session()
        self.semantics = semantics
        self.session = session
        self.ansi = session.ansi
        self._calls = calls
        self.functions: Any = functions
        self._columns: dict[str, Any] = {}  # each costs a dozen calls into the JVM

    # Conditions

    def predicate(self, node: Predicate) -> Any:
        """The condition, or `UnsupportedOperation` with the reason."""
        match node:
            case TruePredicate():
                return self.functions.lit(True)  # noqa: FBT003 - a value
            case FalsePredicate():
                return self.functions.lit(False)  # noqa: FBT003 - a value
            case And(terms=terms):
                return self.conjunction([self.predicate(term) for term in terms])
            case Or(terms=terms):
                joined = _balanced([self.predicate(term) for term in terms], all_of=False)
                return self.functions.lit(False) if joined is None else joined  # noqa: FBT003
            case Not(term=term):
                return ~self.predicate(term)
            case Comparison(op=op, left=left, right=right):
                return self._comparison(op, left, right)
            case InList():
                return self._in_list(node)
            case IsNull(operand=operand):
                return self.operand(operand).isNull()
            case Like():
                return self._like(node)
            case BooleanOperand(operand=operand):
                return self.operand(operand)
            case Opaque(description=description):
                raise UnsupportedOperation(f"{description} is another engine's condition")
            case _:
                assert_never(node)

    def conjunction(self, terms: list[Any]) -> Any:
        """AND of columns."""
        joined = _balanced(terms, all_of=True)
        return self.functions.lit(True) if joined is None else joined  # noqa: FBT003 - a value

    def _comparison(self, op: ComparisonOp, left: Operand, right: Operand) -> Any:
        self.check_order(left)
        self.check_order(right)
        _check_digits(type_of(left), type_of(right))
        a, b = self.operand(left), self.operand(right)
        match op:
            case ComparisonOp.EQ:
                return a == b
            case ComparisonOp.NE:
                return a != b
            case ComparisonOp.LT:
                return a < b
            case ComparisonOp.LE:
                return a <= b
            case ComparisonOp.GT:
                return a > b
            case ComparisonOp.GE:
                return a >= b
            case ComparisonOp.NOT_DISTINCT:
                return a.eqNullSafe(b)
            case ComparisonOp.DISTINCT:
                return ~a.eqNullSafe(b)
            case _:
                assert_never(op)

    def _in_list(self, node: InList) -> Any:
        self.check_order(node.operand)
        members, type_ = node.values.array, type_of(node.operand)
        if not len(members):
            return self.operand(node.operand).isNull() & self.null(Bool())
        bitwise = isinstance(type_, Float) and self.semantics.compares_bits(len(members))
        if bitwise and pc.any(pc.equal(members, 0.0)).as_py():
            raise UnsupportedOperation("Spark's IN finds zeros of both signs")
        if len(members) > lists.SHORT:
            operand = self.operand(node.operand)
            if not is_client():
                return lists.in_set(operand, node.values, type_)
            if type_ in _AS_THEY_ARE:
                return operand.isin(members.to_pylist())
        if isinstance(type_, Date):
            members = members.view(pa.int32())
        elif isinstance(type_, Time | Timestamp):
            members = members.view(pa.int64())
        literals = tuple(Literal(value, type_) for value in members.to_pylist())
        return self.operand(node.operand).isin([self.literal(item) for item in literals])

    def _like(self, node: Like) -> Any:
        pattern = spark_pattern(node.pattern, node.escape)
        text = self.operand(node.operand)
        if not node.ignore_case:
            return text.like(pattern)
        if not node.pattern.isascii() or (node.escape or "").isalpha():
            raise UnsupportedOperation("a pattern for any case is of ASCII here")
        folded = self.functions.lower(self.functions.translate(text, *FOLDED))
        return folded.like(pattern.lower())

    # Values

    def operand(self, node: Operand) -> Any:
        """The value, or `UnsupportedOperation` with the reason."""
        match node:
            case BoundColumn(name=name):
                return self._column(name)
            case Column(name=name):
                raise AssertionError(f"the column {name!r} is not bound")
            case Literal():
                return self.literal(node)
            case Call(function=function):
                if (write := self._calls.get(function)) is None:
                    raise UnsupportedOperation(f"{function} has no counterpart in Spark")
                return write(self, node)
            case Cast():
                return self._cast(node)
            case FieldAccess(operand=operand, name=name):
                return self.operand(operand).getField(name)
            case Case(branches=branches, otherwise=otherwise):
                pairs = [(self.predicate(when), self.operand(then)) for when, then in branches]
                built = self.functions.when(*pairs[0])
                for when, then in pairs[1:]:
                    built = built.when(when, then)
                return built.otherwise(self.operand(otherwise))
            case Now():
                return self.functions.current_timestamp()
            case Condition(predicate=predicate):
                return self.predicate(predicate)
            case _:
                assert_never(node)

    def _column(self, name: str) -> Any:
        if name not in self._columns:
            escaped = name.replace("`", "``")
            self._columns[name] = self.functions.col(f"`{escaped}`")
        return self._columns[name]

    def literal(self, node: Literal) -> Any:
        """A constant in Spark's type for it."""
        type_, value, f = node.type, node.value, self.functions
        assert type_ is not None
        match type_, value:
            case _, None:
                return self.null(type_)
            case (Bool(), bool()) | (String() | Json(), str()) | (Binary(), bytes()):
                return f.lit(value)
            case Int(bits=32, signed=True), int():
                return f.lit(value)
            case Int(), int() if held_type(type_) != Decimal(20, 0):
                return f.lit(value).cast(ddl_of(type_))
            case Int(), int():
                return f.lit(str(value)).cast(ddl_of(type_))
            case Decimal(), decimal.Decimal():
                return f.lit(f"{value:f}").cast(ddl_of(type_))
            case Float(bits=bits), float():
                return f.lit(value) if bits == 64 else f.lit(value).cast("float")
            case Uuid(), bytes():
                return f.lit(str(uuid.UUID(bytes=value)))
            case Date(), int():
                return f.date_from_unix_date(f.lit(value))
            case Timestamp(utc=True), int():
                return f.timestamp_micros(f.lit(value))
            case Timestamp(), int():
                return f.lit(_clock(value).isoformat(" ")).cast("timestamp_ntz")
            case Time(), int():
                return f.lit(_clock(value).time().isoformat()).cast("time(6)")
        raise UnsupportedOperation(f"a constant of type {type_name(type_)} has no form in Spark")

    def null(self, type_: LogicalType) -> Any:
        """NULL of a type."""
        if is_nested(type_):
            raise UnsupportedOperation(f"NULL of type {type_name(type_)}")
        return self.functions.lit(None).cast(ddl_of(type_))

    def _cast(self, node: Cast) -> Any:
        source, target = type_of(node.operand), node.type
        operand = self.operand(node.operand)
        if source == target or (isinstance(source, Uuid | Json) and isinstance(target, String)):
            return operand
        if held_type(target) != target:
            raise UnsupportedOperation(f"Spark has no {type_name(target)}")
        self._check_cast(held_type(source), target)
        rule = cast_rule(source, target)
        if node.try_:
            return operand.try_cast(ddl_of(target))
        fails = rule is None or rule.can_fail
        if fails and self.semantics.failed_cast is OnFailure.NULL:
            return operand.try_cast(ddl_of(target))
        pair = (type(source).__name__, type(target).__name__)
        other = fails or pair == ("Decimal", "String")
        if other and not self.ansi and pair not in table.CAST_ANY_MODE:
            raise UnsupportedOperation("a failing cast gives no error where ANSI mode is off")
        return operand.cast(ddl_of(target))

    def _check_cast(self, source: LogicalType, target: LogicalType) -> None:
        pair = (type(source).__name__, type(target).__name__)
        if pair not in table.CASTS:
            shown = f"{type_name(source)} to {type_name(target)}"
            raise UnsupportedOperation(f"a cast of {shown} may give other values in Spark")
        table.check_cast(source, target)
        cut = pair in (("Float", "Int"), ("Decimal", "Int"))
        if cut and not self.semantics.casts_cut_fractions:
            raise UnsupportedOperation("a cast to a whole number drops the fraction in Spark")
        lenient = isinstance(source, Float) and target in (Int(64), Float(32))
        if lenient and not self.semantics.lenient_float_casts:
            raise UnsupportedOperation("a float that does not fit may become the greatest in Spark")
        if Timestamp(utc=True) in (source, target):
            self.check_zone()

    def check_zone(self) -> None:
        """Refuse what goes by the session's time zone there and by UTC in a bound tree."""
        if not self.session.is_in("UTC"):
            raise UnsupportedOperation(
                "it is meant in UTC, and goes by the time zone of the session there, which is "
                f"{self.session.shown_zone}"
            )

    def check_order(self, operand: Operand) -> None:
        """Refuse what Spark compares in another way."""
        type_ = type_of(operand)
        if is_nested(type_):
            raise UnsupportedOperation(f"values of {type_name(type_)} are not compared")
        if isinstance(type_, Float) and self.semantics.nan is NanOrder.IEEE:
            raise UnsupportedOperation("NaN compares in another way in Spark")


def _balanced(terms: list[Any], *, all_of: bool) -> Any:
    """The terms joined two by two; None of none."""
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        joined = [a & b if all_of else a | b for a, b in pairs]
        terms = joined + terms[len(joined) * 2 :]
    return terms[0] if terms else None


def _check_digits(left: LogicalType, right: LogicalType) -> None:
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        whole = max(left.precision - left.scale, right.precision - right.scale)
        if whole + max(left.scale, right.scale) > 38:
            raise UnsupportedOperation("Spark compares these decimals with fewer digits")


def _clock(micros: int) -> datetime.datetime:
    try:
        return _EPOCH + micros * _MICROSECOND
    except OverflowError as error:
        raise UnsupportedOperation("a time outside the years 1 to 9999") from error
