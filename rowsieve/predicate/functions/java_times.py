"""Text of a constant Java format as a time: `parse_java_timestamp(text, 'yyyy-MM-dd HH:mm:ss')`.

Read as Spark's `to_timestamp(text, format)` reads it where `timeParserPolicy` is CORRECTED: two
digits for `MM dd HH mm ss`, one or more for `M d H m s`, four for `yyyy` or more behind a sign, up
to as many as there are letters for `S`. What the format leaves out is 1970-01-01 00:00. An instant
is that of the local time in a constant zone: the earlier of repeated ones, skipped ones shifted.
Soundness: an allow-list of formats; a text has Spark's value, has none, or raises `UnreadText`: the
last is for years beyond 64 bits, on which Spark fails even where it tries, and for four letters
that Java takes for others whatever their case.
Source: `DateTimeFormatterHelper` of Spark 4.3 and `java.time.format.DateTimeFormatterBuilder`; held
against Spark by `tests/predicate/test_java_times.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask
from rowsieve.predicate.functions.row import Argument, Evaluator, Function, NullRule, Signature
from rowsieve.predicate.functions.spark_texts import checked, refuse
from rowsieve.predicate.functions.spark_times import (
    LAST_KNOWN_DAY,
    days_of_parts,
    micros_of_fraction,
    number_of_part,
)
from rowsieve.predicate.functions.text_shapes import matches
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import String, Timestamp
from rowsieve.types.time_zones import RepeatedTime, SkippedTime, zone, zone_name

_PART: Final = {"y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_DATES: Final = frozenset(("", "y", "yM", "yMd", "Md"))
_CLOCKS: Final = frozenset(("", "H", "Hm", "Hms", "HmsS"))
_MOST_DIGITS: Final = 19  # of a number of any length
_PIECE: Final = re.compile(
    r"(?P<field>([A-Za-z])\2*)|'(?P<quoted>[ -&(-/:-~]+)'(?!')|(?P<plain>[ -\"$-&(-/:-@^-`|~]+)"
)
_FOLDED: Final = "[\u0130\u0131\u017f\u212a]"  # to Java an I, i, s or k in any case
_LOCAL: Final = Timestamp()
_INSTANT: Final = Timestamp(utc=True)


class UnknownFormat(ValueError):
    """Say why a format is not read."""


@cache
def pattern_of(form: str) -> tuple[str, str]:
    """The regular expressions of texts of a format and of those with years that are too long.

    `UnknownFormat` where it holds other fields, or fields beside each other that Java may divide
    in another way.
    """
    pieces, fields, beside = ["(?i)^"], "", ""
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
        pieces.append(_number(field, form))
        if beside and not (_is_fixed(beside) and _is_fixed(field)):
            raise UnknownFormat(f"{field!r} needs a separator before it in the format {form!r}")
        fields, beside = fields + field[0], field
    date = "".join(sorted((f for f in fields if f in "yMd"), key="yMd".index))
    clock = "".join(sorted((f for f in fields if f in "HmsS"), key="HmsS".index))
    if date not in _DATES or clock not in _CLOCKS or not fields:
        raise UnknownFormat(f"the fields of the format {form!r} name no one time")
    whole = "".join([*pieces, "$"])
    return whole, whole.replace(_SIGNED_YEAR, "[+-][0-9]{7,19}")


_SIGNED_YEAR: Final = "(?P<sign>[+-]?)(?P<year>0{0,13}[0-9]{4,6})"


def _number(field: str, form: str) -> str:
    """The regular expression of a field's digits."""
    letter, count = field[0], len(field)
    if field == "yyyy":
        return _SIGNED_YEAR
    if letter == "S" and count <= 9:
        return f"(?P<fraction>[0-9]{{1,{count}}})"
    if letter in "MdHms" and count <= 2:
        digits = "[0-9]{2}" if count == 2 else f"0{{0,{_MOST_DIGITS - 2}}}[0-9]{{1,2}}"
        return f"(?P<{_PART[letter]}>{digits})"
    raise UnknownFormat(f"the field {field!r} of the format {form!r} is not read")


def _is_fixed(field: str) -> bool:
    """Whether Java knows where the field ends without a separator."""
    return field == "yyyy" or (field[0] != "S" and len(field) == 2)


def read_times(values: pa.Array, form: str, target: Timestamp, zone_of_session: str) -> Computed:
    """Texts of the format as timestamps; instants are those of local times of the zone."""
    near, far = pattern_of(form)
    parts = _with_all(pc.extract_regex(values, pattern=near))
    odd = null_mask(parts) & matches(values, far)
    if re.search("[iks]", _quoted(form), re.IGNORECASE):
        odd |= matches(values, _FOLDED)
    refuse(values, odd, target, f"its value by the format {form!r} is unknown to Rowsieve")
    days, good = days_of_parts(parts)
    hour, minute, second = (number_of_part(parts, name) for name in ("hour", "minute", "second"))
    good &= _has_its_sign(parts) & (hour < 24) & (minute < 60) & (second < 60)
    beyond = good & (np.abs(days) > LAST_KNOWN_DAY)
    refuse(values, beyond, target, "spark fails where 64 bits end, even if it tries")
    micros = np.where(good, days, 0) * DAY_US + micros_of_fraction(parts)
    micros += ((hour * 60 + minute) * 60 + second) * 1_000_000
    if target.utc:
        micros, failed, _ = zone(zone_of_session).instants(
            np.where(good, micros, 0), RepeatedTime.EARLIER, SkippedTime.SHIFTED
        )
        good &= ~failed
    array = pa.array(np.where(good, micros, 0)).view(arrow_type(target))
    return checked(array, good, null_mask(values))


def _has_its_sign(parts: pa.Array) -> Mask:
    """Whether a year has a plus sign if and only if it is longer than four digits; no minus 0."""
    sign, year = parts.field("sign"), parts.field("year")
    is_long = as_mask(pc.greater(pc.utf8_length(year), 4))
    minus = as_mask(pc.equal(sign, "-"))
    plus = as_mask(pc.equal(sign, "+"))
    return np.where(minus, ~matches(year, "^0+$"), plus == is_long)


def _quoted(form: str) -> str:
    """The texts between quotes in the format."""
    return "".join(form.split("'")[1::2])


def _with_all(parts: pa.Array) -> pa.Array:
    """The parts with empty ones for fields that the format lacks, which is 1970 for the year."""
    known = {field.name for field in parts.type}
    names = ("sign", *_PART.values(), "fraction")
    columns = [
        parts.field(name) if name in known else pa.repeat(_ABSENT.get(name, ""), len(parts))
        for name in names
    ]
    return pa.StructArray.from_arrays(columns, names, mask=pa.array(null_mask(parts)))


_ABSENT: Final = {"year": "1970", "month": "1", "day": "1"}


def _resolve_local(arguments: Sequence[Argument]) -> Signature | None:
    form = _form(arguments, 1)
    return None if form is None else Signature((String(), String()), _LOCAL, form)


def _resolve_instant(arguments: Sequence[Argument]) -> Signature | None:
    form = _form(arguments[1:], 1)
    name = arguments[0].constant if form is not None else None
    if form is None or not isinstance(name, str):
        return None
    return Signature((String(),) * 3, _INSTANT, f"{zone_name(name)}\n{form}")


def _form(arguments: Sequence[Argument], place: int) -> str | None:
    """The format; None unless it is read, and follows text as the last argument."""
    if len(arguments) != place + 1 or not isinstance(arguments[0].type, String | None):
        return None
    form = arguments[place].constant
    try:
        return form if isinstance(form, str) and pattern_of(form) else None
    except UnknownFormat:
        return None


def _local(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    return read_times(arguments[0], signature.option, _LOCAL, "UTC")


def _instant(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    name, form = signature.option.split("\n", 1)
    return read_times(arguments[1], form, _INSTANT, name)


def _tried(
    evaluate: Evaluator, arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics
) -> Computed:
    return Computed(evaluate(arguments, signature, semantics).values)


_Resolver = Callable[[Sequence[Argument]], Signature | None]
_KINDS: Final[tuple[tuple[str, str, _Resolver, Evaluator], ...]] = (
    ("parse_java_timestamp", "(text, 'yyyy-MM-dd HH:mm:ss')", _resolve_local, _local),
    ("parse_java_instant", "('zone', text, 'yyyy-MM-dd HH:mm:ss')", _resolve_instant, _instant),
)
# None claims that it cannot fail: a text whose value is unknown to Rowsieve is refused.
ROWS = tuple(
    row
    for name, usage, resolve, evaluate in _KINDS
    for row in (
        Function(name, f"{name}{usage}", resolve, evaluate, nulls=NullRule.STRICT),
        Function(
            f"try_{name}",
            f"try_{name}{usage}",
            resolve,
            partial(_tried, evaluate),
            nulls=NullRule.PARTIAL,
        ),
    )
)
BY_JAVA_FORMAT: Final = frozenset(row.name for row in ROWS)
