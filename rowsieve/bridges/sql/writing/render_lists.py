"""Write the members of an IN list as SQL, vectorised, with the texts of single constants.

Soundness: the text reads back as the same members, because each member is exactly as in
`literal_text`; types and values for which that is not known give None.
"""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.sql.constructs.render_literals import cast_text, literal_text
from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.bridges.ticks import as_ticks
from rowsieve.predicate.ir import Literal
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY
from rowsieve.types.logical import Date, Decimal, Float, Int, LogicalType, Timestamp

_MAX_PLAIN_DIGITS = 37  # digits of a decimal that all dialects read from a bare number


def list_texts(array: pa.Array, type_: LogicalType | None, dialect: Dialect) -> list[str] | None:
    """Format each member; None if they must be written one by one."""
    if array.null_count == len(array):
        return None
    texts = _texts(array, type_, dialect)
    if texts is None or isinstance(texts, list):
        return texts
    members: list[str] = pc.fill_null(texts, "NULL").to_pylist()
    return members


def _texts(
    array: pa.Array, type_: LogicalType | None, dialect: Dialect
) -> pa.Array | list[str] | None:
    match type_:
        case None if pa.types.is_string(array.type):
            return _strings(array, dialect)
        case Int(64, signed=False) if pa.types.is_integer(array.type) and type_ in dialect.types:
            before, after = _cast_around(type_, dialect)  # bare, they would be read as signed
            return _between(before, array.cast(pa.string()), after)
        case Int(64) if pa.types.is_integer(array.type):
            return None if pc.min(array).as_py() == -(2**63) else array.cast(pa.string())
        case Float() if pa.types.is_floating(array.type):
            return _floats(array, type_, dialect)
        case Decimal(scale=scale) if scale and pa.types.is_decimal(array.type):
            return _decimals(array, type_, dialect)
        case Date() | Timestamp():
            return _moments(array, type_, dialect)
        case _:
            return None


def _strings(array: pa.Array, dialect: Dialect) -> pa.Array | None:
    if dialect.hex_strings and pc.any(pc.match_substring_regex(array, r"['\\]")).as_py():
        return None
    if dialect.variables is not None and pc.any(pc.match_substring(array, "${")).as_py():
        return None
    if dialect.backslash_strings:
        array = pc.replace_substring(array, "\\", "\\\\")
    quotes = pc.replace_substring(array, "'", "\\'" if dialect.backslash_strings else "''")
    return _between("'", quotes, "'")


def _floats(array: pa.Array, type_: Float, dialect: Dialect) -> list[str] | None:
    before, after = _cast_around(type_, dialect)
    exponents = type_.bits == 64 and (dialect.point_is_float or dialect.exponent_is_float)
    points = type_.bits == 64 and dialect.point_is_float
    texts: list[str] = []
    for value in array.to_pylist():
        if value is None:
            texts.append("NULL")
            continue
        text = repr(value)
        if "e" in text or not math.isfinite(value):
            plain = exponents and "e" in text
            texts.append(text if plain else literal_text(Literal(value, type_), dialect)[0])
        else:
            texts.append(text if points else f"{before}{text}{after}")
    return texts


def _decimals(array: pa.Array, type_: Decimal, dialect: Dialect) -> pa.Array | None:
    """Format bare numbers if they have as many digits as the type, otherwise CASTs.

    Arrow uses exponents for small numbers.
    """
    texts = array.cast(pa.string())
    if pc.any(pc.match_substring(texts, "E")).as_py():
        texts = pa.array([None if value is None else f"{value:f}" for value in array.to_pylist()])
    casts = _between(*_around(texts, type_, dialect))
    if dialect.point_is_float:
        return casts
    if type_.precision > _MAX_PLAIN_DIGITS:
        return None
    if type_.precision == type_.scale:
        return texts
    digits = pc.utf8_ltrim(pc.replace_substring(texts, ".", ""), "-0")
    return pc.if_else(pc.equal(pc.utf8_length(digits), type_.precision), texts, casts)


def _moments(array: pa.Array, type_: Date | Timestamp, dialect: Dialect) -> pa.Array | None:
    days = pc.min_max(as_ticks(array, type_))
    unit = 1 if isinstance(type_, Date) else DAY_US
    if days["min"].as_py() < FIRST_DAY * unit or days["max"].as_py() >= (LAST_DAY + 1) * unit:
        return None
    if isinstance(type_, Date):
        texts = array.cast(pa.string())
    else:
        texts = array.view(pa.timestamp("us")).cast(pa.string())
        texts = pc.replace_substring_regex(texts, r"\.000000$", "")
        texts = _between("", texts, "+00:00") if type_.utc else texts
    return _between(*_around(texts, type_, dialect))


def _around(texts: pa.Array, type_: LogicalType, dialect: Dialect) -> tuple[str, pa.Array, str]:
    name = dialect.types.get(type_, "(")
    by_function = isinstance(type_, Timestamp) and type_ in dialect.arrow_types
    if "(" not in name and not by_function:
        return f"{name} '", texts, "'"
    before, after = _cast_around(type_, dialect)
    return before, texts, after


def _cast_around(type_: LogicalType, dialect: Dialect) -> tuple[str, str]:
    before, _, after = cast_text("'\0'", type_, dialect).partition("\0")
    return before, after


def _between(before: str, texts: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, texts, after, "")
