"""Reject mixed Python values that pyarrow would convert by changing their meaning.

pyarrow converts a column of Python values to one type. Mixed with dates, it truncates datetimes to
dates and reads numbers as days since 1970. Mixed with naive datetimes, it drops the zone of aware
ones. Mixed with bytes, it encodes text as bytes. It converts a set to a list in an order that
differs from run to run.

Soundness: the class of every value, at any depth, is checked before pyarrow converts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from types import NoneType
from typing import Any, Final

import numpy as np

from rowsieve.errors import InvalidData

_UNORDERED: Final = (AbstractSet, Iterator, ValuesView)
_FAMILIES: Final[tuple[tuple[str, tuple[type, ...]], ...]] = (
    ("text", (str,)),
    ("bytes", (bytes, bytearray, memoryview)),
    ("times", (datetime,)),  # a datetime is also a date: the first matching family applies
    ("dates", (date,)),
    ("times of day", (time_of_day,)),
    ("durations", (timedelta,)),
    ("numbers", (int, float, Decimal, np.number)),
)
_PLAIN: Final = frozenset({NoneType, bool, int, float, str, bytes, Decimal, date, timedelta})
"""Classes whose values mix with NULL and with each other: none is nested, or has a zone."""
_TEMPORAL: Final = frozenset({"times", "dates", "times of day", "durations"})


def refuse_mixed(values: Iterable[Any], what: str) -> None:
    """Raise InvalidData for values that cannot share a column unchanged, at any depth.

    `what` names the column in the message.
    """
    values = list(values)
    kinds = set(map(type, values))
    if len(kinds - {NoneType}) <= 1 and kinds <= _PLAIN:
        return
    if odd := [kind.__name__ for kind in kinds if issubclass(kind, _UNORDERED)]:
        raise InvalidData(
            f"{what} has a {min(odd)} among its values: its items have no order, or can be read "
            "only once; convert it to a list"
        )
    _refuse_families(kinds, what)
    _refuse_zones(values, kinds, what)
    if nested := [v for kind in kinds if _is_list(kind) for v in values if _is_nested(v, kind)]:
        refuse_mixed([item for v in nested for item in v], what)
    if any(issubclass(kind, Mapping) for kind in kinds):
        for members in members_of([v for v in values if isinstance(v, Mapping)]).values():
            refuse_mixed(members, what)


def advice_for(error: Exception) -> str:
    """Say what to do about values that pyarrow cannot convert."""
    if isinstance(error, UnicodeError):
        return "its text has a lone surrogate, which is no character: replace or remove it"
    return "give each column values of one type"


def members_of(rows: Sequence[Mapping[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the values of each name, None where a row lacks the name."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _refuse_families(kinds: set[type], what: str) -> None:
    families = {family for kind in kinds if (family := _family(kind)) is not None}
    clashes = families & _TEMPORAL
    if clashes:
        clashes |= families & {"numbers"}
    elif {"text", "bytes"} <= families:
        clashes = {"text", "bytes"}
    if len(clashes) > 1:
        named = [family for family, _ in reversed(_FAMILIES) if family in clashes]
        raise InvalidData(
            f"{what} mixes {' and '.join(named)}; convert all its values to one of these kinds"
        )


def _refuse_zones(values: list[Any], kinds: set[type], what: str) -> None:
    times = [v for v in values if isinstance(v, datetime)] if _any_is(kinds, datetime) else []
    if len({value.tzinfo is None for value in times}) > 1:
        raise InvalidData(
            f"{what} mixes times with and without a zone; convert all its values to one kind"
        )
    if _any_is(kinds, time_of_day) and any(
        isinstance(value, time_of_day) and value.tzinfo is not None for value in values
    ):
        raise InvalidData(
            f"{what} has times of day with a zone, which no column type supports; remove the "
            "zones, or use datetimes with a zone"
        )


def _family(kind: type) -> str | None:
    if kind is float or issubclass(kind, np.timedelta64):  # a number to NumPy
        return "numbers" if kind is float else "durations"
    return next((family for family, types in _FAMILIES if issubclass(kind, types)), None)


def _is_list(kind: type) -> bool:
    return issubclass(kind, list | tuple | np.ndarray)


def _is_nested(value: Any, kind: type) -> bool:
    """Return whether this value, of the list class `kind`, contains Python values."""
    if type(value) is not kind:
        return False
    return not isinstance(value, np.ndarray) or (value.dtype.kind == "O" and value.ndim > 0)


def _any_is(kinds: set[type], wanted: type) -> bool:
    return any(issubclass(kind, wanted) for kind in kinds)
