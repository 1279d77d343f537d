"""Spellings of functions of lists; the bridges write constants and members themselves."""

from __future__ import annotations

from rowsieve.bridges.functions.arguments import of_list, place_from_one
from rowsieve.bridges.functions.row import Absent, Spelling, function

ROWS = (
    function(
        "list_length",
        "cardinality({0})",
        of_list,
        spark=Spelling(("size({0})",), ("cardinality({0})",)),
        duckdb=Spelling(("len({0})",), ("cardinality({0})", "array_length({0})")),
    ),
    function("list_element", (), place_from_one, trino=Absent()),
)
