"""Translate constant formats of dates and times between dialects and `format_time`.

Soundness: an allow-list. A field that is not listed, or a letter that might be one, is rejected.
Listed fields have the same digits in every engine, for the years 1 to 9999.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rowsieve.bridges.constant_values import text_of
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate.functions.times.time_texts import format_tokens
from rowsieve.predicate.ir import Call, Literal

_PARSED = frozenset({"parse_timestamp", "try_parse_timestamp", "parse_date", "parse_instant"})
FORMATTED = _PARSED | {"format_time"}
_POSIX = {"%Y": "Y", "%m": "m", "%d": "d", "%j": "j", "%H": "H", "%M": "M", "%S": "S"}
FIELDS: Mapping[str, Mapping[str, str]] = {
    "duckdb": _POSIX,
    "datafusion": _POSIX,
    "trino": {"%Y": "Y", "%m": "m", "%d": "d", "%j": "j", "%H": "H", "%i": "M", "%s": "S"},
    "spark": {"yyyy": "Y", "MM": "m", "dd": "d", "DDD": "j", "HH": "H", "mm": "M", "ss": "S"},
    "postgres": {"YYYY": "Y", "MM": "m", "DD": "d", "DDD": "j", "HH24": "H", "MI": "M", "SS": "S"},
}
_NAMES = {f"%{field}": field for field in "yIpbBaA"}
_MORE: Mapping[str, Mapping[str, str]] = {  # of `format_time` only
    "duckdb": _NAMES,
    "datafusion": _NAMES,
    "spark": {
        **dict(zip(("yy", "hh", "a", "MMM", "MMMM", "E", "EEEE"), "yIpbBaA", strict=True)),
        **dict(zip("yMdDHhms", ("-Y", "-m", "-d", "-j", "-H", "-I", "-M", "-S"), strict=True)),
        **dict(zip(("SSS", "SSSSSS", "Q"), "gfq", strict=True)),
        # Other spellings of the same fields: read, but never written.
        **dict(zip(("LL", "LLL", "LLLL", "EE", "EEE", "q"), "mbBaaq", strict=True)),
        "L": "-m",
    },
}
_ABSENT: Mapping[str, Mapping[str, str]] = {  # first letters of fields, and why they are rejected
    "spark": {
        **dict.fromkeys("VzOXxZ", "the offset and the zone are not part of the local time"),
        **dict.fromkeys("YwWuec", "Spark has no weeks and years of weeks"),
        "S": "fractions have three or six digits, as in 'SSS'",
        **dict.fromkeys("kK", "hours are 'H', or 'h' with 'a'"),
        **dict.fromkeys("GF", "eras and weeks of a month have no counterpart"),
    },
}
_FRACTIONS: Mapping[str, Mapping[str, str]] = {
    "duckdb": {"%f": "f", "%g": "g"},
    "postgres": {"US": "f", "MS": "g"},
}
_PLAIN = r"[^A-Za-z%'\"\\\[\]{}#]+"
_QUOTES: Mapping[str, str] = {"spark": "'", "postgres": '"'}
_BRACKETS: Mapping[str, str] = {"spark": "[]"}  # around a section that is optional when parsed
_PIECES: Mapping[str, re.Pattern[str]] = {
    "duckdb": re.compile(r"(?P<field>%.)|(?P<plain>[^%]+)", re.DOTALL),
    "datafusion": re.compile(r"(?P<field>%.)|(?P<plain>[^%]+)", re.DOTALL),
    "trino": re.compile(r"(?P<field>%.)|(?P<plain>[^%]+)", re.DOTALL),
    "spark": re.compile(rf"(?P<field>([A-Za-z])\2*)|'(?P<quoted>[^']+)'(?!')|(?P<plain>{_PLAIN})"),
    "postgres": re.compile(
        rf"(?P<field>YYYY|DDD|MM|DD|HH24|MI|SS(?!SS)|MS|US)|\"(?P<quoted>[^\"\\]+)\"|(?P<plain>{_PLAIN})"
    ),
}


def _fields(dialect: str, function: str) -> Mapping[str, str]:
    """Return the fields of a function's formats; fractions are parsed, but not formatted."""
    known = FIELDS[dialect]
    return {**known, **(_FRACTIONS if function in _PARSED else _MORE).get(dialect, {})}


def from_dialect(text: str, dialect: str, function: str = "format_time") -> str:
    """Translate a format to that of `format_time`; ValueError if it may not be equivalent."""
    fields = _fields(dialect, function)
    pieces, place, depth = [], 0, 0
    while place < len(text):
        if text[place] in _BRACKETS.get(dialect, "") and function == "format_time":
            depth += 1 if text[place] == "[" else -1  # of a whole time each section is formatted
            if depth < 0:
                raise ValueError(f"the format {text!r}, in which a bracket is not opened")
            place += 1
            continue
        piece = _PIECES[dialect].match(text, place)
        if piece is None:
            raise ValueError(f"the format at {text[place:]!r}")
        groups = piece.groupdict()
        if groups["field"] and (field := fields.get(groups["field"])) is None:
            why = _ABSENT.get(dialect, {}).get(groups["field"][0])
            reason = f" ({why})" if why else ""
            raise ValueError(f"the field {groups['field']!r} of the format{reason}")
        plain = groups.get("quoted") or groups["plain"]
        pieces.append(f"%{field}" if groups["field"] else plain.replace("%", "%%"))
        place = piece.end()
    if depth:
        raise ValueError(f"the format {text!r}, in which a bracket is not closed")
    return "".join(pieces)


def to_dialect(text: str, dialect: str, function: str = "format_time") -> str:
    """Translate a format of `format_time` to the dialect; ValueError if impossible."""
    names: dict[str, str] = {}
    for name, field in _fields(dialect, function).items():
        names.setdefault(field, name)
    pieces = format_tokens(text, dict.fromkeys(names, 0)) or ()
    quote = _QUOTES.get(dialect, "") if function == "format_time" else ""
    written = "".join(
        names[field] if field else plain if re.fullmatch(_PLAIN, plain) else quote + plain + quote
        for field, plain in pieces
    )
    if from_dialect(written, dialect, function) != text:
        raise ValueError("the dialect interprets the format differently")
    return written


def formatted(reader: Reads, node: Any, call: Call) -> Call:
    """Read a time as text, with the format from the source text: the grammar rewrites it."""
    count = reader.source.argument_count(node)
    if count not in (0, len(call.arguments)):  # the grammar drops other formats
        raise reader.source.refusal(node, "it takes one format")
    if len(call.arguments) == 1:
        return call
    text = last_string(reader, node)
    if text is None:
        raise reader.source.refusal(
            node, "write the format as a quoted constant, the last argument"
        )
    try:
        pattern = from_dialect(text, reader.dialect.name, call.function)
    except ValueError as error:
        raise reader.source.refusal(
            node, f"in formats of {reader.dialect.name} this is not read: {error}"
        ) from error
    return Call(call.function, (call.arguments[0], Literal(pattern)))


def in_words(call: Call, dialect: str) -> Call | None:
    """Translate the format of a call to the dialect; None if impossible."""
    if len(call.arguments) == 1:
        return call
    if (text := text_of(call.arguments[1])) is None:
        return None
    try:
        written = to_dialect(text, dialect, call.function)
    except ValueError:
        return None
    return Call(call.function, (call.arguments[0], Literal(written)))


def last_string(reader: Reads, node: Any) -> str | None:
    """Return the last of several arguments of a call if it is quoted text."""
    *others, last = reader.source.arguments(node) or [[]]
    if not others or len(last) != 1 or last[0].token_type.name != "STRING":
        return None
    raw = reader.source.lifted.text[last[0].start : last[0].end + 1].replace("\\'", "")
    escaped = reader.dialect.backslash_strings and "\\" in raw
    return None if escaped else last[0].text
