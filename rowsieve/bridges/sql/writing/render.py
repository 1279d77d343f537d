"""Write the tree as SQL text: our own writer, with a row per construct.

Written text reads back as the same tree, up to equivalences of the reader (nested ANDs, an escape
character that the pattern lacks). Identifiers are always quoted, literals carry their type unless
the plain form has it, and every operand that is not atomic is in parentheses.

Soundness: `UnsupportedOperation` if a dialect has no text with the same meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import assert_never

import pyarrow as pa

from rowsieve.bridges.sql.constructs.nanoseconds import bin_within
from rowsieve.bridges.sql.constructs.render_literals import cast_text, literal_text, quoted
from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.bridges.sql.writing.render_calls import call_text
from rowsieve.bridges.sql.writing.render_lists import list_texts
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.encodings import is_text, logical_type
from rowsieve.types.logical import Bool, Date, Int, LogicalType, Nanos, String, Time, Timestamp

_TRUTHS = (ir.Literal(value=True, type=Bool()), ir.Literal(value=False, type=Bool()))


class Binding(IntEnum):
    """How tightly a piece of text binds."""

    LOGIC = 1  # AND, OR, NOT
    CONDITION = 2  # a comparison, LIKE, IN, IS
    VALUE = 3  # arithmetic, a sign
    ATOM = 4


class SqlWriter:
    """Writes one tree in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def text(self, node: ir.Node) -> str:
        """Return the text of a whole tree."""
        return self._piece(node)[0]

    def atom(self, node: ir.Node) -> str:
        """Return the node's text, in parentheses unless it is atomic."""
        return self._within(node, Binding.ATOM)

    def conjunct(self, node: ir.Node) -> str:
        """Return the node's text as an operand of AND."""
        return self._within(node, Binding.CONDITION)

    def _within(self, node: ir.Node, least: Binding) -> str:
        text, binding = self._piece(node)
        return text if binding >= least else f"({text})"

    def _piece(self, node: ir.Node) -> tuple[str, Binding]:
        if isinstance(node, ir.Predicate):
            return self._predicate(node)
        return self._operand(node)

    def _predicate(self, node: ir.Predicate) -> tuple[str, Binding]:
        match node:
            case ir.TruePredicate() | ir.And(terms=()):
                return "TRUE", Binding.ATOM
            case ir.FalsePredicate() | ir.Or(terms=()):
                return "FALSE", Binding.ATOM
            case ir.And(terms=(only,)) | ir.Or(terms=(only,)):
                return self._predicate(only)
            case ir.And(terms=terms):
                return self._joined(" AND ", terms), Binding.LOGIC
            case ir.Or(terms=terms):
                return self._joined(" OR ", terms), Binding.LOGIC
            case ir.Not(term=term):
                return self._negated(term)
            case ir.Comparison(op=op, left=left, right=right):
                return self._comparison(op, left, right)
            case ir.InList() | ir.IsNull() | ir.Like():
                return self._tested(node, "")
            case ir.BooleanOperand(operand=operand):
                return self._operand(operand)
            case ir.Opaque(description=description):
                raise UnsupportedOperation(
                    f"the condition {description!r} of another engine has no counterpart in SQL"
                )
            case _:
                assert_never(node)

    def _comparison(
        self, op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand
    ) -> tuple[str, Binding]:
        is_distinct = op.is_null_safe
        if is_distinct and right in _TRUTHS and not self.dialect.listed_only:
            negation = "NOT " if op is ir.ComparisonOp.DISTINCT else ""
            return f"{self.atom(left)} IS {negation}{self.text(right)}", Binding.CONDITION
        text = f"{self._side(left, right)} {op.value} {self._side(right, left)}"
        # DataFusion's parser uses all text after DISTINCT FROM as its right operand
        return text, Binding.LOGIC if is_distinct else Binding.CONDITION

    def _side(self, operand: ir.Operand, other: ir.Operand) -> str:
        plain = _plainer(operand, other) if isinstance(operand, ir.Literal) else operand
        return self._within(plain, Binding.VALUE)

    def _joined(self, word: str, terms: Iterable[ir.Predicate]) -> str:
        return word.join(self._within(term, Binding.CONDITION) for term in terms)

    def _negated(self, term: ir.Predicate) -> tuple[str, Binding]:
        if isinstance(term, ir.InList | ir.IsNull | ir.Like) and not _is_empty(term):
            return self._tested(term, "NOT ")
        return f"NOT {self.atom(term)}", Binding.LOGIC

    def _tested(self, node: ir.InList | ir.IsNull | ir.Like, negation: str) -> tuple[str, Binding]:
        operand = self.atom(node.operand)
        match node:
            case ir.IsNull():
                return f"{operand} IS {negation}NULL", Binding.CONDITION
            case ir.InList(values=values) if not len(values):
                return f"{operand} IS NULL AND NULL", Binding.LOGIC  # there is no text for IN ()
            case ir.InList(values=values):
                members = ", ".join(self._members(node.operand, values))
                return f"{operand} {negation}IN ({members})", Binding.CONDITION
            case ir.Like(ignore_case=ignore_case):
                word = "ILIKE" if ignore_case else "LIKE"
                return f"{operand} {negation}{word} {self._pattern(node)}", Binding.CONDITION
            case _:
                assert_never(node)

    def _members(self, operand: ir.Operand, values: ir.ValueSet) -> list[str]:
        array, type_ = values.array, values.type
        if type_ is None and not _is_null_or_text(array.type):
            type_ = logical_type(pa.field("member", array.type), lambda: 0)
        if (texts := list_texts(array, _shown_type(type_, operand), self.dialect)) is not None:
            return texts
        if isinstance(type_, Date):
            array = array.cast(pa.int32())
        elif isinstance(type_, Time | Timestamp | Nanos):
            array = array.cast(pa.int64())
        literals = (_plainer(ir.Literal(value, type_), operand) for value in array.to_pylist())
        if array.null_count < len(array):
            literals = (ir.Literal(None) if item.value is None else item for item in literals)
        return [literal_text(item, self.dialect)[0] for item in literals]

    def _pattern(self, like: ir.Like) -> str:
        pattern, escape = like.pattern, like.escape
        if escape is not None and escape not in pattern:
            escape = None
        rules = self.dialect.texts
        if rules.strict_escapes:
            return quoted(_with_backslashes(pattern, escape), self.dialect)
        text = quoted(pattern, self.dialect)
        if escape is None and rules.like_escape and rules.like_escape in pattern:
            return f"{text} ESCAPE '{_unused(pattern)}'"
        if escape is None or escape == rules.like_escape:
            return text
        return f"{text} ESCAPE {quoted(escape, self.dialect)}"

    def _operand(self, node: ir.Operand) -> tuple[str, Binding]:
        match node:
            case ir.Column(name=name) | ir.BoundColumn(name=name):
                return self._identifier(name), Binding.ATOM
            case ir.Literal():
                text, is_signed = literal_text(node, self.dialect)
                return text, Binding.VALUE if is_signed else Binding.ATOM
            case ir.Cast(operand=operand, type=type_, try_=try_):
                return cast_text(self.text(operand), type_, self.dialect, try_=try_), Binding.ATOM
            case ir.FieldAccess(operand=operand, name=name):
                return self._member(operand, name), Binding.ATOM
            case ir.Case():
                return self._case(node), Binding.ATOM
            case ir.Now():
                call = (
                    "()" if self.dialect.gives_types else ""
                )  # without, a column may have the name
                return f"CURRENT_TIMESTAMP{call}", Binding.ATOM
            case ir.Condition(predicate=predicate):
                return f"({self._piece(predicate)[0]})", Binding.ATOM
            case ir.Call():
                text, is_infix = call_text(node, self)
                return text, Binding.VALUE if is_infix else Binding.ATOM
            case _:
                assert_never(node)

    def _identifier(self, name: str) -> str:
        quote = self.dialect.quote
        if self.dialect.variables is not None and "${" in name:
            raise UnsupportedOperation(
                f"{self.dialect.name} replaces ${{…}} in SQL text, and the name {name!r} has it"
            )
        return f"{quote}{name.replace(quote, quote * 2)}{quote}"

    def _member(self, operand: ir.Operand, name: str) -> str:
        if self.dialect.bracket_members and not self.dialect.hex_strings:
            return f"{self.atom(operand)}[{quoted(name, self.dialect)}]"
        return f"({self.text(operand)}).{self._identifier(name)}"

    def _case(self, node: ir.Case) -> str:
        if self.dialect.times.nanoseconds and (bin_ := bin_within(node)) is not None:
            return self.text(bin_)
        branches = "".join(
            f" WHEN {self.text(when)} THEN {self.text(then)}" for when, then in node.branches
        )
        return f"CASE{branches} ELSE {self.text(node.otherwise)} END"


def to_sql(node: ir.Node, dialect: Dialect) -> str:
    """Write a tree; `InvalidPredicate` if it is nested too deeply."""
    try:
        return SqlWriter(dialect).text(node)
    except RecursionError:
        raise InvalidPredicate("the predicate nests too deeply to be written as SQL") from None


def _plainer(literal: ir.Literal, other: ir.Operand) -> ir.Literal:
    """Return the literal without its type if a bound column on the other side implies it."""
    if not isinstance(other, ir.BoundColumn) or literal.type != other.type or literal.value is None:
        return literal
    if isinstance(literal.type, String):
        return ir.Literal(literal.value)
    return ir.Literal(literal.value, Int(64)) if _is_small_int(literal.type) else literal


def _shown_type(type_: LogicalType | None, other: ir.Operand) -> LogicalType | None:
    """Return the type that members need in their text, as in `_plainer`."""
    if isinstance(other, ir.BoundColumn) and type_ == other.type:
        return None if isinstance(type_, String) else Int(64) if _is_small_int(type_) else type_
    return type_


def _is_small_int(type_: LogicalType | None) -> bool:
    return isinstance(type_, Int) and (type_.signed or type_.bits < 64)


def _is_null_or_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_null(type_) or is_text(type_))


def _is_empty(term: ir.InList | ir.IsNull | ir.Like) -> bool:
    return isinstance(term, ir.InList) and not len(term.values)


def _with_backslashes(pattern: str, escape: str | None) -> str:
    """Return the pattern with backslash as its escape, before wildcards and itself only."""
    pieces: list[str] = []
    characters = iter(pattern)
    for character in characters:
        is_escaped = character == escape
        literal = next(characters, "") if is_escaped else character
        plain = literal not in ("%", "_", "\\") or not (is_escaped or literal == "\\")
        pieces.append(literal if plain else f"\\{literal}")
    return "".join(pieces)


def _unused(pattern: str) -> str:
    return next(
        mark for mark in map(chr, range(33, 0x10000)) if mark not in pattern and mark not in "%'\\_"
    )
