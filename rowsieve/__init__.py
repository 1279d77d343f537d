"""Upsert into Parquet at the cost of the change; query it from DataFusion and Spark.

A table is a set of versioned, sorted Parquet parts. `create_table` and `open_table` return a
`Table`. Change it with `upsert`, `delete`, `update`, `apply_changes` and others, read it with
`scan`, or register it in an engine: `ctx.register_table("name", table)`. `register_function` adds
functions for conditions. `translate` translates a condition of one engine for another.

Public names are imported from their modules on first use, so `import rowsieve` alone is cheap.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know the name; importing `typing` takes 5 ms, all of it here
if TYPE_CHECKING:
    from typing import Any, Final

    from rowsieve import errors as errors
    from rowsieve import metrics as metrics
    from rowsieve import objects as objects
    from rowsieve import predicate as predicate
    from rowsieve.bridges.python_constants import lit
    from rowsieve.bridges.session import Session
    from rowsieve.bridges.translate import translate
    from rowsieve.bridges.translation import Exactness, Translation
    from rowsieve.catalog import Catalog
    from rowsieve.config import Config, configure
    from rowsieve.database.database import Database
    from rowsieve.differential.differences import (
        changes_to_updates,
        differences,
        updates_to_changes,
    )
    from rowsieve.encodings.codecs import register_codec
    from rowsieve.envelopes.applying import AppliedEvents
    from rowsieve.envelopes.routing import AppliedTables
    from rowsieve.flags.rollout import Flags, Rollout
    from rowsieve.foreign.from_delta import from_delta, import_delta
    from rowsieve.foreign.from_iceberg import from_iceberg, import_iceberg
    from rowsieve.foreign.import_parquet import from_parquet
    from rowsieve.foreign.open_parquet import open_parquet
    from rowsieve.opening import create_table, drop_table, open_table, scan_polars
    from rowsieve.planner.plan import ScanPlan
    from rowsieve.predicate.functions.registered import register_function
    from rowsieve.predicate.rowset import RowSet
    from rowsieve.run_transaction import run_transaction
    from rowsieve.scan import Scan, read_split
    from rowsieve.storage.log.log_entry import Commit
    from rowsieve.table import Table, Transaction
    from rowsieve.types.native_types import to_native

__all__ = [
    "AppliedEvents",
    "AppliedTables",
    "Catalog",
    "Commit",
    "Config",
    "Database",
    "Exactness",
    "Flags",
    "Rollout",
    "RowSet",
    "Scan",
    "ScanPlan",
    "Session",
    "Table",
    "Transaction",
    "Translation",
    "__version__",
    "changes_to_updates",
    "configure",
    "create_table",
    "differences",
    "drop_table",
    "errors",
    "from_delta",
    "from_iceberg",
    "from_parquet",
    "import_delta",
    "import_iceberg",
    "lit",
    "metrics",
    "objects",
    "open_parquet",
    "open_table",
    "predicate",
    "read_split",
    "register_codec",
    "register_function",
    "run_transaction",
    "scan_polars",
    "to_native",
    "translate",
    "updates_to_changes",
]
__version__ = "0.2.0"

_HOMES: Final = {
    "AppliedEvents": "rowsieve.envelopes.applying",
    "AppliedTables": "rowsieve.envelopes.routing",
    "Catalog": "rowsieve.catalog",
    "Commit": "rowsieve.storage.log.log_entry",
    "Config": "rowsieve.config",
    "Database": "rowsieve.database.database",
    "Exactness": "rowsieve.bridges.translation",
    "Flags": "rowsieve.flags.rollout",
    "Rollout": "rowsieve.flags.rollout",
    "RowSet": "rowsieve.predicate.rowset",
    "Scan": "rowsieve.scan",
    "ScanPlan": "rowsieve.planner.plan",
    "Session": "rowsieve.bridges.session",
    "Table": "rowsieve.table",
    "Transaction": "rowsieve.table",
    "Translation": "rowsieve.bridges.translation",
    "changes_to_updates": "rowsieve.differential.differences",
    "configure": "rowsieve.config",
    "create_table": "rowsieve.opening",
    "drop_table": "rowsieve.opening",
    "differences": "rowsieve.differential.differences",
    "from_delta": "rowsieve.foreign.from_delta",
    "from_iceberg": "rowsieve.foreign.from_iceberg",
    "from_parquet": "rowsieve.foreign.import_parquet",
    "import_delta": "rowsieve.foreign.from_delta",
    "import_iceberg": "rowsieve.foreign.from_iceberg",
    "lit": "rowsieve.bridges.python_constants",
    "open_parquet": "rowsieve.foreign.open_parquet",
    "open_table": "rowsieve.opening",
    "read_split": "rowsieve.scan",
    "register_codec": "rowsieve.encodings.codecs",
    "register_function": "rowsieve.predicate.functions.registered",
    "run_transaction": "rowsieve.run_transaction",
    "scan_polars": "rowsieve.opening",
    "to_native": "rowsieve.types.native_types",
    "translate": "rowsieve.bridges.translate",
    "updates_to_changes": "rowsieve.differential.differences",
}
_PACKAGES: Final = ("errors", "metrics", "objects", "predicate")
"""Submodules available as `rowsieve.NAME` without importing them explicitly."""


def __getattr__(name: str) -> Any:
    """Return a public name from the module that defines it, or one of `_PACKAGES`."""
    from importlib import import_module  # noqa: PLC0415 - not before the first name is used

    if name in _PACKAGES:
        return import_module(f"rowsieve.{name}")
    if (home := _HOMES.get(name)) is None:
        from importlib.util import find_spec  # noqa: PLC0415 - rarely used

        if name.startswith("_") or find_spec(f"rowsieve.{name}") is not None:
            raise AttributeError(name)  # `from rowsieve import submodule` asks here first
        from rowsieve.arguments.peer_names import MODULE, hint_for  # noqa: PLC0415 - rarely used

        hint = hint_for(name, MODULE, __all__)
        raise AttributeError(f"module 'rowsieve' has no attribute {name!r}{hint}")
    member = getattr(import_module(home), name)
    globals()[name] = member  # later uses do not call __getattr__
    return member


def __dir__() -> list[str]:
    return sorted(__all__)
