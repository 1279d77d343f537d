r"""Regular expressions: whether a constant pattern matches somewhere in a text.

Patterns are in RE2 syntax as compiled by pyarrow: `.` is any character except a newline, `$` is the
end of the text, `\d \w \s \b` are ASCII only. Bridges translate other syntaxes to this one, or
reject them. A third argument marks a pattern whose character classes depend on the locale of the
original engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Signature,
    never_fails,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.predicate.text_cache import cached_by_text
from rowsieve.types.logical import Bool, String

BY_LOCALE = "by locale"
_WHOLE = re.compile(r"\^\(\?:([^()|]*)\)\$")
_PLAIN = re.compile(r"[^\\.\[\](){}*+?|^$]|\\[^0-9A-Za-z]", re.DOTALL)


def literal_prefix(pattern: str) -> str:
    """Return the literal prefix of every match; empty if none can be derived."""
    if whole := _WHOLE.fullmatch(pattern):
        pattern = f"^{whole[1]}"
    if not pattern.startswith("^") or "|" in pattern:
        return ""
    pieces: list[str] = []
    place = 1
    while piece := _PLAIN.match(pattern, place):
        pieces.append(piece[0][-1])
        place = piece.end()
    if pattern[place : place + 1] in ("*", "?", "{") and pieces:
        pieces.pop()  # the last character is optional
    return "".join(pieces)


@cached_by_text
def compiles(pattern: str) -> bool:
    """Whether RE2 accepts the pattern."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        return False
    return True


def _resolve(arguments: Sequence[Argument]) -> Signature | None:
    marked = len(arguments) == 3 and arguments[2].constant == BY_LOCALE
    if not (len(arguments) == 2 or marked) or not isinstance(arguments[0].type, String | None):
        return None
    pattern = arguments[1].constant
    if not isinstance(pattern, str) or not compiles(pattern):
        return None
    return Signature((String(),) * len(arguments), Bool(), pattern)


def _matches(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    return Computed(pc.match_substring_regex(arguments[0], signature.option))


ROWS = (
    Function(
        "regex_matches(text, constant pattern of RE2)",
        _resolve,
        _matches,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
)
