"""Tables of names: arithmetic operators of the grammar, functions that read files, now()."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

OPERATORS: Mapping[type[Any], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Mod: "modulo",
}

FILE_READERS = frozenset(
    {
        "read_csv",
        "read_csv_auto",
        "read_parquet",
        "read_json",
        "read_json_auto",
        "read_text",
        "read_blob",
        "parquet_scan",
        "parquet_metadata",
        "glob",
        "sniff_csv",
        "pg_read_file",
        "pg_read_binary_file",
        "pg_ls_dir",
        "lo_import",
        "read_ndjson",
        "sqlite_scan",
        "delta_scan",
        "iceberg_scan",
        "input_file_name",
    }
)
NOW = frozenset({"now", "current_timestamp", "transaction_timestamp"})
