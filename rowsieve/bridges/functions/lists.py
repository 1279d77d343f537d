"""Spellings of functions of lists; the bridges write constants and members themselves."""

from __future__ import annotations

from rowsieve.bridges.functions.arguments import of_list, place_from_one
from rowsieve.bridges.functions.row import Absent, Spelling, function, unverified

_NOT_THERE = "what is not there is NULL"
_SHARED = "a NULL item is no match there"

ROWS = (
    function(
        "list_length",
        "cardinality({0})",
        of_list,
        spark=Spelling(("size({0})",), ("cardinality({0})",)),
        duckdb=Spelling(("len({0})",), ("cardinality({0})", "array_length({0})")),
    ),
    *(
        function(
            f"list_{name}",
            f"array_{name}({{0}})",
            of_list,
            postgres=Absent(),
            duckdb=f"list_{name}({{0}})",
            trino=Absent("a NULL item makes it NULL"),
        )
        for name in ("min", "max")
    ),
    function(
        "list_text",
        "array_to_string({0}, {1})",
        of_list,
        spark="array_join({0}, {1})",
        duckdb=Absent("of NULLs alone it makes NULL"),
        trino="array_join({0}, {1})",
    ),
    function(
        "list_position",
        (),
        **dict.fromkeys(("postgres", "datafusion", "duckdb"), Absent(_NOT_THERE)),
        **dict.fromkeys(
            ("spark", "trino"),
            unverified("it is 0 of what is not there", "array_position({0}, {1})"),
        ),
    ),
    function(
        "lists_share",
        (),
        postgres=Absent(_SHARED),
        spark="arrays_overlap({0}, {1})",
        datafusion=Absent(_SHARED),
        duckdb=Absent(_SHARED),
        trino=Absent("a NULL item makes it NULL beside an empty list, too"),
    ),
    function(
        "map_has_key",
        (),
        postgres=Absent(),
        spark="map_contains_key({0}, {1})",
        datafusion=Absent(),
        duckdb="map_contains({0}, {1})",
        trino=Absent(),
    ),
    function("list_element", (), place_from_one, trino=Absent()),
)
