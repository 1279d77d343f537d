"""Settings of a Spark session that change what conditions mean, and the values that we support.

A condition of a session with another value is refused by the name of the setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ANSI: Final = "spark.sql.ansi.enabled"
TIME_ZONE: Final = "spark.sql.session.timeZone"
CASE_SENSITIVE: Final = "spark.sql.caseSensitive"
NULL_IN_EMPTY_LIST: Final = "spark.sql.legacy.nullInEmptyListBehavior"
SIZE_OF_NULL: Final = "spark.sql.legacy.sizeOfNull"
PARSER_POLICY: Final = ("spark.sql.legacy.timeParserPolicy", "CORRECTED")
"""The setting for text that formats times or parses them by a format."""

MEANINGS: Final[Mapping[str, str]] = {
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.functionResolution.sessionOrder": "second",  # after Spark's own functions
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.legacy.interval.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.path.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
"""Of functions, names and types, in columns and in text."""

IN_COLUMNS: Final[Mapping[str, str]] = {
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.lpadRpadAlwaysReturnString": "false",
}
"""Of columns alone: text that depends on them is refused in every session."""

IN_TEXT: Final[Mapping[str, str]] = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    SIZE_OF_NULL: "true",
}
"""Of text alone: Spark applied those of its grammar when the column was made, and a column's reader
asks for the last one.
"""
