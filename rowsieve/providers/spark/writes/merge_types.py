"""Check by their names which Spark types a merge may assign to a column or compare with a key."""

from __future__ import annotations

from typing import Final

_WIDTHS: Final = ("tinyint", "smallint", "int", "bigint")


def is_comparable(given: str, wanted: str) -> bool:
    """Return whether Spark compares the two types without a cast that changes a value."""
    return is_assignable(given, wanted) or is_assignable(wanted, given)


def is_assignable(given: str, wanted: str) -> bool:
    """Return whether Spark's cast from one type to the other keeps every value."""
    if given in (wanted, "void"):
        return True
    if given in _WIDTHS:
        if wanted in _WIDTHS:
            return _WIDTHS.index(given) < _WIDTHS.index(wanted)
        if wanted == "double":
            return given != "bigint"
        digits = (3, 5, 10, 19)[_WIDTHS.index(given)]
        return wanted.startswith("decimal(") and _whole_digits(wanted) >= digits
    if given.startswith("decimal("):
        if wanted == "double":
            return _digits(given)[0] <= 15  # a literal such as 0.5; the nearest double reads back
        is_decimal = wanted.startswith("decimal(")
        return is_decimal and (
            _whole_digits(wanted) >= _whole_digits(given)
            and _digits(wanted)[1] >= _digits(given)[1]
        )
    return (given, wanted) == ("float", "double")


def _digits(name: str) -> tuple[int, int]:
    precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def _whole_digits(name: str) -> int:
    precision, scale = _digits(name)
    return precision - scale
