"""Check by their names which Spark types a merge may assign to a column or compare with a key."""

from __future__ import annotations

from typing import Final

_WIDTHS: Final = ("tinyint", "smallint", "int", "bigint")


def is_comparable(type_: str, wanted: str) -> bool:
    """Return whether Spark compares the two types without a cast that changes a value."""
    return is_assignable(type_, wanted) or is_assignable(wanted, type_)


def is_assignable(type_: str, wanted: str) -> bool:
    """Return whether Spark's cast from one type to the other keeps every value."""
    if type_ in (wanted, "void"):
        return True
    if type_ in _WIDTHS:
        if wanted in _WIDTHS:
            return _WIDTHS.index(type_) < _WIDTHS.index(wanted)
        if wanted == "double":
            return type_ != "bigint"
        digits = (3, 5, 10, 19)[_WIDTHS.index(type_)]
        return wanted.startswith("decimal(") and _whole_digits(wanted) >= digits
    if type_.startswith("decimal("):
        if wanted == "double":
            return _digits(type_)[0] <= 15  # a literal such as 0.5; the nearest double reads back
        is_decimal = wanted.startswith("decimal(")
        return is_decimal and (
            _whole_digits(wanted) >= _whole_digits(type_)
            and _digits(wanted)[1] >= _digits(type_)[1]
        )
    return (type_, wanted) == ("float", "double")


def _digits(name: str) -> tuple[int, int]:
    precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def _whole_digits(name: str) -> int:
    precision, scale = _digits(name)
    return precision - scale
