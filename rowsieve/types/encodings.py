"""Convert logical types to the Arrow types that store them in memory and in files, and back.

Storage types are plain types, never registered extension classes: a UUID is 16 fixed bytes, JSON is
text, and the field's metadata names the extension (`rowsieve.uuid.1`), so any reader can open the
files. Every field has its id in the metadata as `PARQUET:field_id`. `rowsieve.types.conform`
converts data of other sources to these types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, assert_never

import pyarrow as pa

from rowsieve.errors import SchemaMismatch
from rowsieve.types import enums, logical, numeric_bytes
from rowsieve.types.aliases import ALIASES, GEOMETRY, PREFIX, find_alias
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_arrow_schema, cached_by_schema
from rowsieve.types.time_zones import is_own_name
from rowsieve.types.variants.variant_json import EXTENSIONS as VARIANT_NAMES
from rowsieve.types.variants.variant_json import is_marked_by_spark, is_variant

FIELD_ID_KEY = b"PARQUET:field_id"
COMMENT_KEY = b"comment"
EXTENSION_KEY = b"ARROW:extension:name"
SIZE_KEY = b"rowsieve.fixed_size"
"""The metadata that names the number of bytes or items of each value."""
EXTENSION_KEYS = (EXTENSION_KEY, enums.LABELS_KEY)
"""The metadata that says what a column is."""
UUID_EXTENSION = b"rowsieve.uuid.1"
JSON_EXTENSION = b"rowsieve.json.1"
INTERVAL_EXTENSION = b"rowsieve.interval.1"
NUMERIC_EXTENSION = b"rowsieve.numeric.1"
ENUM_EXTENSION = b"rowsieve.enum.1"
NANOS_EXTENSION = b"rowsieve.timestamp_ns.1"
GEOARROW_WKB = b"geoarrow.wkb"
BOOL8_EXTENSION = b"arrow.bool8"  # of Arrow's specification: a boolean in a byte

_PLAIN_TYPES = frozenset(
    type_.id
    for type_ in (
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(),
        pa.uint32(), pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(),
    )
)  # fmt: skip
"""Types without parameters and of one logical type, which most columns have."""

DEEPEST_LEVELS = 90  # pyarrow reads files of up to 98 levels, with the row and the leaf

_EXTENSIONS: Mapping[type[logical.LogicalType], bytes] = {
    logical.Uuid: UUID_EXTENSION,
    logical.Json: JSON_EXTENSION,
    logical.Interval: INTERVAL_EXTENSION,
    logical.Numeric: NUMERIC_EXTENSION,
    logical.Enum: ENUM_EXTENSION,
    logical.Nanos: NANOS_EXTENSION,
}
_OUR_FORMS = {
    UUID_EXTENSION: "16 fixed bytes",
    JSON_EXTENSION: "text",
    INTERVAL_EXTENSION: "16 fixed bytes",
    NUMERIC_EXTENSION: "a struct of approx and exact",
    ENUM_EXTENSION: "text, a column of its own",
    NANOS_EXTENSION: "a timestamp of any unit",
}
_UUID_NAMES = (UUID_EXTENSION, b"arrow.uuid")
_JSON_NAMES = (JSON_EXTENSION, b"arrow.json")
_INTEGERS: dict[tuple[int, bool], Callable[[], Any]] = {
    (8, True): pa.int8,
    (16, True): pa.int16,
    (32, True): pa.int32,
    (64, True): pa.int64,
    (8, False): pa.uint8,
    (16, False): pa.uint16,
    (32, False): pa.uint32,
    (64, False): pa.uint64,
}


def arrow_type(type_: logical.LogicalType) -> pa.DataType:
    """Return the Arrow type that stores values of this logical type."""
    match type_:
        case logical.Bool():
            return pa.bool_()
        case logical.Int(bits=bits, signed=signed):
            return _INTEGERS[bits, signed]()
        case logical.Float(bits=bits):
            return pa.float32() if bits == 32 else pa.float64()
        case logical.Decimal(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case logical.String() | logical.Json() | logical.Enum():
            return pa.string()
        case logical.Binary():
            return pa.binary()
        case logical.Date():
            return pa.date32()
        case logical.Time():
            return pa.time64("us")
        case logical.Timestamp(utc=utc):
            return pa.timestamp("us", tz="UTC" if utc else None)
        case logical.Nanos(utc=utc):
            return pa.timestamp("ns", tz="UTC" if utc else None)
        case logical.Uuid() | logical.Interval():
            return pa.binary(16)
        case logical.Numeric():
            return numeric_bytes.STORAGE
        case logical.List(element=element):
            return pa.list_(arrow_field(element))
        case logical.Struct(fields=fields):
            return pa.struct([member_field(field) for field in fields])
        case logical.Map(key=key, value=value):
            return pa.map_(arrow_field(key), arrow_field(value))
        case _:
            assert_never(type_)


def arrow_field(field: logical.Field) -> pa.Field:
    """Return the Arrow field: storage type, nullability, and the id as metadata."""
    metadata = {FIELD_ID_KEY: str(field.id).encode()}
    if field.alias is not None:
        metadata[EXTENSION_KEY] = f"{PREFIX}{field.alias}".encode()
    elif (extension := _EXTENSIONS.get(type(field.type))) is not None:
        metadata[EXTENSION_KEY] = extension
        if isinstance(field.type, logical.Enum):
            metadata[enums.LABELS_KEY] = enums.as_json(field.type)
    if field.size is not None:
        metadata[SIZE_KEY] = str(field.size).encode()
    return pa.field(field.name, arrow_type(field.type), field.nullable, metadata)


def member_field(field: logical.Field) -> pa.Field:
    """Return the Arrow field for a field of a struct; nullable, even if the field is NOT NULL.

    Where the struct is NULL, the field is NULL as well: engines may read it without its struct.
    """
    return arrow_field(field).with_nullable(nullable=True)


@cached_by_schema
def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of a table's rows; only its fields have metadata."""
    return pa.schema([arrow_field(field) for field in schema])


def commented_schema(schema: Schema) -> pa.Schema:
    """Return `arrow_schema`, with the comments of columns as metadata, for people to read."""
    return pa.schema(
        [
            stored.with_metadata({**stored.metadata, COMMENT_KEY: field.comment.encode()})
            if field.comment
            else stored
            for field, stored in zip(schema, arrow_schema(schema), strict=True)
        ]
    )


def zoned_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema without metadata; instants have their declared zones."""
    return pa.schema([_zoned_field(field) for field in schema])


def relabelled(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the same buffers with another schema; it must have the same layout (not checked)."""
    return pa.record_batch(_Relabelled(rows, schema))


class _Relabelled:
    """Rows that are exported with another schema."""

    __slots__ = ("_rows", "_schema")

    def __init__(self, rows: pa.RecordBatch, schema: pa.Schema) -> None:
        self._rows = rows
        self._schema = schema

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._schema.__arrow_c_schema__(), self._rows.__arrow_c_array__()[1]


def without_metadata(schema: pa.Schema, keep: Collection[bytes] = ()) -> pa.Schema:
    """Remove the metadata at every depth, for engines; `keep` names the keys to keep.

    Engines compare nested types with their metadata: a list with field ids would have another type
    than the result of a function or a literal. Arrays need no change: a batch built from them with
    this schema exports the types without metadata.
    """
    return pa.schema([_without_metadata(field, keep) for field in schema])


def logical_type(field: pa.Field, allocate: Callable[[], int]) -> logical.LogicalType:
    """Return the logical type of an Arrow field; `allocate` returns nested ids, depth first.

    SchemaMismatch for an unsupported type; it names the field and the remedy.
    """
    check_nesting(field)
    return _enum(field) or _aliased_type(field, allocate)


def _enum(field: pa.Field) -> logical.Enum | None:
    """Return the enum that a column declares; text inside other columns has no labels."""
    if not is_text(_unwrapped(field)[1]):
        return None
    return enums.declared(field.metadata, ENUM_EXTENSION, field.name)


def _aliased_type(field: pa.Field, allocate: Callable[[], int]) -> logical.LogicalType:
    if "\0" in field.name:
        raise SchemaMismatch(
            f"the column name {field.name!r} has a zero byte, where engines cut names off; rename "
            "the column"
        )
    name = alias_name(field)
    if name is None:
        return _logical_type(field, allocate)
    alias, plain_type = find_alias(name), _logical_type(field.remove_metadata(), allocate)
    if alias is None or not alias.fits(plain_type):
        raise _unknown_extension(field.name, PREFIX + name, field.type)
    return plain_type


def alias_name(field: pa.Field) -> str | None:
    """Return the alias that the metadata of a column names, such as `range.1`, or None."""
    name_bytes = _unwrapped(field)[0] or b""
    if name_bytes == GEOARROW_WKB and is_bytes(_unwrapped(field)[1]):
        return GEOMETRY
    extension = name_bytes.decode(errors="replace")
    name = extension.removeprefix(PREFIX)
    return name if name != extension and find_alias(name) is not None else None


def declared_size(field: pa.Field, type_: logical.LogicalType) -> int | None:
    """Return the bytes or items of each value, by Arrow's type or the metadata; None if any."""
    if not isinstance(type_, logical.Binary | logical.List):
        return None
    stored = _unwrapped(field)[1]
    if pa.types.is_fixed_size_binary(stored):
        return int(stored.byte_width)
    if pa.types.is_fixed_size_list(stored):
        return int(stored.list_size)
    text = (field.metadata or {}).get(SIZE_KEY)
    if text is None:
        return None
    if not (text.isdigit() and int(text) < 2**31):
        raise SchemaMismatch(
            f"column {field.name!r} has the metadata {SIZE_KEY.decode()}={text!r}, which is not a "
            "number of bytes or items; remove it from the field, or write digits"
        )
    return int(text)


def check_nesting(field: pa.Field) -> None:
    """Raise SchemaMismatch for a type with more levels than Parquet readers support.

    A struct is one level in a file, a list or a map is two. The walk is iterative: a type may be
    deeper than Python's stack.
    """
    if pa.types.is_primitive(field.type):  # thousands of columns may be checked
        return
    pending = [(field.type, 0)]
    while pending:
        type_, levels = pending.pop()
        if levels > DEEPEST_LEVELS:
            raise SchemaMismatch(
                f"column {field.name!r} is nested too deep: a column has at most {DEEPEST_LEVELS} "
                "levels (a struct counts one, a list or a map two); flatten it, or store it as "
                "JSON text"
            )
        if isinstance(type_, pa.BaseExtensionType):
            pending.append((type_.storage_type, levels))
        elif pa.types.is_dictionary(type_):
            pending.append((type_.value_type, levels))
        elif pa.types.is_map(type_):
            pending += [(type_.key_type, levels + 2), (type_.item_type, levels + 2)]
        elif type_.num_fields:
            deeper = levels + (1 if pa.types.is_struct(type_) else 2)
            pending.extend((type_.field(i).type, deeper) for i in range(type_.num_fields))


def _logical_type(field: pa.Field, allocate: Callable[[], int]) -> logical.LogicalType:
    extension, type_ = _unwrapped(field)
    if pa.types.is_fixed_size_binary(type_) and type_.byte_width == 16:
        if extension in _UUID_NAMES:
            return logical.Uuid()
        if extension == INTERVAL_EXTENSION:
            return logical.Interval()
    if extension == NUMERIC_EXTENSION and (numeric_bytes.is_stored(type_) or is_text(type_)):
        return logical.Numeric()
    if extension in _JSON_NAMES and is_text(type_):
        return logical.Json()
    if extension == NANOS_EXTENSION and pa.types.is_timestamp(type_):
        return logical.Nanos(utc=type_.tz is not None)
    if extension in VARIANT_NAMES or is_marked_by_spark(type_):
        return _variant(field.name, type_)
    if extension == BOOL8_EXTENSION:
        return logical.Bool()
    if extension is not None and extension.startswith(PREFIX.encode()):
        raise _unknown_extension(field.name, extension.decode(errors="replace"), type_)
    flat = _flat_type(type_)
    if isinstance(flat, logical.Timestamp) and is_own_name(flat.zone):
        raise SchemaMismatch(
            f"column {field.name!r} has the type {type_}, whose time zone no database has; declare "
            "Area/City as in Europe/Berlin, or UTC"
        )
    return flat if flat is not None else _nested_type(field, type_, allocate)


def _variant(name: str, type_: pa.DataType) -> logical.Json:
    if not is_variant(type_):
        raise SchemaMismatch(
            f"column {name!r} is a Variant stored as {type_}, which this version of rowsieve does "
            "not decode: it needs the bytes metadata, and value or typed_value of Parquet's types; "
            "convert it to JSON text with the engine that wrote it"
        )
    return logical.Json()


def _unwrapped(field: pa.Field) -> tuple[bytes | None, pa.DataType]:
    """Return the name of the field's extension, and the type of its decoded values."""
    extension, type_ = (field.metadata or {}).get(EXTENSION_KEY), field.type
    while True:
        if isinstance(type_, pa.BaseExtensionType):
            extension, type_ = type_.extension_name.encode(), type_.storage_type
        elif pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
            type_ = type_.value_type
        else:
            return extension, type_


def _unknown_extension(name: str, extension: str, type_: pa.DataType) -> SchemaMismatch:
    forms = {known.decode(): form for known, form in _OUR_FORMS.items()}
    forms |= {PREFIX + alias: alias_type.form for alias, alias_type in ALIASES.items()}
    known = ", ".join(f"{known} ({form})" for known, form in forms.items())
    return SchemaMismatch(
        f"column {name!r} has the extension type {extension!r} over {type_}, which this version of "
        f"rowsieve does not know; it knows {known}. Upgrade rowsieve, or remove the metadata "
        f"{EXTENSION_KEY.decode()!r} from the field to store plain {type_}"
    )


def schema_of(
    schema: pa.Schema, not_null: Collection[str] = (), schema_id: int = 0
) -> tuple[Schema, int]:
    """Assign ids from 1, depth first, to an Arrow schema; return the schema and the next free id.

    Columns named in `not_null`, and columns that Arrow marks as not nullable, are NOT NULL.
    """
    last = 0

    def allocate() -> int:
        nonlocal last
        last += 1
        return last

    _refuse_duplicates(list(schema.names))
    fields = []
    plain: dict[int, logical.LogicalType] = {}
    for item in schema:
        field_id, name = allocate(), item.name
        nullable = bool(item.nullable) and name not in not_null
        is_plain = is_plain_field(item)
        type_ = plain.get(item.type.id) if is_plain and "\0" not in name else None
        if type_ is not None:
            fields.append(logical.Field(field_id, name, type_, nullable))
            continue
        type_, alias = logical_type(item, allocate), alias_name(item)
        size = declared_size(item, type_)
        fields.append(logical.Field(field_id, name, type_, nullable, alias=alias, size=size))
        if is_plain:
            plain[item.type.id] = type_
    return Schema(schema_id, tuple(fields)), last + 1


def is_plain_field(field: pa.Field) -> bool:
    """Return whether the field is its name and one of a few types without parameters."""
    return field.metadata is None and field.type.id in _PLAIN_TYPES


def schema_of_arrow(schema: pa.Schema) -> Schema:
    """Return the schema with ids from 1 for one that calls pass again and again: it is cached.

    Columns of types that tables do not support, such as null, are left out: a condition that names
    one is refused, and `refuse_unsupported` says why. The key is the serialized form, because
    schemas of pyarrow are equal if only their metadata differs, which names types.
    """
    return _deserialized(schema.serialize().to_pybytes())


@cached_by_arrow_schema
def _deserialized(serialized: bytes) -> Schema:
    schema = pa.ipc.read_schema(pa.BufferReader(serialized))
    names = Counter(name.casefold() for name in schema.names)
    # Engines may take a name in another case for this one, so such columns are not left out.
    columns = [each for each in schema if _is_supported(each) or names[each.name.casefold()] > 1]
    return schema_of(pa.schema(columns, schema.metadata))[0]


def _is_supported(field: pa.Field) -> bool:
    try:
        logical_type(field, lambda: 0)
    except SchemaMismatch:
        return False
    return True


def refuse_unsupported(name: str, schema: object) -> None:
    """Raise SchemaMismatch if the column of this schema, or table, has no type of ours."""
    schema = getattr(schema, "schema", schema)
    for field in schema if isinstance(schema, pa.Schema) else ():
        if field.name == name:
            logical_type(field, lambda: 0)


def _zoned_field(field: logical.Field) -> pa.Field:
    return pa.field(field.name, _zoned_type(field.type), field.nullable)


def _zoned_type(type_: logical.LogicalType) -> pa.DataType:
    match type_:
        case logical.Timestamp(utc=True, zone=zone):
            return pa.timestamp("us", tz=zone)
        case logical.List(element=element):
            return pa.list_(_zoned_field(element))
        case logical.Struct(fields=fields):
            return pa.struct([_zoned_field(field).with_nullable(nullable=True) for field in fields])
        case logical.Map(key=key, value=value):
            return pa.map_(_zoned_field(key), _zoned_field(value))
        case _:
            return arrow_type(type_)


def _without_metadata(field: pa.Field, keep: Collection[bytes]) -> pa.Field:
    type_ = field.type
    if pa.types.is_map(type_):
        members = (type_.key_field, type_.item_field)
        type_ = pa.map_(*(_without_metadata(member, keep) for member in members))
    elif pa.types.is_list(type_):
        type_ = pa.list_(_without_metadata(type_.value_field, keep))
    elif pa.types.is_struct(type_):
        members = tuple(type_.field(i) for i in range(type_.num_fields))
        type_ = pa.struct([_without_metadata(member, keep) for member in members])
    metadata = {key: text for key, text in (field.metadata or {}).items() if key in keep}
    return pa.field(field.name, type_, field.nullable, metadata or None)


def _flat_type(type_: pa.DataType) -> logical.LogicalType | None:
    if pa.types.is_boolean(type_):
        return logical.Bool()
    if pa.types.is_integer(type_):
        return logical.Int(int(type_.bit_width), bool(pa.types.is_signed_integer(type_)))
    if pa.types.is_floating(type_):
        return logical.Float(max(int(type_.bit_width), 32))
    if pa.types.is_decimal(type_):
        precision, scale = int(type_.precision), int(type_.scale)
        fits = 0 <= scale <= precision <= 38
        return logical.Decimal(precision, scale) if fits else logical.Numeric()
    if is_text(type_):
        return logical.String()
    if is_bytes(type_):
        return logical.Binary()
    if pa.types.is_date(type_):
        return logical.Date()
    if pa.types.is_time(type_):
        return logical.Time()
    if pa.types.is_timestamp(type_):
        return logical.Timestamp(utc=type_.tz is not None, zone=type_.tz or "UTC")
    if pa.types.is_interval(type_) or pa.types.is_duration(type_):
        return logical.Interval()
    return None


def _nested_type(
    field: pa.Field, type_: pa.DataType, allocate: Callable[[], int]
) -> logical.LogicalType:
    def member(item: pa.Field, *, nullable: bool | None = None) -> logical.Field:
        field_id = allocate()
        null = bool(item.nullable) if nullable is None else nullable
        type_, alias = _aliased_type(item, allocate), alias_name(item)
        size = declared_size(item, type_)
        return logical.Field(field_id, item.name, type_, null, alias=alias, size=size)

    if is_list(type_):
        return logical.List(member(type_.value_field))
    if pa.types.is_struct(type_) and type_.num_fields:
        _refuse_duplicates([type_.field(i).name for i in range(type_.num_fields)], field.name)
        return logical.Struct(tuple(member(type_.field(i)) for i in range(type_.num_fields)))
    if pa.types.is_map(type_):
        return logical.Map(member(type_.key_field, nullable=False), member(type_.item_field))
    raise SchemaMismatch(
        f"column {field.name!r} has the type {field.type}, which tables do not support; "
        f"{_remedy(type_)}"
    )


def _remedy(type_: pa.DataType) -> str:
    """Say what to do with values of a type that tables do not have."""
    if pa.types.is_null(type_):
        return "it has no values: cast it to the type that the column should have"
    if pa.types.is_union(type_):
        return "store a column for each of its types, or JSON text"
    if pa.types.is_struct(type_):
        return "it has no fields: give it one, or leave the column out"
    return (
        "cast it to bool, a number, decimal(<=38), string, binary, date, time, timestamp, "
        "interval, or a list, struct or map of these"
    )


def _refuse_duplicates(names: list[str], parent: str | None = None) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        where = f" of struct {parent!r}" if parent else ""
        raise SchemaMismatch(
            f"more than one column{where} has the name {twice[0]!r}; rename one of them"
        )


def is_text(type_: pa.DataType) -> bool:
    """Return whether an Arrow type is UTF-8 text in any layout."""
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )


def is_bytes(type_: pa.DataType) -> bool:
    """Return whether an Arrow type is bytes in any layout."""
    return bool(
        pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_binary_view(type_)
        or pa.types.is_fixed_size_binary(type_)
    )


def is_list(type_: pa.DataType) -> bool:
    """Return whether an Arrow type is a list in any layout."""
    return bool(
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
        or pa.types.is_list_view(type_)
        or pa.types.is_large_list_view(type_)
    )


def sizes_of(table: pa.Table) -> list[int]:
    """Estimate the bytes of each column; numbers by their width, without reading the column.

    Wide tables have tens of thousands of columns, and reading each one's size would dominate.
    """
    rows = table.num_rows
    widths: dict[pa.DataType, int] = {}
    sizes = []
    for i, type_ in enumerate(table.schema.types):
        if (size := widths.get(type_)) is None:
            is_plain = pa.types.is_primitive(type_) or pa.types.is_decimal(type_)
            size = widths[type_] = -(-type_.bit_width * rows // 8) if is_plain else -1
        sizes.append(int(table.column(i).nbytes) if size < 0 else size)
    return sizes
