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
_CHECKPOINT: Final = "maintain(); checkpoints of the log are written by commits"
_CLUSTER: Final = "set_properties({'cluster_by': 'zorder(a, b)'}), then compact()"
_COLUMNS: Final = "alter(), add_column(name, type) or evolve(schema)"
_REORDER: Final = "reorder_columns([name, …])"
_RESTORE: Final = "restore(version)"

TABLE: Final[Mapping[str, str]] = {
    "add": _INSERT,
    "add_columns": 'add_column("name", type)',
    "add_files": "from_parquet(files, uri), or CALL system.add_files in Catalog(uri).sql",
    "add_partition_field": _CLUSTER,
    "agg": _GROUPS,
    "aggregate": _GROUPS,
    "all_files": "files()",
    "alter_columns": 'rename_column("name", "new_name")',
    "arrow": "to_arrow()",
    "as_version": _VERSION,
    "checkout": _VERSION,
    "checkout_version": _VERSION,
    "cleanup_metadata": "vacuum()",
    "cleanup_old_versions": "vacuum()",
    "collect": "to_arrow()",
    "compact_logs": _CHECKPOINT,
    "copy": "clone(uri)",
    "count_rows": "count(where)",
    "create_branch": "branch(name)",
    "create_checkpoint": _CHECKPOINT,
    "create_index": _INDEX,
    "create_scalar_index": _INDEX,
    "create_tag": "tag(name)",
    "create_write_transaction": "transaction()",
    "current_snapshot": "detail()",
    "data_files": "files()",
    "delete_column": 'drop_column("name")',
    "delete_files": "files()",
    "deletion_vectors": "files()",
    "describe": "summarize()",
    "df": "to_pandas()",
    "distinct": _GROUPS,
    "drop": "drop_table(uri)",
    "drop_columns": 'drop_column("name")',
    "dtypes": "schema.types",
    "dynamic_partition_overwrite": "overwrite(data, where=…)",
    "empty": "count() == 0",
    "entries": "files()",
    "expire_snapshots": "expire_versions()",
    "explain": "scan(where).explain()",
    "fetchall": _ROWS,
    "fetchdf": "to_pandas()",
    "fetchone": "head(1)",
    "file_uris": "files()",
    "filter": "scan(where)",
    "format_version": "detail()",
    "get_add_actions": "files()",
    "glimpse": "show()",
    "group_by": _GROUPS,
    "groupby": _GROUPS,
    "height": "count()",
    "incremental_append_scan": "changes(from_version)",
    "info": "detail()",
    "insert": _INSERT,
    "insert_into": _INSERT,
    "inspect": "detail(), files(), history() or refs()",
    "is_empty": "count() == 0",
    "iter_rows": _ROWS,
    "iterrows": _ROWS,
    "join": _GROUPS,
    "lazy": "scan_polars()",
    "limit": "scan(limit=10)",
    "list_versions": "history()",
    "load_as_version": _VERSION,
    "load_cdf": "changes(from_version)",
    "load_version": _VERSION,
    "location": "uri",
    "maintenance": "maintain()",
    "make_column_optional": 'relax_not_null("name")',
    "manage_snapshots": "tag(name), branch(name) or restore(version)",
    "manifests": "files()",
    "merge_insert": 'merge(rows, on="key")',
    "merge_into": 'merge(rows, on="key")',
    "metadata": "detail()",
    "metadata_location": 'publish("iceberg").metadata_location',
    "move_after": _REORDER,
    "move_before": _REORDER,
    "move_first": _REORDER,
    "name": "uri",
    "optimize": "compact()",
    "order": _ORDER,
    "order_by": _ORDER,
    "partitions": _CLUSTER,
    "path": "uri",
    "pl": "to_polars()",
    "properties": 'detail()["properties"], and set_properties({…}) to change them',
    "protocol": "detail()",
    "query": _GROUPS,
    "reload": "refresh()",
    "remove_branch": "drop_branch(name)",
    "remove_properties": "unset_properties([name])",
    "remove_tag": "drop_tag(name)",
    "rename": "Catalog(uri).rename_table(name, new_name)",
    "repair": "verify()",
    "rollback": _RESTORE,
    "rollback_to_snapshot": _RESTORE,
    "rollback_to_timestamp": _RESTORE,
    "rows": _ROWS,
    "schemas": "open_table(uri, version=3).schema",
    "scanner": "scan(where, columns=[…], limit=10)",
    "select": "scan(columns=[…])",
    "set_column_metadata": "set_comment(name, comment)",
    "set_current_snapshot": _RESTORE,
    "set_default_value": "set_default(name, default)",
    "set_table_properties": "set_properties({…})",
    "size": "count()",
    "snapshot": "detail()",
    "snapshot_as_of_timestamp": "open_table(uri, as_of=time)",
    "snapshot_by_id": _VERSION,
    "snapshot_by_name": "at_ref(name)",
    "snapshots": "history()",
    "sort": _ORDER,
    "sort_by": _ORDER,
    "sort_order": _CLUSTER,
    "sort_orders": _CLUSTER,
    "sort_values": _ORDER,
    "spec": _CLUSTER,
    "specs": _CLUSTER,
    "table_config": "detail()",
    "table_uri": "uri",
    "tags": "refs()",
    "take": "head(5), or scan(where)",
    "to_batches": "scan(where).to_batches()",
    "to_csv": _CSV,
    "to_df": "to_pandas()",
    "to_dict": _ROWS,
    "to_dicts": _ROWS,
    "to_duckdb": 'duckdb.sql("FROM table")',
    "to_parquet": _EXPORT,
    "to_pyarrow_dataset": "to_dataset()",
    "to_pyarrow_table": "to_arrow()",
    "to_pylist": _ROWS,
    "to_table": "to_arrow(where, columns=[…])",
    "truncate": 'delete("TRUE")',
    "union_by_name": "evolve(schema)",
    "unique": _GROUPS,
    "update_column": "widen_column(name, type)",
    "update_incremental": "refresh()",
    "update_schema": _COLUMNS,
    "update_sort_order": _CLUSTER,
    "update_spec": _CLUSTER,
    "update_statistics": "analyze()",
    "versions": "history()",
    "where": "scan(where)",
    "width": "shape",
    "write": _INSERT,
    "write_csv": _CSV,
    "write_parquet": _EXPORT,
    "z_order": _CLUSTER,
}
"""Names of deltalake, pyiceberg, Lance, DuckDB, Polars and pandas, with the calls of `Table`."""

_WHOLE_SCAN: Final = "table.scan(where, columns=[…], limit=10)"
SCAN: Final[Mapping[str, str]] = {
    "collect": "to_arrow()",
    "df": "to_arrow().to_pandas()",
    "filter": _WHOLE_SCAN,
    "limit": _WHOLE_SCAN,
    "plan_files": "plan()",
    "projection": "schema",
    "read_all": "to_arrow()",
    "select": _WHOLE_SCAN,
    "snapshot": "version",
    "to_arrow_batch_reader": "to_reader()",
    "to_df": "to_arrow().to_pandas()",
    "to_duckdb": 'duckdb.sql("FROM scan")',
    "to_pandas": "to_arrow().to_pandas()",
    "to_polars": "polars.DataFrame(scan)",
    "to_pylist": _ROWS,
    "to_table": "to_arrow()",
    "use_ref": "open_table(uri, ref=name).scan()",
    "where": _WHOLE_SCAN,
}
"""The same for `Scan`."""

HISTORY: Final[Mapping[str, str]] = {
    "to_df": "to_arrow().to_pandas()",
    "to_dicts": _ROWS,
    "to_pandas": "to_arrow().to_pandas()",
    "to_polars": "polars.DataFrame(history.to_arrow())",
    "to_pylist": _ROWS,
}
"""The same for the commits of `Table.history`."""

_NO_VIEWS: Final = "sql(query); a catalog has no views"
_OPEN_NAME: Final = "open_table(name)"
DATABASE: Final[Mapping[str, str]] = {
    "create_table_if_not_exists": 'create_table(name, …, if_exists="ignore")',
    "create_table_transaction": "create_table(name, …)",
    "create_view": _NO_VIEWS,
    "drop_view": _NO_VIEWS,
    "execute": "sql(statement)",
    "list_namespaces": "namespaces()",
    "list_schemas": "namespaces()",
    "list_tables": "tables()",
    "list_views": _NO_VIEWS,
    "load_table": _OPEN_NAME,
    "load_view": _NO_VIEWS,
    "namespace_exists": "name in namespaces()",
    "purge_table": "drop_table(name, purge=True)",
    "query": "sql(statement)",
    "register_view": _NO_VIEWS,
    "schemas": "namespaces()",
    "table": _OPEN_NAME,
    "table_exists": "name in tables()",
    "view_exists": _NO_VIEWS,
}
"""Names that users of catalogs of pyiceberg and of DuckDB write, and `Database`'s."""

CATALOG: Final[Mapping[str, str]] = {
    **DATABASE,
    "create_namespace_if_not_exists": 'create_namespace(name, if_exists="ignore")',
    "create_schema": "create_namespace(name)",
    "drop_schema": "drop_namespace(name)",
    "load_namespace_properties": "properties",
    "transaction": 'database(namespace).transaction(), of a namespace with log="shared"',
    "update_namespace_properties": "set_properties({…})",
}
"""The same for `Catalog`."""

MERGING: Final[Mapping[str, str]] = {
    "whenMatchedDelete": "when_matched_delete()",
    "whenMatchedUpdate": "when_matched_update({…})",
    "whenMatchedUpdateAll": "when_matched_update_all()",
    "whenNotMatchedBySourceDelete": "when_not_matched_by_source_delete()",
    "whenNotMatchedBySourceUpdate": "when_not_matched_by_source_update({…})",
    "whenNotMatchedInsert": "when_not_matched_insert({…})",
    "whenNotMatchedInsertAll": "when_not_matched_insert_all()",
}
"""Names of Delta's merge on Spark, and the clauses of `Table.merge`."""

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
    **dict.fromkeys(
        ("condition", "expr", "filter", "filters", "overwrite_filter", "row_filter"), ("where",)
    ),
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
OF_SCAN: Final = frozenset({"as_of", "limit", "order_by_key", "version"})
"""Arguments of `Table.scan` that the short calls for rows lack."""
OF_PARTITIONS: Final = frozenset(
    {"partition_by", "partition_cols", "partition_spec", "partitioning"}
)
"""Arguments there that divide a table into folders."""
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
    if name in OF_SCAN and {"where", "params"} <= set(ours) and "metadata" not in ours:
        return f"; write scan({name}=…), which has it"
    if name in OF_PARTITIONS:
        return "; leave it out: statistics skip parts, and the property cluster_by orders rows"
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
