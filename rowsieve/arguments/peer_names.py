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

TABLE: Final[Mapping[str, str]] = {
    "add": "append(rows), or upsert(rows) where the table has a key",
    "add_columns": 'add_column("name", type)',
    "alter_columns": 'rename_column("name", "new_name")',
    "arrow": "to_arrow()",
    "checkout": _VERSION,
    "checkout_version": _VERSION,
    "cleanup_old_versions": "vacuum()",
    "collect": "to_arrow()",
    "count_rows": "count(where)",
    "describe": "summarize()",
    "df": "to_pandas()",
    "drop_columns": 'drop_column("name")',
    "dtypes": "schema.types",
    "explain": "scan(where).explain()",
    "fetchall": "to_arrow().to_pylist()",
    "fetchdf": "to_pandas()",
    "file_uris": "files()",
    "filter": "scan(where)",
    "get_add_actions": "files()",
    "glimpse": "show()",
    "insert": "append(rows), or upsert(rows) where the table has a key",
    "iter_rows": "to_arrow().to_pylist()",
    "lazy": "scan_polars()",
    "limit": "scan(limit=10)",
    "load_as_version": _VERSION,
    "load_version": _VERSION,
    "merge_insert": 'merge(rows, on="key")',
    "metadata": "detail()",
    "optimize": "compact()",
    "pl": "to_polars()",
    "scanner": "scan(where, columns=[…], limit=10)",
    "select": "scan(columns=[…])",
    "set_table_properties": "set_properties({…})",
    "tags": "refs()",
    "take": "head(5), or scan(where)",
    "to_batches": "scan(where).to_batches()",
    "to_csv": _CSV,
    "to_df": "to_pandas()",
    "to_dicts": "to_arrow().to_pylist()",
    "to_parquet": _EXPORT,
    "to_pyarrow_dataset": "to_dataset()",
    "to_pyarrow_table": "to_arrow()",
    "to_table": "to_arrow(where, columns=[…])",
    "update_incremental": "refresh()",
    "versions": "history()",
    "where": "scan(where)",
    "write": "append(rows), or upsert(rows) where the table has a key",
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
_CREATE: Final = "create_table(uri, rows, key=[…])"
MODULE: Final[Mapping[str, str]] = {
    "DeltaTable": _OPEN,
    "connect": "Catalog(uri), or Database(uri)",
    "convert_to_deltalake": "from_parquet(folder, uri)",
    "dataset": _OPEN,
    "load_table": _OPEN,
    "read_csv": 'create_table(uri, "rows.csv", key=[…])',
    "read_delta": "from_delta(uri, target), or open_table(uri) for a table of ours",
    "read_parquet": "open_parquet(files), or open_table(uri) for a table",
    "read_table": _OPEN,
    "scan_delta": "scan_polars(table)",
    "scan_parquet": "open_parquet(files)",
    "sql": 'Catalog(uri).sql("SELECT …"); values of update that are text are SQL without it',
    "write_dataset": _CREATE,
    "write_delta": _CREATE,
    "write_deltalake": _CREATE,
    "write_table": _CREATE,
}
"""The same for the functions of the package."""


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


def hint_for(name: str, names: Mapping[str, str], known: Iterable[str]) -> str:
    """Return what to write in place of an unknown name; empty if nothing is like it.

    Names with an underscore are those of libraries that probe an object: they get no hint.
    """
    if name.startswith("_"):
        return ""
    if name in names:
        return f"; write {names[name]}"
    return did_you_mean(name, [each for each in known if not each.startswith("_")])
