"""The functions of SQL text that have a fixed form in the grammar, and the calls they stand for.

A row names every argument that a function may have; one that carries anything else (a precision,
an option, a DISTINCT) is refused. Functions without a row here are calls by their own name, which
`bind` looks up.
"""

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
