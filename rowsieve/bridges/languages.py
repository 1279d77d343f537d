"""The registry of bridges by name: the only list of filter languages.

To add a bridge, add one entry to `BRIDGES`: its name, the rules of its conditions, and three
functions of its module.

- `recognises(value)`: whether a value is one of its expressions. It does not import the engine: if
  the engine is not in `sys.modules`, no value is one of its expressions.
- `reads(expression, schema)`: a `Translation` whose `expression` is our predicate, under the
  bridge's semantics, and whose `residual` has the unsupported conditions, in its language. If an
  engine has sessions (`takes_session`), it and `writes` accept `session=` too.
- `writes(predicate, schema, semantics)`: a `Translation` whose `expression` is in the bridge's
  language and whose `residual` is our predicate, under the given semantics. `translate` first
  resolves the differences between engines (`meanings`) and passes the bridge's own semantics; only
  where `meanings` has no guard, but the bridge has one, it passes the original's.

Soundness: a bridge's semantics describe what its engine does with every row; a bridge rejects
operations that they do not describe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

from rowsieve.bridges import (
    datafusion_exprs,
    delta_dnf,
    iceberg_exprs,
    iceberg_json,
    polars_exprs,
    pyarrow_exprs,
    spark_columns,
    spark_filters,
    substrait_exprs,
)
from rowsieve.bridges.native import is_predicate, read_predicate, write_predicate
from rowsieve.bridges.session import Session, in_session
from rowsieve.bridges.sql import language as sql
from rowsieve.bridges.sql.dialects import DIALECTS, Dialect
from rowsieve.bridges.translation import Translation
from rowsieve.errors import InvalidInput
from rowsieve.predicate.binding.enum_labels import with_text
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class Bridge:
    """A filter language: how its expressions are recognised, read and written, and their rules."""

    name: str
    shown: str  # name of its expressions in messages
    semantics: Semantics
    recognises: Callable[[object], bool]
    reads: Callable[..., Translation[Predicate, Any]]
    writes: Callable[..., Translation[Any, Predicate]]
    is_text: bool = False
    takes_session: bool = False  # reads and writes accept session=
    # rules that depend on the expression
    rules_of: Callable[[Any, Session | None], Semantics] | None = None
    # settings of the session that runs the result, where expressions do not name theirs
    running: Callable[[], Session | None] | None = None
    named_forms: tuple[type, ...] = ()  # types of its expressions that need its name
    dialect: str = ""  # the SQL dialect of the same engine, whose name these expressions have too
    cut_units: frozenset[str] = frozenset()  # of Arrow's timestamps, see `arrow_units`
    has_guards: bool = False  # its writer handles all differences, more than `meanings` can

    def read(self, expression: Any, schema: Schema, **session: Any) -> Translation[Predicate, Any]:
        """Read an expression of the engine, for which enum columns are text."""
        seen = schema if self.semantics.orders_enums else with_text(schema)
        return self.reads(expression, seen, **session)

    def semantics_for(self, expression: Any, session: Session | None = None) -> Semantics:
        """Return the rules of an expression, in a session of the engine."""
        if self.rules_of is not None:
            return self.rules_of(expression, session)
        return in_session(self.semantics, session)


def _text(value: object) -> bool:
    """Return False: the dialect of a text is unknown."""
    del value
    return False


def _dialect(dialect: Dialect) -> Bridge:
    name = dialect.name
    reads, writes = partial(sql.from_text, dialect=name), partial(sql.to_text, dialect=name)
    return Bridge(
        name,
        f"SQL text of {name}",
        dialect.semantics,
        _text,
        reads,
        writes,
        is_text=True,
        takes_session=True,
        cut_units=dialect.times.cut_units,
    )


BRIDGES: tuple[Bridge, ...] = (
    Bridge(
        "rowsieve",
        "a rowsieve predicate",
        Semantics.SQL,
        is_predicate,
        read_predicate,
        write_predicate,
    ),
    *(_dialect(dialect) for dialect in DIALECTS.values()),
    Bridge(
        "datafusion_exprs",
        "a DataFusion expression",
        Semantics.DATAFUSION,
        datafusion_exprs.is_datafusion_expression,
        datafusion_exprs.from_datafusion,
        datafusion_exprs.to_datafusion,
        dialect="datafusion",
        cut_units=DIALECTS["datafusion"].times.cut_units,
    ),
    Bridge(
        "spark_columns",
        "a Spark column",
        Semantics.SPARK,
        spark_columns.is_spark_column,
        spark_columns.from_spark_column,
        spark_columns.to_spark_column,
        takes_session=True,
        rules_of=spark_columns.rules_of,
        running=spark_columns.running_session,
        dialect="spark",
    ),
    Bridge(
        "spark_filters",
        "a list of Spark's filters",
        Semantics.SPARK,
        spark_filters.is_spark_filters,
        spark_filters.from_spark_filters,
        spark_filters.to_spark_filters,
    ),
    Bridge(
        "pyarrow_exprs",
        "a pyarrow expression",
        Semantics.PYARROW,
        pyarrow_exprs.is_pyarrow_expression,
        pyarrow_exprs.from_pyarrow,
        pyarrow_exprs.to_pyarrow,
    ),
    Bridge(
        "polars",
        "a polars expression",
        Semantics.POLARS,
        polars_exprs.is_polars_expression,
        polars_exprs.from_polars,
        polars_exprs.to_polars,
        has_guards=True,
        cut_units=frozenset({"s", "ms", "ns"}),
    ),
    Bridge(
        "iceberg",
        "an expression of pyiceberg",
        Semantics.ICEBERG,
        iceberg_exprs.is_iceberg_expression,
        iceberg_exprs.from_iceberg,
        iceberg_exprs.to_iceberg,
    ),
    Bridge(
        "iceberg_json",
        "an Iceberg expression as JSON",
        Semantics.ICEBERG_JSON,
        iceberg_json.is_iceberg_json,
        iceberg_json.from_iceberg_json,
        iceberg_json.to_iceberg_json,
        named_forms=(str, bytes, bool, dict),
    ),
    Bridge(
        "delta_dnf",
        "a list of DNF filters",
        Semantics.PYARROW,
        delta_dnf.is_dnf_filters,
        delta_dnf.from_dnf_filters,
        delta_dnf.to_dnf_filters,
    ),
    Bridge(
        "substrait",
        "a message of Substrait's as bytes",
        Semantics.SUBSTRAIT,
        substrait_exprs.is_substrait_message,
        substrait_exprs.from_substrait,
        substrait_exprs.to_substrait,
    ),
)
_BY_NAME: Mapping[str, Bridge] = {bridge.name: bridge for bridge in BRIDGES}
ALIASES: Mapping[str, str] = {
    "pyarrow": "pyarrow_exprs",
    "polars_exprs": "polars",
    "pyiceberg": "iceberg",
    "iceberg_exprs": "iceberg",
    "delta": "delta_dnf",
    "deltalake": "delta_dnf",
    "postgresql": "postgres",
    "pyspark": "spark_columns",
}
"""Names of packages, modules and products by which their languages are also known."""


def bridge_named(name: str) -> Bridge:
    """Return the bridge with this name or alias; `InvalidInput` names the nearest and all."""
    if (bridge := _BY_NAME.get(ALIASES.get(name, name))) is None:
        near = get_close_matches(name.lower(), [*_BY_NAME, *ALIASES], n=1)
        hint = f"did you mean {near[0]!r}? Known" if near else "known"
        raise InvalidInput(
            f"no filter language is called {name!r}; {hint} are {', '.join(_BY_NAME)}"
        )
    return bridge


def bridge_of(value: object) -> Bridge | None:
    """Return the bridge of an expression, or None; text belongs to none."""
    return next((bridge for bridge in BRIDGES if bridge.recognises(value)), None)
