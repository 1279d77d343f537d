"""The engines at hand: dialect, session and types of columns of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.bridges.against_engines.edges import TYPES
from tests.bridges.against_engines.judges import DataFusion, DuckDb, Make, Postgres, Spark

_NOT_IN_POSTGRES = frozenset({"i8", "u8", "u16", "u32", "u64"})


@dataclass(frozen=True)
class Engine:
    """An engine in one session, and what its dialect's texts may be about."""

    dialect: str
    judge: Make
    types: tuple[str, ...]
    zone: str | None = None
    about: frozenset[str] | None = None  # only cases with one of these types


_ZONED = "America/New_York"
_NOT_IN_SPARK = frozenset({"u8", "u16", "u32", "u64", "time"})
_SPARK_TYPES = tuple(name for name in TYPES if name not in _NOT_IN_SPARK)
_POSTGRES_TYPES = tuple(name for name in TYPES if name not in _NOT_IN_POSTGRES)
ALONE: Mapping[str, Engine] = {
    "duckdb": Engine("duckdb", DuckDb, tuple(TYPES)),
    "datafusion": Engine("datafusion", DataFusion, tuple(TYPES)),
    "postgres": Engine("postgres", Postgres, _POSTGRES_TYPES),
    "duckdb in New York": Engine(
        "duckdb", lambda: DuckDb(_ZONED), tuple(TYPES), _ZONED, frozenset({"tz"})
    ),
    "postgres in New York": Engine(
        "postgres", lambda: Postgres(_ZONED), _POSTGRES_TYPES, _ZONED, frozenset({"tz"})
    ),
}
WITH_SPARK: Mapping[str, Engine] = {"spark": Engine("spark", Spark, _SPARK_TYPES)}
ENGINES: Mapping[str, Engine] = {**ALONE, **WITH_SPARK}
