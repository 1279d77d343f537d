"""Write constants, casts and quoted text as SQL."""

from __future__ import annotations

from rowsieve.bridges.sql.constructs.sql_literals import negated, number, spelt
from rowsieve.bridges.sql.dialects import BinaryText, Dialect
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.ir import Literal, PhysicalValue
from rowsieve.predicate.literal_values import natural_type
from rowsieve.types import interval_bytes
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Interval,
    List,
    LogicalType,
    Nanos,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
    type_name,
)

_READ_NANOS = 9_223_372_000 * 10**9


def quoted(text: str, dialect: Dialect) -> str:
    """Format a string constant."""
    has_variable = dialect.variables is not None and "${" in text
    if dialect.hex_strings and ("'" in text or "\\" in text or has_variable):
        return cast_text(f"X'{text.encode().hex()}'", String(), dialect)
    if dialect.backslash_strings:
        text = text.replace("\\", "\\\\").replace("'", "\\'")
        return "'" + (text.replace("${", "\\u0024{") if has_variable else text) + "'"
    return "'" + text.replace("'", "''") + "'"


def literal_text(literal: Literal, dialect: Dialect) -> tuple[str, bool]:
    """Format a constant, and return whether it begins with a sign."""
    value, type_ = literal.value, literal.type
    if value is None:
        return ("NULL" if type_ is None else cast_text("NULL", type_, dialect)), False
    if type_ is None and isinstance(value, str):
        return quoted(value, dialect), False
    type_ = _type_of(value) if type_ is None else type_
    if isinstance(value, tuple) and isinstance(type_, List | Struct):
        return _constructor(value, type_, dialect), False
    match type_:
        case Bool():
            return ("TRUE" if value else "FALSE"), False
        case Int() | Float() | Decimal():
            return _number_text(value, type_, dialect)
        case Binary() if isinstance(value, bytes) and dialect.binary_text is BinaryText.UTF8:
            return f"X'{value.hex()}'", False
        case Uuid() if type_ in dialect.arrow_types and isinstance(value, bytes):
            return cast_text(f"X'{value.hex()}'", type_, dialect), False
        case Timestamp() | Date() if _is_beyond_calendar(value, type_, dialect):
            integer = Int(32 if isinstance(type_, Date) else 64)
            number = cast_text(f"'{value!s}'", integer, dialect)
            return f"arrow_cast({number}, '{dialect.arrow_types[type_]}')", False
        case Nanos() if type_ in dialect.arrow_types:
            return _moment_text(value, type_, dialect), False
        case Nanos() if type_ in dialect.types and isinstance(value, int):
            if abs(value) >= 2**63 - 1:
                raise UnsupportedOperation(f"the last nanosecond is infinity in {dialect.name}")
            return f"{dialect.types[type_]} '{_spelt(value, type_, dialect)}'", False
        case Timestamp() | Time() if type_ in dialect.arrow_types:
            return cast_text(quoted(_spelt(value, type_, dialect), dialect), type_, dialect), False
        case Date() | Time() | Timestamp() if "(" not in dialect.types.get(type_, "("):
            return f"{dialect.types[type_]} '{_spelt(value, type_, dialect)}'", False
        case Interval() if isinstance(value, bytes) and dialect.semantics.thirty_day_months:
            return f"INTERVAL '{interval_bytes.spelled(value)}'", False
        case _:
            return cast_text(quoted(_spelt(value, type_, dialect), dialect), type_, dialect), False


def _moment_text(value: PhysicalValue, type_: Nanos, dialect: Dialect) -> str:
    """Format nanoseconds; as a number near their ends, whose text DataFusion does not read."""
    near_end = isinstance(value, int) and abs(value) > _READ_NANOS
    text = str(value) if near_end else _spelt(value, type_, dialect)
    operand = cast_text(f"'{text}'", Int(64), dialect) if near_end else quoted(text, dialect)
    return cast_text(operand, type_, dialect)


def _is_beyond_calendar(value: PhysicalValue, type_: Timestamp | Date, dialect: Dialect) -> bool:
    """Whether a time needs its number in `arrow_cast`, because no text has the value."""
    if type_ not in dialect.arrow_types or not isinstance(value, int):
        return False
    day = value if isinstance(type_, Date) else value // DAY_US
    return not FIRST_DAY <= day <= LAST_DAY


def _constructor(value: tuple[PhysicalValue, ...], type_: List | Struct, dialect: Dialect) -> str:
    """Format a list or struct as a constructor call."""
    if isinstance(type_, Struct):
        parts: list[str] = []
        for member, field in zip(value, type_.fields, strict=True):
            text, _ = literal_text(Literal(member, field.type), dialect)
            parts += [quoted(field.name, dialect), text]
        return f"make_struct({', '.join(parts)})"
    if not value:
        raise UnsupportedOperation("an empty list has no text of its own type")
    items = [literal_text(Literal(item, type_.element.type), dialect)[0] for item in value]
    return f"make_list({', '.join(items)})"


def cast_text(operand: str, type_: LogicalType, dialect: Dialect, *, try_: bool = False) -> str:
    """Format a cast of an operand's text."""
    by_function = type_ in dialect.arrow_types and not isinstance(type_, Date) and not try_
    if by_function:
        return f"arrow_cast({operand}, '{dialect.arrow_types[type_]}')"
    name = dialect.types.get(type_)
    if isinstance(type_, Decimal):
        name = f"DECIMAL({type_.precision}, {type_.scale})"
    if name is None:
        raise UnsupportedOperation(f"{dialect.name} SQL has no type for {type_name(type_)}")
    return f"{'TRY_CAST' if try_ else 'CAST'}({operand} AS {name})"


def _number_text(value: PhysicalValue, type_: LogicalType, dialect: Dialect) -> tuple[str, bool]:
    text = _spelt(value, type_, dialect)
    digits = text.removeprefix("-")
    try:
        plain = number(digits, dialect)
    except (ValueError, ArithmeticError):
        return cast_text(f"'{text}'", type_, dialect), False
    if text != digits:
        plain = negated(plain, dialect)
    if plain.type == type_:
        return text, text != digits
    return cast_text(f"'{text}'", type_, dialect), False


def _spelt(value: PhysicalValue, type_: LogicalType, dialect: Dialect) -> str:
    try:
        return spelt(value, type_, dialect)
    except ValueError as error:
        raise UnsupportedOperation(
            f"the {type_name(type_)} {value!r} cannot be written as SQL: {error}"
        ) from error


def _type_of(value: PhysicalValue) -> LogicalType:
    type_ = natural_type(value)
    if type_ is None:
        raise InvalidPredicate(f"the constant {value!r} has no type")
    return Int(64) if isinstance(type_, Int) else type_
