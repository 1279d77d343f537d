"""Spellings of functions of regular expressions; bridges translate the patterns themselves."""

from __future__ import annotations

from rowsieve.bridges.functions.arguments import with_constants
from rowsieve.bridges.functions.row import Absent, Spelling, function

_UNVERIFIED = Absent("its regular expressions are not known to find the same text")
_EXTRACTED = "coalesce(regexp_substr({0}, {1}, 1, 1, 'c', {2}), '')"
_ALL = "regexp_replace({0}, {1}, {2}, 'g')"

ROWS = (
    function(
        "regex_extract",
        "regexp_extract({0}, {1}, {2})",
        with_constants,
        postgres=Spelling(
            (f"CASE WHEN {{0}} IS NOT NULL THEN {_EXTRACTED} END",),
            write_only="write regexp_substr, which is NULL where nothing is found",
        ),
        datafusion=Absent("write regexp_match, which is a list"),
        trino=_UNVERIFIED,
    ),
    function(
        "regex_substr",
        "regexp_substr({0}, {1})",
        with_constants,
        postgres=("regexp_substr({0}, {1})", "regexp_substr({0}, {1}, 1, 1, 'c', {2})"),
        datafusion=Absent("write regexp_match, which is a list"),
        duckdb=Absent("write regexp_extract, which is empty where nothing is found"),
        trino=_UNVERIFIED,
    ),
    function(
        "regex_replace",
        _ALL,
        with_constants,
        spark="regexp_replace({0}, {1}, {2})",
        trino=_UNVERIFIED,
    ),
    function(
        "regex_replace_first",
        "regexp_replace({0}, {1}, {2})",
        with_constants,
        spark=Absent("its regexp_replace replaces every match"),
        trino=_UNVERIFIED,
    ),
    function(
        "regex_count",
        "regexp_count({0}, {1})",
        with_constants,
        duckdb=Absent(),
        trino=_UNVERIFIED,
    ),
    function(
        "regex_position",
        "regexp_instr({0}, {1})",
        with_constants,
        duckdb=Absent(),
        trino=_UNVERIFIED,
    ),
)
