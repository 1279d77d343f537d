"""The settings of a DataFusion session, and which of them DataFusion's Parquet reader may have.

Soundness: settings are allowed by name. Any other setting that is not at its default, known or not,
leads to our dataset.
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
SPLIT_FILES: Final = "datafusion.optimizer.repartition_file_scans"
TOP_FILTERS: Final = "datafusion.optimizer.enable_topk_dynamic_filter_pushdown"
TARGET_PARTITIONS: Final = "datafusion.execution.target_partitions"
# DataFusion 55.0 skips row groups by the bounds that MIN and MAX have reached so far. While one of
# them has seen only NULL, it uses those of the others alone, and loses the rows of that one.
# It pushes filters through joins by the names of columns: one on `b.id` skips row groups of `a` by
# `a.id` (apache/datafusion#25244, #25296). And partitions of a join that filters its other side
# wait for ever if they are read one after another, as by `DataFrame.__arrow_c_stream__`.
SAFE: Final[Mapping[str, str]] = {
    AGGREGATE_FILTERS: "false",
    JOIN_FILTERS: "false",
    TOP_FILTERS: "false",
}
"""Settings that our sessions begin with: with DataFusion's, scans lose rows, or never end."""
# Settings that give conditions another meaning: unless they have these values, none is used.
USUAL: Final[Mapping[str, str | None]] = {
    "datafusion.execution.enable_ansi_mode": "false",
    "datafusion.execution.time_zone": None,
    "datafusion.sql_parser.dialect": "generic",
    "datafusion.sql_parser.parse_float_as_decimal": "false",
}
_INFORMATION: Final = "datafusion.catalog.information_schema"
# Settings that change neither a value nor which rows a scan reads.
_FREE_PREFIXES: Final = tuple(
    f"datafusion.{each}." for each in ("catalog", "explain", "format", "runtime", "sql_parser")
)
_FREE: Final = frozenset(
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
    """All settings of a session, or of `super()` of one, by name."""
    show = context.sql
    try:
        found = show("SHOW ALL").to_pylist()
    except Exception:  # the settings are not shown unless another setting allows it
        show(f"SET {_INFORMATION} = true").collect()
        try:
            found = show("SHOW ALL").to_pylist()
        finally:
            show(f"SET {_INFORMATION} = false").collect()
    return {row["name"]: row["value"] for row in found}


@cache
def default_settings() -> Mapping[str, Any]:
    """The settings of a new session."""
    return shown_settings(datafusion.SessionContext())


@cache
def default_functions() -> frozenset[str]:
    """The names of the scalar functions of a new session, aliases included."""
    return frozenset(datafusion.SessionContext().udfs())


def are_free(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Whether only settings differ from `defaults` and `SAFE` that change nothing a scan reads."""
    wanted = {**defaults, **SAFE}
    names = settings.keys() | wanted.keys()
    return all(
        settings.get(name) == wanted.get(name)
        for name in names
        if name not in _FREE and not name.startswith(_FREE_PREFIXES)
    )


@contextmanager
def held(
    values: Mapping[str, Any], current: Mapping[str, Any], run: Callable[[str], Any]
) -> Iterator[None]:
    """Let plans that are made meanwhile have these settings.

    `run` runs a statement in the session, whose settings are `current`.
    """
    try:
        for name, value in values.items():
            run(f"SET {name} = {value}")
        yield
    finally:
        for name in values:
            run(f"SET {name} = {current[name]}")


def unless_set(values: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the user of a session with `current` has left as our sessions begin."""
    first = {**default_settings(), **SAFE}
    return {name: value for name, value in values.items() if current.get(name) == first[name]}
