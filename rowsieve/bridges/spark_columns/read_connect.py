"""A Spark Connect column as trees: the expressions on the client, resolved here as Spark would.

The client knows neither types nor functions: a name becomes the class of Catalyst that
`connect_names` has for it, and the implicit casts are written into the tree. Soundness: only casts
that change no value are made here, and constants of text that are written in full; any other
mixture of types is refused, as is what hangs on a setting of the session that is not known.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rowsieve.bridges.spark_columns import connect_names as names
from rowsieve.bridges.spark_columns import table
from rowsieve.bridges.spark_columns.connect_lists import kinds_of
from rowsieve.bridges.spark_columns.connect_times import check_moments
from rowsieve.bridges.spark_columns.functions import reader_of
from rowsieve.bridges.spark_columns.lists import SHORT
from rowsieve.bridges.spark_columns.sessions import ColumnSession
from rowsieve.bridges.spark_columns.tree import Junction, Leaf, Node
from rowsieve.bridges.spark_columns.types import cast_target, json_of
from rowsieve.bridges.spark_columns.values import constant_of
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate.limits import MAX_DEPTH
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    List,
    LogicalType,
    Map,
    String,
    Struct,
    Timestamp,
    type_name,
)
from rowsieve.types.schema import Schema

_PART = re.compile(r"(?:`((?:[^`]|``)+)`|([^.`]+))(?:\.(?!$)|$)")
_JUNCTIONS = {"and": True, "or": False}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def trees_of(column: Any, schema: Schema, session: ColumnSession) -> Junction | Leaf:
    """The column's trees; `UnknownColumn` or `InvalidPredicate` where a name means nothing."""
    return _taken_apart(column._expr, type(column), Resolver(schema, session))


def _taken_apart(expression: Any, column: Any, resolver: Resolver) -> Junction | Leaf:
    operator = _operator(expression)
    if operator is None:
        try:
            return Leaf(column(expression), resolver.node(expression))
        except UnsupportedOperation as error:
            return Leaf(column(expression), error)
    terms: list[Junction | Leaf] = []
    stack = [expression]
    while stack:
        item = stack.pop()
        if _operator(item) == operator:
            stack.extend(reversed(item._args))
        else:
            terms.append(_taken_apart(item, column, resolver))
    return Junction(_JUNCTIONS[operator], tuple(terms))


def _operator(expression: Any) -> str | None:
    name = getattr(expression, "_name", None)
    is_call = type(expression).__name__ == "UnresolvedFunction"
    return name if is_call and name in _JUNCTIONS and len(expression._args) == 2 else None


class Resolver:
    """Makes Catalyst's classes of a client's expressions, over the columns of one schema."""

    def __init__(self, schema: Schema, session: ColumnSession) -> None:
        self._schema = schema
        self._session = session
        self._mode = "ANSI" if session.ansi else "LEGACY"
        self._reader = reader_of(schema, wraps=not session.ansi)
        self._depth = 0

    def node(self, expression: Any) -> Node:
        """The expression as Spark resolves it."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise UnsupportedOperation(f"it nests deeper than {MAX_DEPTH} levels")
            return self._node(expression)
        finally:
            self._depth -= 1

    def _node(self, expression: Any) -> Node:
        match type(expression).__name__:
            case "ColumnReference":
                return self._column(str(expression._unparsed_identifier))
            case "LiteralExpression":
                return _literal(expression)
            case "ColumnAlias":
                return self.node(expression._child)
            case "CastExpression":
                return self._cast(expression)
            case "CaseWhen":
                return self._case(expression)
            case "UnresolvedExtractValue":
                return self._extracted(
                    self.node(expression._child), self.node(expression._extraction)
                )
            case "CallFunction" | "UnresolvedFunction" if not getattr(
                expression, "_is_distinct", False
            ):
                name = str(expression._name).lower().strip("`")
                if name == "in" and (listed := self._long_list(expression._args)) is not None:
                    return listed
                return self._function(name, [self.node(item) for item in expression._args])
            case "SQLExpression":
                raise UnsupportedOperation(
                    "SQL text inside a Connect column is not resolved here; pass the text itself"
                )
            case kind:
                raise UnsupportedOperation(f"{kind} has no counterpart here")

    def _type(self, node: Node) -> LogicalType | None:
        return self._reader.value(node).type

    # Leaves

    def _column(self, identifier: str) -> Node:
        parts = [quoted.replace("``", "`") or bare for quoted, bare in _PART.findall(identifier)]
        if _PART.sub("", identifier) or not parts:
            raise InvalidPredicate(f"{identifier!r} names no column; put odd names in backticks")
        exact = [name for name in self._schema.names if name == parts[0]]
        alike = [name for name in self._schema.names if name.lower() == parts[0].lower()]
        found = exact if len(exact) == len(alike) else alike
        if len(found) != 1:
            which = "no column" if not found else "no single column"
            raise UnknownColumn(f"{which} {parts[0]!r}", name=parts[0])
        node = Node("AttributeReference", {"name": found[0]})
        for part in parts[1:]:
            node = self._extracted(node, _text(part))
        return node

    def _extracted(self, node: Node, key: Node) -> Node:
        type_ = self._type(node)
        match type_:
            case Struct(fields=fields) if key.kind == "Literal":
                wanted = str(key.fields["value"]).lower()
                places = [i for i, field in enumerate(fields) if field.name.lower() == wanted]
                if len(places) != 1:
                    raise UnknownColumn(f"no single member {wanted!r}", name=wanted)
                return Node("GetStructField", {"ordinal": places[0]}, (node,))
            case List():
                return Node("GetArrayItem", {"failOnError": self._session.ansi}, (node, key))
            case Map():
                return Node("GetMapValue", {}, (node, key))
        raise UnsupportedOperation("a member of something that has none")

    # Casts and choices

    def _cast(self, expression: Any) -> Node:
        mode = expression._eval_mode
        target = cast_target(expression._data_type)
        return self._as(
            self.node(expression._expr), target, self._mode if mode is None else mode.upper()
        )

    def _as(self, node: Node, target: LogicalType, mode: str | None = None) -> Node:
        fields = {
            "dataType": json_of(target),
            "timeZoneId": self._session.time_zone,
            "evalMode": mode or self._mode,
        }
        return Node("Cast", fields, (node,), constant=node.constant)

    def _case(self, expression: Any) -> Node:
        pairs = [(self.node(when), self.node(then)) for when, then in expression._branches]
        results = [then for _, then in pairs]
        if expression._else_value is not None:
            results.append(self.node(expression._else_value))
        results = self._alike(results)
        children: list[Node] = []
        for (when, _), then in zip(pairs, results, strict=False):
            children += [when, then]
        return Node("CaseWhen", {}, (*children, *results[len(pairs) :]))

    # Functions

    def _long_list(self, arguments: Sequence[Any]) -> Node | None:
        """IN of many constants; None where they have to be resolved one by one."""
        kinds = kinds_of(arguments[1:]) if len(arguments) > SHORT + 1 else None
        if kinds is None:
            return None
        examples = [self.node(kind.example) for kind in kinds]
        operand = self._alike([self.node(arguments[0]), *examples])[0]
        target = self._type(operand)
        if target is None:
            return None
        arrays = [
            kind.as_type(self._type(example), target)
            for kind, example in zip(kinds, examples, strict=True)
        ]
        if any(array is None for array in arrays):
            return None
        return Node("InSet", {"members": pa.concat_arrays(arrays)}, (operand,))

    def _function(self, name: str, arguments: list[Node]) -> Node:
        fails = {"failOnError": self._session.ansi}
        zone = {"timeZoneId": self._session.time_zone}
        if not names.takes(name, len(arguments)):
            return self._special(name, arguments)
        if (kind := names.COMPARISONS.get(name)) is not None:
            return Node(kind, {}, tuple(self._alike(arguments)))
        if (kind := names.DIRECT.get(name)) is not None:
            return Node(kind, {}, tuple(arguments))
        if (kind := names.SAME_TYPES.get(name)) is not None:
            return Node(kind, {}, tuple(self._alike(arguments)))
        if name in names.ARITHMETIC:
            return self._arithmetic(name, arguments)
        if (kind := names.NUMBERS.get(name)) is not None:
            return Node(kind, fails, tuple(arguments))
        if (kind := names.DOUBLES.get(name)) is not None:
            return Node(kind, {}, (self._double(arguments[0]),))
        if (kind := names.PARTS_OF_DATES.get(name)) is not None:
            return Node(kind, zone, (self._date(arguments[0]),))
        if (kind := names.WITH_ZONE.get(name)) is not None:
            return Node(kind, zone, tuple(arguments))
        if (kind := names.TRIMS.get(name)) is not None:
            swapped = name != "btrim" and len(arguments) == 2
            return Node(kind, {}, tuple(reversed(arguments) if swapped else arguments))
        return self._special(name, arguments)

    def _special(self, name: str, arguments: list[Node]) -> Node:
        zone = {"timeZoneId": self._session.time_zone}
        match name, arguments:
            case "in", (_, *_):
                empty = len(arguments) == 1 and self._session.null_in_empty_list
                fields = {"legacyNullInEmptyBehavior": empty}
                return Node("In", fields, tuple(self._alike(arguments)))
            case "like" | "ilike", (text, pattern, *rest):
                escape = str(rest[0].fields.get("value")) if rest else "\\"
                kind = "Like" if name == "like" else "ILike"
                return Node(kind, {"escapeChar": escape}, (text, pattern))
            case "substring" | "substr", (text, start, *rest):
                count = rest[0] if rest else _number(2**31 - 1)
                return Node("Substring", {}, (text, start, count))
            case "round", (value, *rest):
                return Node("Round", {}, (value, rest[0] if rest else _number(0)))
            case "nullif", (value, other):
                a, b = self._alike([value, other])
                if a is not value:
                    raise UnsupportedOperation("nullif of two types: cast one side")
                return Node("NullIfResult", {}, (Node("EqualTo", {}, (a, b)), a))
            case "nvl2", (value, then, other):
                then, other = self._alike([then, other])
                return Node("If", {}, (Node("IsNotNull", {}, (value,)), then, other))
            case "equal_null", (_, _):
                return Node("EqualNullSafe", {}, tuple(self._alike(arguments)))
            case "between", (value, low, high):
                sides = self._alike([value, low]), self._alike([value, high])
                kinds = "GreaterThanOrEqual", "LessThanOrEqual"
                pairs = zip(kinds, sides, strict=True)
                return Node("And", {}, tuple(Node(kind, {}, tuple(side)) for kind, side in pairs))
            case "nullifzero", (value,):
                return self._special("nullif", [value, _number(0)])
            case "zeroifnull", (value,):
                return Node("Coalesce", {}, tuple(self._alike([value, _number(0)])))
            case "if", (when, then, other):
                return Node("If", {}, (when, *self._alike([then, other])))
            case "position", (part, text):
                return Node("StringLocate", {}, (part, text, _number(1)))
            case _, (value,) if name in names.CASTS:
                return self._as(value, cast_target(name))
            case "date_trunc", (unit, moment):
                type_ = self._type(moment)
                if type_ == Timestamp(utc=True):
                    return Node("TruncTimestamp", zone, (unit, moment))
                instant = self._as(moment, Timestamp(utc=True))
                return Node("TruncTimestamp", zone, (unit, instant))
            case "from_utc_timestamp" | "to_utc_timestamp", (moment, in_zone):
                instant = self._as(moment, Timestamp(utc=True))
                return Node(names.class_of(name) or "", {}, (instant, in_zone))
            case "convert_timezone", (source, target, moment):
                return Node("ConvertTimezone", {}, (source, target, self._as(moment, Timestamp())))
            case "extract" | "date_part" | "datepart", (part, moment):
                return self._part(str(part.fields.get("value")).upper(), moment)
            case "size" | "cardinality", (value,):
                return Node("Size", {"legacySizeOfNull": self._session.size_of_null}, (value,))
            case "try_element_at", (_, _):
                return Node("ElementAt", {"failOnError": False}, tuple(arguments))
            case "make_ym_interval", (years, months):
                whole = self._whole(years) * 12 + self._whole(months)
                return _constant("interval year to month", whole)
            case "make_dt_interval", (days, hours, minutes, seconds):
                parts = [self._whole(part) for part in (days, hours, minutes)]
                micros = ((parts[0] * 24 + parts[1]) * 60 + parts[2]) * 60_000_000
                return _constant("interval day to second", micros + self._micros(seconds))
            case "date_from_unix_date", (Node(kind="Literal", fields=fields),):
                return _constant("date", fields["value"])
            case "timestamp_micros", (Node(kind="Literal", fields=fields),):
                return _constant("timestamp", fields["value"])
        row = table.ROWS.get(names.class_of(name) or "")
        if row is not None and row.reads is not Exactness.EXACT:
            raise UnsupportedOperation(f"{name}: {row.note}")
        what = "of these arguments" if names.is_read(name) else "that is not Spark's own"
        raise UnsupportedOperation(f"a function {name} {what} is not resolved here")

    def _whole(self, node: Node) -> int:
        value = constant_of(self._reader.value(node))
        if not isinstance(value, int):
            raise UnsupportedOperation("an interval of constants is wanted here")
        return value

    def _micros(self, node: Node) -> int:
        value = constant_of(self._reader.value(node))
        if not isinstance(value, int | decimal.Decimal):
            raise UnsupportedOperation("an interval of constants is wanted here")
        return int(decimal.Decimal(value).scaleb(6))

    def _part(self, part: str, moment: Node) -> Node:
        kind = names.EXTRACTED.get(part)
        if kind is None:
            raise UnsupportedOperation(f"the part {part} of a time is not resolved here")
        zone = {"timeZoneId": self._session.time_zone}
        whole_days = kind not in ("SecondWithFraction", "Hour", "Minute")
        return Node(kind, zone, (self._date(moment) if whole_days else moment,))

    def _arithmetic(self, name: str, arguments: list[Node]) -> Node:
        kind, mode = names.ARITHMETIC[name]
        left, right = arguments
        types = self._type_or_interval(left), self._type_or_interval(right)
        match types:
            case (Date(), "interval") if name in "+-" and _of_months(right):
                step = right if name == "+" else Node("UnaryMinus", {}, (right,))
                return Node("DateAddYMInterval", {}, (left, step))
            case (Date(), Int()) if name in "+-":
                return Node("DateAdd" if name == "+" else "DateSub", {}, (left, right))
            case (Timestamp(), "interval") if name in "+-":
                step = right if name == "+" else Node("UnaryMinus", {}, (right,))
                kind = "TimestampAddYMInterval" if _of_months(right) else "TimestampAddInterval"
                return Node(kind, {"timeZoneId": self._session.time_zone}, (left, step))
            case (Int(), Int()) if name in ("/", "try_divide"):
                left, right = self._double(left), self._double(right)
            case (Int() | Float() | Decimal(), Int() | Float() | Decimal()):
                kinds = {type(type_) for type_ in types}
                if kind == "Divide" and Decimal in kinds and len(kinds) > 1:
                    raise UnsupportedOperation("division of a decimal by another type: cast one")
                left, right = self._numbers(left, right)
            case _:
                raise UnsupportedOperation(f"{name} of these types is not resolved here")
        if kind == "Divide" and self._type(left) == Float(32):
            left, right = self._double(left), self._double(right)
        if kind == "IntegralDivide":
            left, right = self._as(left, Int(64)), self._as(right, Int(64))
        return Node(kind, {"evalMode": mode or self._mode}, (left, right))

    def _numbers(self, left: Node, right: Node) -> tuple[Node, Node]:
        """Of decimals each keeps its own digits; other numbers meet in one type."""
        types = self._type(left), self._type(right)
        if any(isinstance(type_, Decimal) for type_ in types) and not any(
            isinstance(type_, Float) for type_ in types
        ):
            found = [
                self._as(node, Decimal(_DIGITS[type_.bits], 0)) if isinstance(type_, Int) else node
                for node, type_ in zip((left, right), types, strict=True)
            ]
            return found[0], found[1]
        a, b = self._alike([left, right])
        return a, b

    def _type_or_interval(self, node: Node) -> LogicalType | str | None:
        if str(node.fields.get("dataType")).startswith("interval"):
            return "interval"
        return self._type(node)

    def _double(self, node: Node) -> Node:
        type_ = self._type(node)
        if not isinstance(type_, Int | Float | Decimal):
            raise UnsupportedOperation("a number is wanted here")
        return node if type_ == Float(64) else self._as(node, Float(64))

    def _date(self, node: Node) -> Node:
        type_ = self._type(node)
        return self._as(node, Date()) if isinstance(type_, Timestamp) else node

    # Types

    def _alike(self, nodes: Sequence[Node]) -> list[Node]:
        """The values in one type, as Spark brings them to it without changing any."""
        types = [self._type(node) for node in nodes]
        target = _common([type_ for type_ in types if type_ is not None])
        if target is None:
            target = self._beside_text(nodes, types)
        return [
            node if type_ is None or type_ == target else self._as(node, target)
            for node, type_ in zip(nodes, types, strict=True)
        ]

    def _beside_text(
        self, nodes: Sequence[Node], types: Sequence[LogicalType | None]
    ) -> LogicalType:
        """Constants of text take the type of what they stand beside."""
        others = [type_ for type_ in types if type_ not in (None, String())]
        quoted = all(
            node.kind == "Literal"
            for node, type_ in zip(nodes, types, strict=True)
            if type_ == String()
        )
        target = _common([type_ for type_ in others if type_ is not None])
        if quoted and isinstance(target, Date | Timestamp | Decimal):
            return target
        shown = ", ".join("NULL" if type_ is None else type_name(type_) for type_ in types)
        raise UnsupportedOperation(f"{shown} side by side: cast them to one type")


def _common(types: Sequence[LogicalType]) -> LogicalType | None:
    """The type that holds the values of all; None if that would change some."""
    if not types:
        return Bool()
    common = types[0]
    for type_ in types[1:]:
        joined = _joined(common, type_)
        if joined is None:
            return None
        common = joined
    return common


def _joined(a: LogicalType, b: LogicalType) -> LogicalType | None:
    if a == b:
        return a
    match a, b:
        case Int(), Int():
            return a if a.bits >= b.bits else b
        case (Float(bits=64), Int() | Float() | Decimal()) | (Int() | Decimal(), Float(bits=64)):
            return Float(64)
        case Float(bits=32), Float(bits=64):
            return b
        case (Decimal() | Int(), Decimal() | Int()):
            return _wider(*(_decimal(side) for side in (a, b)))
        case (Timestamp(), Timestamp()):
            return Timestamp(utc=True)
        case (Date(), Timestamp()):
            return b
        case (Timestamp(), Date()):
            return a
    return None


def _decimal(type_: Int | Decimal) -> Decimal:
    return Decimal(_DIGITS[type_.bits], 0) if isinstance(type_, Int) else type_


def _wider(a: Decimal, b: Decimal) -> Decimal | None:
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    return Decimal(precision, scale) if precision <= 38 else None


def _literal(expression: Any) -> Node:
    value, spelled = expression._value, expression._dataType.jsonValue()
    if hasattr(value, "as_tuple"):  # the server widens the type that the client says
        _, digits, exponent = value.as_tuple()
        scale = max(-exponent, expression._dataType.scale)
        precision = max(len(digits) + max(exponent, 0), scale, expression._dataType.precision)
        spelled, value = f"decimal({precision},{scale})", f"{value:f}"
    if spelled == "time(6)" and value is not None:
        value = int(value)
    if value is not None:
        check_moments(str(spelled), [value])
    return _constant(str(spelled), value)


def _constant(spelled: str, value: Any) -> Node:
    return Node("Literal", {"dataType": spelled, "value": value}, constant=True)


def _of_months(interval: Node) -> bool:
    return str(interval.fields["dataType"]).endswith("month")


def _text(value: str) -> Node:
    return _constant("string", value)


def _number(value: int) -> Node:
    return _constant("integer", value)
