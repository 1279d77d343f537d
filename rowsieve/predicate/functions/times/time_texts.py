"""Format dates and times by a constant format: `format_time(time, '%Y-%m-%d')`.

Numbers have a fixed width: `%f` six digits (microseconds), `%Y` four, `%j %g` three (`%g` is
milliseconds, cut), `%m %d %H %I %M %S %y` two, `%q` one (the quarter). With a hyphen, as in `%-d`,
`Y m d j H I M S` have as many as they need. `%B %b` are the long and short English names of months,
`%A %a` those of days, `%p` is AM or PM. Other characters are literal, and `%%` is a percent sign.
Years outside 1 to 9999 are formatted as the engine does; `%y` and `%-Y` of them fail. If the fields
are numbers in order of significance, from the year on, the texts of the other years sort as their
times do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, filled, null_mask, without
from rowsieve.predicate.functions.calendar_days import Days, by_day, first_of_month, months_of
from rowsieve.predicate.functions.casting import far_years
from rowsieve.predicate.functions.row import Argument, Function, NullRule, Range, Signature
from rowsieve.predicate.functions.times.java_formats import MONTHS
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import FarYears, Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.logical import Date, String, Timestamp

_SECOND = 1_000_000
_TOKEN = re.compile(r"%(-?.)|([^%]+)", re.DOTALL)
_WIDTHS: Mapping[str, int] = {
    "f": 6, "Y": 4, **dict.fromkeys("jg", 3), **dict.fromkeys("mdHIMSy", 2), "q": 1,
}  # fmt: skip
_UNPADDED = frozenset(f"-{field}" for field in "YmdjHIMS")
_MONTHS = [name.capitalize() for name in MONTHS]
_DAYS = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"]  # from 1970
_NAMES: Mapping[str, Sequence[str]] = {
    "B": _MONTHS,
    "b": [name[:3] for name in _MONTHS],
    "A": _DAYS,
    "a": [name[:3] for name in _DAYS],
    "p": ["AM", "PM"],
}
_OF_NAMES = ("%A", "%B")  # the formats of `dayname` and `monthname`
_OF_ANY_WIDTH = _UNPADDED | frozenset(_NAMES)
_FIELDS: Mapping[str, int] = {**_WIDTHS, **dict.fromkeys(_OF_ANY_WIDTH, 0)}
_CLOCK: Mapping[str, Callable[[Days], Days]] = {
    "H": lambda clock: clock // (3_600 * _SECOND),
    "I": lambda clock: (clock // (3_600 * _SECOND) - 1) % 12 + 1,
    "p": lambda clock: clock // (12 * 3_600 * _SECOND),
    "M": lambda clock: clock // (60 * _SECOND) % 60,
    "S": lambda clock: clock // _SECOND % 60,
    "g": lambda clock: clock % _SECOND // 1_000,
    "f": lambda clock: clock % _SECOND,
}
_ORDERED = ("YmdHMSf", "YmdHMSg", "YjHMSf", "YjHMSg")


def format_tokens(text: str, fields: Mapping[str, int] = _FIELDS) -> list[tuple[str, str]] | None:
    """Split a format into alternating fields and texts; None if it is not supported."""
    tokens = [(match[1] or "", match[2] or "") for match in _TOKEN.finditer(text)]
    if sum(len(field) + len(plain) + bool(field) for field, plain in tokens) != len(text):
        return None
    fields_and_texts = [("", "%") if field == "%" else (field, plain) for field, plain in tokens]
    return (
        fields_and_texts
        if all(not field or field in fields for field, _ in fields_and_texts)
        else None
    )


def _resolve(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not isinstance(arguments[1].constant, str):
        return None
    type_, tokens = arguments[0].type, format_tokens(arguments[1].constant)
    if tokens is None or not (isinstance(type_, Date) or type_ == Timestamp()):
        return None
    if isinstance(type_, Date) and any(_plain(field) in _CLOCK for field, _ in tokens if field):
        return None
    return Signature((type_, String()), String(), arguments[1].constant)


def _format(arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics) -> Computed:
    values = arguments[0]
    numbers = filled(values).astype(np.int64)
    dated = isinstance(signature.arguments[0], Date)
    days, clock = (numbers, np.zeros_like(numbers)) if dated else np.divmod(numbers, DAY_US)
    nulls = null_mask(values)
    is_far = ~far_years.near(days) & ~nulls
    text = without(_near_texts(np.where(is_far, 0, days), clock, signature.option), nulls)
    if not is_far.any():
        return Computed(text)
    far = _far_texts(numbers[is_far], signature, semantics.far_years)
    whole = pc.replace_with_mask(text, pa.array(is_far), far)
    failed = null_mask(whole) & ~nulls
    return Computed(whole, failed if failed.any() else None)


def _near_texts(days: Days, clock: Days, form: str) -> pa.Array:
    """Format days and times in the years 1 to 9999."""
    tokens = format_tokens(form) or []
    if not any(field in _OF_ANY_WIDTH for field, _ in tokens):
        return _of_one_width(tokens, days, clock)
    texts = [
        _of_any_width(field, days, clock)
        if field in _OF_ANY_WIDTH
        else _of_one_width([token], days, clock)
        for token in tokens
        for field in token[:1]
    ]
    return pc.binary_join_element_wise(*texts, "")


def _of_any_width(field: str, days: Days, clock: Days) -> pa.Array:
    """Format names, and numbers without leading zeros."""
    numbers = pa.array(_field(_plain(field), days, clock))
    if field in _UNPADDED:
        return numbers.cast(pa.string())
    return pa.array(_NAMES[field], pa.string()).take(numbers)


def _plain(field: str) -> str:
    """Return the field without its hyphen."""
    return field.removeprefix("-")


def _of_one_width(tokens: Sequence[tuple[str, str]], days: Days, clock: Days) -> pa.Array:
    columns: list[npt.NDArray[np.uint8]] = []
    for field, plain in tokens:
        if field:
            columns.append(_digits(_field(field, days, clock), _WIDTHS[field]))
        else:
            encoded = np.frombuffer(plain.encode(), np.uint8)
            columns.append(np.broadcast_to(encoded, (len(days), len(encoded))))
    text = np.hstack(columns) if columns else np.empty((len(days), 0), np.uint8)
    width = text.shape[1]
    places = np.arange(0, width * len(days) + 1, max(width, 1), dtype=np.int32)
    if not width:
        places = np.zeros(len(days) + 1, np.int32)
    buffers = [None, pa.py_buffer(places), pa.py_buffer(text.tobytes())]
    return pa.Array.from_buffers(pa.string(), len(days), buffers)


def _far_texts(numbers: Days, signature: Signature, years: FarYears) -> pa.Array:
    """Format days or times in far years; NULL where the engine has no text."""
    dated = isinstance(signature.arguments[0], Date)
    days, clock = (numbers, np.zeros_like(numbers)) if dated else np.divmod(numbers, DAY_US)
    tokens: list[pa.Array] = [pa.repeat("", len(days))]
    for field, plain in format_tokens(signature.option) or ():
        if field == "Y":
            tokens.append(far_years.year_field(_field(field, days, clock), years))
        elif field in ("y", "-Y"):  # engines differ: no text, which fails
            tokens.append(pa.nulls(len(days), pa.string()))
        elif field in _OF_ANY_WIDTH:
            tokens.append(_of_any_width(field, days, clock))
        elif field:
            tokens.append(far_years.digits(_field(field, days, clock), _WIDTHS[field]))
        else:
            tokens.append(pa.repeat(plain, len(days)))
    text = pc.binary_join_element_wise(*tokens, "")
    of_numbers = far_years.infinite_days if dated else far_years.infinite_times
    infinite = of_numbers(numbers, years)
    if infinite.any():
        ambiguous = signature.option in _OF_NAMES  # NULL for `dayname`, a text for `strftime`
        spelt = pa.scalar(None, pa.string()) if ambiguous else far_years.infinity(numbers)
        text = pc.if_else(pa.array(infinite), spelt, text)
    lacks = far_years.lacks_clock if dated else far_years.lacks_time
    missing = far_years.lacks_text(days, years) | lacks(numbers, years)
    return without(text, missing)


def _field(field: str, days: Days, clock: Days) -> Days:
    if field in _CLOCK:
        return _CLOCK[field](clock)
    return by_day(_OF_DAYS[field], days)


_OF_DAYS: Mapping[str, Callable[[Days], Days]] = {
    "Y": lambda days: months_of(days) // 12 + 1970,
    "y": lambda days: (months_of(days) // 12 + 1970) % 100,
    "m": lambda days: months_of(days) % 12 + 1,
    "q": lambda days: months_of(days) % 12 // 3 + 1,
    **dict.fromkeys("Bb", lambda days: months_of(days) % 12),
    **dict.fromkeys("Aa", lambda days: days % 7),
    "d": lambda days: days - first_of_month(months_of(days)) + 1,
    "j": lambda days: days - first_of_month(months_of(days) // 12 * 12) + 1,
}


def _digits(numbers: Days, width: int) -> npt.NDArray[np.uint8]:
    powers = 10 ** np.arange(width - 1, -1, -1)
    digits: npt.NDArray[np.uint8] = (numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    return digits


def _rises(signature: Signature) -> bool:
    fields = "".join(field for field, _ in format_tokens(signature.option) or ())
    return any(order.startswith(fields) for order in _ORDERED)


def _range(
    arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
) -> Range | None:
    """Bound by the texts of both ends, if they lie in the years 1 to 9999, where none fails."""
    if not _rises(signature):
        return None
    ends = [arguments[0].lower, arguments[0].upper]
    size = 1 if isinstance(signature.arguments[0], Date) else DAY_US
    is_near = [far_years.near(filled(end) // size) & ~null_mask(end) for end in ends]
    safe = is_near[0] & is_near[1]
    lower, upper = (_format([without(end, ~safe)], signature, semantics).values for end in ends)
    return Range(lower, upper, safe=safe)


ROWS = (
    Function(
        "format_time(date or timestamp without a zone, constant format of %Y %m …)",
        _resolve,
        _format,
        bounds=_range,
        nulls=NullRule.STRICT,
    ),
)
