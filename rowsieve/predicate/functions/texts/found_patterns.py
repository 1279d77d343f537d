r"""Regular expression functions: extract, locate, count and replace matches.

Patterns are constant, in RE2 syntax, as for `regex_matches`. Among matches with the same start, the
functions use the one that a backtracking engine finds. Without a match, `regex_extract` is empty
and `regex_substr` is NULL. A replacement refers to groups as `\1`; `\\` is a backslash. Patterns
that match empty text are rejected, because engines continue after such a match differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Resolver,
    Signature,
    never_fails,
)
from rowsieve.predicate.functions.texts.patterns import BY_LOCALE, compiles
from rowsieve.predicate.functions.texts.text_ranges import from_zero
from rowsieve.predicate.semantics import Semantics
from rowsieve.predicate.text_cache import cached_by_text
from rowsieve.types.logical import Int, LogicalType, String

_TOKEN = re.compile(
    r"\\x\{[0-9A-Fa-f]+\}|\\[pP]\{[A-Za-z]+\}|\\.|\[\^?(?:\\.|[^\]\\])*\]|\(\?[a-z]+\)|\((?:\?[a-z]*:)?|.",
    re.DOTALL,
)
_REFERENCE = re.compile(r"\\(.)", re.DOTALL)
_MAX_GROUPS = 9


def pattern_tokens(pattern: str) -> list[str]:
    """Split an RE2 pattern into escapes, sets, group openings and single characters."""
    return _TOKEN.findall(pattern)


def group_count(pattern: str) -> int:
    """Return the number of capturing groups."""
    return pattern_tokens(pattern).count("(")


@cached_by_text
def matches_empty(pattern: str) -> bool:
    """Whether the pattern matches empty text somewhere, even if `^` and `$` hold nowhere."""
    is_match: bool = pc.match_substring_regex(pa.array([""]), pattern)[0].as_py()
    return is_match


def references(replacement: str) -> list[int] | None:
    """Return the groups that a replacement refers to; None if it is not valid in RE2."""
    groups = _REFERENCE.findall(replacement)
    if replacement.replace("\\\\", "").endswith("\\"):
        return None
    if not all(each == "\\" or each.isdecimal() for each in groups):
        return None
    return [int(each) for each in groups if each != "\\"]


def _named(pattern: str, group: int) -> str:
    """Return the pattern with the given group as its only capturing group."""
    if not group:
        return f"(?P<match>{''.join(_plain(each) for each in pattern_tokens(pattern))})"
    pieces, seen = [], 0
    for each in pattern_tokens(pattern):
        seen += each == "("
        pieces.append("(?P<match>" if each == "(" and seen == group else _plain(each))
    return "".join(pieces)


def _plain(each: str) -> str:
    return "(?:" if each == "(" else each


def _resolve(
    result: LogicalType,
    fits: Callable[[str, Argument], bool] | None = None,
    *,
    optional: bool = False,
) -> Resolver:
    """Resolve text, a pattern, and an argument that `fits` it."""

    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        marked = len(arguments) > 2 and arguments[-1].constant == BY_LOCALE
        plain = (
            arguments[:-1]
            if marked and (fits is None or optional or len(arguments) > 3)
            else (arguments)
        )
        if not 2 <= len(plain) <= 3 or (len(plain) == 3) > (fits is not None):
            return None
        if len(plain) == 2 and fits is not None and not optional:
            return None
        pattern = plain[1].constant
        if not isinstance(plain[0].type, String | None) or not isinstance(pattern, str):
            return None
        if not compiles(pattern) or matches_empty(pattern):
            return None
        if fits is not None and len(plain) == 3 and not fits(pattern, plain[2]):
            return None
        last = plain[2].constant if len(plain) == 3 else 0
        option = last if isinstance(last, str) else repr(last)
        types = [Int(64) if isinstance(each.type, Int) else String() for each in arguments]
        return Signature(tuple(types), result, option)

    return resolve


def _is_group(pattern: str, argument: Argument) -> bool:
    place = argument.constant
    return type(place) is int and 0 <= place <= min(group_count(pattern), _MAX_GROUPS)


def _is_replacement(pattern: str, argument: Argument) -> bool:
    named = references(argument.constant) if isinstance(argument.constant, str) else None
    return named is not None and max(named, default=0) <= group_count(pattern)


def _pattern(arguments: Sequence[pa.Array]) -> str:
    """Return the constant pattern; any pattern if there are no rows."""
    pattern: str = arguments[1][0].as_py() if len(arguments[1]) else "-"
    return pattern


def _found(arguments: Sequence[pa.Array], signature: Signature) -> pa.Array:
    text = arguments[0]
    if not len(text):
        return text
    named = _named(_pattern(arguments), int(signature.option))
    return pc.struct_field(pc.extract_regex(text, named), "match")


def _substr(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    return Computed(_found(arguments, signature))


def _extract(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    pieces = pc.fill_null(_found(arguments, signature), "")
    return Computed(pc.if_else(pc.is_valid(arguments[0]), pieces, pa.scalar(None, pa.string())))


def _replace(most: int | None) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
        replaced = pc.replace_substring_regex(
            arguments[0], _pattern(arguments), signature.option, max_replacements=most
        )
        return Computed(replaced)

    return evaluate


def _count(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Count matches, each padded by one character: Arrow's count tests `^` after each match."""
    text = arguments[0]
    longer = pc.replace_substring_regex(text, _pattern(arguments), r"\0+")
    return Computed(pc.subtract(pc.utf8_length(longer), pc.utf8_length(text)).cast(pa.int32()))


def _position(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Return the position of the first match, from 1; 0 if there is none."""
    text, pattern = arguments[0], _pattern(arguments)
    has_match = pc.match_substring_regex(text, pattern)
    before = pc.list_element(pc.split_pattern_regex(text, pattern, max_splits=1), 0)
    place = pc.add(pc.utf8_length(before).cast(pa.int32()), pa.scalar(1, pa.int32()))
    return Computed(pc.if_else(has_match, place, pa.scalar(0, pa.int32())))


def _row(usage: str, resolve: Resolver, evaluate: Any, **claims: Any) -> Function:
    nulls = claims.pop("nulls", NullRule.STRICT)
    return Function(usage, resolve, evaluate, can_fail=never_fails, nulls=nulls, **claims)


_EXTRACTED = _resolve(String(), _is_group)
_REPLACED = _resolve(String(), _is_replacement)
_COUNTED = _resolve(Int(32))

ROWS = (
    _row("regex_extract(text, constant pattern, group)", _EXTRACTED, _extract),
    _row(
        "regex_substr(text, constant pattern [, group])",
        _resolve(String(), _is_group, optional=True),
        _substr,
        nulls=NullRule.PARTIAL,
    ),
    _row(
        "regex_replace(text, constant pattern, replacement), of every match",
        _REPLACED,
        _replace(None),
    ),
    _row(
        "regex_replace_first(text, constant pattern, replacement)",
        _REPLACED,
        _replace(1),
    ),
    _row(
        "regex_count(text, constant pattern)",
        _COUNTED,
        _count,
        bounds=from_zero,
    ),
    _row(
        "regex_position(text, constant pattern)",
        _COUNTED,
        _position,
        bounds=from_zero,
    ),
)
