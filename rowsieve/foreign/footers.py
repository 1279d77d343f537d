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
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData, InvalidInput, NotFound, UnsupportedOperation
from rowsieve.objects import ObjectNotFound, ObjectStore, together
from rowsieve.parquet.codec_columns import hidden_names
from rowsieve.parquet.file_mapping import as_tail
from rowsieve.parquet.footer import read_footer
from rowsieve.parquet.foreign_footer.checked_footer import CheckedFooter
from rowsieve.parquet.foreign_footer.chunk_checks import UnreadableFooter
from rowsieve.parquet.foreign_footer.index_contradictions import checked_by_index
from rowsieve.parquet.foreign_footer.read_footer import check_footer
from rowsieve.parquet.foreign_footer.schema_tree import is_decimal, map_without_keys
from rowsieve.parquet.foreign_values import INT96_MARK, is_marked, typed_leaves
from rowsieve.parquet.leaf_columns import leaves_by_name
from rowsieve.parquet.shredded_columns import named_shredding
from rowsieve.parquet.statistics.foreign_chunks import stored_chunks
from rowsieve.parquet.thrift import MalformedThrift
from rowsieve.parquet.variant_columns import with_variants
from rowsieve.predicate.rowset.roaring import ID_LIMIT
from rowsieve.progress_bars import UNSEEN, Steps
from rowsieve.types.days import NANOS_OF_MICRO
from rowsieve.types.encodings import EXTENSION_KEY, FIELD_ID_KEY, GEOARROW_WKB
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
_SHOWN_AT_ONCE: Final = 64  # files that are read between two reports of progress
_MAX_INDEX_BYTES: Final = 8 * 2**20  # a longer page index is not read
_FIRST_BYTES: Final = 64 * 1024  # read at the end of a file; most footers are smaller


@dataclass(frozen=True, slots=True)
class Footer:
    """A file's footer. `schema`: its columns in the types in which they are decoded.

    Files share the schema object if they store the same columns in the same physical form. The tail
    is the footer, with the page index if it lies right before it. `metadata`: as a decoder sees it,
    without row groups; these are in `checked`.
    """

    uri: str
    size_bytes: int
    tail_start: int
    tail_checksum: str
    metadata: pq.FileMetaData
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
        return leaf_fields(self.metadata.schema.to_arrow_schema())


def read_footers(store: ObjectStore, uris: Sequence[str], steps: Steps = UNSEEN) -> list[Footer]:
    """Read the footers of these files, concurrently from a remote store; a file is a step."""
    known: dict[Any, pa.Schema] = {}
    raw: list[tuple[int, bytes]] = []
    at_once = _SHOWN_AT_ONCE if steps.is_shown else max(1, len(uris))
    for first in range(0, len(uris), at_once):
        block = uris[first : first + at_once]
        raw += together(store, [partial(_read, store, uri) for uri in block])
        steps.add(len(block))
    footers = [_parsed(uri, size, tail, known) for uri, (size, tail) in zip(uris, raw, strict=True)]
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


def _read(store: ObjectStore, uri: str) -> tuple[int, bytes]:
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
        raise NotFound(f"{uri} does not exist; give files that do") from error


def _named_schema(uri: str, checked: CheckedFooter) -> tuple[pq.FileMetaData, pa.Schema]:
    """A footer without chunks, and its columns as pyarrow reads them.

    UnsupportedOperation for a valid schema that pyarrow does not read.
    """
    try:
        metadata = _schema_footer(checked, checked.pairs)
        return metadata, metadata.schema.to_arrow_schema().remove_metadata()
    except pa.ArrowException as error:
        name, shown = map_without_keys(checked.elements), str(error).rstrip(".")
        what = "" if name is None else f", whose map {name!r} has keys that may be NULL,"
        raise UnsupportedOperation(
            f"{uri} has a schema{what} that pyarrow {pa.__version__} does not read: {shown}; write "
            "the file again in another schema: the keys of a map are required"
        ) from error


def _parsed(uri: str, size: int, tail: bytes, known: dict[Any, pa.Schema]) -> Footer:
    try:
        checked = check_footer(tail[:-_AFTER_FOOTER])
        metadata, file_schema = _named_schema(uri, checked)
        file_schema = with_variants(file_schema, checked)
        leaves = [(leaf.path, leaf.physical, leaf.width) for leaf in checked.leaves]
        hidden = named_shredding(metadata)
        encoded = hidden_names(metadata, uri)
        shape = bytes(file_schema.serialize()), tuple(leaves), hidden and hidden.column, encoded
        if (schema := known.get(shape)) is None:
            schema = _decoded_schema(uri, checked, file_schema)
            if hidden is not None and hidden.column in schema.names:
                schema = schema.remove(schema.get_field_index(hidden.column))
            schema = pa.schema([field for field in schema if field.name not in encoded])
            known[shape] = schema
    except UnreadableFooter as error:
        raise UnsupportedOperation(f"{uri}: {error}") from error
    except (pa.ArrowException, OSError, MalformedThrift, UnicodeDecodeError) as error:
        raise CorruptData(
            f"the footer of {uri} cannot be read: {error}; write the file again"
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
    return Footer(uri, size, size - len(tail), checksum(tail), metadata, schema, checked)


def _schema_footer(checked: CheckedFooter, pairs: Mapping[bytes, bytes]) -> pq.FileMetaData:
    """A decoder's footer with the file's schema, its field ids and these pairs, without chunks."""
    elements = [(each, each.field_id) for each in checked.elements]
    return read_footer(as_tail(checked.sanitised(elements, pairs, with_groups=False)))


def _decoded_schema(uri: str, checked: CheckedFooter, file_schema: pa.Schema) -> pa.Schema:
    """The types by Parquet's own schema, with the time zones of the stored Arrow schema."""
    adapted = _schema_footer(checked, {})
    plain = typed_leaves(adapted.schema.to_arrow_schema().remove_metadata(), checked.leaves)
    if len(set(plain.names)) < len(plain):
        raise InvalidInput(
            f"{uri} has several columns of one name: {', '.join(plain.names)}; rename them"
        )
    leaves = leaves_by_name(plain)
    kinds = [
        _EXTENSIONS.get(adapted.schema.column(leaves[name][0]).logical_type.type)
        for name in plain.names
    ]
    return pa.schema(
        [
            _with_zone(field, other).with_metadata(_metadata(field, other, kind))
            for field, other, kind in zip(
                with_variants(plain, checked), file_schema, kinds, strict=True
            )
        ]
    )


def _metadata(field: pa.Field, file_field: pa.Field, kind: bytes | None) -> dict[bytes, bytes]:
    """The field's own id, and the name of the Arrow extension for its Parquet type.

    `kind` is the logical type of the column's first leaf; of the column if it has no fields.
    """
    metadata = {
        key: text for key, text in (file_field.metadata or {}).items() if key == FIELD_ID_KEY
    }
    if is_marked(field):
        metadata |= INT96_MARK
    variant = (field.metadata or {}).get(EXTENSION_KEY)
    extension = variant if field.type.num_fields else kind
    return metadata if extension is None else {**metadata, EXTENSION_KEY: extension}


def _with_zone(field: pa.Field, other: pa.Field) -> pa.Field:
    types = pa.types
    zoned = types.is_timestamp(field.type) and field.type.tz and types.is_timestamp(other.type)
    if zoned and other.type.tz:
        return field.with_type(pa.timestamp(field.type.unit, other.type.tz))
    return field
