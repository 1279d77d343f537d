"""Names of methods in other libraries, with the call here that does the same.

An AttributeError for such a name says what to write. The names are no methods: `dir` does not list
them, and `hasattr` is False, so that libraries which probe an object are not misled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import getattr_static
from typing import Any, Final

from rowsieve.errors import did_you_mean

_EXPORT: Final = 'to_polars().write_parquet("rows.parquet"), or COPY t TO … in DuckDB'
_CSV: Final = 'to_polars().write_csv("rows.csv")'
_VERSION: Final = "open_table(uri, version=3)"
_GROUPS: Final = 'to_polars(), scan_polars(table), or duckdb.sql("… FROM table")'
_INDEX: Final = "analyze(); bounds and Bloom filters of each part take the place of an index"
_INSERT: Final = "append(rows), or upsert(rows) where the table has a key"
_ORDER: Final = 'scan(order_by_key=True), or to_polars().sort("column")'
_ROWS: Final = "to_arrow().to_pylist()"

TABLE: Final[Mapping[str, str]] = {
    "add": _INSERT,
    "add_columns": 'add_column("name", type)',
    "agg": _GROUPS,
    "aggregate": _GROUPS,
    "alter_columns": 'rename_column("name", "new_name")',
    "arrow": "to_arrow()",
    "as_version": _VERSION,
    "checkout": _VERSION,
    "checkout_version": _VERSION,
    "cleanup_old_versions": "vacuum()",
    "collect": "to_arrow()",
    "copy": "clone(uri)",
    "count_rows": "count(where)",
    "create_index": _INDEX,
    "create_scalar_index": _INDEX,
    "current_snapshot": "detail()",
    "describe": "summarize()",
    "df": "to_pandas()",
    "distinct": _GROUPS,
    "drop": "drop_table(uri)",
    "drop_columns": 'drop_column("name")',
    "dtypes": "schema.types",
    "empty": "count() == 0",
    "explain": "scan(where).explain()",
    "fetchall": _ROWS,
    "fetchdf": "to_pandas()",
    "fetchone": "head(1)",
    "file_uris": "files()",
    "filter": "scan(where)",
    "get_add_actions": "files()",
    "glimpse": "show()",
    "group_by": _GROUPS,
    "groupby": _GROUPS,
    "height": "count()",
    "info": "detail()",
    "insert": _INSERT,
    "insert_into": _INSERT,
    "is_empty": "count() == 0",
    "iter_rows": _ROWS,
    "iterrows": _ROWS,
    "join": _GROUPS,
    "lazy": "scan_polars()",
    "limit": "scan(limit=10)",
    "list_versions": "history()",
    "load_as_version": _VERSION,
    "load_version": _VERSION,
    "location": "uri",
    "merge_insert": 'merge(rows, on="key")',
    "metadata": "detail()",
    "name": "uri",
    "optimize": "compact()",
    "order": _ORDER,
    "order_by": _ORDER,
    "path": "uri",
    "pl": "to_polars()",
    "protocol": "detail()",
    "query": _GROUPS,
    "reload": "refresh()",
    "rename": "Catalog(uri).rename_table(name, new_name)",
    "rows": _ROWS,
    "scanner": "scan(where, columns=[…], limit=10)",
    "select": "scan(columns=[…])",
    "set_table_properties": "set_properties({…})",
    "size": "count()",
    "snapshot": "detail()",
    "snapshots": "history()",
    "sort": _ORDER,
    "sort_by": _ORDER,
    "sort_values": _ORDER,
    "tags": "refs()",
    "take": "head(5), or scan(where)",
    "to_batches": "scan(where).to_batches()",
    "to_csv": _CSV,
    "to_df": "to_pandas()",
    "to_dict": _ROWS,
    "to_dicts": _ROWS,
    "to_parquet": _EXPORT,
    "to_pyarrow_dataset": "to_dataset()",
    "to_pyarrow_table": "to_arrow()",
    "to_pylist": _ROWS,
    "to_table": "to_arrow(where, columns=[…])",
    "truncate": 'delete("TRUE")',
    "unique": _GROUPS,
    "update_incremental": "refresh()",
    "versions": "history()",
    "where": "scan(where)",
    "width": "shape",
    "write": _INSERT,
    "write_csv": _CSV,
    "write_parquet": _EXPORT,
    "z_order": "compact(), after set_properties({'cluster_by': 'zorder(a, b)'})",
}
"""Names that users of deltalake, Lance, DuckDB, Polars and pandas write, and `Table`'s calls."""

SCAN: Final[Mapping[str, str]] = {
    "collect": "to_arrow()",
    "df": "to_arrow().to_pandas()",
    "read_all": "to_arrow()",
    "to_df": "to_arrow().to_pandas()",
    "to_pandas": "to_arrow().to_pandas()",
    "to_polars": "polars.DataFrame(scan)",
    "to_table": "to_arrow()",
}
"""The same for `Scan`."""

_OPEN: Final = "open_table(uri)"
_EXISTS: Final = "open_table(uri), which raises TableNotFound where there is none"
_SQL: Final = 'Catalog(uri).sql("SELECT …"); values of update that are text are SQL without it'
_CREATE: Final = "create_table(uri, rows, key=[…])"
MODULE: Final[Mapping[str, str]] = {
    "DeltaTable": _OPEN,
    "connect": "Catalog(uri), or Database(uri)",
    "convert_to_deltalake": "from_parquet(folder, uri)",
    "dataset": _OPEN,
    "load_table": _OPEN,
    "read_csv": 'create_table(uri, "rows.csv", key=[…])',
    "read_delta": "from_delta(uri, target), or open_table(uri) for a Rowsieve table",
    "read_parquet": "open_parquet(files), or open_table(uri) for a table",
    "read_table": _OPEN,
    "exists": _EXISTS,
    "is_deltatable": _EXISTS,
    "is_table": _EXISTS,
    "query": _SQL,
    "scan_delta": "scan_polars(table)",
    "scan_parquet": "open_parquet(files)",
    "scan_table": "scan_polars(table)",
    "sql": _SQL,
    "table_exists": _EXISTS,
    "write_dataset": _CREATE,
    "write_delta": _CREATE,
    "write_deltalake": _CREATE,
    "write_table": _CREATE,
}
"""The same for the functions of the package."""


ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("condition", "expr", "filter", "filters", "row_filter"), ("where",)),
    "predicate": ("where", "on"),
    **dict.fromkeys(("new_values", "set", "updates", "values"), ("assignments",)),
    **dict.fromkeys(("projection", "select", "selected_fields"), ("columns",)),
    **dict.fromkeys(("source", "new_data", "rows", "df"), ("data", "schema_or_data")),
    **dict.fromkeys(("primary_key", "primary_keys", "keys"), ("key",)),
    **dict.fromkeys(("n", "n_rows", "num_rows"), ("limit",)),
    **dict.fromkeys(("timestamp", "asof"), ("as_of",)),
    **dict.fromkeys(("retention_hours", "cleanup_older_than"), ("older_than",)),
    "version_as_of": ("version",),
    "timestamp_as_of": ("as_of",),
    "mode": ("if_exists",),
}
"""Names of arguments there, with those of ours that mean the same."""
OF_THE_KEY: Final = frozenset({"on", "join_cols", "join_columns"})
"""Arguments there that name the columns which match rows; here a table's key does."""


def unknown_attribute(owner: Any, name: str, names: Mapping[str, str]) -> object:
    """Raise AttributeError for a name that the object lacks, with what to write instead.

    Python asks also where a property of the object raised AttributeError, and forgets that error:
    the property is evaluated again, for its value or for the error with its cause.
    """
    if (member := getattr_static(type(owner), name, None)) is not None:
        return member.__get__(owner, type(owner))
    kind = type(owner).__name__
    raise AttributeError(
        f"{kind!r} object has no attribute {name!r}{hint_for(name, names, dir(owner))}"
    )


def hint_for_argument(name: str, known: Iterable[str]) -> str:
    """Return what to write in place of an unknown argument; empty if nothing is like it."""
    ours = [each for each in known if each not in ("self", "cls")]
    for each in ARGUMENTS.get(name, ()):
        if each in ours:
            return f"; write {each}=…"
    if name in OF_THE_KEY:
        return "; leave it out: rows are matched by the table's key"
    return did_you_mean(name, ours)


def hint_for(name: str, names: Mapping[str, str], known: Iterable[str]) -> str:
    """Return what to write in place of an unknown name; empty if nothing is like it.

    Names with an underscore are those of libraries that probe an object: they get no hint.
    """
    if name.startswith("_"):
        return ""
    if name in names:
        return f"; write {names[name]}"
    return did_you_mean(name, [each for each in known if not each.startswith("_")])
