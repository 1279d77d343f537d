"""Reads the settings of a DataFusion session, and checks whether they allow its Parquet reader.

Soundness: an allow-list names the settings that may differ. If any other setting is not at its
default, known or not, our dataset reads all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import datafusion

AGGREGATE_FILTERS: Final = "datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown"
BATCH_SIZE: Final = "datafusion.execution.batch_size"
IDENTIFIERS: Final = "datafusion.sql_parser.enable_ident_normalization"
JOIN_FILTERS: Final = "datafusion.optimizer.enable_join_dynamic_filter_pushdown"
MAX_PASSES: Final = "datafusion.optimizer.max_passes"
ROUND_ROBIN: Final = "datafusion.optimizer.enable_round_robin_repartition"
TIME_ZONE: Final = "datafusion.execution.time_zone"
TOP_FILTERS: Final = "datafusion.optimizer.enable_topk_dynamic_filter_pushdown"
TARGET_PARTITIONS: Final = "datafusion.execution.target_partitions"
# Aggregate filters: DataFusion 55.0 skips row groups by the values that MIN and MAX have seen so
# far. While one aggregate has seen only NULL, it uses the values of the others, and loses rows.
# Join filters: DataFusion pushes filters through joins by column name, so that a filter on `b.id`
# skips row groups of `a` by `a.id` (apache/datafusion#25244, #25296). Partitions of such a join
# also deadlock if they are read one after another, as `DataFrame.__arrow_c_stream__` does.
INITIAL_SETTINGS: Final[Mapping[str, str]] = {
    AGGREGATE_FILTERS: "false",
    JOIN_FILTERS: "false",
    TOP_FILTERS: "false",
}
"""Settings that our sessions begin with: under DataFusion's defaults, scans lose rows or hang."""
# Settings that change the meaning of conditions. With other values, conditions prune nothing.
SEMANTIC_SETTINGS: Final[Mapping[str, str | None]] = {
    "datafusion.execution.enable_ansi_mode": "false",
    TIME_ZONE: None,
    "datafusion.sql_parser.dialect": "generic",
    "datafusion.sql_parser.parse_float_as_decimal": "false",
}
_INFORMATION: Final = "datafusion.catalog.information_schema"
# Allow-list: settings that change neither the values nor the rows that a scan reads.
_HARMLESS_PREFIXES: Final = tuple(
    f"datafusion.{each}." for each in ("catalog", "explain", "format", "runtime", "sql_parser")
)
_HARMLESS: Final = frozenset(
    f"datafusion.{each}"
    for each in (
        "execution.batch_size",
        "execution.collect_statistics",  # our scans have no order with either value
        "execution.target_partitions",
        "optimizer.repartition_file_min_size",
        "optimizer.repartition_file_scans",
    )
)


def shown_settings(context: Any) -> dict[str, Any]:
    """All settings of a session, by name; `context` may be `super()` of a session."""
    show = context.sql
    try:
        rows = show("SHOW ALL").to_pylist()
    except Exception:  # SHOW needs the information schema
        show(f"SET {_INFORMATION} = true").collect()
        try:
            rows = show("SHOW ALL").to_pylist()
        finally:
            show(f"SET {_INFORMATION} = false").collect()
    return {row["name"]: row["value"] for row in rows}


@cache
def default_settings() -> Mapping[str, Any]:
    """The settings of a new session."""
    return shown_settings(datafusion.SessionContext())


@cache
def default_functions() -> frozenset[str]:
    """The names of the scalar functions of a new session, aliases included."""
    return frozenset(datafusion.SessionContext().udfs())


def has_default_semantics(settings: Mapping[str, Any]) -> bool:
    """Return whether conditions mean the same under these settings as in a new session."""
    return all(settings.get(name, name) == value for name, value in SEMANTIC_SETTINGS.items())


def allow_native_scans(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Return whether all settings that may change a scan have our initial or default values."""
    wanted = {**defaults, **INITIAL_SETTINGS}
    names = settings.keys() | wanted.keys()
    return all(
        settings.get(name) == wanted.get(name)
        for name in names
        if name not in _HARMLESS and not name.startswith(_HARMLESS_PREFIXES)
    )


@contextmanager
def temporary_settings(
    values: Mapping[str, Any], current: Mapping[str, Any], run: Callable[[str], Any]
) -> Iterator[None]:
    """Set these values for the duration of the block; afterwards, restore those of `current`.

    `run` runs a statement in the session.
    """
    try:
        for name, value in values.items():
            run(f"SET {name} = {value}")
        yield
    finally:
        for name in values:
            run(f"SET {name} = {current[name]}")


def unless_changed(values: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, Any]:
    """The values for settings that the user has not changed: `current` has the initial value."""
    first = {**default_settings(), **INITIAL_SETTINGS}
    return {name: value for name, value in values.items() if current.get(name) == first[name]}
