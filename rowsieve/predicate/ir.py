"""The predicate tree: conditions and expressions over a row, as plain data.

Nodes are frozen values with structural equality and hash. AND and OR take any number of terms; an
IN list holds one Arrow array. On a row, a predicate is TRUE, FALSE, NULL or an error; an operand
has a value, NULL or an error. This module does not depend on an engine or a file format.

A `Literal` holds the physical value of its type: a date is days since 1970, a timestamp or time is
microseconds, a UUID is 16 bytes, a decimal is a `decimal.Decimal`, a list is the tuple of its
items, and a struct is the tuple of its fields in the order of its type. `type` is None for a bare
NULL and for a quoted SQL string; `bind` then derives it from the other side of the comparison.
"""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar, assert_never

from rowsieve.predicate import spelled
from rowsieve.predicate.comparison_op import (
    ComparisonOp as ComparisonOp,  # noqa: PLC0414 - exported
)
from rowsieve.predicate.spelled import MAX_CHARACTERS, ShownAsSql, Spelled, Token
from rowsieve.predicate.value_set import ValueSet as ValueSet  # noqa: PLC0414 - exported
from rowsieve.types.logical import LogicalType, type_name
from rowsieve.types.time_zones import shown_zone

FlatValue: TypeAlias = bool | int | float | decimal.Decimal | str | bytes | None
PhysicalValue: TypeAlias = FlatValue | tuple["PhysicalValue", ...]
_OF_ZONES: Final = frozenset({"local_time", "instant", "try_instant"})

# Operands


@dataclass(frozen=True, slots=True)
class Column(Spelled):
    """A column by the name the user wrote."""

    name: str

    def _tokens(self) -> Sequence[Token]:
        return (spelled.name_text(self.name),)


@dataclass(frozen=True, slots=True)
class BoundColumn(Spelled):
    """A column of the table; `bind` replaces a `Column` by it."""

    field_id: int
    name: str
    type: LogicalType

    def _tokens(self) -> Sequence[Token]:
        return (spelled.name_text(self.name),)


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Spelled):
    """A constant. Two literals are equal only if no function can distinguish their values.

    So 0.0 differs from -0.0, and 4 from 4.0, although they are equal in Python: replacing one
    literal by an equal one must not change a result. Two NaNs are equal if their sign bits are.
    """

    value: PhysicalValue
    type: LogicalType | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return self.type == other.type and _identity(self.value) == _identity(other.value)

    def __hash__(self) -> int:
        value = self.value
        return hash((value if type(value) is int else _identity(value), self.type))

    def _tokens(self) -> Sequence[Token]:
        return (spelled.constant_text(self.value, self.type),)


def _identity(value: PhysicalValue) -> tuple[type, object]:
    """Return a key that is equal only for values that no function can distinguish."""
    match value:
        case float():
            sign = "-" if math.copysign(1, value) < 0 else ""
            return float, f"{sign}nan" if math.isnan(value) else value.hex()
        case decimal.Decimal():
            return decimal.Decimal, value.as_tuple()
        case tuple():
            return tuple, tuple(map(_identity, value))
        case _:
            return type(value), value


@dataclass(frozen=True, slots=True, repr=False)
class Call(Spelled):
    """A call of a registered function by its lower-case name: `date_trunc`, `add`, `lower`."""

    function: str
    arguments: tuple[Operand, ...]

    def __repr__(self) -> str:
        """Show the fields, with zones by the names that users know."""
        return f"Call(function={self.function!r}, arguments={self._shown(self.arguments)!r})"

    def _tokens(self) -> Sequence[Token]:
        shown = self._shown(self.arguments[:MAX_CHARACTERS])
        return (f"{self.function}(", *spelled.listed(shown), ")")

    def _shown(self, arguments: tuple[Operand, ...]) -> tuple[Operand, ...]:
        if self.function.startswith("zoned_") or self.function in _OF_ZONES:
            return tuple(map(_with_shown_zone, arguments))
        return arguments


def _with_shown_zone(operand: Operand) -> Operand:
    if not isinstance(operand, Literal) or not isinstance(operand.value, str):
        return operand
    return Literal(shown_zone(operand.value), operand.type)


@dataclass(frozen=True, slots=True)
class Cast(Spelled):
    """`CAST(operand AS type)`; with `try_`, a value that does not fit gives NULL."""

    operand: Operand
    type: LogicalType
    try_: bool = False

    def _tokens(self) -> Sequence[Token]:
        word = "TRY_CAST(" if self.try_ else "CAST("
        return (word, self.operand, f" AS {type_name(self.type)})")


@dataclass(frozen=True, slots=True)
class FieldAccess(Spelled):
    """A field of a struct, by name."""

    operand: Operand
    name: str

    def _tokens(self) -> Sequence[Token]:
        return (self.operand, f".{spelled.name_text(self.name)}")


@dataclass(frozen=True, slots=True)
class Case(Spelled):
    """`CASE WHEN … THEN … ELSE … END`; a simple CASE is written with comparisons."""

    branches: tuple[tuple[Predicate, Operand], ...]
    otherwise: Operand

    def _tokens(self) -> Sequence[Token]:
        whens: list[Token] = []
        for condition, result in self.branches[:MAX_CHARACTERS]:
            whens += [" WHEN ", condition, " THEN ", result]
        return ("CASE", *whens, " ELSE ", self.otherwise, " END")


@dataclass(frozen=True, slots=True)
class Now(Spelled):
    """The time of the statement, an instant; replaced by one literal per statement."""

    def _tokens(self) -> Sequence[Token]:
        return ("now()",)


@dataclass(frozen=True, slots=True)
class Condition(Spelled):
    """A predicate as a boolean value, as in `(a = b) IS NULL`."""

    predicate: Predicate

    def _tokens(self) -> Sequence[Token]:
        return ("(", self.predicate, ")")


Operand: TypeAlias = (
    Column | BoundColumn | Literal | Call | Cast | FieldAccess | Case | Now | Condition
)


# Predicates


@dataclass(frozen=True, slots=True, repr=False)
class TruePredicate(ShownAsSql):
    """TRUE on every row."""

    def _tokens(self) -> Sequence[Token]:
        return ("TRUE",)


@dataclass(frozen=True, slots=True, repr=False)
class FalsePredicate(ShownAsSql):
    """FALSE on every row."""

    def _tokens(self) -> Sequence[Token]:
        return ("FALSE",)


TRUE = TruePredicate()
FALSE = FalsePredicate()


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(ShownAsSql):
    """`left op right`; NULL if a side is NULL, except for IS [NOT] DISTINCT FROM."""

    op: ComparisonOp
    left: Operand
    right: Operand

    def _tokens(self) -> Sequence[Token]:
        return (self.left, f" {self.op.value} ", self.right)


@dataclass(frozen=True, slots=True, repr=False)
class Not(ShownAsSql):
    """NOT; NULL for a NULL operand."""

    term: Predicate

    def _tokens(self) -> Sequence[Token]:
        return ("NOT (", self.term, ")")


@dataclass(frozen=True, slots=True, repr=False)
class And(ShownAsSql):
    """AND: FALSE if any term is FALSE, even if another term is NULL or fails."""

    terms: tuple[Predicate, ...]

    def _tokens(self) -> Sequence[Token]:
        return _junction(" AND ", self.terms[:MAX_CHARACTERS]) or ("TRUE",)


@dataclass(frozen=True, slots=True, repr=False)
class Or(ShownAsSql):
    """OR: TRUE if any term is TRUE, even if another term is NULL or fails."""

    terms: tuple[Predicate, ...]

    def _tokens(self) -> Sequence[Token]:
        return _junction(" OR ", self.terms[:MAX_CHARACTERS]) or ("FALSE",)


@dataclass(frozen=True, slots=True, repr=False)
class InList(ShownAsSql):
    """`operand IN (values)`; NULL for a NULL operand, or without a match if a member is NULL."""

    operand: Operand
    values: ValueSet

    def _tokens(self) -> Sequence[Token]:
        return (self.operand, f" IN ({spelled.members_text(self.values)})")


@dataclass(frozen=True, slots=True, repr=False)
class IsNull(ShownAsSql):
    """`operand IS NULL`; never NULL. NaN is not NULL."""

    operand: Operand

    def _tokens(self) -> Sequence[Token]:
        return (self.operand, " IS NULL")


@dataclass(frozen=True, slots=True, repr=False)
class Like(ShownAsSql):
    """`operand LIKE pattern` with `%`, `_` and an optional escape character."""

    operand: Operand
    pattern: str
    escape: str | None = None
    ignore_case: bool = False

    def _tokens(self) -> Sequence[Token]:
        word = " ILIKE " if self.ignore_case else " LIKE "
        escape = "" if self.escape is None else f" ESCAPE {spelled.quoted(self.escape)}"
        return (self.operand, f"{word}{spelled.quoted(self.pattern)}{escape}")


@dataclass(frozen=True, slots=True, repr=False)
class BooleanOperand(ShownAsSql):
    """A boolean operand used as a predicate."""

    operand: Operand

    def _tokens(self) -> Sequence[Token]:
        return (self.operand,)


@dataclass(frozen=True, slots=True, repr=False)
class Opaque(ShownAsSql):
    """A condition that another engine evaluates; here it may be TRUE, FALSE, NULL or an error."""

    description: str
    source: str
    columns: tuple[str, ...] = ()

    def _tokens(self) -> Sequence[Token]:
        return (f"OPAQUE({spelled.short(self.description)})",)


Predicate: TypeAlias = (
    Comparison
    | Not
    | And
    | Or
    | InList
    | IsNull
    | Like
    | BooleanOperand
    | Opaque
    | TruePredicate
    | FalsePredicate
)

Node: TypeAlias = Predicate | Operand

_N = TypeVar("_N", bound=Node)
_T = TypeVar("_T")

_LEAVES: Final = frozenset((Column, BoundColumn, Literal))
_COMPARED_UP_TO: Final = 4  # terms that are compared rather than hashed


def _junction(word: str, terms: Sequence[Predicate]) -> Sequence[Token]:
    pieces: list[Token] = []
    for term in terms:
        pieces += (word, "(", term, ")") if isinstance(term, And | Or) else (word, term)
    return pieces[1:]


def conjoin(terms: Iterable[Predicate]) -> Predicate:
    """Return a flat AND without TRUE terms; FALSE if a term is FALSE, TRUE for no terms."""
    return _flat(And, terms, TRUE, FALSE)


def _without_repeats(terms: list[Predicate]) -> tuple[Predicate, ...]:
    """Drop repeated terms; a few terms are compared, which is faster than hashing them."""
    if len(terms) > _COMPARED_UP_TO:
        return tuple(dict.fromkeys(terms))
    distinct: list[Predicate] = []
    for term in terms:
        if term not in distinct:
            distinct.append(term)
    return tuple(distinct)


def disjoin(terms: Iterable[Predicate]) -> Predicate:
    """Return a flat OR without FALSE terms; TRUE if a term is TRUE, FALSE for no terms."""
    return _flat(Or, terms, FALSE, TRUE)


def _flat(
    junction: type[And | Or], terms: Iterable[Predicate], neutral: Predicate, decisive: Predicate
) -> Predicate:
    flat: list[Predicate] = []
    for term in terms:
        flat.extend(term.terms if isinstance(term, junction) else (term,))
    rest = _without_repeats([term for term in flat if type(term) is not type(neutral)])
    if any(type(term) is type(decisive) for term in rest):
        return decisive
    if not rest:
        return neutral
    return rest[0] if len(rest) == 1 else junction(rest)


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the terms of a top-level AND; () for TRUE."""
    match predicate:
        case TruePredicate():
            return ()
        case And(terms=terms):
            return terms
        case _:
            return (predicate,)


def root_conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the conjuncts that are evaluated independently: those of the top-level AND.

    Looks through nested ANDs, double NOTs, junctions of one term and conditions as booleans, so
    rewriting these away changes no outcome.
    """
    leaf_terms: list[Predicate] = []
    stack = [predicate]
    while stack:
        match stack.pop():
            case And(terms=terms):
                stack.extend(reversed(terms))
            case Or(terms=(only,)):
                stack.append(only)
            case Not(term=Not(term=inner)):
                stack.append(inner)
            case BooleanOperand(operand=Condition(predicate=inner)):
                stack.append(inner)
            case TruePredicate():
                continue
            case term:
                leaf_terms.append(term)
    return tuple(leaf_terms)


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct children, in the order written."""
    match node:
        case Comparison(left=left, right=right):
            return (left, right)
        case Not(term=term):
            return (term,)
        case And(terms=terms) | Or(terms=terms):
            return terms
        case InList(operand=operand) | IsNull(operand=operand) | Like(operand=operand):
            return (operand,)
        case BooleanOperand(operand=operand) | Cast(operand=operand):
            return (operand,)
        case FieldAccess(operand=operand):
            return (operand,)
        case Call(arguments=arguments):
            return arguments
        case Case(branches=branches, otherwise=otherwise):
            flat: list[Node] = []
            for when, then in branches:
                flat += [when, then]
            return (*flat, otherwise)
        case Condition(predicate=predicate):
            return (predicate,)
        case _:
            return ()


def walk(root: Node) -> Iterator[Node]:
    """Yield every node, parents first; iterative, so depth cannot overflow the stack."""
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        yield node
        if type(node) not in _LEAVES:
            stack.extend(reversed(children(node)))


def map_children(
    node: _N, predicate: Callable[[Predicate], Predicate], operand: Callable[[Operand], Operand]
) -> _N:
    """Apply `predicate` or `operand` to each child; the same node if no child changes.

    Rewrites handle the nodes that they change, and call this for all others.
    """
    changed: Node = node
    match node:
        case And(terms=terms) | Or(terms=terms):
            mapped = tuple(map(predicate, terms))
            if not _same(mapped, terms):
                changed = And(mapped) if isinstance(node, And) else Or(mapped)
        case Not(term=term):
            if (inner := predicate(term)) is not term:
                changed = Not(inner)
        case Comparison(left=left, right=right):
            sides = operand(left), operand(right)
            if not _same(sides, (left, right)):
                changed = Comparison(node.op, *sides)
        case InList() | IsNull() | Like() | BooleanOperand() | Cast() | FieldAccess():
            if (value := operand(node.operand)) is not node.operand:
                changed = replace(node, operand=value)
        case Call(arguments=arguments):
            values = tuple(map(operand, arguments))
            if not _same(values, arguments):
                changed = Call(node.function, values)
        case Case(branches=branches, otherwise=otherwise):
            pairs = tuple((predicate(when), operand(then)) for when, then in branches)
            last = operand(otherwise)
            if last is not otherwise or not all(map(_same, pairs, branches)):
                changed = Case(pairs, last)
        case Condition(predicate=condition):
            if (inner := predicate(condition)) is not condition:
                changed = Condition(inner)
        case TruePredicate() | FalsePredicate() | Opaque() | Column() | BoundColumn():
            pass
        case Literal() | Now():
            pass
        case _:
            assert_never(node)
    assert isinstance(changed, type(node))
    return changed


def fold(root: Node, combine: Callable[[Node, tuple[_T, ...]], _T]) -> _T:
    """Compute a value bottom-up: `combine` gets a node and the results of its children.

    Leaves get (). Iterative, so depth cannot overflow the stack.
    """
    stack: list[tuple[Node, bool]] = [(root, False)]
    combined: list[_T] = []
    while stack:
        node, is_below_done = stack.pop()
        below = children(node)
        if not is_below_done and below:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(below))
            continue
        start = len(combined) - len(below)
        combined[start:] = [combine(node, tuple(combined[start:]))]
    return combined[0]


def _same(one: Iterable[object], other: Iterable[object]) -> bool:
    """Whether two tuples of one length contain the identical objects."""
    return all(map(operator.is_, one, other))


def column_names(root: Node) -> tuple[str, ...]:
    """Return the names of the columns that the tree reads, each once, in order of appearance."""
    names: dict[str, None] = {}
    for node in walk(root):
        if isinstance(node, Column | BoundColumn):
            names[node.name] = None
        elif isinstance(node, Opaque):
            names.update(dict.fromkeys(node.columns))
    return tuple(names)


def literal(value: Any, type_: LogicalType | None = None) -> Literal:
    """Make a literal from a physical Python value."""
    return Literal(value, type_)
