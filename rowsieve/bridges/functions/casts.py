"""Allow-list of casts: kinds of types between which an engine gives our values and failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from rowsieve.types.logical import LogicalType

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
CASTS: Mapping[str, frozenset[Kinds]] = {name: _SHARED.union(own) for name, own in _OWN.items()}


def shown(engine: str) -> str:
    """Return the engine's casts as text, by their source."""
    targets: dict[str, list[str]] = {}
    for source, target in sorted(CASTS[engine]):
        targets.setdefault(source.lower(), []).append(target.lower())
    return "; ".join(f"{source} to {', '.join(found)}" for source, found in targets.items())
