"""Reads the footers of many foreign files, and the types of their columns.

Soundness: a footer is checked before a decoder sees it (`rowsieve.parquet.foreign_footer`), and one
that is not valid or not supported is an error that names the file. The rows are those of the row
groups; a footer that counts others is logged. Nothing of a file is believed without a check.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData, InvalidInput, NotFound, UnsupportedOperation
from rowsieve.objects import ObjectNotFound, ObjectStore, together
from rowsieve.parquet.codec_columns import CODEC_KEY, hidden_names
from rowsieve.parquet.file_mapping import as_tail
from rowsieve.parquet.footer import read_footer
from rowsieve.parquet.foreign_footer.checked_footer import CheckedFooter
from rowsieve.parquet.foreign_footer.chunk_checks import UnreadableFooter
from rowsieve.parquet.foreign_footer.footer_fields import SCHEMA
from rowsieve.parquet.foreign_footer.index_contradictions import checked_by_index
from rowsieve.parquet.foreign_footer.read_footer import check_footer
from rowsieve.parquet.foreign_footer.schema_tree import BYTES, FIXED, is_decimal, map_without_keys
from rowsieve.parquet.foreign_values import typed_leaves
from rowsieve.parquet.shredded_columns import SHREDDED_KEY, named_shredding
from rowsieve.parquet.statistics.foreign_chunks import stored_chunks
from rowsieve.parquet.statistics.known_faults import ARROW_SCHEMA
from rowsieve.parquet.stored_forms import FORMAT_KEY
from rowsieve.parquet.thrift import MalformedThrift
from rowsieve.parquet.variant_columns import SPARK_SCHEMA, with_variants
from rowsieve.predicate.rowset.roaring import ID_LIMIT
from rowsieve.progress_bars import UNSEEN, Steps
from rowsieve.types.days import NANOS_OF_MICRO
from rowsieve.types.encodings import EXTENSION_KEY, GEOARROW_WKB
from rowsieve.types.leaf_fields import leaf_fields

_LOG: Final = logging.getLogger("rowsieve")
_MAGIC: Final = b"PAR1"
_ENCRYPTED: Final = b"PARE"
_AFTER_FOOTER: Final = 8
_EXTENSIONS: Final = {
    "UUID": b"arrow.uuid",
    "JSON": b"arrow.json",
    "GEOMETRY": GEOARROW_WKB,
}
"""By Parquet's logical type."""
_PAIRS_OF_SCHEMA: Final = (ARROW_SCHEMA, SPARK_SCHEMA, SHREDDED_KEY, CODEC_KEY, FORMAT_KEY)
"""The key-value pairs that decide what the schema shows."""
_TIMESTAMP: Final = pa.timestamp("us").id
_FORM: Final = attrgetter("path", "physical", "width")
_SHOWN_AT_ONCE: Final = 64  # files that are read between two reports of progress
_MAX_INDEX_BYTES: Final = 8 * 2**20  # a longer page index is not read
_FIRST_BYTES: Final = 64 * 1024  # read at the end of a file; most footers are smaller


@dataclass(frozen=True, slots=True)
class Footer:
    """A file's footer. `schema`: its columns in the types in which they are decoded.

    Files share the schema object if they store the same columns in the same physical form. The tail
    is the footer, with the page index if it lies right before it. `stored`: all columns by
    Parquet's own schema, with the field ids of the file.
    """

    uri: str
    size_bytes: int
    tail_start: int
    tail_checksum: str
    stored: pa.Schema
    schema: pa.Schema
    checked: CheckedFooter

    def finer_than_micros(self) -> Iterator[str]:
        """The paths of leaves whose bounds have nanoseconds that microseconds do not hold."""
        fine = [i for i, leaf in enumerate(self.checked.leaves) if leaf.has_nanoseconds]
        leaves = self._leaves() if fine else []
        for i, bound in self._bounds(fine):
            if bound % NANOS_OF_MICRO:
                yield leaves[i][0]

    def longer_than_declared(self) -> Iterator[str]:
        """The paths of decimals with a bound of more digits than their type has."""
        if not any(is_decimal(each.values) for each in self.checked.elements):
            return
        leaves = self._leaves()
        decimals = [i for i, (_, leaf) in enumerate(leaves) if pa.types.is_decimal(leaf.type)]
        for i, bound in self._bounds(decimals):
            path, leaf = leaves[i]
            number = int.from_bytes(bound, signed=True) if isinstance(bound, bytes) else bound
            if abs(number) >= 10**leaf.type.precision:
                yield path

    def _bounds(self, leaves: Iterable[int]) -> Iterator[tuple[int, Any]]:
        """The physical bounds of these leaves, each with its leaf's number."""
        for i in leaves:
            stored = stored_chunks(self.checked, i)
            yield from ((i, bound) for bound in (*stored.lower, *stored.upper) if bound)

    def _leaves(self) -> list[tuple[str, pa.Field]]:
        return leaf_fields(self.stored)


def read_footers(
    store: ObjectStore,
    uris: Sequence[str],
    steps: Steps = UNSEEN,
    *,
    if_absent: str = "give files that do",
) -> list[Footer]:
    """Read the footers of these files, concurrently from a remote store; a file is a step.

    `if_absent`: the advice of the NotFound for a file that does not exist.
    """
    schemas = _Schemas()
    raw: list[tuple[int, bytes]] = []
    at_once = _SHOWN_AT_ONCE if steps.is_shown else max(1, len(uris))
    for first in range(0, len(uris), at_once):
        block = uris[first : first + at_once]
        raw += together(store, [partial(_read, store, uri, if_absent) for uri in block])
        steps.add(len(block))
    footers = [
        _parsed(uri, size, tail, schemas) for uri, (size, tail) in zip(uris, raw, strict=True)
    ]
    indexed = [
        (place, start)
        for place, footer in enumerate(footers)
        if (start := _index_start(footer)) is not None
    ]
    with_index = together(
        store, [partial(_with_index, store, footers[place], start) for place, start in indexed]
    )
    for (place, _), footer in zip(indexed, with_index, strict=True):
        footers[place] = footer
    return footers


def _with_index(store: ObjectStore, footer: Footer, start: int) -> Footer:
    """The footer with a tail that begins at its page index, which it was compared with."""
    tail = store.get_range(footer.uri, start, footer.size_bytes)
    index = bytes(tail[: footer.tail_start - start])
    checked = checked_by_index(footer.checked, index, start)
    return replace(footer, tail_start=start, tail_checksum=checksum(tail), checked=checked)


def _index_start(footer: Footer) -> int | None:
    """The start of the page index, if it lies between the data and the footer; else None."""
    if not footer.checked.has_page_index:
        return None
    start, end = footer.checked.data_end, footer.tail_start
    return start if end - _MAX_INDEX_BYTES <= start < end else None


def _read(store: ObjectStore, uri: str, if_absent: str) -> tuple[int, bytes]:
    """The size of a file, and its bytes from the footer on."""
    try:
        size = store.size(uri)
        if size < len(_MAGIC) + _AFTER_FOOTER:
            raise InvalidInput(
                f"{uri} is not a Parquet file: it has {size} bytes; leave it out, or write it again"
            )
        end = store.get_range(uri, max(0, size - _FIRST_BYTES), size)
        if end[-4:] == _ENCRYPTED:
            raise UnsupportedOperation(f"{uri} is encrypted, which is not supported; decrypt it")
        if end[-4:] != _MAGIC:
            raise InvalidInput(
                f"{uri} is not a Parquet file: it does not end with PAR1; leave it out, or write "
                "it again"
            )
        length = int.from_bytes(end[-_AFTER_FOOTER:-4], "little") + _AFTER_FOOTER
        if length > size - len(_MAGIC):
            raise CorruptData(
                f"{uri} has a footer of {length} bytes in a file of {size} bytes; write the file "
                "again"
            )
        if length > len(end):
            end = store.get_range(uri, size - length, size)
        return size, end[-length:]
    except ObjectNotFound as error:
        raise NotFound(f"{uri} does not exist; {if_absent}") from error


class _Schemas:
    """The schemas of files; those of the same columns in the same form are one object."""

    def __init__(self) -> None:
        self._by_bytes: dict[Any, tuple[pa.Schema, pa.Schema]] = {}
        self._by_form: dict[Any, pa.Schema] = {}

    def of(self, uri: str, checked: CheckedFooter) -> tuple[pa.Schema, pa.Schema]:
        """The columns by Parquet's own schema, and those that are shown as they are decoded.

        Files of one writer mostly have the same bytes, which need no second look.
        """
        field, pairs = checked.fields[SCHEMA], checked.pairs
        encoded = checked.data[field.start : field.stop], *map(pairs.get, _PAIRS_OF_SCHEMA)
        if (both := self._by_bytes.get(encoded)) is None:
            stored, schema = _schemas_of(uri, checked)
            form = bytes(schema.serialize()), tuple(map(_FORM, checked.leaves))
            both = self._by_bytes[encoded] = stored, self._by_form.setdefault(form, schema)
        return both


def _schemas_of(uri: str, checked: CheckedFooter) -> tuple[pa.Schema, pa.Schema]:
    footer, stored = _named_schema(uri, checked, {})
    schema = _decoded_schema(uri, checked, footer, stored)
    hidden = {*hidden_names(checked.pairs, uri)}
    if (shredding := named_shredding(checked.pairs)) is not None:
        hidden.add(shredding.column)
    if hidden:
        schema = pa.schema([field for field in schema if field.name not in hidden])
    return stored, schema


def _named_schema(
    uri: str, checked: CheckedFooter, pairs: Mapping[bytes, bytes]
) -> tuple[pq.FileMetaData, pa.Schema]:
    """A footer with these pairs and without chunks, and its columns as pyarrow reads them.

    UnsupportedOperation for a valid schema that pyarrow does not read.
    """
    elements = [(each, each.field_id) for each in checked.elements]
    try:
        footer = read_footer(as_tail(checked.sanitised(elements, pairs, with_groups=False)))
        return footer, footer.schema.to_arrow_schema().remove_metadata()
    except pa.ArrowException as error:
        name, shown = map_without_keys(checked.elements), str(error).rstrip(".")
        what = "" if name is None else f", whose map {name!r} has keys that may be NULL,"
        raise UnsupportedOperation(
            f"{uri} has a schema{what} that pyarrow {pa.__version__} does not read: {shown}; write "
            "the file again in another schema: the keys of a map are required"
        ) from error


def _parsed(uri: str, size: int, tail: bytes, schemas: _Schemas) -> Footer:
    try:
        checked = check_footer(tail[:-_AFTER_FOOTER])
        stored, schema = schemas.of(uri, checked)
    except UnreadableFooter as error:
        raise UnsupportedOperation(f"{uri}: {error}") from error
    except (pa.ArrowException, OSError, MalformedThrift, UnicodeDecodeError) as error:
        raise CorruptData(
            f"the footer of {uri} cannot be read: {error}; write the file again with the program "
            "that wrote it, or restore it from a copy"
        ) from error
    if checked.row_count >= ID_LIMIT:
        raise UnsupportedOperation(
            f"{uri} has {checked.row_count:,} rows by its row groups, and a file that is read in "
            f"place has fewer than {ID_LIMIT:,}; write its rows into several files"
        )
    if checked.claimed_rows != checked.row_count:
        _LOG.warning(
            "%s says that it has %d rows, and its row groups have %d: the rows of the row groups "
            "are read", uri, checked.claimed_rows, checked.row_count,
        )  # fmt: skip
    return Footer(uri, size, size - len(tail), checksum(tail), stored, schema, checked)


def _decoded_schema(
    uri: str, checked: CheckedFooter, footer: pq.FileMetaData, stored: pa.Schema
) -> pa.Schema:
    """The types by Parquet's own schema, with the time zones of the stored Arrow schema."""
    plain = typed_leaves(stored, checked.leaves)
    if len(set(plain.names)) < len(plain):
        raise InvalidInput(
            f"{uri} has several columns of one name: {', '.join(plain.names)}; rename them"
        )
    zones = _zones(uri, checked, plain)
    kinds = _extensions(checked, footer)
    return pa.schema(
        [
            _declared(field, zones.get(field.name), kinds.get(field.name))
            for field in with_variants(plain, checked)
        ]
    )


def _zones(uri: str, checked: CheckedFooter, plain: pa.Schema) -> dict[str, str]:
    """The time zones of the stored Arrow schema, by column; Parquet's own has only UTC."""
    if ARROW_SCHEMA not in checked.pairs or not any(map(_zone_of, plain.types)):
        return {}
    _, named = _named_schema(uri, checked, checked.pairs)
    zones = zip(named.names, map(_zone_of, named.types), strict=True)
    return {name: zone for name, zone in zones if zone is not None}


def _zone_of(type_: pa.DataType) -> str | None:
    return type_.tz if type_.id == _TIMESTAMP else None


def _extensions(checked: CheckedFooter, footer: pq.FileMetaData) -> dict[str, bytes]:
    """The names of the Arrow extensions for the Parquet types of columns without fields."""
    return {
        leaf.path[0]: _EXTENSIONS[kind]
        for i, leaf in enumerate(checked.leaves)
        if leaf.physical in (BYTES, FIXED)
        and len(leaf.path) == 1
        and (kind := footer.schema.column(i).logical_type.type) in _EXTENSIONS
    }


def _declared(field: pa.Field, zone: str | None, extension: bytes | None) -> pa.Field:
    """The field with the zone that the writer stored, and the name of its Arrow extension."""
    if zone is not None and _zone_of(field.type):
        field = field.with_type(pa.timestamp(field.type.unit, zone))
    if extension is None or field.type.num_fields:
        return field
    return field.with_metadata({**(field.metadata or {}), EXTENSION_KEY: extension})
