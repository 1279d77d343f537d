"""Convert rows of other sources to a table's storage types, or reject them with the reason.

Soundness: a conversion changes the type of a value, never its meaning. Integers must fit, decimals
and times must be exact, and floats must round-trip. Text becomes a number only in a `numeric`
column, whose values no other Arrow type holds, and a local time never becomes an instant. NaN
becomes the canonical NaN, so equal values have equal bits (invariant I5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import SchemaMismatch, did_you_mean
from rowsieve.types import enums, interval_bytes, logical, numeric_bytes
from rowsieve.types.alias_forms import alias_values
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import (
    BOOL8_EXTENSION,
    arrow_schema,
    arrow_type,
    is_bytes,
    is_list,
    is_text,
    member_field,
)
from rowsieve.types.ordering.column_order import COLUMN_ORDER, with_column_order
from rowsieve.types.schema import ColumnNames, Schema
from rowsieve.types.variants.variant_json import is_variant, json_of_variants

_ADDED = '; schema_mode="merge" of upsert, append, apply_changes and apply_events adds columns'
_ALL_VALID = (
    logical.Bool,
    logical.Int,
    logical.Decimal,
    logical.Binary,
    logical.Date,
    logical.Timestamp,
    logical.Nanos,
    logical.Uuid,
    logical.Interval,
)
"""Types whose Arrow type holds nothing but valid values; text may not be UTF-8, NaN has many forms,
and a time may be outside of a day."""


def conform(rows: Any, schema: Schema) -> Any:
    """Convert a table or batch to exactly `arrow_schema(schema)`; SchemaMismatch if impossible.

    Columns are matched by name, exactly or else uniquely ignoring case, in any order. NULL in a NOT
    NULL column, and a missing or unknown column, are SchemaMismatch. Buffers are shared if
    possible. Rows of a table with an order of each column are whole where they do not say more.
    """
    if COLUMN_ORDER in schema.names:
        rows = with_column_order(rows, arrow_type(schema.field(COLUMN_ORDER).type))
    names, wanted = rows.schema.names, list(schema.names)
    positions: Sequence[int] = range(len(wanted))
    if names != wanted:
        positions = _match(names, wanted, "the data", "column")
    columns = list(map(_conform_column, map(rows.column, positions), schema.fields))
    kind = pa.RecordBatch if isinstance(rows, pa.RecordBatch) else pa.Table
    return kind.from_arrays(columns, schema=arrow_schema(schema))


def conform_values(values: pa.Array, type_: logical.LogicalType, name: str) -> pa.Array:
    """Convert values to the type of a column; SchemaMismatch, which names it, if impossible."""
    return _convert(values, logical.Field(1, name, type_), name)


def canonical_key(values: Any) -> Any:
    """Replace -0.0 by 0.0, and every NaN by the canonical NaN; the same object if unchanged."""
    if not pa.types.is_floating(values.type):
        return values
    return _per_chunk(values, lambda chunk: _canonical_floats(chunk, zeros=True))


def _match(names: Sequence[str], wanted: Sequence[str], owner: str, noun: str) -> list[int]:
    """Return the position in `names` of each wanted name; SchemaMismatch unless all pair up."""
    positions: list[int] = []
    missing: list[str] = []
    known = set(wanted)
    columns = ColumnNames(wanted)
    exact: dict[str, list[int]] = {}  # positions by name
    ignoring_case: dict[str, list[int]] = {}  # by the column that is meant
    for i, other in enumerate(names):
        exact.setdefault(other, []).append(i)
        if other not in known:
            ignoring_case.setdefault(columns.column(other), []).append(i)
    for name in wanted:
        matches = exact.get(name) or ignoring_case.get(name, [])
        if len(matches) > 1:
            raise SchemaMismatch(
                f"{owner} has {len(matches)} {noun}s for {name!r}: "
                f"{', '.join(repr(names[i]) for i in matches)}; keep one of them"
            )
        if matches:
            positions += matches
        else:
            missing.append(name)
    taken = set(positions)
    unknown = [name for i, name in enumerate(names) if i not in taken]
    if unknown:
        meant = did_you_mean(unknown[0], missing or wanted)
        raise SchemaMismatch(
            f"{owner} has {_listed(unknown, noun)} that the table does not have{meant}; the table "
            f"has ({', '.join(wanted)}){'' if meant or missing else _ADDED}"
        )
    if missing:
        raise SchemaMismatch(
            f"{owner} lacks {_listed(missing, noun)}; it has ({', '.join(names)}) and must have "
            f"every {noun} of the table: absent is not NULL, so give NULL where it is meant"
        )
    return positions


def _listed(names: Sequence[str], noun: str) -> str:
    return f"{noun}{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def _conform_column(values: Any, field: logical.Field) -> Any:
    try:
        converted = values
        is_stored = field.size is None and values.type == arrow_type(field.type)
        if not (is_stored and _are_valid(values, field)):
            converted = _per_chunk(values, lambda chunk: _convert(chunk, field, field.name))
    except SchemaMismatch as error:
        row = _first_failing(values, field)
        if row is None:  # the type itself does not fit
            raise
        raise SchemaMismatch(f"{error} (row {row}, counted from 0)") from error
    if not field.nullable and converted.null_count:
        raise SchemaMismatch(
            f"column {field.name!r} is NOT NULL, but {converted.null_count} of {len(converted)} "
            "values are NULL; give them values, or allow NULL by relax_not_null"
        )
    return converted


def _are_valid(values: Any, field: logical.Field) -> bool:
    """Return whether these values of the column's Arrow type are certainly values of the column."""
    if isinstance(field.type, logical.String | logical.Json) and field.alias is None:
        try:
            values.validate(full=True)  # bounds and comparisons need valid UTF-8
        except pa.ArrowException:
            return False
        return True
    return isinstance(field.type, _ALL_VALID)


def _first_failing(values: Any, field: logical.Field) -> int | None:
    """Return the first row that does not fit, None if the type itself does not."""

    def fits(count: int) -> bool:
        try:
            _per_chunk(values.slice(0, count), lambda chunk: _convert(chunk, field, field.name))
        except SchemaMismatch:
            return False
        return True

    if not fits(0):
        return None
    fine, failing = 0, len(values)
    while failing - fine > 1:
        middle = (fine + failing) // 2
        fine, failing = (middle, failing) if fits(middle) else (fine, middle)
    return failing - 1


def _convert(values: pa.Array, field: logical.Field, path: str) -> pa.Array:
    converted = _of_any_size(values, field, path)
    if field.size is not None:
        _check_size(converted, field.size, path)
    if field.alias is None:
        return converted
    try:
        return alias_values.checked(field.alias, converted)
    except (pa.ArrowException, ValueError) as error:
        raise SchemaMismatch(f"column {path!r} is a {field.alias}: {error}") from error


def _check_size(values: pa.Array, size: int, path: str) -> None:
    """Raise SchemaMismatch for a value with another number of bytes or items; NULL has none."""
    of_bytes = pa.types.is_binary(values.type)
    sizes = (pc.binary_length if of_bytes else pc.list_value_length)(values)
    others = sizes.filter(pc.not_equal(sizes, size))
    if len(others):
        noun = "bytes" if of_bytes else "items"
        raise SchemaMismatch(
            f"column {path!r} takes values of {size} {noun}, and one has {others[0]}; write "
            f"values of that size, or allow any with widen_column({path!r}, "
            f"{'pa.binary()' if of_bytes else 'pa.list_(…)'})"
        )


def _of_any_size(values: pa.Array, field: logical.Field, path: str) -> pa.Array:
    values = _plain(values)
    target = arrow_type(field.type)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    if not _is_accepted(values.type, field.type):
        raise SchemaMismatch(
            f"column {path!r} is {logical.type_name(field.type)} in the table, but {values.type} "
            f"in the data; {_hint(values.type, field.type)}"
        )
    match field.type:
        case logical.List(element=element):
            return _convert_list(values, element, target, path)
        case logical.Struct(fields=fields):
            return _convert_struct(values, fields, path)
        case logical.Map(key=key, value=value):
            return _convert_map(values, key, value, target, path)
        case _:
            return _convert_flat(values, field.type, target, path)


def _convert_flat(
    values: pa.Array, type_: logical.LogicalType, target: pa.DataType, path: str
) -> pa.Array:
    source = values.type
    try:
        if isinstance(type_, logical.Numeric):
            values = _numbers(values)
        elif isinstance(type_, logical.Json) and is_variant(source):
            values = json_of_variants(values)
        elif source != target:
            values = _cast(values, target)
        if isinstance(type_, logical.String | logical.Json):
            values.validate(full=True)  # bounds and comparisons need valid UTF-8
        if isinstance(type_, logical.Time):
            _check_times(values)
        if isinstance(type_, logical.Enum):
            enums.check_labels(values, type_)
    except (pa.ArrowException, ValueError) as error:
        shown = "Variant" if isinstance(type_, logical.Json) and is_variant(source) else source
        raise SchemaMismatch(
            f"column {path!r}: a value of type {shown} does not fit {logical.type_name(type_)} "
            f"without loss: {error}{_finer(source, type_)}"
        ) from error
    return _canonical_floats(values, zeros=False) if isinstance(type_, logical.Float) else values


def _finer(source: pa.DataType, type_: logical.LogicalType) -> str:
    """Name the type that has the nanoseconds which a timestamp does not."""
    if not (isinstance(type_, logical.Timestamp) and pa.types.is_timestamp(source)):
        return ""
    finer = logical.type_name(logical.Nanos(type_.utc))
    return (
        f"; a column of the type {finer} has nanoseconds: add one by that name, or "
        "create the table, or read the files with schema=, from a field with the metadata "
        "{'ARROW:extension:name': 'rowsieve.timestamp_ns.1'}"
    )


def _check_times(values: pa.Array) -> None:
    """Raise ValueError for times before midnight, or a day or more after it."""
    ends = pc.min_max(values.view(pa.int64()))
    for end in (ends["min"].as_py(), ends["max"].as_py()):
        if end is not None and not 0 <= end < DAY_US:
            raise ValueError(f"{end} microseconds after midnight are not within a day")


def _numbers(values: pa.Array) -> pa.Array:
    if pa.types.is_struct(values.type):
        return numeric_bytes.checked(values)
    if is_text(values.type):
        return numeric_bytes.from_text(values)
    return numeric_bytes.from_numbers(values)


def _cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(target) and pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(20, 0))  # holds every integer; the rescale checks
    if pa.types.is_interval(values.type) or pa.types.is_duration(values.type):
        return interval_bytes.from_arrow(values)
    converted = values.cast(target)
    if not (pa.types.is_decimal(target) or pa.types.is_floating(target)):
        return converted
    # Arrow wraps around when a decimal is scaled past 38 digits, and rounds floats.
    same = pc.equal(converted.cast(values.type, safe=False), values)
    if pa.types.is_floating(values.type):
        same = pc.or_(same, pc.is_nan(values))
    if not pc.all(same, min_count=0).as_py():
        raise ValueError(f"{values.filter(pc.invert(same))[0]} would change")
    return converted


def _convert_list(
    values: pa.Array, element: logical.Field, target: pa.DataType, path: str
) -> pa.Array:
    items = _convert_member(values.flatten(), element, f"{path}.{element.name}")
    mask = values.is_null() if values.null_count else None
    return pa.ListArray.from_arrays(_offsets(values), items, type=target, mask=mask)


def _convert_struct(values: pa.Array, fields: Sequence[logical.Field], path: str) -> pa.Array:
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    positions = _match(names, [field.name for field in fields], f"struct {path!r}", "member")
    children = values.flatten()
    mask = values.is_null() if values.null_count else None
    members = [
        _convert_member(children[position], field, f"{path}.{field.name}", mask)
        for position, field in zip(positions, fields, strict=True)
    ]
    return pa.StructArray.from_arrays(
        members, fields=[member_field(field) for field in fields], mask=mask
    )


def _convert_map(
    values: pa.Array, key: logical.Field, value: logical.Field, target: pa.DataType, path: str
) -> pa.Array:
    lengths = np.diff(values.offsets.to_numpy())
    if values.null_count:
        lengths[_mask(values.is_null())] = 0
    starts = values.offsets.to_numpy()[:-1]
    offsets = _cumulated(lengths)
    taken = pa.array(np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1]))
    keys = _convert_member(values.keys.take(taken), key, f"{path}.{key.name}")
    items = _convert_member(values.items.take(taken), value, f"{path}.{value.name}")
    mask = values.is_null() if values.null_count else None
    return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=target, mask=mask)


def _convert_member(
    values: pa.Array, field: logical.Field, path: str, absent: pa.Array | None = None
) -> pa.Array:
    """Convert a nested field; where `absent`, the parent is NULL, so a NULL child is allowed."""
    converted = _convert(values, field, path)
    nulls = converted.null_count
    if not field.nullable and nulls:
        if absent is not None:
            nulls = int(pc.sum(pc.and_not(converted.is_null(), absent)).as_py() or 0)
        if nulls:
            raise SchemaMismatch(
                f"column {path!r} is NOT NULL, but {nulls} of its values are NULL; give them "
                "values, or allow NULL by relax_not_null"
            )
    return converted


def _offsets(values: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    return pa.array(_cumulated(lengths.to_numpy()))


def _cumulated(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise SchemaMismatch("a batch holds more than 2^31 list items; write it in smaller batches")
    return offsets.astype(np.int32)


def _plain(values: pa.Array) -> pa.Array:
    """Decode extension, dictionary and run-end encoded arrays; cast half floats to float32."""
    while True:
        if isinstance(values.type, pa.BaseExtensionType):
            is_bool = values.type.extension_name.encode() == BOOL8_EXTENSION
            values = values.storage.cast(pa.bool_()) if is_bool else values.storage
        elif pa.types.is_dictionary(values.type):
            values = _materialised(values)
        elif pa.types.is_run_end_encoded(values.type):
            values = pc.run_end_decode(values)
        elif pa.types.is_float16(values.type):
            values = values.cast(pa.float32())
        else:
            return values


def _materialised(values: pa.Array) -> pa.Array:
    """Decode a dictionary array; cast views to plain types first, since `take` rejects them."""
    dictionary = values.dictionary
    if pa.types.is_string_view(dictionary.type):
        dictionary = dictionary.cast(pa.string())
    elif pa.types.is_binary_view(dictionary.type):
        dictionary = dictionary.cast(pa.binary())
    return dictionary.take(values.indices)


def _is_accepted(source: pa.DataType, type_: logical.LogicalType) -> bool:
    """Return whether values of an Arrow type may be converted to this type if they fit."""
    types = pa.types
    match type_:
        case logical.Bool():
            return bool(types.is_boolean(source))
        case logical.Int():
            return bool(types.is_integer(source))
        case logical.Float():
            return bool(types.is_floating(source) or types.is_integer(source))
        case logical.Decimal():
            return bool(types.is_decimal(source) or types.is_integer(source))
        case logical.Json():
            return is_text(source) or is_variant(source)
        case logical.String() | logical.Enum():
            return is_text(source)
        case logical.Binary():
            return is_bytes(source)
        case logical.Uuid():
            return is_bytes(source)
        case logical.Interval():
            return bool(types.is_interval(source) or types.is_duration(source) or is_bytes(source))
        case logical.Numeric():
            number = types.is_decimal(source) or types.is_integer(source)
            return bool(number or is_text(source) or numeric_bytes.is_stored(source))
        case logical.Date():
            return bool(types.is_date(source))
        case logical.Time():
            return bool(types.is_time(source))
        case logical.Timestamp(utc=utc) | logical.Nanos(utc=utc):
            return bool(types.is_timestamp(source)) and (source.tz is not None) == utc
        case logical.List():
            return is_list(source)
        case logical.Struct():
            return bool(types.is_struct(source))
        case logical.Map():
            return bool(types.is_map(source))


def _hint(source: pa.DataType, type_: logical.LogicalType) -> str:
    if isinstance(type_, logical.Timestamp | logical.Nanos) and pa.types.is_timestamp(source):
        return (
            "give the zone of these local times (pyarrow.compute.assume_timezone; in SQL, "
            "arrow_cast(value, 'Timestamp(Microsecond, Some(\"UTC\"))'))"
            if type_.utc
            else "convert the instants to local times of a zone (pyarrow.compute.local_timestamp; "
            "in SQL, to_local_time(value))"
        )
    if is_variant(source):
        return "a Variant becomes JSON text in a column of the type json"
    if isinstance(type_, logical.Numeric):
        return "cast it to an integer, a decimal or text if that is intended"
    if logical.is_nested(type_):
        return "build the column with the table's type"
    hint = f"cast it to {arrow_type(type_)} if that is intended"
    if isinstance(type_, logical.Int) and pa.types.is_floating(source):
        return f"{hint}, or give the column fractions (widen_column to a decimal)"
    return hint


def _per_chunk(values: Any, convert: Any) -> Any:
    if not isinstance(values, pa.ChunkedArray):
        return convert(values)
    chunks = values.chunks  # each access creates new wrappers
    converted = [convert(chunk) for chunk in chunks or [pa.array([], values.type)]]
    if chunks and all(new is old for new, old in zip(converted, chunks, strict=True)):
        return values
    return pa.chunked_array(converted)


def _canonical_floats(values: pa.Array, *, zeros: bool) -> pa.Array:
    numbers = values.to_numpy(zero_copy_only=False)
    wrong = np.isnan(numbers)
    if wrong.any():
        bits = numbers.view(np.dtype(f"i{numbers.itemsize}"))
        wrong &= bits != np.array(np.nan, numbers.dtype).view(bits.dtype)
    negative = (numbers == 0) & np.signbit(numbers) if zeros else np.zeros_like(wrong)
    if not (wrong.any() or negative.any()):
        return values
    fixed = np.where(wrong, np.nan, np.where(negative, 0.0, numbers)).astype(numbers.dtype)
    return pa.array(fixed, values.type, mask=_mask(values.is_null()))


def _mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=bool)
