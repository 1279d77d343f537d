"""Templates of the function table: write a call, and recognise one in sqlglot's tree.

The dialect's own grammar parses a template, so every alias that the grammar knows matches too.

Soundness: a node matches only if it has exactly the arguments and options of the template; an
option that a template lacks (a precision, DISTINCT) prevents a match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar

from rowsieve.bridges.functions import TABLE, Spelling, TypedCall, spelling_of
from rowsieve.bridges.sql.constructs.pattern_calls import FOUND, found
from rowsieve.bridges.sql.constructs.time_formats import FORMATTED, formatted
from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.sql.protocols import Reads, Writes
from rowsieve.predicate.ir import Call, Literal, Operand
from rowsieve.types.logical import String

_PLACE = re.compile(r"\{([0-9]+|rest)\}")
_REST = "rest"
_BEFORE = re.compile(r"(?:[(,]|\bIN|\bFROM|\bBOTH|\bLEADING|\bTRAILING)\s*$")
_AFTER = re.compile(r"\s*(?:[),]|AS\b|IN\b|FROM\b)")
_PREFIX = "argument_"
_TRIMS = ("trim", "ltrim", "rtrim")
# Unicode space separators, which DuckDB trims.
SPACES = " \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"


@dataclass(frozen=True, slots=True)
class Templated(Call):
    """A call whose `function` is a template of the target's SQL, made for a writer alone."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A parsed template, and the function that it spells."""

    function: str
    spelling: Spelling
    node: Any
    places: int
    shown: str  # for people, with arguments x, y, z


def recognise(reader: Reads, node: Any) -> Call | None:
    """Read the call of a node in the reader's dialect; None if no template matches."""
    for pattern in _patterns(reader.dialect.name).get(_root(node), ()):
        bound: dict[str, list[Any]] = {}
        if not _matches(pattern.node, node, bound):
            continue
        places = [bound[str(place)][0] for place in range(pattern.places)]
        arguments: tuple[Operand, ...] = tuple(
            reader.operand(item) for item in (*places, *bound.get(_REST, ()))
        )
        call = Call(pattern.function, arguments)
        if pattern.function in FOUND:
            return found(reader, node, call)
        if pattern.function in FORMATTED:
            return formatted(reader, node, call)
        if reader.dialect.texts.trims_all_spaces and call.function in _TRIMS:
            return _with_spaces(call)
        required = pattern.spelling.reads
        if required is not None and not required.holds(TypedCall(call)):
            raise reader.source.refusal(
                node, f"{pattern.function} takes {required.text} in {reader.dialect.name}"
            )
        return call
    return None


def is_bare_trim(node: Call) -> bool:
    """Whether it trims spaces without naming them."""
    return node.function in _TRIMS and len(node.arguments) == 1


def _with_spaces(trim: Call) -> Call:
    """Read the trim of a dialect that by default trims all kinds of spaces."""
    match trim.arguments:
        case (text,):
            return Call(trim.function, (text, Literal(SPACES)))
        case (text, Literal(value=" ")):
            return Call(trim.function, (text,))
        case _:
            return trim


def forms(reader: Reads, node: Any) -> list[str]:
    """Return the templates that a node might match, with arguments x, y, z, for a message."""
    known = _patterns(reader.dialect.name).get(_root(node), ())
    return list(dict.fromkeys(pattern.shown for pattern in known))


def fill(call: Call, writer: Writes) -> tuple[str, bool] | None:
    """Write a call by its dialect's template, and whether it is infix; None without a template."""
    spelling = spelling_of(call.function, writer.dialect.name)
    if spelling is None:
        return None
    if writer.dialect.texts.trims_all_spaces and is_bare_trim(call):
        call = Call(call.function, (*call.arguments, Literal(" ", String())))
    for template in spelling.templates:
        pieces, places, has_rest = _pieces(template)
        count = len(call.arguments)
        if count == places or (has_rest and count > places):
            return _filled(pieces, call, places, writer), _is_operator(template)
    return None


def written(template: str, call: Call, writer: Writes) -> tuple[str, bool]:
    """Write a call by this template, and return whether it is infix."""
    pieces, places, _ = _pieces(template)
    return _filled(pieces, call, places, writer), _is_operator(template)


def _filled(pieces: tuple[str, ...], call: Call, places: int, writer: Writes) -> str:
    text = []
    for index, piece in enumerate(pieces):
        if index % 2 == 0:
            text.append(piece)
        elif piece == _REST:
            rest = [writer.text(item) for item in call.arguments[places:]]
            text.append(", ".join(rest))
            if not rest:
                text[-2] = text[-2].removesuffix(", ")
        else:
            argument = call.arguments[int(piece)]
            inside = _BEFORE.search(pieces[index - 1]) and _AFTER.match(pieces[index + 1])
            text.append(writer.text(argument) if inside else writer.atom(argument))
    return "".join(text)


@cache
def _pieces(template: str) -> tuple[tuple[str, ...], int, bool]:
    """Split into alternating text and placeholders; their number; whether more may follow."""
    pieces = tuple(_PLACE.split(template))
    names = set(pieces[1::2])
    return pieces, len(names - {_REST}), _REST in names


@cache
def _is_operator(template: str) -> bool:
    return _PLACE.match(template) is not None


@cache
def _patterns(dialect: str) -> Mapping[object, tuple[_Pattern, ...]]:
    """Group patterns by the kind of their root, the largest first."""
    patterns_of: dict[object, list[_Pattern]] = {}
    for row in TABLE.values():
        spelling = row.spelling(dialect)
        if spelling is not None and not spelling.write_only:
            for template in (*spelling.templates, *spelling.aliases):
                pieces, places, _ = _pieces(template)
                names = [f"{_PREFIX}{piece}" for piece in pieces[1::2]]
                text = "".join(_joined(pieces, names))
                node = _parsed(text, dialect_named(dialect).grammar)
                if isinstance(node, exp.Func) and not isinstance(node, exp.Cast):
                    shown = "".join(_joined(pieces, [_shown(name) for name in pieces[1::2]]))
                    pattern = _Pattern(row.name, spelling, node, places, shown)
                    patterns_of.setdefault(_root(node), []).append(pattern)
    return {
        root: tuple(sorted(patterns, key=lambda each: -sum(1 for _ in each.node.walk())))
        for root, patterns in patterns_of.items()
    }


def _shown(place: str) -> str:
    return "…" if place == _REST else "xyzw"[int(place)]


def _joined(pieces: tuple[str, ...], names: list[str]) -> Iterator[str]:
    for index, piece in enumerate(pieces):
        yield names[index // 2] if index % 2 else piece


def _parsed(text: str, grammar: str) -> Any:
    known = Grammar.get_or_raise(grammar)
    (node,) = known.parser().parse_into(exp.Condition, known.tokenize(text), text)
    return node


def _root(node: Any) -> object:
    return node.name.lower() if type(node) is exp.Anonymous else type(node)


def _matches(pattern: Any, node: Any, bound: dict[str, list[Any]]) -> bool:
    """Whether the node matches the pattern; binds the nodes at its placeholders."""
    if (place := _place(pattern)) is not None:
        if place in bound:
            return bool(bound[place] == [node])
        bound[place] = [node]
        return isinstance(node, exp.Expr)
    if isinstance(pattern, exp.Expr):
        if type(pattern) is not type(node):
            return False
        keys = {key for key, value in (*pattern.args.items(), *node.args.items()) if value}
        return all(_matches(pattern.args.get(k), node.args.get(k), bound) for k in keys)
    if isinstance(pattern, list):
        return isinstance(node, list) and _match_lists(pattern, node, bound)
    if isinstance(pattern, str) and isinstance(node, str):
        return pattern.lower() == node.lower()
    return bool(pattern == node)


def _match_lists(pattern: list[Any], nodes: list[Any], bound: dict[str, list[Any]]) -> bool:
    if pattern and _place(pattern[-1]) == _REST:
        fixed = len(pattern) - 1
        bound[_REST] = nodes[fixed:]
        pattern, nodes = pattern[:-1], nodes[:fixed]
    return len(pattern) == len(nodes) and all(
        _matches(one, other, bound) for one, other in zip(pattern, nodes, strict=True)
    )


def _place(pattern: Any) -> str | None:
    if type(pattern) is exp.Column and pattern.name.startswith(_PREFIX):
        return str(pattern.name.removeprefix(_PREFIX))
    return None
