"""Long IN lists of constants, taken out of the text before the grammar sees it.

One regular expression finds `IN (…)` with more than `SHORT` plain constants; each such list becomes
one Arrow array and a name that the text does not contain stands in its place, so a million members
cost a scan and not a million nodes. Soundness: a list is taken only if every member is of one kind
and converts exactly; any other stays in the text, and the tokens are checked afterwards to hold
each name where its list was.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.bridges.sql.limits import MAX_MEMBERS
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.ir import ValueSet
from rowsieve.types.logical import Date, Decimal, Float, Int, LogicalType, Timestamp

SHORT = 64  # members that the grammar reads well enough

_STRING = r"'[^'\\]*+(?:''[^'\\]*+)*+'"
_NUMBER = r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)"
_DATED = r"(?:DATE|TIMESTAMP)\s*+'[0-9:. T-]*+'"
_MEMBER = rf"(?:{_NUMBER}|{_STRING}|{_DATED}|NULL)"
_LIST = rf"\bIN\s*+\(\s*+(?P<body>{_MEMBER}(?:\s*+,\s*+{_MEMBER})*+)\s*+\)"
_TIMESTAMP_TEXT = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?$"


@dataclass(frozen=True, slots=True)
class Lifted:
    """Text whose long lists are names, the lists by name, and where text was cut."""

    text: str
    lists: dict[str, ValueSet]
    cuts: tuple[tuple[int, int], ...] = ()  # (offset after the cut, characters missing so far)

    def offset(self, position: int) -> int:
        """The place in the original text of a place in this one."""
        index = bisect.bisect_right(self.cuts, position, key=lambda cut: cut[0])
        return position + (self.cuts[index - 1][1] if index else 0)


def lift_lists(text: str, dialect: Dialect) -> Lifted:
    """Take the long lists of constants out of the text."""
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
    """Whether each list's name is a token of its own: no string or comment swallowed one."""
    names = [token.text for token in tokens if token.text in lifted.lists]
    return sorted(names) == sorted(lifted.lists)


@cache
def _scanner(backslash_strings: bool) -> re.Pattern[str]:
    strings = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|`[^`]*`"
    if not backslash_strings:
        strings = r"\bE'(?:[^'\\]|\\.|'')*+'|'[^']*'|\"[^\"]*\"|\$(\w*)\$.*?\$\1\$"
    return re.compile(rf"{strings}|--[^\n]*|/\*.*?\*/|{_LIST}", re.IGNORECASE | re.DOTALL)


def _values(body: str, dialect: Dialect) -> ValueSet | None:
    if body.count(",") < SHORT:
        return None
    head = body.lstrip("nulNUL, \t\r\n")[:1]
    if head == "'":
        return _strings(body, dialect)
    if head in "dDtT" and head:
        return _dates(body)
    return _numbers(body, dialect) if head else None


def _strings(body: str, dialect: Dialect) -> ValueSet | None:
    members = re.findall(_MEMBER, body, re.IGNORECASE)
    if dialect.backslash_strings and any("''" in member[1:-1] for member in members):
        return None
    texts: list[str | None] = []
    for member in members:
        if member[0] == "'":
            texts.append(member[1:-1].replace("''", "'"))
        elif member.upper() == "NULL":
            texts.append(None)
        else:
            return None
    return ValueSet(pa.array(texts, pa.string()))


def _numbers(body: str, dialect: Dialect) -> ValueSet | None:
    texts = _nulls_apart(pc.utf8_trim_whitespace(pa.array(body.split(","))))
    if "." not in body:
        unsigned = pc.utf8_ltrim(texts, "+") if "+" in body else texts
        return _converted(unsigned, pa.int64(), Int(64))
    if dialect.point_is_float:
        return _converted(texts, pa.float64(), Float(64))
    digits = pc.utf8_ltrim(texts, "+-")
    point = pc.find_substring(digits, ".")
    length = pc.utf8_length(digits)
    whole = pc.max(pc.if_else(pc.less(point, 0), length, point)).as_py()
    scale = pc.max(pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(length, point), 1)))
    type_ = Decimal(max(whole + scale.as_py(), 1), scale.as_py())
    if type_.precision > 38:
        return None
    return _converted(texts, pa.decimal128(type_.precision, type_.scale), type_)


def _dates(body: str) -> ValueSet | None:
    words = {word.upper() for word in re.findall(r"[A-Za-z]{2,}", body)} - {"NULL"}
    texts = pa.array(re.findall(r"'([^']*)'|NULL", body, re.IGNORECASE))
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    if words == {"DATE"}:
        return _converted(texts, pa.date32(), Date(), r"^\d{4}-\d{2}-\d{2}$")
    if words == {"TIMESTAMP"}:
        return _converted(texts, pa.timestamp("us"), Timestamp(), _TIMESTAMP_TEXT)
    return None


def _nulls_apart(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(pc.ascii_upper(texts), "NULL"), pa.scalar(None, pa.string()), texts)


def _converted(
    texts: pa.Array, storage: pa.DataType, type_: LogicalType, form: str = r"^[+-]?[0-9.]+$"
) -> ValueSet | None:
    if not pc.all(pc.match_substring_regex(texts, form)).as_py():
        return None
    try:
        return ValueSet(texts.cast(storage), type_)
    except pa.ArrowInvalid:
        return None
