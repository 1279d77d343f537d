"""Spellings of functions of lists, maps and JSON; bridges write list elements themselves."""

from __future__ import annotations

from rowsieve.bridges.functions.arguments import constant_slice, of_list, of_map, place_from_one
from rowsieve.bridges.functions.row import Absent, Spelling, function, unverified

_NULL_IF_ABSENT = "it is NULL for an element that is not in the list"
_NOT_JUDGED = "its lists have not been compared with those of an engine"
_SKIPS_NULL = "a NULL item never matches in the engine"
_NO_JSON = "it fails for text that is not JSON, which is NULL here"

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
    *(
        function(
            name,
            (),
            postgres=Spelling(
                (f"jsonb{name.removeprefix('json')}({{0}})",), (f"{name}({{0}})",), reason=_NO_JSON
            ),
            spark=Absent(),
            datafusion=Absent(),
            duckdb=Absent(),
            trino=Absent(),
        )
        for name in ("json_typeof", "json_array_length")
    ),
    *(
        function(
            name,
            (),
            postgres=Spelling((template,), reason=_NO_JSON),
            **dict.fromkeys(("spark", "datafusion", "duckdb", "trino"), Absent()),
        )
        for name, template in (
            ("jsonb_eq", "({0})::jsonb = ({1})::jsonb"),
            ("jsonb_contains", "({0})::jsonb @> ({1})::jsonb"),
            ("jsonb_exists", "{0} ? {1}"),
            ("jsonb_text", "(({0})::jsonb #>> ARRAY[]::text[])"),
            ("jsonb_document", "({0})::jsonb::text"),
        )
    ),
    function(
        "list_text",
        "array_to_string({0}, {1})",
        of_list,
        spark="array_join({0}, {1})",
        duckdb=Absent("NULL if all arguments are NULL"),
        trino="array_join({0}, {1})",
    ),
    function(
        "list_position",
        (),
        **dict.fromkeys(("postgres", "datafusion", "duckdb"), Absent(_NULL_IF_ABSENT)),
        **dict.fromkeys(
            ("spark", "trino"),
            unverified(
                "it is 0 for an element that is not in the list", "array_position({0}, {1})"
            ),
        ),
    ),
    function(
        "lists_share",
        (),
        postgres=Absent(_SKIPS_NULL),
        spark="arrays_overlap({0}, {1})",
        datafusion=Absent(_SKIPS_NULL),
        duckdb=Absent(_SKIPS_NULL),
        trino=Absent("a NULL item makes it NULL, even if the other list is empty"),
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
    function(
        "slice",
        (),
        constant_slice,
        spark=Spelling(("slice({0}, {1}, {2})",), reads=constant_slice),
        trino=unverified(_NOT_JUDGED, "slice({0}, {1}, {2})"),
    ),
    function(
        "list_distinct",
        "array_distinct({0})",
        of_list,
        postgres=Absent(),
        duckdb=Absent(
            "it returns items without NULL and in no order; to count them, write list_unique"
        ),
        trino=unverified(_NOT_JUDGED, "array_distinct({0})"),
    ),
    function(
        "list_unique",
        (),
        of_list,
        duckdb=Spelling(("list_unique({0})",), ("array_unique({0})", "len(list_distinct({0}))")),
        **dict.fromkeys(("postgres", "spark", "datafusion", "trino"), Absent()),
    ),
    function(
        "map_keys",
        "map_keys({0})",
        of_map,
        postgres=Absent("it has no maps"),
        trino=unverified(_NOT_JUDGED, "map_keys({0})"),
    ),
    function("list_element", (), place_from_one, trino=Absent()),
)
