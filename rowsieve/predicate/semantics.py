"""Semantics: the rules on which engines differ, carried by each bound predicate.

The same text selects different rows in different engines: NaN, division by zero, overflow. A bound
predicate carries the `Semantics` of its evaluation; bridges attach those of their engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar

from rowsieve.types.time_zones import RepeatedTime, SkippedTime


class NanOrder(Enum):
    """How NaN compares."""

    GREATEST = "greatest"  # equal to itself, above all numbers
    SIGNED = "signed"  # below or above all numbers by its sign bit; equal to NaN with that sign
    IEEE = "ieee"  # every comparison with NaN is false, except <>


class OnFailure(Enum):
    """The result of an operation that has no value."""

    ERROR = "error"
    NULL = "null"
    WRAP = "wrap"  # integer overflow only: two's complement
    IEEE = "ieee"  # division by zero of floats only: infinity or NaN


class DigitRounding(Enum):
    """How `round` or a cast to a decimal rounds a float to a number of decimal digits."""

    DECIMAL = "decimal"  # its shortest decimal text, half away from zero
    WIDE_DECIMAL = "wide decimal"  # the same; a float32 is converted to float64 first
    SHORT_DECIMAL = "short decimal"  # a cast uses 15 digits, or 6 for float32; `round` is DECIMAL
    SCALED = "scaled"  # multiplied by a power of ten, rounded to an integer, divided
    SCALED_FINITE = "scaled, finite"  # the same with the nearest power; overflow keeps the value


class NestedNulls(Enum):
    """How NULL inside a list or a struct compares with values; two such NULLs are equal."""

    GREATEST = "greatest"  # above all values
    LEAST = "least"  # below all values
    UNKNOWN = "unknown"  # equality is NULL, and there is no order
    REFUSED = "refused"  # lists and structs cannot be compared


class TimestampText(Enum):
    """How a cast to text formats timestamps and instants."""

    OFFSET = "offset"  # 2024-07-03 06:30:00.5; instants end in +00, +05:30 or +00:53:28
    OFFSET_IN_MINUTES = "offset in minutes"  # the same without seconds in the offset
    LOCAL = "local"  # the local time in the session's zone, without offset
    RFC_3339 = "rfc 3339"  # 2024-07-03T06:30:00.500; instants end in Z; 0, 3 or 6 digits
    REFUSED = "refused"  # depends on the unit of the column, or unknown


class FarYears(Enum):
    """How years before 1 and after 9999 are written as text; 44 BC is the year -43."""

    SIGNED = "signed"  # +10000-01-01, 0000-12-31, -0043-03-15
    SIGNED_SHORT = "signed, short"  # the same for years -262143 to 262142; others fail
    BC_BRACKETS = "bc in brackets"  # 10000-01-01, 0044-03-15 (BC), and infinity
    BC_SUFFIX = "bc as suffix"  # 10000-01-01, 0044-03-15 BC, from 4714 BC; others fail
    FAIL = "fail"  # unknown


class TextReading(Enum):
    """Which texts a cast parses as numbers, booleans, times and UUIDs."""

    STRICT = "strict"  # only texts that most engines parse alike: see `text_casts`
    DUCKDB = "duckdb"  # 1_000, 0x1F, 1.5 as a whole number: see `duckdb_texts`
    POSTGRES = "postgres"  # 1_000, 0x1F, 1e3 as a decimal: see `postgres_texts`
    DATAFUSION = "datafusion"  # 1e400 as infinity, 20240703 as a date: see `datafusion_texts`
    TRINO = "trino"  # 1e3 as a decimal, spaces refused: see `trino_texts`
    SPARK = "spark"  # 1e3, 2d, 2024-1-5; 1.9 as 1 where casts give NULL: see `spark_texts`


class FloatDomain(Enum):
    """The outcome of `ln`, `exp` and `power` of floats outside of their domain or range."""

    ERROR = "error"  # as for ln(0), exp(1000), exp(-1000), power(0, -1) and power(-1, 0.5)
    ZERO_POWER_ERROR = "error for powers of zero"  # power(0, -1) only; otherwise as IEEE 754
    IEEE = "ieee"  # infinite, zero or NaN


class Nanoseconds(Enum):
    """How casts and functions take timestamps with nanoseconds; other times have microseconds."""

    KEPT = "kept"  # functions keep every digit; a cast rounds half away from 1970
    KEPT_FLOOR = "kept, floor"  # the same, but a cast rounds to the earlier time
    ROUNDED = "rounded"  # functions take microseconds, rounded half away from 1970
    UNSPELLED = "kept, unspelled"  # functions keep every digit; a cast may mean either unit
    REFUSED = "refused"  # the engine has no such functions, or they are unknown


@dataclass(frozen=True, slots=True)
class Semantics:
    """The rules of one engine.

    `bitwise_lists_from`: IN compares floats bit by bit in lists with at least this many members.

    `casts_cut_fractions`: a cast to an integer truncates; otherwise it rounds floats half to even
    and decimals half away from zero. `rounds_half_to_even`: `round` of floats rounds half to even;
    otherwise half away from zero.

    `float_domain`: the outcome of `ln`, `exp` and `power` outside of their domain or range.

    `nan_by_zero`: NaN divided by zero is NaN even where a division by zero fails.
    `float_range`: the outcome of a sum, product, quotient or cast of finite floats that becomes
    infinite, or of numbers other than 0 that becomes 0.

    `first_duplicate_wins`: the first of duplicate JSON keys counts. `negative_roots_fail`: the
    square root of a negative number fails; otherwise it is NaN.

    `shifts_wrap`: a left shift drops the bits shifted out; otherwise that is an overflow, as is a
    shift of a negative number. `quotient_overflow`: the outcome of the least integer divided by -1,
    which engines may refuse where sums wrap. `remainders_overflow`: the remainder of the least
    integer by -1 is an overflow; otherwise 0.

    `nan_has_sign`: the sign of NaN is NaN; otherwise 0. `full_case`: case conversion may change the
    number of letters, and a final sigma has its own form (upper('ß') is 'SS'); otherwise it maps
    letters one to one. `capital_sharp_s`: upper('ß') is then 'ẞ'; otherwise 'ß', as in Unicode's
    table of single letters. `case_version`: the version of Unicode whose pairs of letters it knows;
    None for Arrow's table. `fold_version`: the version whose pairs ILIKE knows; None for RE2's,
    which is 15. `lowers_patterns`: ILIKE compares both sides in lower case, so that a long s
    does not match 's'; otherwise it ignores the case of letters as regular expressions do.

    `floors_are_longs`: `floor` and `ceil` of a float fail if the result does not fit in 64 bits,
    and return 0 for NaN.

    `lenient_float_casts`: casts of floats convert 2^63 to the greatest 64-bit integer, 32-bit
    overflow to infinity, and infinity or NaN as a decimal to NULL; otherwise these casts fail.
    `infinite_float32`: a float64 too large for float32 is cast to infinity there, too.
    `decimal_overflow`: the outcome of a decimal sum, product or quotient with more digits than its
    type. `casts_wrap`: a CAST of a number to an integer keeps the lowest bits, as in Java.

    `thirty_day_months`: intervals compare by their length, with months of 30 days; otherwise a
    comparison of them is refused. `compares_storage`: the engine sees JSON as text and intervals as
    bytes, and compares these. `casts_json`: JSON is PostgreSQL's jsonb: a number or boolean is cast
    to such a type, JSON null is NULL, and values are equal whatever their spelling; otherwise only
    its text is cast, and JSON is not compared. `orders_enums`: enums compare by the order
    of their labels; otherwise as text.

    `nested_nulls`: how NULL compares inside lists and structs. `nested_zeros_differ`: -0.0 is below
    0.0 inside them, and for nullif, greatest and least; otherwise the two are equal.

    `time_zone`: the session's zone for casts, fields, truncations and intervals of instants;
    `has_session_zone`: whether the engine has one for them, otherwise it must be UTC.
    `repeated_time`, `skipped_time`: which instant belongs to a local time that occurs twice, or
    never. `skipped_midnight`: the same for a date that becomes an instant, and for truncation to
    more than a day. `moved_time`: the same for an instant moved by months or days, or truncated to
    the day. `truncated_clock`: the same for truncation to the hour.

    `float_seconds_from`: the second since 1970 from which `timestamp_seconds` counts in floats,
    which round beyond the year 20,000; None if it is exact.

    `hours_make_days`: 36 hours of an interval without months are one calendar day and 12 hours.
    `timestamp_text`: how a cast formats a timestamp or an instant. `far_years`: how casts and
    formats write years before 1 and after 9999. `text_reading`: which texts a cast parses.
    `nanoseconds`: how casts and functions take timestamps with nanoseconds.
    """

    name: str
    nan: NanOrder = NanOrder.GREATEST
    bitwise_lists_from: int | None = None
    integer_overflow: OnFailure = OnFailure.ERROR
    quotient_overflow: OnFailure = OnFailure.ERROR
    integer_division_by_zero: OnFailure = OnFailure.ERROR
    float_division_by_zero: OnFailure = OnFailure.ERROR
    nan_by_zero: bool = False
    float_range: OnFailure = OnFailure.IEEE
    failed_cast: OnFailure = OnFailure.ERROR
    casts_cut_fractions: bool = False
    rounds_half_to_even: bool = True
    digit_rounding: DigitRounding = DigitRounding.DECIMAL
    first_duplicate_wins: bool = False
    negative_roots_fail: bool = True
    float_domain: FloatDomain = FloatDomain.ERROR
    shifts_wrap: bool = True
    remainders_overflow: bool = False
    nan_has_sign: bool = True
    full_case: bool = False
    capital_sharp_s: bool = True
    case_version: int | None = None
    fold_version: int | None = None
    lowers_patterns: bool = False
    floors_are_longs: bool = False
    lenient_float_casts: bool = False
    infinite_float32: bool = False
    thirty_day_months: bool = False
    compares_storage: bool = False
    casts_json: bool = False
    orders_enums: bool = False
    nested_nulls: NestedNulls = NestedNulls.GREATEST
    nested_zeros_differ: bool = False
    decimal_overflow: OnFailure = OnFailure.ERROR
    casts_wrap: bool = False
    float_seconds_from: int | None = None
    time_zone: str = "UTC"
    has_session_zone: bool = True
    repeated_time: RepeatedTime = RepeatedTime.LATER
    skipped_time: SkippedTime = SkippedTime.SHIFTED
    skipped_midnight: SkippedTime = SkippedTime.SHIFTED
    moved_time: RepeatedTime = RepeatedTime.LATER
    truncated_clock: RepeatedTime = RepeatedTime.KEPT
    hours_make_days: bool = False
    timestamp_text: TimestampText = TimestampText.OFFSET
    far_years: FarYears = FarYears.BC_SUFFIX
    text_reading: TextReading = TextReading.STRICT
    nanoseconds: Nanoseconds = Nanoseconds.KEPT

    SQL: ClassVar[Semantics]
    POSTGRES: ClassVar[Semantics]
    DATAFUSION: ClassVar[Semantics]
    SPARK: ClassVar[Semantics]
    DUCKDB: ClassVar[Semantics]
    TRINO: ClassVar[Semantics]
    POLARS: ClassVar[Semantics]
    PYARROW: ClassVar[Semantics]
    ICEBERG: ClassVar[Semantics]
    ICEBERG_JSON: ClassVar[Semantics]
    SUBSTRAIT: ClassVar[Semantics]

    def compares_bits(self, member_count: int) -> bool:
        """Whether an IN list with this many floats distinguishes -0.0 from 0.0."""
        return self.bitwise_lists_from is not None and member_count >= self.bitwise_lists_from

    @property
    def has_infinite_times(self) -> bool:
        """Whether the greatest day or time and its negative are infinite, as in DuckDB."""
        return self.far_years is FarYears.BC_BRACKETS

    @property
    def is_ansi(self) -> bool:
        """Whether a failed cast is an error: in Spark's semantics, its ANSI mode."""
        return self.failed_cast is OnFailure.ERROR

    @property
    def of_stored_values(self) -> Semantics:
        """The rules for values that a change stores: an integer that overflows is an error.

        A wrapped number in a condition is an engine's answer; in a table it is a wrong row.
        """
        return replace(self, integer_overflow=OnFailure.ERROR, quotient_overflow=OnFailure.ERROR)

    @classmethod
    def of_spark(cls, *, ansi: bool, time_zone: str) -> Semantics:
        """Semantics of a Spark session: `spark.sql.ansi.enabled`, `spark.sql.session.timeZone`."""
        semantics = replace(cls.SPARK, time_zone=time_zone)
        if ansi:
            return semantics
        return replace(
            semantics,
            integer_overflow=OnFailure.WRAP,
            quotient_overflow=OnFailure.WRAP,
            integer_division_by_zero=OnFailure.NULL,
            float_division_by_zero=OnFailure.NULL,
            decimal_overflow=OnFailure.NULL,
            failed_cast=OnFailure.NULL,
            casts_wrap=True,
        )

    @classmethod
    def named(cls, name: str) -> Semantics:
        """Return the built-in semantics with this name; KeyError if unknown."""
        return _BY_NAME[name]


Semantics.SQL = Semantics("sql", thirty_day_months=True, casts_json=True, orders_enums=True)
Semantics.POSTGRES = Semantics(
    "postgres",
    thirty_day_months=True,
    casts_json=True,
    orders_enums=True,
    digit_rounding=DigitRounding.SHORT_DECIMAL,
    nan_by_zero=True,
    float_range=OnFailure.ERROR,
    nan_has_sign=False,
    lowers_patterns=True,
    text_reading=TextReading.POSTGRES,
    capital_sharp_s=False,
    case_version=16,  # of its own tables, as in the locale C.UTF-8 of the provider builtin
    float_seconds_from=946_684_800,
)
Semantics.DATAFUSION = Semantics(
    "datafusion",
    has_session_zone=False,
    float_domain=FloatDomain.ZERO_POWER_ERROR,
    compares_storage=True,
    nan=NanOrder.SIGNED,
    bitwise_lists_from=4,
    integer_overflow=OnFailure.WRAP,
    float_division_by_zero=OnFailure.IEEE,
    casts_cut_fractions=True,
    infinite_float32=True,
    rounds_half_to_even=False,
    digit_rounding=DigitRounding.SCALED,
    full_case=True,
    nested_nulls=NestedNulls.LEAST,
    nested_zeros_differ=True,
    timestamp_text=TimestampText.RFC_3339,
    far_years=FarYears.SIGNED_SHORT,
    text_reading=TextReading.DATAFUSION,
    nanoseconds=Nanoseconds.UNSPELLED,
    case_version=17,
    fold_version=16,
)
Semantics.SPARK = Semantics(
    "spark",
    compares_storage=True,
    casts_cut_fractions=True,
    rounds_half_to_even=False,
    digit_rounding=DigitRounding.WIDE_DECIMAL,
    negative_roots_fail=False,
    full_case=True,
    floors_are_longs=True,
    lenient_float_casts=True,
    infinite_float32=True,
    nested_nulls=NestedNulls.LEAST,
    repeated_time=RepeatedTime.EARLIER,
    skipped_midnight=SkippedTime.FIRST_AFTER,
    moved_time=RepeatedTime.SAME,
    truncated_clock=RepeatedTime.SAME,
    hours_make_days=True,
    timestamp_text=TimestampText.LOCAL,
    far_years=FarYears.SIGNED,
    text_reading=TextReading.SPARK,
    nanoseconds=Nanoseconds.KEPT_FLOOR,
    case_version=17,  # of the ICU that Spark 4.3 brings along; its Java has no part in it
)
Semantics.DUCKDB = Semantics(
    "duckdb",
    thirty_day_months=True,
    float_domain=FloatDomain.IEEE,
    float_division_by_zero=OnFailure.IEEE,
    rounds_half_to_even=False,
    digit_rounding=DigitRounding.SCALED_FINITE,
    first_duplicate_wins=True,
    negative_roots_fail=False,
    shifts_wrap=False,
    remainders_overflow=True,
    nan_has_sign=False,
    lowers_patterns=True,
    truncated_clock=RepeatedTime.LATER,
    timestamp_text=TimestampText.OFFSET_IN_MINUTES,
    far_years=FarYears.BC_BRACKETS,
    text_reading=TextReading.DUCKDB,
    nanoseconds=Nanoseconds.ROUNDED,
    case_version=15,
    float_seconds_from=0,
)
Semantics.TRINO = Semantics(
    "trino",
    has_session_zone=False,
    nan=NanOrder.IEEE,
    float_division_by_zero=OnFailure.IEEE,
    rounds_half_to_even=False,
    negative_roots_fail=False,
    nested_nulls=NestedNulls.UNKNOWN,
    timestamp_text=TimestampText.REFUSED,
    far_years=FarYears.FAIL,
    text_reading=TextReading.TRINO,
    nanoseconds=Nanoseconds.REFUSED,
    capital_sharp_s=False,
)
Semantics.POLARS = Semantics(
    "polars",
    has_session_zone=False,
    compares_storage=True,
    integer_overflow=OnFailure.WRAP,
    quotient_overflow=OnFailure.WRAP,
    integer_division_by_zero=OnFailure.NULL,
    float_division_by_zero=OnFailure.IEEE,
    casts_cut_fractions=True,
    negative_roots_fail=False,
    full_case=True,
    nested_nulls=NestedNulls.REFUSED,
    timestamp_text=TimestampText.REFUSED,
    far_years=FarYears.FAIL,
    nanoseconds=Nanoseconds.REFUSED,
    case_version=17,
    fold_version=16,
)
Semantics.PYARROW = Semantics(
    "pyarrow",
    has_session_zone=False,
    float_domain=FloatDomain.IEEE,
    compares_storage=True,
    nan=NanOrder.IEEE,
    bitwise_lists_from=1,
    float_division_by_zero=OnFailure.IEEE,
    nested_nulls=NestedNulls.REFUSED,
    timestamp_text=TimestampText.REFUSED,
    far_years=FarYears.FAIL,
    nanoseconds=Nanoseconds.REFUSED,
)
Semantics.ICEBERG = Semantics(
    "iceberg",
    has_session_zone=False,
    nan=NanOrder.IEEE,
    bitwise_lists_from=2,
    nested_nulls=NestedNulls.REFUSED,
    timestamp_text=TimestampText.REFUSED,
    far_years=FarYears.FAIL,
    nanoseconds=Nanoseconds.REFUSED,
)
Semantics.ICEBERG_JSON = replace(
    Semantics.ICEBERG,
    name="iceberg_json",
    bitwise_lists_from=None,  # the specification compares; pyiceberg's scans hash
)
Semantics.SUBSTRAIT = Semantics(
    "substrait",
    has_session_zone=False,
    nan=NanOrder.IEEE,
    float_division_by_zero=OnFailure.IEEE,
    nested_nulls=NestedNulls.REFUSED,
    timestamp_text=TimestampText.REFUSED,
    far_years=FarYears.FAIL,
    nanoseconds=Nanoseconds.REFUSED,
)

_BY_NAME = {
    semantics.name: semantics
    for semantics in (
        Semantics.SQL,
        Semantics.POSTGRES,
        Semantics.DATAFUSION,
        Semantics.SPARK,
        Semantics.DUCKDB,
        Semantics.TRINO,
        Semantics.POLARS,
        Semantics.PYARROW,
        Semantics.ICEBERG,
        Semantics.ICEBERG_JSON,
        Semantics.SUBSTRAIT,
    )
}
