"""Translate Java formats to regular expressions: `yyyy-MM-dd HH:mm:ss`, `d MMM yy`, `[ HH:mm]`.

Soundness: an allow-list of fields. A format with other fields raises `UnknownFormat`, and so do
fields that do not determine one time, and adjacent fields between which Java may divide the digits
otherwise. Java parses an optional section wherever it matches and never backtracks, so a section
must end the format or another section, and consecutive sections must start with different
characters.
Source: `java.time.format.DateTimeFormatterBuilder`, with the texts of English.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rowsieve.predicate.text_cache import cached_by_text

_NUMBERS: Final[Mapping[str, str]] = {
    "M": "month",
    "L": "month",
    "d": "day",
    "m": "minute",
    "s": "second",
    "H": "hour",
    "h": "clock_hour",
    "K": "half_hour",
    "k": "last_hour",
}
MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_NAMED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("MMM", "LLL"), f"(?P<name>{'|'.join(name[:3] for name in MONTHS)})"),
    **dict.fromkeys(("MMMM", "LLLL"), f"(?P<name>{'|'.join(MONTHS)})"),
    "a": "(?P<half>am|pm)",
    "XX": "(?P<offset>z|[+-][0-9]{4})",
    "XXX": "(?P<offset>z|[+-][0-9]{2}:[0-9]{2})",
    "xxx": "(?P<offset>[+-][0-9]{2}:[0-9]{2})",
    **dict.fromkeys(("xx", "Z", "ZZ", "ZZZ"), "(?P<offset>[+-][0-9]{4})"),
}
_OPEN: Final[Mapping[str, str]] = {  # digits after it may belong to it
    "X": "(?P<offset>z|[+-][0-9]{2}(?:[0-9]{2})?)",
    "x": "(?P<offset>[+-][0-9]{2}(?:[0-9]{2})?)",
}
_SAME_PART: Final = str.maketrans("LhKkxZ", "MHHHXX")
_DATES: Final = frozenset(("", "y", "yM", "yMd", "Md", "yD"))
_CLOCKS: Final = frozenset(("", "H", "Hm", "Hms", "HmsS"))
_MAX_DIGITS: Final = 19  # of a number of any length
_MAX_SECTIONS: Final = 6
_DIVIDED: Final = "["  # digits before a section and inside it: Java divides them in its own way
_NOT_READ: Final[Mapping[str, str]] = {  # first letters, and why Spark or we do not read them
    **dict.fromkeys("EFqQ", "Spark formats by it, but does not read it"),
    **dict.fromkeys("ABcenNpYuwW", "Spark has no such field"),
    **dict.fromkeys("VzO", "names of zones are not read"),
}
_TOKEN: Final = re.compile(
    r"(?P<field>([A-Za-z])\2*)|'(?P<quoted>[ -&(-/:-~]+)'(?!')|(?P<plain>[ -\"$-&(-/:-@^-`|~]+)"
)
_SIGNED_YEAR: Final = "(?P<sign>[+-]?)(?P<year>0{0,13}[0-9]{4,6})"


class UnknownFormat(ValueError):
    """The format is not supported; the message says why."""


@cached_by_text
def pattern_of(form: str) -> tuple[str, str]:
    """Return the regular expressions for a format, and for texts whose years are too long.

    Their groups are the parts: `sign year short_year month name day day_of_year hour clock_hour
    half_hour last_hour half minute second fraction offset`, empty in a text without their section.
    """
    walk = _FormatWalk(form)
    whole = f"(?i)^{walk.read()[0]}$"
    for fields in walk.choices:
        _check_parts(fields, form)
    return whole, whole.replace(_SIGNED_YEAR, "[+-][0-9]{7,19}")


class _FormatWalk:
    """Parses a format from left to right; `choices` collects fields by optional sections.

    Afterwards it has the fields of the text for each combination of sections.
    """

    def __init__(self, form: str) -> None:
        if form.count("[") > _MAX_SECTIONS:
            raise UnknownFormat(f"the format {form!r} has more than {_MAX_SECTIONS} sections")
        self.choices: list[list[str]] = [[]]
        self._form, self._place = form, 0
        self._beside = ""  # the previous field, if more digits may belong to it

    def read(self, *, inside: bool = False) -> tuple[str, str]:
        """Parse up to the end of the format or section; also return its sections' starts."""
        tokens: list[str] = []
        starts = ""
        while self._place < len(self._form):
            character = self._form[self._place]
            if character == "]" and inside:
                return "".join(tokens), starts
            if character == "[":
                pattern, more = self._section(starts)
                starts += more
                tokens.append(pattern)
            elif starts:
                raise self._unknown("an optional section that is not at the end")
            else:
                tokens.append(self._token()[0])
        if inside:
            raise self._unknown("a bracket that is not closed")
        return "".join(tokens), starts

    def _section(self, starts: str) -> tuple[str, str]:
        """Parse an optional section, which must not start like earlier ones; and its starts."""
        self._place += 1
        if self._form[self._place : self._place + 1] in ("", "[", "]"):
            raise self._unknown("an optional section without a field or text of its own")
        before, beside = [list(fields) for fields in self.choices], bool(self._beside)
        self._beside = _DIVIDED if beside else ""
        first, token = self._token()
        if set(token) & set(starts):
            raise self._unknown("optional sections that start alike")
        pattern, inner = self.read(inside=True)
        self._place += 1
        self.choices = before + self.choices
        self._beside = _DIVIDED if beside or self._beside else ""
        return f"(?:{first}{pattern})?", token + inner

    def _token(self) -> tuple[str, str]:
        """Parse the field or text at this place; also return its possible first characters."""
        form = self._form
        token = _TOKEN.match(form, self._place)
        if token is None:
            raise UnknownFormat(f"{form[self._place :]!r} in the format {form!r} is not read")
        self._place, field = token.end(), token["field"]
        if not field:
            text, self._beside = token["quoted"] or token["plain"], ""
            return re.escape(text), text[0].lower()
        pattern = _pattern(field, form)
        for fields in self.choices:
            fields.append(field)
        if field in _NAMED or field in _OPEN:
            self._beside = field if field in _OPEN else ""
            return pattern, "abcdefghijklmnopqrstuvwxyz+-"
        if self._beside and not (_is_fixed(self._beside) and _is_fixed(field)):
            raise UnknownFormat(f"{field!r} needs a separator before it in the format {form!r}")
        self._beside = field
        return pattern, "0123456789+-"

    def _unknown(self, why: str) -> UnknownFormat:
        return UnknownFormat(f"{why} in the format {self._form!r} is not read")


def has_names(form: str) -> bool:
    """Whether the letters `i`, `k` or `s` are part of texts of the format."""
    quoted = "".join(form.split("'")[1::2])
    return "(?P<name>" in pattern_of(form)[0] or bool(re.search("[iks]", quoted, re.IGNORECASE))


def _check_parts(fields: list[str], form: str) -> None:
    """Refuse fields that do not determine one time, or repeat a unit of time."""
    parts = "".join(field[0] for field in fields).translate(_SAME_PART)
    date, clock, others = (
        "".join(sorted((part for part in parts if part in order), key=order.index))
        for order in ("yMdD", "HmsS", "aX")
    )
    if date not in _DATES or clock not in _CLOCKS or not date + clock:
        raise UnknownFormat(f"the fields of the format {form!r} do not name one time")
    if others not in ("", "a", "X", "aX"):
        raise UnknownFormat(f"a field of the format {form!r} is there twice")
    if "a" in fields and not any(field[0] in "hK" for field in fields):
        raise UnknownFormat(f"the field 'a' of the format {form!r} needs an hour of 12, as in 'h'")


def _pattern(field: str, form: str) -> str:
    """Return the regular expression of a field."""
    letter, count = field[0], len(field)
    if field == "yyyy":
        return _SIGNED_YEAR
    if field == "yy":
        return "(?P<short_year>[0-9]{2})"
    if (known := _NAMED.get(field) or _OPEN.get(field)) is not None:
        return known
    if letter == "S" and count <= 9:
        return f"(?P<fraction>[0-9]{{1,{count}}})"
    if letter in _NUMBERS and count <= 2:
        digits = "[0-9]{2}" if count == 2 else f"0{{0,{_MAX_DIGITS - 2}}}[0-9]{{1,2}}"
        return f"(?P<{_NUMBERS[letter]}>{digits})"
    if field == "DDD":
        return "(?P<day_of_year>[0-9]{3})"
    why = f": {_NOT_READ[letter]}" if letter in _NOT_READ else ""
    raise UnknownFormat(f"the field {field!r} of the format {form!r} is not read{why}")


def _is_fixed(field: str) -> bool:
    """Whether Java knows where the field ends without a separator."""
    return field in ("yyyy", "DDD") or (field[0] != "S" and len(field) == 2)
