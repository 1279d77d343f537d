"""The functions of SQL text that have a fixed form in the grammar, and the calls they stand for.

A row names every argument that a function may have; one that carries anything else (a precision,
an option, a DISTINCT) is refused. Functions without a row here are calls by their own name, which
`bind` looks up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Form:
    """A function: its name, its arguments in order, and flags that change nothing here."""

    name: str
    arguments: tuple[str, ...] = ("this",)
    flags: Mapping[str, Any] | None = None


FORMS: Mapping[type[Any], Form] = {
    exp.Sqrt: Form("sqrt"),
    exp.Degrees: Form("degrees"),
    exp.Radians: Form("radians"),
    exp.BitLength: Form("bit_length"),
    exp.Ascii: Form("ascii"),
    exp.MD5: Form("md5"),
    exp.Repeat: Form("repeat", ("this", "times")),
    exp.SplitPart: Form("split_part", ("this", "delimiter", "part_index")),
    exp.Translate: Form("translate", ("this", "from_", "to")),
    exp.LastDay: Form("last_day"),
    exp.DateFromParts: Form("make_date", ("year", "month", "day")),
    exp.Lower: Form("lower"),
    exp.Upper: Form("upper"),
    exp.Abs: Form("abs"),
    exp.Length: Form("length"),
    exp.Ceil: Form("ceil"),
    exp.Floor: Form("floor"),
    exp.Round: Form("round", ("this", "decimals")),
    exp.Replace: Form("replace", ("this", "expression", "replacement")),
    exp.Left: Form("left", ("this", "expression")),
    exp.Right: Form("right", ("this", "expression")),
    exp.StrPosition: Form("position", ("this", "substr")),
    exp.Reverse: Form("reverse"),
    exp.EndsWith: Form("ends_with", ("this", "expression")),
    exp.Contains: Form("contains", ("this", "expression")),
    exp.Nullif: Form("nullif", ("this", "expression")),
    exp.StartsWith: Form("starts_with", ("this", "expression")),
    exp.Greatest: Form("greatest", ("this", "expressions"), {"ignore_nulls": True}),
    exp.Least: Form("least", ("this", "expressions"), {"ignore_nulls": True}),
    exp.Mod: Form("modulo", ("this", "expression")),
    exp.Year: Form("extract_year"),
    exp.Quarter: Form("extract_quarter"),
    exp.Month: Form("extract_month"),
    exp.Day: Form("extract_day"),
    exp.Hour: Form("extract_hour"),
    exp.Minute: Form("extract_minute"),
}

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
