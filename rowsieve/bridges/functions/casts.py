"""Allow-list of casts: kinds of types between which an engine gives our values and failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from rowsieve.types.logical import Decimal, LogicalType, Timestamp

Kinds: TypeAlias = tuple[str, str]  # names of the classes of source and target


def kinds_of(source: LogicalType | None, target: LogicalType) -> Kinds:
    """Return the kinds of a cast's types."""
    return type(source).__name__, type(target).__name__


def _between(source: str, *targets: str) -> Iterable[Kinds]:
    return ((source, target) for target in targets)


_SHARED = frozenset(
    (
        *_between("Int", "Int", "Float", "Decimal", "String"),
        *(("Float", "Float"), ("Date", "Timestamp"), ("Timestamp", "Date")),
    )
)
TEXTS = frozenset(_between("String", "Bool", "Int", "Float", "Decimal", "Date", "Timestamp"))
_OWN: Mapping[str, Iterable[Kinds]] = {
    "postgres": (*TEXTS, *_between("String", "Time", "Uuid"), ("Enum", "String")),
    "duckdb": (*TEXTS, *_between("String", "Time", "Uuid"), ("Date", "String")),
    "datafusion": (
        *TEXTS,
        *(("String", "Time"), ("Date", "String"), ("Timestamp", "Timestamp")),
    ),
    "trino": (*TEXTS, ("String", "Uuid")),
    "spark": (
        *TEXTS,
        *_between("Bool", "Int", "String"),
        *(("Int", "Bool"), ("Float", "Int"), ("Date", "String")),
        *_between("Decimal", "Int", "Float", "Decimal", "String"),
        *_between("Timestamp", "Timestamp", "String"),
    ),
    "polars": (
        *(("Float", "Int"), ("Decimal", "Int"), ("Bool", "Int")),
        *(("Date", "String"), ("Timestamp", "Timestamp")),
    ),
    "pyarrow": (),
}
CASTS: Mapping[str, frozenset[Kinds]] = {name: _SHARED.union(kinds) for name, kinds in _OWN.items()}
# Digits of a decimal that becomes the nearest float64.
_EXACT_DIGITS: Mapping[str, int] = {"duckdb": 38, "datafusion": 15}
# Casts in text that is read, which have the engine's values, beyond those translated to it.
_ANSWERED: frozenset[Kinds] = frozenset(
    (
        *_between("Bool", "Int", "String"),
        *_between("Int", "Bool"),
        *_between("Decimal", "Decimal", "Float", "Int", "String"),
        *_between("Float", "Decimal", "Int"),
        *_between("Timestamp", "String", "Time", "Timestamp"),
        *_between("Date", "String"),
    )
)
_ANSWERED_ALONE: Mapping[str, Iterable[Kinds]] = {"duckdb": (("Time", "String"),)}
# Casts of other types have rules of their own, which each engine's tests judge.
_JUDGED = frozenset({"Bool", "Int", "Float", "Decimal", "String", "Date", "Time", "Timestamp"})


def is_answered(source: LogicalType | None, target: LogicalType, engine: str) -> bool:
    """Whether text with the cast has the engine's values."""
    kinds = kinds_of(source, target)
    if kinds == ("Decimal", "Float"):
        exact = isinstance(source, Decimal) and source.precision <= _EXACT_DIGITS[engine]
        return exact or (isinstance(source, Decimal) and source.scale == 0)
    if kinds == ("Timestamp", "Time"):
        return isinstance(source, Timestamp) and not source.utc
    answered = kinds in _ANSWERED or kinds in _ANSWERED_ALONE.get(engine, ())
    return answered or kinds in CASTS[engine] or not _JUDGED.issuperset(kinds)


def shown(engine: str) -> str:
    """Return the engine's casts as text, by their source."""
    targets: dict[str, list[str]] = {}
    for source, target in sorted(CASTS[engine]):
        targets.setdefault(source.lower(), []).append(target.lower())
    return "; ".join(f"{source} to {', '.join(names)}" for source, names in targets.items())
