"""Units of truncation of timestamps, and fields of timestamps, as dialects name and count them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from rowsieve.bridges.functions.arguments import COMMON_PARTS
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate.ir import Operand

_LONG = frozenset({"decade", "century", "millennium"})
_SHORT = frozenset({"second", "millisecond", "microsecond"})
TRUNCATIONS = (COMMON_PARTS - {"doy"}) | _LONG | _SHORT
PARTS = COMMON_PARTS | _LONG | _SHORT | {"dow", "isodow", "isoyear", "epoch"}
_ALIASES: Mapping[str, str] = {
    "dayofyear": "doy",
    "dayofweek": "dow",
    "day_of_year": "doy",
    "milliseconds": "millisecond",
    "microseconds": "microsecond",
    "years": "year",
    "months": "month",
    "days": "day",
    "hours": "hour",
    "minutes": "minute",
    "seconds": "second",
}


@dataclass(frozen=True, slots=True)
class _OwnPart:
    """A field that a dialect counts or names differently.

    `template` writes it, `words` are read as it. The dialect's number is higher by `above`.
    """

    part: str
    template: str
    words: tuple[str, ...] = ()
    above: int = 0


_SHARED = tuple(
    _OwnPart(part, f"EXTRACT({word.upper()} FROM {{0}})", (word,))
    for part, word in (
        *((name, name) for name in ("dow", "isodow", "isoyear")),
        ("whole_second", "second"),
    )
)
_OWN: Mapping[str, tuple[_OwnPart, ...]] = {
    "spark": (
        _OwnPart("dow", "(dayofweek({0}) - 1)", ("dow", "dayofweek"), above=1),
        _OwnPart("isodow", "(weekday({0}) + 1)", ("dow_iso", "dayofweek_iso")),
        _OwnPart("isoyear", "EXTRACT(YEAROFWEEK FROM {0})", ("yearofweek",)),
        _OwnPart("second", "EXTRACT(SECOND FROM {0})", ("second",)),
        _OwnPart("whole_second", "second({0})"),
    ),
    "duckdb": _SHARED,
    "datafusion": _SHARED,
    "trino": (_OwnPart("whole_second", "second({0})"),),
    "postgres": (_OwnPart("whole_second", "CAST(floor(EXTRACT(SECOND FROM {0})) AS BIGINT)"),),
}
_PLAIN: Mapping[str, frozenset[str]] = {"postgres": PARTS}  # others: the common ones
ALL_PARTS = COMMON_PARTS | {field.part for fields in _OWN.values() for field in fields}


def plain_parts(dialect: str) -> frozenset[str]:
    """Return the fields that `EXTRACT` gives by our names and with our numbers."""
    return _PLAIN.get(dialect, COMMON_PARTS)


def part_named(word: str, dialect: str) -> tuple[str, int] | None:
    """Return the field that a dialect means by a word, and how much higher it counts, or None."""
    for row in _OWN.get(dialect, ()):
        if word in row.words:
            return row.part, row.above
    part = _ALIASES.get(word, word)
    return (part, 0) if part in plain_parts(dialect) else None


def part_template(part: str, dialect: str) -> str | None:
    """Return the template that writes a field in a dialect, or None."""
    for row in _OWN.get(dialect, ()):
        if row.part == part:
            return row.template
    return f"EXTRACT({part.upper()} FROM {{0}})" if part in plain_parts(dialect) else None


def field_argument(reader: Reads, node: Any) -> Operand:
    """Read the argument of a function that gives a field, without the cast the grammar adds."""
    reader.only(node, "this")
    inner = node.this
    if isinstance(inner, exp.TsOrDsToDate):
        reader.only(inner, "this")
        inner = inner.this
    return reader.operand(inner)
