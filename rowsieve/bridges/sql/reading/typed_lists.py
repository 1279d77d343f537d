"""Parse long lists of typed members to one array: `DATE '…'`, `CAST('…' AS DOUBLE)`.

Soundness: a list is parsed here only if all members name the same type in the same words and have
the form that single constants must have; then the values are equal to theirs. Any other list gives
None, and the grammar reads it.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.sql.constructs.sql_literals import number
from rowsieve.bridges.sql.dialects import DATAFUSION_INSTANT, DATAFUSION_LOCAL, Dialect
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.ir import ValueSet
from rowsieve.types.days import DAY_US, FIRST_DAY
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Decimal, Float, Int, LogicalType, Timestamp

_QUOTED = r"'[0-9A-Z:. +-]*+'"
_ARROW = "|".join(map(re.escape, (DATAFUSION_INSTANT, DATAFUSION_LOCAL)))
_TYPE = r"[A-Z_]++(?: [A-Z]++)?(?:\([0-9]++(?:, ?[0-9]++)?\))?"
TYPED = (
    rf"(?:(?:DATE|TIMESTAMP(?:_NTZ|TZ)?)\s*+{_QUOTED}|CAST\({_QUOTED} AS {_TYPE}\)"
    rf"|arrow_cast\({_QUOTED}, '(?:{_ARROW})'\))"
)
_FIRST = re.compile(
    rf"(?P<open>(?P<word>[A-Z_]+)[\s(]*')[^']*"
    rf"(?P<close>'(?: AS (?P<type>{_TYPE})\)|, '(?P<arrow>{_ARROW})'\))?)",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"DECIMAL\(([0-9]{1,2}), ?([0-9]{1,2})\)", re.IGNORECASE)

_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_FLOAT = rf"{_NUMBER}([eE][+-]?[0-9]{{1,6}})?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_STAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_MARK = "\0"  # before a member with a type


def members_of(body: str) -> pa.Array:
    """Return the members' texts, NULL for NULL."""
    texts = pc.utf8_trim_whitespace(pa.array(body.split(",")))
    return pc.if_else(pc.equal(pc.ascii_upper(texts), "NULL"), pa.scalar(None, pa.string()), texts)


def typed_members(body: str, dialect: Dialect) -> ValueSet | None:
    """Parse a list of well-formed members that name their type."""
    if _MARK in body or (first := _FIRST.search(body)) is None:
        return None
    type_ = _type_of(first, dialect)
    count, quotes = body.count(first["open"]), first[0].count("'")
    alike = body.count("'") == count * quotes and body.count(first["close"]) >= count
    if type_ is None or not alike:
        return None
    texts = members_of(body.replace(first["open"], _MARK).replace(first["close"], ""))
    typed = pc.starts_with(texts, _MARK)
    texts = pc.utf8_ltrim(texts, _MARK)
    bare = texts.filter(pc.invert(typed))
    return _read(texts, type_) if not len(bare) or _bare_are(bare, type_, dialect) else None


def bare_floats(texts: pa.Array) -> ValueSet | None:
    """Parse bare numbers that are floats there."""
    if not _have_form(texts, _FLOAT):
        return None
    values = texts.cast(pa.float64())
    zeros = texts.filter(pc.equal(values, 0.0))
    vanished = pc.any(pc.match_substring_regex(zeros, r"^[^eE]*[1-9]")).as_py()
    if vanished or pc.any(pc.is_inf(values)).as_py():
        return None  # overflows a float
    return ValueSet(values, Float(64))


def numbers(texts: pa.Array, type_: Int | Decimal) -> ValueSet | None:
    """Parse numbers of one type, exactly."""
    return _cast(texts, type_, rf"{_NUMBER}$")


def _bare_are(texts: pa.Array, type_: LogicalType, dialect: Dialect) -> bool:
    """Whether numbers without a CAST have this type."""
    if isinstance(type_, Decimal) and type_.scale and not dialect.point_is_float:
        digits = pc.utf8_ltrim(pc.replace_substring(texts, ".", ""), "+-0")
        full = pc.all(pc.equal(pc.utf8_length(digits), type_.precision)).as_py()
        return bool(full) and _have_form(texts, rf"^[+-]?[0-9]+\.[0-9]{{{type_.scale}}}$")
    return type_ == Float(64) and all(_is_double(text, dialect) for text in texts.to_pylist())


def _is_double(text: str, dialect: Dialect) -> bool:
    try:
        return number(text.lstrip("+-"), dialect).type == Float(64)
    except (InvalidPredicate, ArithmeticError):
        return False


def _type_of(first: re.Match[str], dialect: Dialect) -> LogicalType | None:
    word, name = first["word"].upper(), (first["type"] or "").upper()
    if word == "ARROW_CAST":
        zoned = (first["arrow"] or "").upper() == DATAFUSION_INSTANT.upper()
        return Timestamp(utc=zoned) if dialect.arrow_types else None
    if match := _DECIMAL.fullmatch(name):
        precision, scale = int(match[1]), int(match[2])
        return Decimal(precision, scale) if 0 <= scale <= precision <= 38 and precision else None
    known = (Float(32), Float(64), Date(), Timestamp(), Timestamp(utc=True))
    return next((type_ for type_ in known if dialect.types.get(type_) == (name or word)), None)


def _read(texts: pa.Array, type_: LogicalType) -> ValueSet | None:
    match type_:
        case Float():
            return _floats(texts, type_)
        case Date():
            times = _cast(texts, type_, _DATE)
            return times if times and _from_year_one(times.array.view(pa.int32()), 1) else None
        case Timestamp(utc=utc):
            form = rf"{_STAMP}\+00:00$" if utc else rf"{_STAMP}$|{_DATE}"
            if not _have_form(texts, form):
                return None
            clocks = pc.utf8_slice_codeunits(texts, 0, -6) if utc else texts
            times = _cast(clocks, Timestamp(), "")
            if times is None or not _from_year_one(times.array.view(pa.int64()), DAY_US):
                return None
            return ValueSet(times.array.view(arrow_type(type_)), type_)
        case Decimal():
            return numbers(texts, type_)
        case _:
            raise AssertionError(type_)


def _floats(texts: pa.Array, type_: Float) -> ValueSet | None:
    floats = _cast(texts, type_, rf"{_FLOAT}|^NaN$|^-?Infinity$")
    if floats is None:
        return None
    named = pc.match_substring(texts, "Inf")
    return floats if pc.all(pc.equal(pc.is_inf(floats.array), named)).as_py() else None


def _from_year_one(moments: pa.Array, day: int) -> bool:
    least = pc.min(moments).as_py()
    return least is None or bool(least >= FIRST_DAY * day)


def _cast(texts: pa.Array, type_: LogicalType, form: str) -> ValueSet | None:
    if not _have_form(texts, form):
        return None
    try:
        return ValueSet(texts.cast(arrow_type(type_)), type_)
    except pa.ArrowInvalid:
        return None


def _have_form(texts: pa.Array, form: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, form), min_count=0).as_py())
