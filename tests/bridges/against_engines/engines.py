"""The engines at hand: dialect, session and types of columns of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.bridges.against_engines.edges import MORE_TYPES, TYPES
from tests.bridges.against_engines.expression_judges import Polars, PyArrow
from tests.bridges.against_engines.judges import DataFusion, DuckDb, Make, Postgres, Spark
from tests.bridges.against_engines.python_expressions import expression

_NOT_IN_POSTGRES = frozenset({"u64"})  # the others are held in the next longer type
_BEYOND_PYTHON = frozenset({"era", "era_tz"})  # what PostgreSQL's client cannot hold


@dataclass(frozen=True)
class Engine:
    """An engine in one session, and what its dialect's texts may be about.

    `language`: what `where=` takes for a text; `null_test`, `negation`: texts of that language.
    """

    dialect: str
    judge: Make
    types: tuple[str, ...]
    zone: str | None = None
    about: frozenset[str] | None = None  # only cases with one of these types
    more_types: frozenset[str] = frozenset(MORE_TYPES)  # of its siblings
    language: Callable[[str], Any] = str
    null_test: str = "({}) IS NULL"
    negation: str = "NOT ({})"

    @property
    def is_sql(self) -> bool:
        """Whether a text is SQL, not Python that builds an expression."""
        return self.language is str


def _of_expressions(name: str, judge: Make) -> Engine:
    built = partial(expression, engine=name)
    return Engine(
        name, judge, tuple(TYPES), language=built, null_test="({}).is_null()", negation="~({})"
    )


_ZONED = "America/New_York"
_NOT_IN_SPARK = frozenset({"u8", "u16", "u32", "u64", "time"})
_SPARK_TYPES = tuple(name for name in TYPES if name not in _NOT_IN_SPARK)
_POSTGRES_MORE = frozenset(MORE_TYPES) - _BEYOND_PYTHON
_POSTGRES_TYPES = tuple(name for name in TYPES if name not in _NOT_IN_POSTGRES)
ALONE: Mapping[str, Engine] = {
    "duckdb": Engine("duckdb", DuckDb, tuple(TYPES)),
    "datafusion": Engine("datafusion", DataFusion, tuple(TYPES)),
    "postgres": Engine("postgres", Postgres, _POSTGRES_TYPES, more_types=_POSTGRES_MORE),
    "duckdb in New York": Engine(
        "duckdb", lambda: DuckDb(_ZONED), tuple(TYPES), _ZONED, frozenset({"tz"})
    ),
    "postgres in New York": Engine(
        "postgres", lambda: Postgres(_ZONED), _POSTGRES_TYPES, _ZONED, frozenset({"tz"})
    ),
    "polars": _of_expressions("polars", Polars),
    "pyarrow": _of_expressions("pyarrow", PyArrow),
}
WITH_SPARK: Mapping[str, Engine] = {
    "spark": Engine("spark", Spark, _SPARK_TYPES),
    "spark in New York": Engine(
        "spark", lambda: Spark(_ZONED), _SPARK_TYPES, _ZONED, frozenset({"tz", "ts", "date"})
    ),
}
ENGINES: Mapping[str, Engine] = {**ALONE, **WITH_SPARK}
