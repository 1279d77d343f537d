"""All scalar functions of pyarrow, with their counterparts here.

`reads` is from `pyarrow.compute.Expression` to our tree under `Semantics.PYARROW`, `writes` the
reverse.

Soundness: a row is EXACT only if pyarrow gives the same rows on difficult data; the note states the
condition, and reader and writer reject everything outside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.functions.casts import shown
from rowsieve.bridges.functions.pyarrow import KERNELS
from rowsieve.bridges.rows import both, reads, refused_all
from rowsieve.bridges.translation import Exactness, Row
from rowsieve.predicate.ir import ComparisonOp

COMPARISONS: Mapping[str, ComparisonOp] = {
    "equal": ComparisonOp.EQ,
    "not_equal": ComparisonOp.NE,
    "less": ComparisonOp.LT,
    "less_equal": ComparisonOp.LE,
    "greater": ComparisonOp.GT,
    "greater_equal": ComparisonOp.GE,
}
PARTS: Mapping[str, str] = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "hour": "hour",
    "minute": "minute",
    "iso_week": "week",
    "day_of_year": "doy",
}
UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
FIRST_UNIT = 3  # pyarrow numbers units from the nanosecond

_KIND = "equal types, or whole numbers, or a float64 beside any number; float32 beside floats"
_NULLS = "FALSE for NULL: written with a check for NULL where that matters; never with NaN"
_ZONES = "by Arrow's changes of the zone, without rules after 2037: written if ours are the same"
_WRAPS = "it wraps around; the checked function fails"
_BITS = "bits have no counterpart in Rowsieve"
_REGEX = "regular expressions have no counterpart in Rowsieve"
_MATHS = "Rowsieve has no such function"
_NEVER_FAILS = "its NULL or NaN has no counterpart here; write the condition"

FUNCTIONS: tuple[Row, ...] = (
    *(both(name, op.value, _KIND) for name, op in COMPARISONS.items()),
    both("and_kleene", "And"),
    both("or_kleene", "Or"),
    both("invert", "Not"),
    both("is_null", "IsNull", "without nan_is_null"),
    reads("is_valid", "Not(IsNull)", "written as invert(is_null)"),
    reads("is_nan", "x <> x", "written as x != x"),
    both("is_in", "InList", _NULLS),
    *(both(row.name, row.function, row.note) for row in KERNELS),
    both("match_like", "Like", "with a backslash as its escape"),
    both("utf8_slice_codeunits", "substr", "a constant start of 0 or more, a step of 1"),
    both("if_else", "Case", "values of one type that cannot fail"),
    both("cast", "Cast", f"{shown('pyarrow')}; where overflow fails"),
    *(
        both(name, f"extract {part}", "of dates and timestamps; in a zone by local_time")
        for name, part in PARTS.items()
    ),
    both(
        "floor_temporal",
        "date_trunc",
        "one unit of UNITS, weeks from Monday; timestamps without zone",
    ),
    both("local_timestamp", "local_time", f"of columns and casts; {_ZONES}"),
    both("assume_timezone", "instant", _ZONES),
    *refused_all("add subtract multiply negate abs shift_left shift_right", _WRAPS),
    *refused_all("bit_wise_and bit_wise_not bit_wise_or bit_wise_xor", _BITS),
    *refused_all("shift_left_checked shift_right_checked", _BITS),
    *refused_all("and or xor and_not", "NULL dominates FALSE and TRUE there; use the Kleene form"),
    *refused_all("and_not_kleene", "write a & ~b"),
    *refused_all(
        "modulo modulo_checked remainder remainder_checked", "zero and signs behave differently"
    ),
    *refused_all(
        "match_substring_regex count_substring_regex find_substring_regex extract_regex "
        "extract_regex_span replace_substring_regex split_pattern_regex",
        _REGEX,
    ),
    *refused_all(
        "acos acos_checked acosh acosh_checked asin asin_checked asinh atan atan2 atanh "
        "atanh_checked cos cos_checked cosh sin sin_checked sinh tan tan_checked tanh expm1 "
        "hypot ln_checked log10 log10_checked log1p log1p_checked log2 log2_checked logb "
        "logb_checked sqrt sqrt_checked sign power_checked round_binary round_to_multiple trunc",
        _MATHS,
    ),
    *refused_all("is_finite is_inf true_unless_null", _NEVER_FAILS),
    *refused_all(
        "strftime", "names of days, months and zones depend on the locale; compare the parts"
    ),
    *refused_all("max_element_wise min_element_wise", "they skip NaN, which counts here"),
    *refused_all("case_when choose index_in random make_struct", "write if_else"),
    *refused_all("struct_field", "a struct field by its number; name it, as in field('s', 'x')"),
    *refused_all(
        "list_element list_slice list_value_length map_lookup",
        "lists and maps are read from SQL text only",
    ),
    *refused_all(
        "ascii_capitalize ascii_center ascii_is_alnum ascii_is_alpha ascii_is_decimal "
        "ascii_is_lower ascii_is_printable ascii_is_space ascii_is_title ascii_is_upper "
        "ascii_lower ascii_lpad ascii_ltrim ascii_ltrim_whitespace ascii_reverse ascii_rpad "
        "ascii_rtrim ascii_rtrim_whitespace ascii_split_whitespace ascii_swapcase ascii_title "
        "ascii_trim ascii_trim_whitespace ascii_upper string_is_ascii",
        "text is not limited to ASCII here; use the utf8 function",
    ),
    *refused_all(
        "utf8_capitalize utf8_center utf8_is_alnum utf8_is_alpha utf8_is_decimal utf8_is_digit "
        "utf8_is_lower utf8_is_numeric utf8_is_printable utf8_is_space utf8_is_title utf8_is_upper "
        "utf8_lpad utf8_ltrim_whitespace utf8_normalize utf8_replace_slice utf8_rpad "
        "utf8_rtrim_whitespace utf8_split_whitespace utf8_swapcase utf8_title "
        "utf8_trim_whitespace utf8_zero_fill count_substring find_substring split_pattern "
        "binary_join binary_length binary_repeat binary_replace_slice binary_reverse binary_slice "
        "ceil_temporal round_temporal day_of_week day_time_interval_between "
        "days_between hours_between is_dst is_leap_year iso_calendar iso_year "
        "microsecond microseconds_between millisecond milliseconds_between minutes_between "
        "month_day_nano_interval_between month_interval_between nanosecond nanoseconds_between "
        "quarters_between second seconds_between strptime subsecond us_week us_year week "
        "weeks_between year_month_day years_between",
        _MATHS,
    ),
)
ROWS: Mapping[str, Row] = {row.foreign: row for row in FUNCTIONS}
FORMS: Mapping[str, str] = {
    ours: "; or ".join(row.note for row in FUNCTIONS if row.ours == ours)
    for ours in dict.fromkeys(row.ours for row in FUNCTIONS if row.writes is Exactness.EXACT)
}
"""By function or node: the arguments for which it is written, as `ROWS` say them."""
