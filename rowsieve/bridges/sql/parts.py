"""Units of truncation of timestamps, and fields of timestamps."""

from __future__ import annotations

from collections.abc import Mapping

# Fields that all dialects count alike. Elsewhere days of the week start at another number, and
# seconds have no fraction.
PORTABLE_PARTS = frozenset({"year", "quarter", "month", "day", "hour", "minute", "doy", "week"})
_LONG = frozenset({"decade", "century", "millennium"})
_SHORT = frozenset({"second", "millisecond", "microsecond"})
TRUNCATIONS = (PORTABLE_PARTS - {"doy"}) | _LONG | _SHORT
PARTS = PORTABLE_PARTS | _LONG | _SHORT | {"dow", "isodow", "isoyear", "epoch"}
# How a dialect's fields are read that it counts or names differently: our field, and what to add.
EXTRACTED: Mapping[tuple[str, str], tuple[str, int]] = {
    ("spark", "dow"): ("dow", 1),
    ("spark", "dayofweek"): ("dow", 1),
    ("spark", "dow_iso"): ("isodow", 0),
    ("spark", "dayofweek_iso"): ("isodow", 0),
    ("spark", "yearofweek"): ("isoyear", 0),
    ("spark", "second"): ("second", 0),
    **{
        (dialect, part): (ours, 0)
        for dialect in ("duckdb", "datafusion")
        for part, ours in (
            ("dow", "dow"),
            ("isodow", "isodow"),
            ("isoyear", "isoyear"),
            ("second", "whole_second"),
        )
    },
}
PART_ALIASES: Mapping[str, str] = {
    "dayofyear": "doy",
    "dayofweek": "dow",
    "day_of_year": "doy",
    "milliseconds": "millisecond",
    "microseconds": "microsecond",
    "years": "year",
    "months": "month",
    "days": "day",
    "hours": "hour",
    "minutes": "minute",
    "seconds": "second",
}
# How a dialect writes fields that it counts or names differently.
WRITTEN_PARTS: Mapping[tuple[str, str], str] = {
    ("spark", "dow"): "(dayofweek({0}) - 1)",
    ("spark", "isodow"): "(weekday({0}) + 1)",
    ("spark", "isoyear"): "EXTRACT(YEAROFWEEK FROM {0})",
    ("spark", "second"): "EXTRACT(SECOND FROM {0})",
    ("spark", "whole_second"): "second({0})",
    ("trino", "whole_second"): "second({0})",
    ("postgres", "whole_second"): "CAST(floor(EXTRACT(SECOND FROM {0})) AS BIGINT)",
    **{
        (dialect, part): f"EXTRACT({word} FROM {{0}})"
        for dialect in ("duckdb", "datafusion")
        for part, word in (
            ("dow", "DOW"),
            ("isodow", "ISODOW"),
            ("isoyear", "ISOYEAR"),
            ("whole_second", "SECOND"),
        )
    },
}
