"""Patterns of texts of a Java format: `yyyy-MM-dd HH:mm:ss`, `d MMM yy`, `hh:mm a XXX`.

Soundness: an allow-list of fields. A format is `UnknownFormat` if it has other fields, fields that
name no one time, or fields beside each other that Java may divide in another way.
Source: `java.time.format.DateTimeFormatterBuilder`, with the texts of English.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

_NUMBERS: Final[Mapping[str, str]] = {
    "M": "month",
    "L": "month",
    "d": "day",
    "m": "minute",
    "s": "second",
    "H": "hour",
    "h": "clock_hour",
    "K": "half_hour",
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
_SAME_PART: Final = str.maketrans("LhKxZ", "MHHXX")
_DATES: Final = frozenset(("", "y", "yM", "yMd", "Md"))
_CLOCKS: Final = frozenset(("", "H", "Hm", "Hms", "HmsS"))
_MOST_DIGITS: Final = 19  # of a number of any length
_PIECE: Final = re.compile(
    r"(?P<field>([A-Za-z])\2*)|'(?P<quoted>[ -&(-/:-~]+)'(?!')|(?P<plain>[ -\"$-&(-/:-@^-`|~]+)"
)
_SIGNED_YEAR: Final = "(?P<sign>[+-]?)(?P<year>0{0,13}[0-9]{4,6})"


class UnknownFormat(ValueError):
    """Say why a format is not read."""


@cache
def pattern_of(form: str) -> tuple[str, str]:
    """The regular expressions of texts of a format and of those with years that are too long.

    Their groups are the parts: `sign year short_year month name day hour clock_hour half_hour half
    minute second fraction offset`.
    """
    pieces, fields, beside = ["(?i)^"], [], ""
    place = 0
    while place < len(form):
        piece = _PIECE.match(form, place)
        if piece is None:
            raise UnknownFormat(f"{form[place:]!r} in the format {form!r} is not read")
        place, field = piece.end(), piece["field"]
        if not field:
            pieces.append(re.escape(piece["quoted"] or piece["plain"]))
            beside = ""
            continue
        pieces.append(_pattern(field, form))
        fields.append(field)
        if field in _NAMED or field in _OPEN:
            beside = field if field in _OPEN else ""
            continue
        if beside and not (_is_fixed(beside) and _is_fixed(field)):
            raise UnknownFormat(f"{field!r} needs a separator before it in the format {form!r}")
        beside = field
    _check_parts(fields, form)
    whole = "".join([*pieces, "$"])
    return whole, whole.replace(_SIGNED_YEAR, "[+-][0-9]{7,19}")


def has_names(form: str) -> bool:
    """Whether the letters `i`, `k` or `s` are part of texts of the format."""
    quoted = "".join(form.split("'")[1::2])
    return "(?P<name>" in pattern_of(form)[0] or bool(re.search("[iks]", quoted, re.IGNORECASE))


def _check_parts(fields: list[str], form: str) -> None:
    """Refuse fields that name no one time, or one part of it twice."""
    parts = "".join(field[0] for field in fields).translate(_SAME_PART)
    date, clock, others = (
        "".join(sorted((part for part in parts if part in order), key=order.index))
        for order in ("yMd", "HmsS", "aX")
    )
    if date not in _DATES or clock not in _CLOCKS or not date + clock:
        raise UnknownFormat(f"the fields of the format {form!r} name no one time")
    if others not in ("", "a", "X", "aX"):
        raise UnknownFormat(f"a field of the format {form!r} is there twice")
    if "a" in fields and not any(field[0] in "hK" for field in fields):
        raise UnknownFormat(f"the field 'a' of the format {form!r} needs an hour of 12, as in 'h'")


def _pattern(field: str, form: str) -> str:
    """The regular expression of a field."""
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
        digits = "[0-9]{2}" if count == 2 else f"0{{0,{_MOST_DIGITS - 2}}}[0-9]{{1,2}}"
        return f"(?P<{_NUMBERS[letter]}>{digits})"
    raise UnknownFormat(f"the field {field!r} of the format {form!r} is not read")


def _is_fixed(field: str) -> bool:
    """Whether Java knows where the field ends without a separator."""
    return field == "yyyy" or (field[0] != "S" and len(field) == 2)
