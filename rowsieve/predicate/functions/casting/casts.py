"""`CAST(value AS type)`: one row per pair of type families, with its monotonicity.

A cast is `increasing` if a larger value never becomes a smaller one and the values on which it is
defined form one range. Binding rejects a pair without a row.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import (
    Computed,
    Mask,
    as_mask,
    filled,
    null_mask,
    with_nulls,
    without,
)
from rowsieve.predicate.functions.casting import (
    datafusion_texts,
    duckdb_texts,
    far_years,
    float_decimals,
    nanosecond_casts,
    postgres_texts,
    spark_texts,
    spark_times,
    text_casts,
    trino_texts,
    unbounded_numbers,
)
from rowsieve.predicate.functions.casting.text_shapes import MAX_FRACTION
from rowsieve.predicate.functions.numbers.decimal_rounding import rounded
from rowsieve.predicate.functions.numbers.decimals import int_as_decimal, narrowed
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.semantics import OnFailure, Semantics, TextReading
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Interval,
    Json,
    LogicalType,
    Nanos,
    Numeric,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
)

CastEvaluator: TypeAlias = Callable[[pa.Array, LogicalType, LogicalType, Semantics], Computed]


@dataclass(frozen=True, slots=True)
class CastRule:
    """How one family of types is converted to another."""

    evaluate: CastEvaluator
    increasing: bool
    can_fail: bool
    rises_at: Callable[[pa.Array], Mask] | None = None
    """The range of values in which it increases; None for all values."""


def cast_rule(source: LogicalType, target: LogicalType) -> CastRule | None:
    """Return the rule of a pair of types; None if there is no such cast."""
    if source == target:
        return CastRule(_unchanged, increasing=True, can_fail=False)
    match source, target:
        case (Int(), Int()):
            (low, high), (least, most) = int_range(source), int_range(target)
            return CastRule(_int_to_int, increasing=True, can_fail=low < least or high > most)
        case (Int(), Decimal()):
            whole = int_as_decimal(source).precision
            fits = target.precision - target.scale >= whole
            return CastRule(_int_to_decimal, increasing=True, can_fail=not fits)
        case (Float(), Float()):
            return CastRule(_float_to_float, increasing=True, can_fail=target.bits < source.bits)
        case (Decimal(), Decimal()):
            fits = target.precision - target.scale >= source.precision - source.scale + 1 or (
                (target.scale >= source.scale)
                and target.precision - target.scale >= source.precision - source.scale
            )
            return CastRule(_decimal_to_decimal, increasing=True, can_fail=not fits)
        case (Enum(), Enum()):
            return CastRule(_text_to_enum, increasing=False, can_fail=True)
        case (Numeric(), Struct()) if target != unbounded_numbers.NUMERIC_PARTS:
            return None
        case (Nanos(utc=utc), Timestamp(utc=other)) | (Timestamp(utc=utc), Nanos(utc=other)):
            if utc != other:  # binding writes the zone
                return None
        case (Nanos(utc=True), Date() | String()) | (Date(), Nanos(utc=True)):
            return None
    return _RULES.get((type(source), type(target)))


def cast(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Convert values to the target type, with the failed rows. The pair must have a rule."""
    rule = cast_rule(source, target)
    assert rule is not None
    return rule.evaluate(values, source, target, semantics)


def wraps(source: LogicalType, target: LogicalType, semantics: Semantics) -> bool:
    """Whether an explicit cast wraps numbers that the target does not hold."""
    numbers = isinstance(source, Int | Float | Decimal) and isinstance(target, Int)
    return semantics.casts_wrap and numbers


def gives_null(target: LogicalType, semantics: Semantics, *, try_: bool) -> bool:
    """Whether a failed cast gives NULL; otherwise it is an error.

    A year outside 1 to 9999 without text is always an error: engines fail, or write unknown text.
    """
    if isinstance(target, String):
        return False
    return try_ or semantics.failed_cast is OnFailure.NULL


def cast_as_written(
    values: pa.Array,
    source: LogicalType,
    target: LogicalType,
    semantics: Semantics,
    *,
    try_: bool,
) -> Computed:
    """Evaluate a `CAST` of the tree like `cast`, but numbers may wrap unless it is TRY_CAST.

    Wrapping follows Java: a float is clamped to 32 or 64 bits, NaN becomes 0, and narrower types
    keep the lowest bits. TRY_CAST parses text in the same way as CAST.
    """
    if try_ and isinstance(source, String):
        semantics = replace(semantics, failed_cast=OnFailure.ERROR)
    if try_ or not wraps(source, target, semantics):
        return cast(values, source, target, semantics)
    assert isinstance(target, Int)
    computed = cast(values, source, target, semantics)
    if computed.failed is None:
        return computed
    wrapped = _in_64_bits(values, source, max(target.bits, 32))
    numbers = wrapped.astype(arrow_type(target).to_pandas_dtype())
    cut = with_nulls(numbers, null_mask(values), arrow_type(target))
    return Computed(pc.if_else(pa.array(computed.failed), cut, computed.values))


def _in_64_bits(values: pa.Array, source: LogicalType, bits: int) -> npt.NDArray[np.int64]:
    """Truncate numbers to 64-bit integers as Java does; undefined where NULL."""
    if isinstance(source, Decimal):
        whole = rounded(values, 0, "towards_zero")
        words = np.frombuffer(whole.cast(pa.decimal256(76, 0)).buffers()[1], np.int64)
        return words.reshape(-1, 4)[: len(values), 0]
    numbers = filled(values)
    if not isinstance(source, Float):
        return numbers.astype(np.int64)
    least, most = int_range(Int(bits))
    reals = np.trunc(np.where(np.isnan(numbers), 0.0, numbers.astype(np.float64)))
    inside = (reals >= float(least)) & (reals < -float(least))
    ends = np.where(reals > 0, most, least)
    return np.where(inside, np.where(inside, reals, 0.0).astype(np.int64), ends)


def reads_every_text(target: LogicalType, semantics: Semantics) -> bool:
    """Whether a cast of text never meets text whose meaning in the engine is unknown."""
    plain = isinstance(target, Decimal) and target.scale < MAX_FRACTION
    if plain and semantics.text_reading is TextReading.DATAFUSION:
        return True
    return type(target) in _TOTAL[semantics.text_reading]


def spelled_range(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the texts of the integers `lower` and `upper`, where all have one length.

    Texts of one length sort as their numbers do; those of negative numbers sort in reverse.
    """
    low, high = lower.cast(pa.string()), upper.cast(pa.string())
    signs = [pc.starts_with(text, pattern="-") for text in (low, high)]
    alike = pc.and_(
        pc.equal(pc.utf8_length(low), pc.utf8_length(high)), pc.equal(signs[0], signs[1])
    )
    unknown = ~as_mask(alike)
    least, most = pc.if_else(signs[0], high, low), pc.if_else(signs[0], low, high)
    return without(least, unknown), without(most, unknown)


def _computed(values: Any, nulls: Any, failed: Any, type_: LogicalType) -> Computed:
    failed = failed & ~nulls
    array = with_nulls(values, nulls | failed, arrow_type(type_))
    return Computed(array, failed if failed.any() else None)


def _unchanged(values: pa.Array, _: LogicalType, __: LogicalType, ___: Semantics) -> Computed:
    return Computed(values)


def _text_to_enum(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    assert isinstance(target, Enum)
    labels = pa.array(target.labels, pa.string())
    failed = ~as_mask(pc.is_in(values, value_set=labels)) & ~null_mask(values)
    return Computed(without(values, failed | null_mask(values)), failed if failed.any() else None)


def _kernel(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    return Computed(values.cast(arrow_type(target), safe=False))


def _int_to_int(
    values: pa.Array, source: LogicalType, target: LogicalType, _: Semantics
) -> Computed:
    assert isinstance(source, Int)
    assert isinstance(target, Int)
    low, high = int_range(target)
    least, most = int_range(source)
    numbers = filled(values)
    failed = np.zeros(len(numbers), dtype=np.bool_)
    if low > least:
        failed |= numbers < numbers.dtype.type(low)
    if high < most:
        failed |= numbers > numbers.dtype.type(high)
    cast_numbers = numbers.astype(arrow_type(target).to_pandas_dtype())
    return _computed(cast_numbers, null_mask(values), failed, target)


def _int_to_float(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    numbers = filled(values).astype(arrow_type(target).to_pandas_dtype())
    return Computed(with_nulls(numbers, null_mask(values), arrow_type(target)))


def _int_to_decimal(
    values: pa.Array, source: LogicalType, target: LogicalType, _: Semantics
) -> Computed:
    assert isinstance(source, Int)
    assert isinstance(target, Decimal)
    exact = values.cast(pa.decimal256(max(int_as_decimal(source).precision, 20), 0))
    return _narrow(exact, null_mask(values), target)


def _narrow(exact: pa.Array, nulls: Any, target: Decimal) -> Computed:
    roomy = exact.cast(pa.decimal256(76, max(exact.type.scale, min(target.scale, 38))))
    narrow = narrowed(roomy, target)
    failed = null_mask(narrow) & ~nulls
    return Computed(narrow, failed if failed.any() else None)


def _decimal_to_decimal(
    values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics
) -> Computed:
    assert isinstance(target, Decimal)
    wide = values.cast(pa.decimal256(values.type.precision, values.type.scale))
    return _narrow(wide, null_mask(values), target)


def _decimal_to_int(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    assert isinstance(target, Int)
    mode = "towards_zero" if semantics.casts_cut_fractions else "half_towards_infinity"
    whole = rounded(values, 0, mode)
    low, high = (
        pa.scalar(decimal.Decimal(bound), pa.decimal256(76, 0)).cast(whole.type)
        for bound in int_range(target)
    )
    outside = as_mask(pc.or_(pc.less(whole, low), pc.greater(whole, high)))
    inside = without(whole, outside).cast(pa.decimal256(76, 0)).cast(arrow_type(target))
    failed = outside & ~null_mask(values)
    return Computed(inside, failed if failed.any() else None)


def _decimal_to_float(
    values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics
) -> Computed:
    """Convert through text, which rounds correctly; Arrow's conversion may be off by one unit."""
    return Computed(values.cast(pa.string()).cast(arrow_type(target)))


def _float_to_float(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    numbers = filled(values)
    with np.errstate(over="ignore"):
        converted = numbers.astype(arrow_type(target).to_pandas_dtype())
    if semantics.infinite_float32:
        return Computed(with_nulls(converted, null_mask(values), arrow_type(target)))
    failed = np.isinf(converted) & ~np.isinf(numbers)
    if semantics.float_range is OnFailure.ERROR:
        failed |= (converted == 0) & (numbers != 0)
    return _computed(converted, null_mask(values), failed, target)


def _float_to_int(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    assert isinstance(target, Int)
    low, high = int_range(target)
    numbers = filled(values).astype(np.float64)
    whole = np.trunc(numbers) if semantics.casts_cut_fractions else np.rint(numbers)
    inside = (whole >= float(low)) & (whole < float(high + 1))
    integers = np.where(inside, whole, 0.0).astype(arrow_type(target).to_pandas_dtype())
    if semantics.lenient_float_casts and target == Int(64):
        just_beyond = whole == float(high + 1)
        integers, inside = np.where(just_beyond, high, integers), inside | just_beyond
    return _computed(integers, null_mask(values), ~inside, target)


def _int_to_bool(values: pa.Array, _: LogicalType, __: LogicalType, ___: Semantics) -> Computed:
    return Computed(pc.not_equal(values, pa.scalar(0).cast(values.type)))


def _date_to_timestamp(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    days = filled(values).astype(np.int64)
    limit = (2**63 - 1) // DAY_US
    infinite = far_years.infinite_days(days, semantics.far_years)
    outside = ((days > limit) | (days < -limit)) & ~infinite
    micros = np.where(outside | infinite, 0, days) * DAY_US
    micros = np.where(infinite, np.sign(days) * far_years.MAX_TIME, micros)
    return _computed(micros, null_mask(values), outside, target)


def _timestamp_to_date(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    micros = filled(values)
    least = -far_years.MAX_TIME  # the time below it stays below all days
    infinite = far_years.infinite_times(np.maximum(micros, least), semantics.far_years)
    days = np.where(infinite, np.sign(micros) * far_years.MAX_DAY, micros // DAY_US)
    return Computed(with_nulls(days, null_mask(values), arrow_type(target)))


def _timestamp_to_time(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    micros = filled(values)
    infinite = far_years.infinite_times(micros, semantics.far_years)
    return _computed(micros % DAY_US, null_mask(values), infinite, target)


def _timestamp_to_timestamp(
    values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics
) -> Computed:
    return Computed(values.view(pa.int64()).view(arrow_type(target)))


def _in_near_years(values: pa.Array) -> Mask:
    """Return the mask of dates or times in the years 1 to 9999; false for NULL."""
    numbers = filled(values).astype(np.int64)
    days = numbers if pa.types.is_date32(values.type) else numbers // DAY_US
    return far_years.near(days) & ~null_mask(values)


def _to_binary(values: pa.Array, _: LogicalType, __: LogicalType, ___: Semantics) -> Computed:
    return Computed(values.cast(pa.binary()))


def _from_text(target: type[LogicalType]) -> CastRule:
    """Return the rule of a cast from text, which the semantics choose."""
    readers = {
        reading: known.get(target, text_casts.READERS[target])
        for reading, known in _READERS.items()
    }

    def evaluate(
        values: pa.Array, source: LogicalType, type_: LogicalType, semantics: Semantics
    ) -> Computed:
        return readers[semantics.text_reading](values, source, type_, semantics)

    return CastRule(evaluate, increasing=False, can_fail=True)


_READERS: Mapping[TextReading, Mapping[type[LogicalType], text_casts.Reader]] = {
    TextReading.STRICT: text_casts.READERS,
    TextReading.DUCKDB: duckdb_texts.READERS,
    TextReading.POSTGRES: postgres_texts.READERS,
    TextReading.DATAFUSION: datafusion_texts.READERS,
    TextReading.TRINO: trino_texts.READERS,
    TextReading.SPARK: {**spark_texts.READERS, **spark_times.READERS},
}
_TOTAL: Mapping[TextReading, frozenset[type[LogicalType]]] = {
    TextReading.STRICT: frozenset(text_casts.READERS),
    TextReading.DUCKDB: duckdb_texts.TOTAL,
    TextReading.POSTGRES: postgres_texts.TOTAL,
    TextReading.DATAFUSION: datafusion_texts.TOTAL,
    TextReading.TRINO: trino_texts.TOTAL,
    TextReading.SPARK: frozenset({Bool, Int, Date}),
}
_RULES: dict[tuple[type, type], CastRule] = {
    (Bool, Int): CastRule(_kernel, increasing=True, can_fail=False),
    (Bool, String): CastRule(_kernel, increasing=True, can_fail=False),
    (Int, Bool): CastRule(_int_to_bool, increasing=False, can_fail=False),
    (Int, Float): CastRule(_int_to_float, increasing=True, can_fail=False),
    (Int, String): CastRule(_kernel, increasing=False, can_fail=False),
    (Float, Int): CastRule(_float_to_int, increasing=True, can_fail=True),
    (Float, Decimal): CastRule(float_decimals.to_decimal, increasing=True, can_fail=True),
    (Decimal, Int): CastRule(_decimal_to_int, increasing=True, can_fail=True),
    (Decimal, Float): CastRule(_decimal_to_float, increasing=True, can_fail=False),
    (Decimal, String): CastRule(text_casts.from_decimal, increasing=False, can_fail=False),
    (Date, Timestamp): CastRule(_date_to_timestamp, increasing=True, can_fail=True),
    (Date, String): CastRule(
        text_casts.from_date, increasing=True, can_fail=True, rises_at=_in_near_years
    ),
    (Timestamp, Date): CastRule(_timestamp_to_date, increasing=True, can_fail=False),
    (Timestamp, Timestamp): CastRule(_timestamp_to_timestamp, increasing=True, can_fail=False),
    (Timestamp, String): CastRule(
        text_casts.from_timestamp, increasing=True, can_fail=True, rises_at=_in_near_years
    ),
    (Timestamp, Time): CastRule(_timestamp_to_time, increasing=False, can_fail=False),
    (Nanos, Timestamp): CastRule(nanosecond_casts.to_timestamp, increasing=True, can_fail=True),
    (Nanos, Date): CastRule(nanosecond_casts.to_date, increasing=True, can_fail=False),
    (Nanos, Nanos): CastRule(nanosecond_casts.renamed, increasing=True, can_fail=False),
    (Nanos, String): CastRule(nanosecond_casts.to_text, increasing=True, can_fail=True),
    (Timestamp, Nanos): CastRule(nanosecond_casts.from_timestamp, increasing=True, can_fail=True),
    (Date, Nanos): CastRule(nanosecond_casts.from_date, increasing=True, can_fail=True),
    (Time, String): CastRule(text_casts.from_time, increasing=True, can_fail=False),
    (Uuid, String): CastRule(text_casts.from_uuid, increasing=True, can_fail=False),
    (Uuid, Binary): CastRule(_to_binary, increasing=True, can_fail=False),
    (Interval, Binary): CastRule(_to_binary, increasing=False, can_fail=False),
    (Int, Numeric): CastRule(unbounded_numbers.to_numeric, increasing=False, can_fail=False),
    (Decimal, Numeric): CastRule(unbounded_numbers.to_numeric, increasing=False, can_fail=False),
    (Float, Numeric): CastRule(unbounded_numbers.from_float, increasing=False, can_fail=False),
    (Numeric, Int): CastRule(unbounded_numbers.to_int, increasing=False, can_fail=True),
    (Numeric, Float): CastRule(unbounded_numbers.to_float, increasing=False, can_fail=True),
    (Numeric, Decimal): CastRule(unbounded_numbers.to_decimal, increasing=False, can_fail=True),
    (Numeric, String): CastRule(unbounded_numbers.to_string, increasing=False, can_fail=False),
    (Numeric, Struct): CastRule(_unchanged, increasing=False, can_fail=False),
    (String, Numeric): CastRule(unbounded_numbers.text_to_numeric, increasing=False, can_fail=True),
    (Enum, String): CastRule(_unchanged, increasing=False, can_fail=False),
    (String, Enum): CastRule(_text_to_enum, increasing=False, can_fail=True),
    (Json, String): CastRule(_unchanged, increasing=True, can_fail=False),
    (String, Bool): _from_text(Bool),
    (String, Int): _from_text(Int),
    (String, Float): _from_text(Float),
    (String, Decimal): _from_text(Decimal),
    (String, Date): _from_text(Date),
    (String, Timestamp): _from_text(Timestamp),
    (String, Time): _from_text(Time),
    (String, Uuid): _from_text(Uuid),
    (String, Json): CastRule(_unchanged, increasing=False, can_fail=False),
}
