"""Kinds of failures that one side alone has: an unknown kind is a difference.

A row on which the engine fails has no value of the engine that ours could contradict, and a failure
of ours is an error, never a wrong row. Each kind was judged: what may stay is a limit of a type, or
of how the judge reads its engine's values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bridges.against_engines.compare import Case


@dataclass(frozen=True)
class Kind:
    """A pattern of the text in question, and why such failures may stay."""

    pattern: str
    why: str


_FAILS_THERE: Mapping[str, Sequence[Kind]] = {
    "duckdb": (
        Kind(r"Overflow in \w+ of (DECIMAL|INT)", "a product is wider here"),
        Kind("Substring length outside of supported range", "lengths have 64 bits here"),
        Kind("Empty format string", "an empty format gives an empty text here"),
        Kind("Division by zero in expression divide", "`divide` is the operator `/` here"),
    ),
    "datafusion": (
        Kind(r"Cannot cast (Timestamp|Date32|Date64).* to Timestamp", "it takes nanoseconds"),
        Kind(r"Timestamp -?\d+ out of range", "it takes nanoseconds"),
        Kind("Cannot cast to Interval", "a number of days has 32 bits there"),
        Kind("Can't cast value -?[0-9]+ to type Int32", "the numbers of a date have 32 bits there"),
        Kind(r"Overflow happened on: -?\d{20,} \*|Overflowing on -?\d{20,}", "wider decimals here"),
        Kind("Decimal overflow while applying", "a rounded decimal has one digit more here"),
        Kind("Cannot cast string '.*' to value of U?Int64", "text among the numbers of a list"),
        Kind("Unable to parse date from", "a date of a far year is one here"),
    ),
    "postgres": (
        Kind("(timestamp|date) too (large|small)", "the client's Python has years 1 to 9999"),
        Kind("integer out of range", "whole numbers have 64 bits here"),
        Kind("date field value out of range", "a date of the year 0 is one here"),
        Kind("(timestamp|date) out of range", "dates begin before 4713 BC here"),
        Kind("invalid input syntax for type json", "text that is not JSON is NULL here"),
    ),
    "pyarrow": (
        Kind("Integer value -?[0-9]+ not in range", "it casts to a float only what is exact"),
        Kind("Precision is not great enough", "a decimal has 38 digits here, and the sum fits"),
    ),
    "polars": (),
    "spark": (Kind("", "its optimiser evaluates all rows; one that fails says nothing of others"),),
}
# Of the row on which our side alone fails.
_FAILS_HERE_ON: Mapping[str, Sequence[Kind]] = {
    "postgres": (
        Kind(r"nan.*there Decimal\('NaN'\)", "a number with a precision has no NaN here"),
    ),
    "spark": (
        Kind(
            r"None.*: here a failure, there (None|0)$",
            "Spark does not cast what it compares a NULL with",
        ),
    ),
}
# Of a case's name.
_FAR_YEARS = Kind(r"\|era\|", "formats have no years before 1 and after 9999")
_FAILS_HERE: Mapping[str, Sequence[Kind]] = {
    "duckdb": (
        Kind(r"\b(date|DATE)\b", "days reach past the years of timestamps there"),
        Kind(r"\|(i64|u64),u?64\|.*\*|\bu64\b.*\*", "HUGEINT has 39 digits"),
        Kind(r"\bd38\b", "a decimal of more than 38 digits"),
        _FAR_YEARS,
    ),
    "datafusion": (
        _FAR_YEARS,
        Kind(r"\bd38\b", "a decimal of more than 38 digits"),
        Kind(
            r"\|(date\|.*9223372036854775807|i64.*(DATE|date)|date,i64)", "days wrap around there"
        ),
    ),
    "postgres": (Kind(r"\bd38\b", "a decimal of more than 38 digits"),),
    "pyarrow": (Kind(r"[!=]= None|, None\)", "it computes nothing of what is compared with NULL"),),
    "polars": (),
    "spark": (
        _FAR_YEARS,
        Kind(r"\bd38\b", "a decimal of more than 38 digits"),
        Kind("'(epoch|now)'", "names of times are texts that are not read"),
    ),
}


def unjudged(case: Case, dialect: str, here: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return failures of one side that are of no known kind."""
    found = [each for each in there if not _is_known(each, _FAILS_THERE[dialect])]
    here = [each for each in here if not _is_known(each, _FAILS_HERE_ON.get(dialect, ()))]
    return found if _is_known(case.name, _FAILS_HERE[dialect]) else [*here, *found]


def _is_known(text: str, kinds: Sequence[Kind]) -> bool:
    return any(re.search(kind.pattern, text) for kind in kinds)
