r"""Translate regular expressions of each dialect to RE2, the syntax that is evaluated here.

An allow-list: a pattern is read construct by construct, and a construct that is not known to have
the same meaning in RE2 is rejected by name. Common constructs are copied. If the syntaxes differ
and RE2 has an equivalent (`.` and newlines, Java's `$`, letters of both cases), that is written:
`(?:K|k)` instead of `[Kk]`, which in RE2 next to `|x` also matches the Kelvin sign.

Sources: the syntax pages of RE2 and of Rust's regex, java.util.regex.Pattern, section 9.7.3 of
PostgreSQL's manual, Trino's page of regular expression functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

_QUANTIFIER = re.compile(r"[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\}")
_BRACES = re.compile(r"\{([0-9]+)(?:,([0-9]*))?\}")
_EMPTY = re.compile(r"(?<!\\)(?:\\\\)*(?:^\||\(\||\|\||\|\)|\|$|\(\)|\(\?:\))")
_FOLDED_BEYOND_ASCII = "KkSs"  # Kelvin sign and long s
_MAX_REPEATS = 255  # the limit of PostgreSQL
_CONTROL = frozenset("nrtf")
_SPECIAL = frozenset("*+?{}]")
_CLASSES = {  # ASCII, as in Java and RE2; RE2's `\s` lacks the vertical tab
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": r"\t\n\x{0B}\f\r ",
}


# Characters in Rust's classes that RE2's tables, of an older Unicode version, lack.
_NEWER_DIGITS = (
    "10D40-10D49 116D0-116E3 11BF0-11BF9 16130-16139 16D70-16D79 1CCF0-1CCF9 1E5F1-1E5FA "
)
_NEWER_WORDS = (
    "24B6-24E9 1F130-1F149 1F150-1F169 1F170-1F189 200C-200D 897 1C89-1C8A A7CB-A7CD "
    "A7DA-A7DC 105C0-105F3 10D40-10D65 10D69-10D6D 10D6F-10D85 10EC2-10EC4 10EFC "
    "11380-11389 1138B 1138E 11390-113B5 113B7-113C0 113C2 113C5 113C7-113CA 113CC-113D3 "
    "113E1-113E2 116D0-116E3 11BC0-11BE0 11BF0-11BF9 11F5A 13460-143FA 16100-16139 "
    "16D40-16D6C 16D70-16D79 18CFF 1CCF0-1CCF9 1E5D0-1E5FA "
)
_SPACES = "85 A0 1680 2000-200A 2028-2029 202F 205F 3000"


def _ranges(codes: str) -> str:
    return re.sub("[0-9A-F]+", r"\\x{\g<0>}", codes).replace(" ", "")


_UNICODE_CLASSES = {  # Unicode 16, as in Rust
    "d": r"\p{Nd}" + _ranges(_NEWER_DIGITS),
    "w": r"\p{L}\p{Nl}\p{M}\p{Nd}\p{Pc}" + _ranges(_NEWER_WORDS),
    "s": r"\t\n\x{0B}\f\r " + _ranges(_SPACES),
}


class Flavour(Enum):
    """The syntaxes of regular expressions."""

    POSTGRES = "postgres"  # advanced regular expressions, in the collation "C"
    RE2 = "duckdb"
    RUST = "datafusion"
    JAVA = "spark"
    TRINO = "trino"  # what Java's syntax, as Joni reads it, shares with RE2/J: either may be set


_JAVA_ANY = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_JAVA_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?$"
_POSTGRES_ANY = "(?s:.)"
_WRITTEN = {
    Flavour.POSTGRES: ((_POSTGRES_ANY, "."),),
    Flavour.JAVA: ((_JAVA_ANY, "."), (_JAVA_END, "$")),
    Flavour.RUST: tuple(
        (said, f"\\{name}")
        for letter, inner in _UNICODE_CLASSES.items()
        for said, name in ((f"[{inner}]", letter), (f"[^{inner}]", letter.upper()))
    ),
}


def to_re2(pattern: str, flavour: Flavour, *, ignore_case: bool = False) -> str:
    """Translate a pattern to RE2; ValueError names a construct without a known equivalent."""
    if pattern.startswith("(?i)"):
        pattern, ignore_case = pattern[4:], True
    if ignore_case and flavour is Flavour.TRINO:
        raise ValueError("letters of any case; write [aA]")
    folds = ignore_case and flavour in (Flavour.RE2, Flavour.RUST)
    if folds and not pattern.isascii():
        raise ValueError("engines fold the case of letters beyond ASCII differently")
    scanner = _Scanner(pattern, flavour, both_cases=ignore_case and not folds)
    return ("(?i)" if folds else "") + "".join(scanner.pieces())


def from_re2(pattern: str, flavour: Flavour) -> str:
    """Translate a pattern to the flavour; ValueError if no text is read back as this one."""
    translation = pattern
    for said, written in _WRITTEN.get(flavour, ()):
        translation = translation.replace(said, written)
    if to_re2(translation, flavour) != pattern:
        raise ValueError("the dialect interprets the pattern differently")
    return translation


def similar_to_re2(pattern: str, escape: str | None = "\\") -> str:
    """Translate PostgreSQL's `SIMILAR TO`, which matches the whole text, with `%` and `_`."""
    pieces: list[str] = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == escape:
            place += 1
            if place == len(pattern):
                raise ValueError("the pattern ends with its escape character")
            pieces.append(_literal(pattern[place]))
        elif character in "%_":
            pieces.append(".*" if character == "%" else ".")
        elif character in "|*+?{}()0123456789,":
            pieces.append(character)
        elif character in "[]":
            raise ValueError("sets in brackets are not read in SIMILAR TO; write ~ with a pattern")
        else:
            pieces.append(_literal(character))
        place += 1
    return f"^(?:{to_re2(''.join(pieces), Flavour.POSTGRES)})$"


def _literal(character: str) -> str:
    return f"\\{character}" if character in "\\.[](){}*+?|^$" else character


@dataclass(slots=True)
class _Scanner:
    pattern: str
    flavour: Flavour
    both_cases: bool
    place: int = 0

    def pieces(self) -> Iterator[str]:
        """Yield the constructs in order, each in RE2 syntax."""
        self.check_ends()
        depth, repeatable = 0, False
        while self.place < len(self.pattern):
            character = self.pattern[self.place]
            if quantifier := _QUANTIFIER.match(self.pattern, self.place):
                if not repeatable:
                    raise ValueError(f"{quantifier[0]!r} at {self.place} repeats nothing")
                yield self.repeat(quantifier[0])
                repeatable = False
                continue
            repeatable = character not in "|^$("
            depth += (character == "(") - (character == ")")
            if depth < 0:
                raise ValueError("a closing parenthesis has no opening one")
            yield self.construct(character)
        if depth:
            raise ValueError("a parenthesis is not closed")

    def check_ends(self) -> None:
        """Raise for empty branches, which flavours treat differently."""
        if not self.pattern or _EMPTY.search(self.pattern):
            raise ValueError("an empty pattern or branch")

    def construct(self, character: str) -> str:
        start = self.place
        self.place += 1
        match character:
            case "\\":
                return self.escape(in_set=False)
            case "[":
                return self.set_()
            case ".":
                return self.any_character()
            case "$":
                return self.end()
            case "(" if self.pattern.startswith("(?", start):
                if not self.pattern.startswith("(?:", start):
                    raise ValueError(f"the group {self.pattern[start : start + 4]!r}")
                self.place += 2
                return "(?:"
            case "(" | ")" | "|":
                return character
            case "^":
                if start and self.pattern[start - 1] not in "(|:":
                    raise ValueError("'^' inside a pattern")
                return character
            case _ if character in _SPECIAL:
                raise ValueError(f"a bare {character!r}; write \\{character}")
            case _:
                return self.letter(character)

    def repeat(self, text: str) -> str:
        self.place += len(text)
        if braces := _BRACES.fullmatch(text):
            least, most = int(braces[1]), int(braces[2] or braces[1])
            if most > _MAX_REPEATS or most < least:
                raise ValueError(f"the count {text!r}")
        if self.pattern.startswith("?", self.place):  # non-greedy: the same texts match
            if braces and self.flavour is Flavour.TRINO:
                raise ValueError(f"the quantifier '{text}?'")
            self.place += 1
            text += "?"
        if _QUANTIFIER.match(self.pattern, self.place):
            raise ValueError(f"a quantifier after the quantifier {text!r}")
        return text

    def any_character(self) -> str:
        if self.flavour is Flavour.TRINO:
            raise ValueError("'.', which may or may not match some line breaks; write [^\\n]")
        if self.flavour is Flavour.POSTGRES:
            return _POSTGRES_ANY
        return _JAVA_ANY if self.flavour is Flavour.JAVA else "."

    def end(self) -> str:
        if self.pattern[self.place : self.place + 1] not in ("", ")", "|"):
            raise ValueError("'$' inside a pattern")
        if self.flavour is Flavour.TRINO:
            raise ValueError("'$', which may or may not match before a line break")
        if self.flavour is not Flavour.JAVA:
            return "$"
        if re.search(r"\[\^|\\[DSWr]", self.pattern):
            raise ValueError("'$' in a pattern whose sets may hold a carriage return")
        return _JAVA_END

    def escape(self, *, in_set: bool) -> str:
        if self.place == len(self.pattern):
            raise ValueError("the pattern ends with a backslash")
        character = self.pattern[self.place]
        self.place += 1
        if character in _CONTROL:
            return f"\\{character}"
        if character.lower() in _CLASSES:
            return self.class_(character, in_set=in_set)
        if character == "\\" and self.flavour is Flavour.RUST:
            raise ValueError("a backslash: datafusion's optimiser takes it for LIKE's escape")
        if character.isalnum() or not character.isascii():
            raise ValueError(f"the escape '\\{character}'")
        return f"\\{character}"

    def class_(self, character: str, *, in_set: bool) -> str:
        if character.isupper() and in_set:
            raise ValueError(f"'\\{character}' in brackets")
        if self.flavour is Flavour.TRINO:
            raise ValueError(f"the class '\\{character}'; write its members, as in [0-9]")
        if self.flavour is Flavour.RE2:
            return f"\\{character}"
        classes = _UNICODE_CLASSES if self.flavour is Flavour.RUST else _CLASSES
        inner = classes[character.lower()]
        return inner if in_set else f"[{'^' if character.isupper() else ''}{inner}]"

    def set_(self) -> str:
        """Read `[a-z]`, `[^a-z]`; no nested sets, named classes or set operations."""
        pieces = ["["]
        if self.pattern.startswith("^", self.place):
            pieces.append("^")
            self.place += 1
        first = self.place
        while not self.pattern.startswith("]", self.place):
            if self.place >= len(self.pattern):
                raise ValueError("a bracket is not closed")
            if any(self.pattern.startswith(each, self.place) for each in ("&&", "--", "~~", "[")):
                raise ValueError("a set within a set, or an operation of sets")
            pieces.append(self.member(first))
        if self.place == first:
            raise ValueError("an empty set; write \\]")
        self.place += 1
        members = "".join(pieces[1:])
        if self.flavour is not Flavour.RE2 and sorted(members.lower()) in (["k"] * 2, ["s"] * 2):
            return f"(?:{'|'.join(members)})"
        return f"[{members}]"

    def member(self, first: int) -> str:
        low = self.single()
        dash = self.pattern.startswith("-", self.place)
        if not dash or self.pattern.startswith("-]", self.place):
            if low == "-" and self.place - 1 not in (first,) and self.pattern[self.place] != "]":
                raise ValueError("a '-' inside a set; write \\-")
            folds = self.both_cases and low.isascii() and low.isalpha()
            return low.upper() + low.lower() if folds else low
        self.place += 1
        high = self.single()
        if len(low) != 1 or len(high) != 1 or low > high:
            raise ValueError(f"the range {low}-{high}")
        return f"{low}-{high}" + (_other_case(low, high) if self.both_cases else "")

    def single(self) -> str:
        character = self.pattern[self.place : self.place + 1]
        self.place += 1
        if character == "\\":
            return self.escape(in_set=True)
        if not character or character == "[":
            raise ValueError("a set that is not closed")
        return character

    def letter(self, character: str) -> str:
        """Translate a literal character, in both cases if case is ignored."""
        if not self.both_cases or not (character.isascii() and character.isalpha()):
            return character
        both = character.upper() + character.lower()
        return f"(?:{both[0]}|{both[1]})" if both[0] in _FOLDED_BEYOND_ASCII else f"[{both}]"


def _other_case(low: str, high: str) -> str:
    """Return the ASCII letters in a range, in the other case."""
    ranges = []
    for first, last in (("a", "z"), ("A", "Z")):
        start, stop = max(low, first), min(high, last)
        if start <= stop:
            ranges.append(f"{start.swapcase()}-{stop.swapcase()}")
    return "".join(ranges)
