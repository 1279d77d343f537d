"""Functions of the oracle beyond arithmetic and casts, one plain Python function each."""

from __future__ import annotations

import calendar
import datetime
import json
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date, Decimal, Float, LogicalType
from tests.oracle_values import DAY_US, EPOCH, Failed, fitted_decimal, half_away, limits


def left(text: str, count: int) -> str:
    return text[: max(0, len(text) + count)] if count < 0 else text[:count]


def right(text: str, count: int) -> str:
    return text[-count:] if count < 0 else text[max(0, len(text) - count) :]


def group_found(text: str, pattern: str, group: int = 0) -> str | None:
    found = re.search(pattern, text)
    return None if found is None else found[group] or ""


def place_found(text: str, pattern: str) -> int:
    found = re.search(pattern, text)
    return 0 if found is None else found.start() + 1


def index_of(text: str, delimiter: str, count: int) -> str:
    parts = text.split(delimiter)
    return delimiter.join(parts[count:] if count < 0 else parts[:count])


PIECES: Mapping[str, Callable[..., Any]] = {
    "left": left,
    "right": right,
    "trim": lambda text, characters=" ": text.strip(characters) if characters else text,
    "ltrim": lambda text, characters=" ": text.lstrip(characters) if characters else text,
    "rtrim": lambda text, characters=" ": text.rstrip(characters) if characters else text,
    "replace": lambda text, old, new: text.replace(old, new) if old else text,
    "position": lambda text, part: text.find(part) + 1,
    "reverse": lambda text: text[::-1],
    "ends_with": str.endswith,
    "contains": lambda text, part: part in text,
    "regex_extract": lambda *given: group_found(*given) or "",
    "regex_substr": group_found,
    "regex_replace": lambda text, pattern, new: re.sub(pattern, new, text),
    "regex_replace_first": lambda text, pattern, new: re.sub(pattern, new, text, count=1),
    "regex_count": lambda text, pattern: sum(1 for _ in re.finditer(pattern, text)),
    "regex_position": place_found,
    "substring_index": index_of,
    "list_length": len,
    "list_element": lambda values, place: values[place - 1] if 1 <= place <= len(values) else None,
    "map_value": lambda pairs, key: dict(pairs).get(key),
}


_CYCLE_DAYS = 146_097  # of 400 years, after which the calendar repeats


def moved(value: int, months: int, days: int, micros: int, result: LogicalType) -> int:
    """A date or a timestamp, an interval later."""
    day, clock = (value, 0) if isinstance(result, Date) else divmod(value, DAY_US)
    if months:
        cycle, day = divmod(day, _CYCLE_DAYS)
        start = EPOCH + datetime.timedelta(days=day)
        year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
        ahead, year = divmod(year - 1970, 400)
        last = calendar.monthrange(1970 + year, month + 1)[1]
        start = start.replace(year=1970 + year, month=month + 1, day=min(start.day, last))
        day = (start - EPOCH).days + (cycle + ahead) * _CYCLE_DAYS
    day += days
    found = day if isinstance(result, Date) else day * DAY_US + clock + micros
    limit = 2**31 if isinstance(result, Date) else 2**63
    if not -limit <= found < limit:
        raise Failed
    return found


def rounded(value: Any, digits: int, type_: LogicalType, semantics: Semantics) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return value
        whole = round(value) if semantics.rounds_half_to_even else half_away(Fraction(value))
        return math.copysign(float(whole), value)
    point = half_away(Fraction(value) * Fraction(10) ** digits)
    exact = Fraction(point) / Fraction(10) ** digits
    if isinstance(type_, Decimal):
        return fitted_decimal(exact if digits < type_.scale else Fraction(value), type_)
    assert not isinstance(type_, Float)
    exact = exact if digits < 0 else Fraction(value)
    low, high = limits(type_)
    if not low <= exact <= high:
        raise Failed
    return int(exact)


class Number(str):
    """A number of JSON as it was written."""

    __slots__ = ()


def json_member(
    text: str, path: list[Any], semantics: Semantics, *, adaptive: bool, as_text: bool
) -> Any:
    """The text of a scalar at the path; a list or an object is given parsed."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(reversed(found)) if semantics.first_duplicate_wins else dict(found)

    def refuse(_: str) -> Any:
        raise ValueError

    try:
        value = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_float=Number,
            parse_int=Number,
            parse_constant=refuse,
        )
    except ValueError:
        return None
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            if key not in value:
                return None
            value = value[key]
        elif isinstance(value, list):
            if isinstance(key, str):
                if not adaptive or not key.lstrip("-").isdecimal():
                    return None
                key = int(key)  # noqa: PLW2901 - the key as a place
            if not -len(value) <= key < len(value):
                return None
            value = value[key]
        else:
            return None
    return value if as_text and isinstance(value, Number) else spelled(value, as_text=as_text)


def spelled(value: Any, *, as_text: bool) -> Any:
    match value:
        case None:
            return None if as_text else "null"
        case bool():
            return "true" if value else "false"
        case Number():
            return str(value)
        case str():
            return value if as_text else json.dumps(value, ensure_ascii=False)
        case _:
            return value


def json_function(name: str, values: list[Any], semantics: Semantics) -> Any:
    return json_member(
        values[0],
        list(values[1:]),
        semantics,
        adaptive=name.startswith("json_path"),
        as_text=name.endswith("_text"),
    )
