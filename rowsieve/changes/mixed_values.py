"""Python values that pyarrow takes by changing what some of them mean: refused by name.

pyarrow brings a column of Python values to one type. It cuts a time to its date beside dates, drops
the zone of a time beside wall clocks, takes a number beside dates for days since 1970, text beside
bytes for bytes, and a set for a list in an order that differs from run to run.

Soundness: every value is looked at by its class, at any depth, before pyarrow sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any, Final

import numpy as np

from rowsieve.errors import InvalidData

_UNORDERED: Final = (AbstractSet, Iterator, ValuesView)
_FAMILIES: Final[tuple[tuple[str, tuple[type, ...]], ...]] = (
    ("text", (str,)),
    ("bytes", (bytes, bytearray, memoryview)),
    ("times", (datetime,)),  # a datetime is a date, too: the first family that fits counts
    ("dates", (date,)),
    ("times of day", (time_of_day,)),
    ("durations", (timedelta,)),
    ("numbers", (int, float, Decimal, np.number)),
)
_TEMPORAL: Final = frozenset({"times", "dates", "times of day", "durations"})


def refuse_mixed(values: Iterable[Any], what: str) -> None:
    """InvalidData for values that cannot share a column unchanged, at any depth; names `what`."""
    values = list(values)
    kinds = set(map(type, values))
    if odd := [kind.__name__ for kind in kinds if issubclass(kind, _UNORDERED)]:
        raise InvalidData(
            f"{what} has a {min(odd)} among its values: its items have no order, or can be read "
            "only once; make it a list"
        )
    _refuse_families(kinds, what)
    _refuse_zones(values, kinds, what)
    if nested := [v for kind in kinds if _is_list(kind) for v in values if _is_nested(v, kind)]:
        refuse_mixed([item for v in nested for item in v], what)
    if any(issubclass(kind, Mapping) for kind in kinds):
        for members in members_of([v for v in values if isinstance(v, Mapping)]).values():
            refuse_mixed(members, what)


def members_of(rows: Sequence[Mapping[Any, Any]]) -> dict[Any, list[Any]]:
    """The values of each name, None where a row lacks it."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _refuse_families(kinds: set[type], what: str) -> None:
    found = {family for kind in kinds if (family := _family(kind)) is not None}
    clashes = found & _TEMPORAL
    if clashes:
        clashes |= found & {"numbers"}
    elif {"text", "bytes"} <= found:
        clashes = {"text", "bytes"}
    if len(clashes) > 1:
        named = [family for family, _ in reversed(_FAMILIES) if family in clashes]
        raise InvalidData(
            f"{what} has {' and '.join(named)}: make all its values one of the "
            f"{'two' if len(named) == 2 else len(named)}"
        )


def _refuse_zones(values: list[Any], kinds: set[type], what: str) -> None:
    times = [v for v in values if isinstance(v, datetime)] if _any_is(kinds, datetime) else []
    if len({value.tzinfo is None for value in times}) > 1:
        raise InvalidData(
            f"{what} has times with and without a zone: make all its values one of the two"
        )
    if _any_is(kinds, time_of_day) and any(
        isinstance(value, time_of_day) and value.tzinfo is not None for value in values
    ):
        raise InvalidData(
            f"{what} has times of day with a zone, which no column of a table can have: drop the "
            "zone of each, or give instants"
        )


def _family(kind: type) -> str | None:
    if kind is float or issubclass(kind, np.timedelta64):  # a number to NumPy
        return "numbers" if kind is float else "durations"
    return next((family for family, types in _FAMILIES if issubclass(kind, types)), None)


def _is_list(kind: type) -> bool:
    return issubclass(kind, list | tuple | np.ndarray)


def _is_nested(value: Any, kind: type) -> bool:
    """Whether this value of a list's class has Python values of its own."""
    if type(value) is not kind:
        return False
    return not isinstance(value, np.ndarray) or (value.dtype.kind == "O" and value.ndim > 0)


def _any_is(kinds: set[type], wanted: type) -> bool:
    return any(issubclass(kind, wanted) for kind in kinds)
