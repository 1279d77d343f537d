"""Spellings of functions of dates and timestamps; bridges write parts and zones themselves."""

from __future__ import annotations

from rowsieve.bridges.functions.arguments import (
    common_part,
    common_part_of_any,
    constant_text,
    days,
    formatted_local_time,
    formatted_time,
    known_unit,
    known_unit_of_any,
    local_times,
    more_parts,
    more_parts_of_any,
    moved_local_time,
    moved_time,
    whole_seconds,
)
from rowsieve.bridges.functions.row import Absent, Spelling, function, unverified

_MONTH_END = "date_trunc('month', {}) + INTERVAL '1 month' - INTERVAL '1 day'"
_DAYS = "(CAST({0} AS DATE) - CAST({1} AS DATE))"
_MICROS = "arrow_cast(arrow_cast({0}, 'Timestamp(Microsecond, None)'), 'Int64')"
_INSTANT = (
    "arrow_cast(arrow_cast({0}, 'Timestamp(Second, Some(\"UTC\"))'), "
    "'Timestamp(Microsecond, Some(\"UTC\"))')"
)
_UNJUDGED = "its results have not been compared with ours"

_OTHER_SPELLINGS = "it also accepts other texts, by rules that are unknown to Rowsieve"
_TO_TIMESTAMPS = tuple(f"to_timestamp_{unit}" for unit in ("seconds", "millis", "micros", "nanos"))

ROWS = (
    function(
        "parse_timestamp",
        "",
        duckdb=unverified(_OTHER_SPELLINGS, "strptime({0}, {1})"),
        datafusion=Spelling(
            ("to_timestamp({0}, {1})", "to_timestamp({0})"),
            tuple(f"{name}({{0}}, {{1}})" for name in _TO_TIMESTAMPS),
            reason=_OTHER_SPELLINGS,
        ),
        trino=Spelling(("date_parse({0}, {1})",), cases=(constant_text,)),
        postgres=Absent(),
        spark=Absent(),
    ),
    function(
        "try_parse_timestamp",
        "",
        duckdb=unverified(_OTHER_SPELLINGS, "try_strptime({0}, {1})"),
        **dict.fromkeys(("postgres", "spark", "datafusion", "trino"), Absent()),
    ),
    function(
        "parse_date",
        "",
        postgres=unverified(_OTHER_SPELLINGS, "to_date({0}, {1})"),
        datafusion=unverified(_OTHER_SPELLINGS, "to_date({0}, {1})", "to_date({0})"),
        **dict.fromkeys(("spark", "duckdb", "trino"), Absent()),
    ),
    function(
        "parse_instant",
        "",
        postgres=unverified(_OTHER_SPELLINGS, "to_timestamp({0}, {1})"),
        **dict.fromkeys(("spark", "datafusion", "duckdb", "trino"), Absent()),
    ),
    function(
        "last_day",
        "last_day({0})",
        days,
        postgres=Spelling(
            (f"CAST({_MONTH_END.format('CAST({0} AS TIMESTAMP)')} AS DATE)",), ("last_day({0})",)
        ),
        datafusion=f"CAST({_MONTH_END.format('{0}')} AS DATE)",
        trino="last_day_of_month({0})",
    ),
    function(
        "days_between",
        _DAYS,
        days,
        spark="datediff({0}, {1})",
        duckdb="date_diff('day', {1}, {0})",
        trino="date_diff('day', CAST({1} AS DATE), CAST({0} AS DATE))",
    ),
    function(
        "make_date",
        (),
        **dict.fromkeys(
            ("postgres", "spark", "datafusion", "duckdb"),
            unverified(_UNJUDGED, "make_date({0}, {1}, {2})"),
        ),
        trino=Absent(),
    ),
    function(
        "epoch_us",
        "epoch_us({0})",
        local_times,
        postgres="CAST(EXTRACT(EPOCH FROM {0}) * 1000000 AS BIGINT)",
        spark="unix_micros({0})",
        datafusion=_MICROS,
        trino=Absent(),
    ),
    function(
        "epoch_seconds",
        "CAST(floor(EXTRACT(EPOCH FROM {0})) AS BIGINT)",
        local_times,
        spark="unix_seconds({0})",
        datafusion=Absent("its seconds have a fraction"),
        duckdb=Absent("its seconds have a fraction"),
        trino=Absent(),
    ),
    function(
        "timestamp_seconds",
        (),
        postgres=unverified(_UNJUDGED, "to_timestamp({0})"),
        spark=unverified(_UNJUDGED, "timestamp_seconds({0})"),
        datafusion=unverified(_UNJUDGED, _INSTANT),
        duckdb=unverified(_UNJUDGED, "to_timestamp({0})"),
        trino=Absent(),
    ),
    function(
        "date_trunc",
        (),
        known_unit,
        **dict.fromkeys(("postgres", "duckdb", "datafusion"), Spelling(cases=(known_unit_of_any,))),
    ),
    function(
        "format_time",
        "to_char({0}, {1})",
        formatted_time,
        postgres=formatted_local_time,
        spark="date_format({0}, {1})",
        duckdb="strftime({0}, {1})",
        trino=unverified(_UNJUDGED, "date_format({0}, {1})"),
    ),
    function(
        "extract",
        (),
        common_part,
        **dict.fromkeys(
            ("postgres", "spark", "duckdb"),
            Spelling(cases=(common_part, more_parts)),
        ),
        datafusion=Spelling(cases=(common_part_of_any, more_parts_of_any)),
        trino=Spelling(cases=(common_part, whole_seconds)),
    ),
    *(
        function(name, (), moved_local_time, datafusion=moved_time, trino=Absent())
        for name in ("add_interval", "shift", "shift_timestamp")
    ),
)
