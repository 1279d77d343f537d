"""Check by their names which Spark types a merge may assign to a column or compare with a key."""

from __future__ import annotations

from typing import Final

_WIDTHS: Final = ("tinyint", "smallint", "int", "bigint")


def is_comparable(found: str, wanted: str) -> bool:
    """Return whether Spark compares the two types without a cast that changes a value."""
    return is_assignable(found, wanted) or is_assignable(wanted, found)


def is_assignable(found: str, wanted: str) -> bool:
    """Return whether Spark's cast from one type to the other keeps every value."""
    if found in (wanted, "void"):
        return True
    if found in _WIDTHS:
        if wanted in _WIDTHS:
            return _WIDTHS.index(found) < _WIDTHS.index(wanted)
        if wanted == "double":
            return found != "bigint"
        digits = (3, 5, 10, 19)[_WIDTHS.index(found)]
        return wanted.startswith("decimal(") and _whole_digits(wanted) >= digits
    if found.startswith("decimal("):
        if wanted == "double":
            return _digits(found)[0] <= 15  # a literal such as 0.5; the nearest double reads back
        is_decimal = wanted.startswith("decimal(")
        return is_decimal and (
            _whole_digits(wanted) >= _whole_digits(found)
            and _digits(wanted)[1] >= _digits(found)[1]
        )
    return (found, wanted) == ("float", "double")


def _digits(name: str) -> tuple[int, int]:
    precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def _whole_digits(name: str) -> int:
    precision, scale = _digits(name)
    return precision - scale
