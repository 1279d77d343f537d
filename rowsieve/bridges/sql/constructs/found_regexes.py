r"""Regular expressions whose matches are used: patterns that find the same text everywhere.

Of the matches with the first start, RE2, Rust and Java use the one that backtracking finds,
PostgreSQL the longest.

Soundness: an allow-list in addition to `regexes`. It rejects a pattern that matches empty text, a
repeated group that captures or may be empty, and Java's `$`, which also matches before a final
newline. For PostgreSQL a pattern has at most one repetition and no branches, so the first match is
the longest.
"""

from __future__ import annotations

import re

from rowsieve.bridges.sql.constructs.regexes import Flavour, from_re2, to_re2
from rowsieve.predicate.functions.texts.found_patterns import (
    group_count,
    matches_empty,
    pattern_tokens,
    references,
)

_REPEATS = ("*", "+", "{")
_REPETITION = re.compile(r"[*+?]|\{[0-9]+,[0-9]*\}")
_JAVA_PIECE = re.compile(r"\\(.)|\$([0-9])(?![0-9])|([^\\$])", re.DOTALL)
_RUST_PIECE = re.compile(
    r"\\([0-9])(?![0-9])|\$\{([0-9])\}|\$([0-9])(?![0-9A-Za-z_])|([^\\$])", re.DOTALL
)
_POSTGRES_PIECE = re.compile(r"\\([1-9&\\])|([^\\])", re.DOTALL)


def found_by(pattern: str, flavour: Flavour) -> str:
    """Translate to the RE2 pattern that finds the same text; ValueError names the obstacle."""
    converted = to_re2(pattern, flavour)
    _check(converted, pattern, flavour)
    return converted


def finding(pattern: str, flavour: Flavour) -> str:
    """Translate an RE2 pattern to one of the flavour that finds the same text, or ValueError."""
    converted = from_re2(pattern, flavour)
    _check(pattern, converted, flavour)
    return converted


def _check(pattern: str, written: str, flavour: Flavour) -> None:
    if matches_empty(pattern):
        raise ValueError("a pattern that matches empty text")
    _check_groups(pattern)
    if flavour is Flavour.JAVA and "$" in pattern_tokens(written):
        raise ValueError("'$', which stands before a newline at the end, too")
    if flavour is Flavour.POSTGRES:
        _check_longest(written)


def _check_groups(pattern: str) -> None:
    """Raise for a repeated group that captures or may be empty: flavours differ on these."""
    pieces = pattern_tokens(pattern)
    opened: list[int] = []
    for place, piece in enumerate(pieces):
        if piece.startswith("(") and not (piece.startswith("(?") and piece.endswith(")")):
            opened.append(place)
        elif piece == ")":
            start = opened.pop()
            follows = pieces[place + 1] if place + 1 < len(pieces) else ""
            if follows not in _REPEATS:
                continue
            if any(inner == "(" for inner in pieces[start:place]):
                raise ValueError("a group that is captured and repeated; write (?:…)")
            if matches_empty("".join(pieces[start : place + 1])):
                raise ValueError("a repeated group that may be empty")


def _check_longest(written: str) -> None:
    pieces = pattern_tokens(written)
    if "|" in pieces:
        raise ValueError(
            "branches, where the engine takes the longest match; write one condition for each"
        )
    plain = "".join("x" if len(piece) > 1 else piece for piece in pieces)
    if re.search(r"\)(?:[*+?]|\{)", plain):
        raise ValueError("a repeated group, where the engine takes the longest match")
    if re.search(r"[*+?}]\?", plain):
        raise ValueError("a repetition of as few as possible")
    if len(_REPETITION.findall(plain)) > 1:
        raise ValueError("several repetitions, where the engine takes the longest match")


def to_re2_replacement(text: str, pattern: str, flavour: Flavour) -> str:
    """Translate a replacement to RE2 syntax; ValueError if it may give another text."""
    pieces = _replacement(text, flavour)
    replacement = "".join(
        f"\\{each}" if isinstance(each, int) else each.replace("\\", "\\\\") for each in pieces
    )
    if max((each for each in pieces if isinstance(each, int)), default=0) > group_count(pattern):
        raise ValueError("a replacement by a group that the pattern lacks")
    return replacement


def _replacement(text: str, flavour: Flavour) -> list[str | int]:
    """Split into alternating literal text and groups."""
    if flavour is Flavour.RE2:
        if references(text) is None:
            raise ValueError("a backslash in the replacement")
        return [
            each if not each.startswith("\\") else "\\" if each == "\\\\" else int(each[1:])
            for each in re.findall(r"\\.|[^\\]+", text, re.DOTALL)
        ]
    form = {
        Flavour.JAVA: _JAVA_PIECE,
        Flavour.RUST: _RUST_PIECE,
        Flavour.POSTGRES: _POSTGRES_PIECE,
    }[flavour]
    pieces: list[str | int] = []
    place = 0
    while place < len(text):
        piece = form.match(text, place)
        if piece is None:
            raise ValueError(f"the replacement {text!r}")
        pieces.append(_meaning(piece, flavour))
        place = piece.end()
    return pieces


def _meaning(piece: re.Match[str], flavour: Flavour) -> str | int:
    groups = piece.groups()
    if flavour is Flavour.JAVA:
        escaped, group, plain = groups
        return int(group) if group else escaped or plain
    if flavour is Flavour.POSTGRES:
        escaped, plain = groups
        if escaped is None:
            return str(plain)
        return "\\" if escaped == "\\" else 0 if escaped == "&" else int(escaped)
    *named, plain = groups
    group = next((each for each in named if each is not None), None)
    return str(plain) if group is None else int(group)


def from_re2_replacement(text: str, flavour: Flavour) -> str:
    """Translate an RE2 replacement to the flavour's syntax; ValueError if impossible."""
    pieces: list[str] = []
    for each in _replacement(text, Flavour.RE2):
        if isinstance(each, int):
            pieces.append(_GROUP[flavour](each))
            continue
        if flavour is Flavour.RUST and set(each) & {"\\", "$"}:
            raise ValueError("a backslash or a dollar sign in the replacement")
        special = "\\$" if flavour is Flavour.JAVA else "" if flavour is Flavour.RUST else "\\"
        pieces.append("".join(f"\\{one}" if one in special else one for one in each))
    replacement = "".join(pieces)
    back = _replacement(replacement, flavour)
    if _joined(back) != _joined(_replacement(text, Flavour.RE2)):
        raise ValueError("a digit behind a group in the replacement")
    return replacement


def _joined(pieces: list[str | int]) -> list[str | int]:
    runs: list[str | int] = []
    for piece in pieces:
        if runs and isinstance(piece, str) and isinstance(runs[-1], str):
            runs[-1] += piece
        else:
            runs.append(piece)
    return runs


_GROUP = {
    Flavour.RE2: lambda group: f"\\{group}",
    Flavour.JAVA: lambda group: f"${group}",
    Flavour.RUST: lambda group: f"${{{group}}}",
    Flavour.POSTGRES: lambda group: f"\\{group}" if group else "\\&",
}
