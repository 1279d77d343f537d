"""What Spark reads of a text, character by character as `UTF8String` and `SparkDateTimeUtils` do.

The oracle of casts under Spark's semantics where no Spark is at hand; both are held against Spark
by `tests/predicate/functions/test_spark_texts.py`. `None` is no value.
"""

from __future__ import annotations

import datetime
import decimal
import re
import zoneinfo
from collections.abc import Callable
from typing import Any

import numpy as np

from rowsieve.types.logical import Bool, Date, Decimal, Float, Int, LogicalType, Timestamp

_SPACE = "".join(map(chr, [*range(33), 127]))
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097


def knows(type_: LogicalType) -> bool:
    """Whether Spark has rules of its own for texts of the type."""
    return isinstance(type_, Bool | Int | Float | Decimal | Date | Timestamp)


def spark_reads_one(
    text: str, type_: LogicalType, *, cuts: bool, instant: Callable[[int, str | None], int]
) -> Any:
    """The value; `cuts`: whole numbers drop fractions. `instant`: of a local time, in a zone."""
    match type_:
        case Bool():
            word = text.strip(_SPACE).lower()
            known = dict.fromkeys(("t", "true", "y", "yes", "1"), True)
            return (known | dict.fromkeys(("f", "false", "n", "no", "0"), False)).get(word)
        case Int():
            return _whole(text.strip(_SPACE), type_, cuts=cuts)
        case Float(bits=bits):
            return _real(text.strip(_SPACE[:-1]), bits)
        case Decimal():
            return _exact(text.strip(_SPACE[:-1]), type_)
        case Date():
            return _day(text.strip(_SPACE))
        case Timestamp(utc=utc):
            found = _moment(text.strip(_SPACE))
            if found is None:
                return None
            micros, name = found
            if isinstance(name, int):
                return micros - name if utc else micros
            return instant(micros, name) if utc else micros
    raise AssertionError(type_)


def _whole(text: str, type_: Int, *, cuts: bool) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    whole, point, fraction = digits.partition(".")
    if not digits or (point and not cuts) or not _are_digits(whole + fraction):
        return None
    number = int(whole or "0") * (-1 if text[0] == "-" else 1)
    return number if -(2 ** (type_.bits - 1)) <= number < 2 ** (type_.bits - 1) else None


def _are_digits(text: str) -> bool:
    return all("0" <= character <= "9" for character in text)


def _real(text: str, bits: int) -> float | None:
    bare = text.lstrip("+-")
    if text in ("NaN", "+NaN", "-NaN") or text.lower() == "nan":
        number = float("nan")
    elif bare.lower() in ("inf", "infinity") and len(text) - len(bare) < 2:
        number = float(text)
    elif re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?", text):
        number = float(text.rstrip("fFdD"))
        if bits == 32:
            with np.errstate(over="ignore"):
                return float(np.float32(text.rstrip("fFdD")))
    else:
        return None
    return number


def _exact(text: str, type_: Decimal) -> decimal.Decimal | None:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return None
    with decimal.localcontext(prec=200, Emax=10**9, Emin=-(10**9)):
        number = decimal.Decimal(text)
        _, _, exponent = number.as_tuple()
        if not isinstance(exponent, int) or not -(2**31) < exponent < 2**31:
            return None  # Java counts the digits behind the point in 32 bits
        if number and number.adjusted() > 40:
            return None
        unit = decimal.Decimal(1).scaleb(-type_.scale)
        found = number.quantize(unit, decimal.ROUND_HALF_UP) if number else unit * 0
        return found if abs(found) < 10 ** (type_.precision - type_.scale) else None


def _day(text: str, *, most_digits: int = 7) -> int | None:
    sign = -1 if text[:1] == "-" else 1
    parts = (text[1:] if text[:1] in ("-", "+") else text).split("-", 2)
    if len(parts) == 3:
        parts[2] = re.split("[ T]", parts[2], maxsplit=1)[0]
    if not 4 <= len(parts[0]) <= most_digits or any(not 0 < len(part) < 3 for part in parts[1:]):
        return None
    if not all(map(_are_digits, parts)):
        return None
    year, month, day = (*map(int, parts), 1, 1)[:3]
    cycles, in_cycle = divmod(sign * year - 2000, _CYCLE_YEARS)
    try:
        near = datetime.date(2000 + in_cycle, month, day).toordinal()
    except ValueError:
        return None
    found = near - _EPOCH + cycles * _CYCLE_DAYS
    return found if -(2**31) <= found < 2**31 else None


def _moment(text: str) -> tuple[int, str | int | None] | None:
    """A local time, and the zone that it names, or microseconds east of UTC."""
    place = re.search("[ T]", text)
    days = _day(text[: place.start()] if place else text, most_digits=6)
    if days is None or place is None:
        far = days is None or abs(days) > 106_751_990
        return None if far or days is None else (days * 86_400_000_000, None)
    if text[: place.start()].lstrip("+-").count("-") < 2:
        return None
    clock = re.fullmatch(
        r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?([^\d.].*)?)?)?",
        text[place.end() :],
        re.ASCII | re.DOTALL,
    )
    if clock is None:
        return None
    hour, minute, second = (int(clock[n] or 0) for n in (1, 2, 3))
    name = None if clock[5] is None else _zone(clock[5].strip(_SPACE[:-1]))
    if hour > 23 or minute > 59 or second > 59 or (clock[5] is not None and name is None):
        return None
    micros = int((clock[4] or "")[:6].ljust(6, "0"))
    found = days * 86_400_000_000 + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
    return (found, name) if abs(found) < 2**63 else None


_JAVA_MONTHS = [datetime.date(2000, month, 1).strftime("%B").lower() for month in range(1, 13)]


def java_reads_one(text: str, form: str) -> int | None:
    """Microseconds of a local time that a text spells by a Java format, as its builder walks."""
    pieces = re.findall(r"([A-Za-z])(\1*)|'([^']*)'|([^A-Za-z'])", form)
    found: dict[str, int] = {}
    place = 0
    opened: list[tuple[int, dict[str, int]]] = []
    number = 0
    while number < len(pieces):
        plain = pieces[number][3]
        if plain == "[":
            opened.append((place, dict(found)))
        elif plain == "]":
            opened.pop()
        elif (length := _java_piece(text[place:], pieces, number, found)) is not None:
            place += length
        elif not opened:
            return None
        else:  # the section is as if it were not there
            place, found = opened.pop()
            depth = 1
            while depth:
                number += 1
                depth += {"[": 1, "]": -1}.get(pieces[number][3], 0)
        number += 1
    return _micros(found) if place == len(text) else None


def _java_piece(
    text: str, pieces: list[tuple[str, str, str, str]], number: int, found: dict[str, int]
) -> int | None:
    """How many characters at the start of the text are this piece's; None if it is not there."""
    letter, _, quoted, plain = pieces[number]
    if not letter:
        literal = quoted or plain
        return len(literal) if text[: len(literal)].lower() == literal.lower() else None
    fields = [piece[0] + piece[1] for piece in pieces]
    digits = [field if _has_digits(field) else "" for field in fields]
    following = [*digits[number + 1 :], ""]
    beside = following[: following.index("")]
    read = (
        _java_number(text, letter, len(fields[number]), sum(map(len, beside)))
        if digits[number]
        else _java_word(text.lower(), fields[number])
    )
    if read is None:
        return None
    found["M" if letter == "L" else letter] = read[0]
    return read[1]


def _micros(found: dict[str, int]) -> int | None:
    """Microseconds of a local time with these fields; None if there is no such time."""
    year = found.get("y", 1970)
    day = f"{'-' if year < 0 else '+'}{abs(year):04}-{found.get('M', 1)}-{found.get('d', 1)}"
    days = _day(day, most_digits=19)
    if days is not None and "D" in found:
        length = 365 + (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
        days = days + found["D"] - 1 if 1 <= found["D"] <= length else None
    hour, minute, second = (found.get(letter, 0) for letter in "Hms")
    if "k" in found:
        hour = found["k"] % 24 if 1 <= found["k"] <= 24 else 24
    if "h" in found or "K" in found:
        hour = found.get("K", found.get("h", 0) - 12 * (found.get("h") == 12))
        if not (0 <= hour < 12 and found.get("h", 1) > 0):
            return None
        hour += found.get("a", 0)
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    has_date = "y" in found and ("D" in found or {"M", "d"} <= {*found})
    has_hour = bool({"H", "k"} & {*found}) or "a" in found
    east = next((found[letter] for letter in "XxZ" if letter in found), 0)
    if has_date and has_hour and abs(east) > 1080:  # an instant, whose offset is made
        return None
    return ((days * 24 + hour) * 60 + minute) * 60_000_000 + second * 10**6 + found.get("S", 0)


def _has_digits(field: str) -> bool:
    return field[:1] in {*"ydDHhKkmsS"} or field in ("M", "MM", "L", "LL")


def _java_word(text: str, field: str) -> tuple[int, int] | None:
    """The month, the hours of PM or the minutes east at the start of the text, and its length."""
    if field[0] in "ML":
        names = [name if len(field) == 4 else name[:3] for name in _JAVA_MONTHS]
        return next(
            ((n, len(name)) for n, name in enumerate(names, 1) if text.startswith(name)), None
        )
    if field == "a":
        return ({"am": 0, "pm": 12}[text[:2]], 2) if text[:2] in ("am", "pm") else None
    if text[:1] == "z":
        return (0, 1) if field[0] == "X" else None
    colon = ":" if field in ("XXX", "xxx") else ""
    most = (
        rf"([+-])(\d\d){colon}(\d\d)" if len(field) > 1 or field == "Z" else r"([+-])(\d\d)(\d\d)?"
    )
    known = re.match(most, text, re.ASCII)
    if known is None or int(known[2]) > 23 or int(known[3] or 0) > 59:
        return None
    return int(known[2]) * 60 + int(known[3] or 0), known.end()


def _java_number(text: str, letter: str, count: int, reserved: int) -> tuple[int, int] | None:
    """The number at the start of the text, and its characters."""
    if letter == "y" and count == 2:
        return (
            (2000 + int(text[:2]), 2) if len(text) > 1 and all(map(_are_digits, text[:2])) else None
        )
    sign = text[:1] if letter == "y" and text[:1] in ("+", "-") else ""
    digits = text[len(sign) :]
    length = next((n for n, each in enumerate(digits) if not _are_digits(each)), len(digits))
    if letter == "y":
        length = min(max(length - reserved, 0), 19)
        least, most = (5, 19) if sign == "+" else (4, 19 if sign else 4)
    elif letter == "S":
        length = most = min(length, count)
        least = 1
    else:
        length = min(length, 19 if count == 1 else count)
        least, most = (1, 19) if count == 1 else (count, count)
    if not least <= length <= most or (sign == "-" and not int(digits[:length])):
        return None
    shown = digits[:length][:6].ljust(6, "0") if letter == "S" else digits[:length]
    return int(f"{'-' if sign == '-' else ''}{shown}"), len(sign) + length


def _zone(name: str) -> str | int | None:
    offset = re.sub(r"^(UTC|GMT|UT)(?=[+-]|$)", "", name)
    if name == "Z" or not offset:
        return 0
    offset = re.sub(r"^([+-])(\d)(:|$)", r"\g<1>0\2\3", offset)
    offset = re.sub(r"^([+-]\d\d:)(\d)$", r"\g<1>0\2", offset)
    known = re.fullmatch(r"([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?", offset, re.ASCII)
    if known is None or (offset.count(":") == 1 and len(offset) > 6):
        return name if name in zoneinfo.available_timezones() and "/" in name else None
    hour, minute, second = (int(known[n] or 0) for n in (2, 3, 4))
    if minute > 59 or second > 59 or (hour, minute, second) > (18, 0, 0):
        return None
    east = ((hour * 60 + minute) * 60 + second) * 1_000_000
    return -east if known[1] == "-" else east
