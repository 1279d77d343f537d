"""Convert sqlglot's tree to ours: an allow-list of nodes, each with its exact meaning.

Nodes that are not listed are rejected with their position in the text. So is a node with an
argument that is not consumed here, so no option of the grammar is silently dropped. Operators next
to comparisons need parentheses, because engines and grammar disagree on their precedence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import pyarrow as pa
from sqlglot import exp

from rowsieve.bridges.sql.constructs.arrow_times import as_compared
from rowsieve.bridges.sql.constructs.escape_strings import escaped_text
from rowsieve.bridges.sql.constructs.intervals import constant_interval
from rowsieve.bridges.sql.constructs.jsonb_values import jsonb_as_text
from rowsieve.bridges.sql.constructs.named_zones import of_local_time
from rowsieve.bridges.sql.constructs.nested_access import bracket
from rowsieve.bridges.sql.constructs.sql_literals import finer_constant, negated, number, typed
from rowsieve.bridges.sql.grammars import is_safe_equality
from rowsieve.bridges.sql.reading.condition_nodes import PREDICATES, TRUTH
from rowsieve.bridges.sql.reading.list_calls import (
    cast_list,
)
from rowsieve.bridges.sql.reading.source_text import SqlSource
from rowsieve.bridges.sql.reading.text_limits import MAX_OPERATOR_DEPTH
from rowsieve.bridges.sql.typenames import logical_type
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.casting.casts import cast as computed_cast
from rowsieve.predicate.literal_values import from_scalar
from rowsieve.predicate.semantics import TextReading
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
    type_name,
)

_READ_BY_ENGINES = (Bool, Int, Float, Decimal)
_UNCLEAR = "put this condition in parentheses, its place among the operators is unclear"
_TAG = re.compile(r"\$([^$]*)\$")
_ESCAPES = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\\'\"nrt]))")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between,
                exp.NullSafeEQ, exp.NullSafeNEQ)  # fmt: skip
_T = TypeVar("_T")


class SqlReader:
    """Reads the nodes of one text. Methods recurse no deeper than `MAX_OPERATOR_DEPTH`."""

    def __init__(self, source: SqlSource) -> None:
        self.source = source
        self.dialect = source.dialect
        self._depth = 0

    def predicate(self, node: Any) -> ir.Predicate:
        """Read the node as a condition."""
        kind = type(node)
        if kind is exp.Paren:
            self.only(node, "this")
            return self.predicate(node.this)
        if kind is exp.And or kind is exp.Or:
            read = type(self).predicate  # a subclass records what it reads
            terms = tuple(self._nested(read, term) for term in self._chain(node))
            return ir.And(terms) if kind is exp.And else ir.Or(terms)
        if handler := PREDICATES.get(kind):
            return self._nested(handler, node)
        return self._standing(node, self.operand(node))

    def operand(self, node: Any) -> ir.Operand:
        """Read the node as a value; a condition becomes a boolean value."""
        if node is None:  # as in date(), which the grammar accepts without its argument
            raise self.source.refusal(None, "an argument is missing")
        kind = type(node)
        if kind is exp.Paren:
            self.only(node, "this")
            return self.operand(node.this)
        if kind in PREDICATES or kind is exp.And or kind is exp.Or:
            return ir.Condition(self.predicate(node))
        return self._nested(_OPERANDS.get(kind, _call), node)

    def side(self, node: Any) -> ir.Operand:
        """Read an operand of an operator: a condition there must be in parentheses."""
        if type(node) in PREDICATES or isinstance(node, exp.And | exp.Or):
            raise self.source.refusal(node, _UNCLEAR)
        return self.operand(node)

    def compared(self, node: Any) -> ir.Operand:
        """Read a side of a comparison, a bound or a member of a list."""
        in_list = isinstance(node.parent, exp.In)
        operand = self.operand(node) if in_list else self.side(node)
        return as_compared(self, node, operand) if self.dialect.arrow_types else operand

    def only(self, node: Any, *arguments: str, **flags: Any) -> None:
        """Raise for a node with other arguments than these, or with flags of other values."""
        for key, value in node.args.items():
            if value is None or value is False or value == [] or key in arguments:
                continue
            if key not in flags or value != flags[key]:
                raise self.source.refusal(
                    node, f"{node.key.upper()} with the option {key!r} is not supported"
                )

    def cast(
        self, node: Any, operand: ir.Operand, type_: LogicalType, *, try_: bool = False
    ) -> ir.Operand:
        """Build a cast; of a quoted constant or NULL, the constant of that type.

        If the engine parses text by its own rules, the semantics parse the constant.
        """
        if not isinstance(operand, ir.Literal) or operand.type is not None:
            return ir.Cast(operand, type_, try_)
        if operand.value is None:
            return ir.Literal(None, type_)
        text, reading = str(operand.value), self.dialect.semantics.text_reading
        if reading is not TextReading.STRICT and isinstance(type_, _READ_BY_ENGINES):
            return self._read_by_engine(node, text, type_, try_=try_)
        try:
            return self._said(ir.Literal(typed(text, type_, self.dialect), type_), type_)
        except LookupError:
            return ir.Cast(operand, type_, try_)  # its time zone is the session's, which bind knows
        except ValueError as error:
            if try_ or reading is TextReading.SPARK:
                return ir.Cast(operand, type_, try_)
            raise self.source.refusal(node, str(error)) from error

    def _said(self, literal: ir.Literal, type_: LogicalType) -> ir.Operand:
        """Read a constant with 64 bits; a bare number has as many bits as it needs in Spark."""
        return ir.Cast(literal, type_) if self.dialect.gives_types and type_ == Int(64) else literal

    def _read_by_engine(
        self, node: Any, text: str, type_: LogicalType, *, try_: bool
    ) -> ir.Operand:
        """Read a constant, parsing its text as the dialect's engine does."""
        try:
            cast = computed_cast(pa.array([text]), String(), type_, self.dialect.semantics)
        except UnsupportedOperation as error:
            raise self.source.refusal(node, str(error)) from error
        if cast.failed is None or not cast.failed[0]:
            return self._said(from_scalar(cast.values[0], type_), type_)
        if try_ or self.dialect.gives_types:  # the session's mode decides
            return ir.Cast(ir.Literal(text), type_, try_)
        try:
            typed(text, type_, self.dialect)  # it raises the specific error
        except ValueError as error:
            raise self.source.refusal(node, str(error)) from error
        raise self.source.refusal(node, f"{text!r} is not a value of {type_name(type_)}")

    def _chain(self, node: Any) -> Iterable[Any]:
        kind = type(node)
        pending = [node]
        while pending:
            item = pending.pop()
            self._refuse_open_distinct(item)
            while type(item) is exp.Paren:
                item = item.this
            if type(item) is kind:
                self.only(item, "this", "expression")
                pending += [item.expression, item.this]
            else:
                yield item

    def _refuse_open_distinct(self, node: Any) -> None:
        """Read DISTINCT FROM in DataFusion, where all text after it is its right operand."""
        while isinstance(node, exp.Not):
            node = node.this
        is_distinct = isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ)
        if self.dialect.greedy_distinct and is_distinct and not is_safe_equality(node):
            raise self.source.refusal(node, _UNCLEAR)

    def _nested(self, read: Callable[[SqlReader, Any], _T], node: Any) -> _T:
        self._depth += 1
        if self._depth > MAX_OPERATOR_DEPTH:
            raise self.source.refusal(node, f"operators nest deeper than {MAX_OPERATOR_DEPTH}")
        result = read(self, node)
        self._depth -= 1
        return result

    def _standing(self, node: Any, operand: ir.Operand) -> ir.Predicate:
        match operand:
            case ir.Condition(predicate=predicate):
                return predicate
            case ir.Literal(value=True):
                return ir.TRUE
            case ir.Literal(value=bool()):
                return ir.FALSE
            case (
                ir.Literal(value=None, type=None | Bool())
                | ir.Column()
                | ir.FieldAccess()
                | ir.Case()
            ):
                return ir.BooleanOperand(operand)
            case ir.Cast(type=Bool()):
                return ir.BooleanOperand(operand)
            case ir.Call(function=function) if _may_be_true(function):
                return ir.BooleanOperand(operand)
            case _:
                raise self.source.refusal(
                    node, "this is a value and not a condition; compare it with something"
                )


# Values


def _call(reader: SqlReader, node: Any) -> ir.Operand:
    from rowsieve.bridges.sql.reading.read_calls import call  # noqa: PLC0415 - brings the table of functions

    return call(reader, node)


def _may_be_true(function: str) -> bool:
    from rowsieve.bridges.sql.reading.read_calls import may_be_true  # noqa: PLC0415 - as above

    return may_be_true(function)


def _column(reader: SqlReader, node: Any) -> ir.Operand:
    reader.only(node, "this", "table", "db", "catalog")
    parts: list[exp.Identifier] = []
    for key in ("catalog", "db", "table", "this"):
        if isinstance(part := node.args.get(key), exp.Identifier):
            parts.append(part)
        elif part is not None:
            raise reader.source.refusal(node, "name one column")
    lifted = reader.source.lifted
    if len(parts) == 1 and (known := lifted.constants.get(parts[0].name)) is not None:
        return known
    if len(parts) == 1 and (read := lifted.conditions.get(parts[0].name)) is not None:
        return ir.Condition(read)
    if lifted.lists and any(part.name in lifted.lists for part in parts):
        raise reader.source.refusal(node, "a long list of constants may only stand after IN")
    operand: ir.Operand = ir.Column(parts[0].name)
    for part in parts[1:]:
        operand = ir.FieldAccess(operand, part.name)
    return operand


def _member(reader: SqlReader, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression")
    if not isinstance(node.expression, exp.Identifier):
        raise reader.source.refusal(node, "a struct's member is a name, as in point.x")
    return ir.FieldAccess(reader.operand(node.this), node.expression.name)


def _raw(reader: SqlReader, node: Any) -> ir.Operand:
    reader.only(node, "this")
    if (start := node.meta.get("start")) is not None:
        tag = _TAG.match(reader.source.lifted.text, start)
        if tag is not None and tag[1] and not tag[1].isidentifier():
            raise reader.source.refusal(
                node, "the tag between dollars is a name of letters, digits and _, or empty"
            )
    return ir.Literal(str(node.this))


def _literal(reader: SqlReader, node: Any) -> ir.Operand:
    if node.is_string:
        return ir.Literal(_unescaped(reader, node))
    return _number(reader, node)


def _unescaped(reader: SqlReader, node: Any) -> str:
    """Return the text of a string; raise if engine and grammar may differ on a backslash."""
    start, text = node.meta.get("start"), str(node.this)
    if not reader.dialect.backslash_strings or start is None:
        return text
    raw = reader.source.lifted.text[start : node.meta["end"] + 1]
    rest = _ESCAPES.sub("", raw)
    if "\\" in rest:
        raise reader.source.refusal(
            node, "in strings only \\\\, \\', \\\", \\n, \\r, \\t and \\uffff are supported"
        )
    return _ESCAPES.sub(_character, raw[1:-1]) if "\\u" in raw else text


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return {"n": "\n", "r": "\r", "t": "\t"}.get(escape[2], escape[2])


def _number(reader: SqlReader, node: Any) -> ir.Literal:
    try:
        return number(node.this, reader.dialect)
    except ValueError as error:
        raise reader.source.refusal(node, str(error)) from error


def _truth(reader: SqlReader, node: Any) -> ir.Operand:
    reader.only(node, "this")
    return TRUTH[bool(node.this)]


def _null(reader: SqlReader, node: Any) -> ir.Operand:
    reader.only(node)
    return ir.Literal(None)


def _escaped(reader: SqlReader, node: Any) -> ir.Operand:
    start, stop = node.meta.get("start"), node.meta.get("end")
    written = "" if start is None else reader.source.lifted.text[start : stop + 1]
    if (text := escaped_text(written)) is None:
        raise reader.source.refusal(
            node,
            r"in E'…' only \b, \f, \n, \r, \t, \', \\ and codes of ASCII such as \101 or \x41 are "
            "supported; write other letters themselves",
        )
    return ir.Literal(text)


def _hexadecimal(reader: SqlReader, node: Any) -> ir.Operand:
    reader.only(node, "this")
    text = str(node.this or "")
    start = node.meta.get("start")
    if start is not None and reader.source.lifted.text[start : start + 2].lower() == "0x":
        raise reader.source.refusal(node, "write numbers in decimal digits")
    if reader.dialect.hexadecimal_bits and not _is_compared(node):
        raise reader.source.refusal(
            node, f"X'…' is a string of bits in {reader.dialect.name}; write bytes as '\\x…'::bytea"
        )
    try:
        return ir.Literal(bytes.fromhex(text), Binary())
    except ValueError as error:
        raise reader.source.refusal(node, "bytes have two hexadecimal digits each") from error


def _is_compared(node: Any) -> bool:
    """Return whether a constant is alone or an operand of a comparison.

    PostgreSQL compares no bits with bytes; other operations have a meaning for bits.
    """
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Tuple):
        parent = parent.parent
    return parent is None or isinstance(parent, _COMPARISONS)


def _negation(reader: SqlReader, node: Any) -> ir.Operand:
    reader.only(node, "this")
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return negated(_number(reader, inner), reader.dialect)
    return ir.Call("negate", (reader.side(inner),))


def _cast(reader: SqlReader, node: Any) -> ir.Operand:
    reader.only(node, "this", "to", safe=True)
    if (values := cast_list(reader, node)) is not None:
        return values
    try:
        type_ = logical_type(node.args["to"], reader.dialect)
    except ValueError as error:
        raise reader.source.refusal(node, str(error)) from error
    if type_ == String() and (shown := jsonb_as_text(reader, node)) is not None:
        return shown
    try_ = isinstance(node, exp.TryCast) and bool(node.args.get("safe"))
    dated = type_ == Date() and not try_
    operand = of_local_time(reader, node.this) if dated else reader.operand(node.this)
    has_nanos = reader.dialect.times.nanoseconds and isinstance(type_, Timestamp)
    if has_nanos and (constant := finer_constant(operand, type_)) is not None:
        return constant
    return reader.cast(node, operand, type_, try_=try_)


def _case(reader: SqlReader, node: Any) -> ir.Operand:
    reader.only(node, "this", "ifs", "default")
    subject = node.args.get("this")
    value = None if subject is None else reader.operand(subject)
    branches: list[tuple[ir.Predicate, ir.Operand]] = []
    for branch in node.args["ifs"]:
        reader.only(branch, "this", "true")
        if value is None:
            when = reader.predicate(branch.this)
        else:
            when = ir.Comparison(ir.ComparisonOp.EQ, value, reader.operand(branch.this))
        branches.append((when, reader.operand(branch.args["true"])))
    default = node.args.get("default")
    return ir.Case(
        tuple(branches), ir.Literal(None) if default is None else reader.operand(default)
    )


def _collated(reader: SqlReader, node: Any) -> ir.Operand:
    """Read `text COLLATE "C"`, which orders text by code points, as we do."""
    reader.only(node, "this", "expression")
    name = node.expression
    if isinstance(name, exp.Column) and not name.args.get("table"):
        name = name.this
    quoted = isinstance(name, exp.Identifier) and name.quoted and name.name == "C"
    if not quoted or not reader.dialect.texts.orders_by_collation:
        raise reader.source.refusal(node, 'the only collation is "C", and in postgres')
    return reader.side(node.this)


_OPERANDS: Mapping[type[Any], Callable[[SqlReader, Any], ir.Operand]] = {
    exp.Column: _column,
    exp.Dot: _member,
    exp.Bracket: bracket,
    exp.Literal: _literal,
    exp.RawString: _raw,
    exp.Boolean: _truth,
    exp.Null: _null,
    exp.ByteString: _escaped,
    exp.HexString: _hexadecimal,
    exp.Neg: _negation,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.Collate: _collated,
    exp.Interval: constant_interval,
}
