"""Extract long IN lists of constants from the text before it is parsed.

A regular expression finds each `IN (…)` with more than `SHORT` plain constants. The list becomes
one Arrow array and is replaced by a name that does not occur in the text, so a million members cost
one scan instead of a million nodes.

Soundness: a list is extracted only if all members are of one kind and convert exactly; any other
list stays in the text. Afterwards the tokens must contain each name where its list was.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.bridges.sql.reading.text_limits import MAX_MEMBERS
from rowsieve.bridges.sql.reading.typed_lists import (
    TYPED,
    bare_floats,
    members_of,
    numbers,
    typed_members,
)
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.ir import Literal, Predicate, ValueSet
from rowsieve.types.logical import Decimal, Int

SHORT = 64  # the grammar reads so many members fast enough

_STRING = r"'[^']*+(?:''[^']*+)*+'"
_ESCAPED = r"'[^'\\]*+(?:\\['\\][^'\\]*+)*+'"
_NUMBER = r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:E[+-]?[0-9]++)?"


@dataclass(frozen=True, slots=True)
class Lifted:
    """Text with names for long lists, the lists by name, and the positions of the cuts.

    `constants`, `conditions`: values of names in text made from an engine's tree.
    """

    text: str
    lists: Mapping[str, ValueSet]
    cuts: tuple[tuple[int, int], ...] = ()  # (offset after the cut, characters removed so far)
    constants: Mapping[str, Literal] = field(default_factory=dict)
    conditions: Mapping[str, Predicate] = field(default_factory=dict)

    def offset(self, position: int) -> int:
        """Return the position in the original text of a position in this one."""
        index = bisect.bisect_right(self.cuts, position, key=lambda cut: cut[0])
        return position + (self.cuts[index - 1][1] if index else 0)


def lift_lists(text: str, dialect: Dialect) -> Lifted:
    """Extract the long lists of constants from the text."""
    if text.count(",") < SHORT:
        return Lifted(text, {})
    mark = "\ue000"
    while mark in text:
        mark += "\ue001"
    pieces: list[str] = []
    lists: dict[str, ValueSet] = {}
    cuts: list[tuple[int, int]] = []
    done = length = members = 0
    for match in _scanner(dialect.backslash_strings).finditer(text):
        values = _values(match["body"], dialect) if match["body"] else None
        if values is None:
            continue
        members += len(values)
        if members > MAX_MEMBERS:
            raise InvalidPredicate(
                f"the IN lists of the filter have more than {MAX_MEMBERS:,} members",
                position=match.start(),
            )
        name = f"{mark}{len(lists)}"
        lists[name] = values
        start, stop = match.span("body")
        pieces += [text[done:start], f"{dialect.quote}{name}{dialect.quote}"]
        length += sum(map(len, pieces[-2:]))
        done = stop
        cuts.append((length, stop - length))
    return Lifted("".join([*pieces, text[done:]]), lists, tuple(cuts))


def stand_in_place(lifted: Lifted, tokens: Sequence[Any]) -> bool:
    """Whether each list's name is a token of its own, and not part of a string or comment."""
    names = [token.text for token in tokens if token.text in lifted.lists]
    return sorted(names) == sorted(lifted.lists)


@cache
def _scanner(backslash_strings: bool) -> re.Pattern[str]:
    strings = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|`[^`]*`"
    if not backslash_strings:
        strings = r"\bE'(?:[^'\\]|\\.|'')*+'|'[^']*'|\"[^\"]*\"|\$(\w*)\$.*?\$\1\$"
    member = _member(_ESCAPED if backslash_strings else _STRING)
    listed = rf"\bIN\s*+\(\s*+(?P<body>{member}(?:\s*+,\s*+{member})*+)\s*+\)"
    return re.compile(rf"{strings}|--[^\n]*|/\*.*?\*/|{listed}", re.IGNORECASE | re.DOTALL)


def _member(string: str) -> str:
    return rf"(?:{_NUMBER}|{string}|{TYPED}|NULL)"


def _values(body: str, dialect: Dialect) -> ValueSet | None:
    if body.count(",") < SHORT:
        return None
    head = body.lstrip("nulNUL, \t\r\n")[:1]
    if head == "'":
        return _strings(body, dialect)
    if "'" in body:
        return typed_members(body, dialect)
    return _numbers(body, dialect) if head else None


def _strings(body: str, dialect: Dialect) -> ValueSet | None:
    string = _ESCAPED if dialect.backslash_strings else _STRING
    members = re.findall(_member(string), body, re.IGNORECASE)
    texts: list[str | None] = []
    for member in members:
        if member[0] == "'":
            texts.append(member[1:-1])
        elif member.upper() == "NULL":
            texts.append(None)
        else:
            return None
    array = pa.array(texts, pa.string())
    if not dialect.backslash_strings:
        array = pc.replace_substring(array, "''", "'")
    elif "\\" in body:
        array = pc.replace_substring_regex(array, r"\\(.)", r"\1")
    return ValueSet(array)


def _numbers(body: str, dialect: Dialect) -> ValueSet | None:
    texts = members_of(body)
    exponents = "e" in body or "E" in body
    if "." not in body and not exponents:
        unsigned = pc.utf8_ltrim(texts, "+") if "+" in body else texts
        return numbers(unsigned, Int(64))
    if dialect.point_is_float:
        return bare_floats(texts)
    if exponents:
        alike = pc.all(pc.match_substring_regex(texts, "[eE]")).as_py()
        return bare_floats(texts) if alike and dialect.exponent_is_float else None
    digits = pc.utf8_ltrim(texts, "+-")
    point = pc.find_substring(digits, ".")
    length = pc.utf8_length(digits)
    whole = pc.max(pc.if_else(pc.less(point, 0), length, point)).as_py()
    scale = pc.max(pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(length, point), 1)))
    type_ = Decimal(max(whole + scale.as_py(), 1), scale.as_py())
    return None if type_.precision > 38 else numbers(texts, type_)
