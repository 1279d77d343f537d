"""Map the columns of a foreign file to a table's columns, by an adapted footer.

A file of our writer has field ids, and a mark in its footer. A file of another writer is read with
an adapted footer, which is made when its tail is read: the top-level columns get the table's field
ids by name, all other ids and key-value pairs are removed, and of the statistics only those that
are well formed are kept (`rowsieve.parquet.statistics.footer_statistics`). INT96 becomes 12 fixed
bytes, which `rowsieve.parquet.int96` converts. Nothing else changes, so the byte ranges of its data
are those of the file.

Soundness: an adapted footer never has the marks of our writer (`rowsieve.format`, seals of chunks,
pages and bloom filters), even if our writer made the file. Its statistics have a mark of their own,
because they need more care (`rowsieve.parquet.statistics.foreign_statistics`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.statistics.footer_statistics import (
    CHILDREN,
    FIELD_ID,
    NAME,
    ORDERS,
    PAIRS,
    ROW_GROUPS,
    SCHEMA,
    leaves_in,
    ordered_list,
    orders_by_type,
    readable_element,
    sound_row_groups,
)
from rowsieve.parquet.thrift import (
    I32,
    EncodedStruct,
    RawField,
    encoded_value,
    join_fields,
    raw_fields,
    read_list_head,
    read_struct,
)
from rowsieve.predicate.text_cache import cached_by_text
from rowsieve.types.logical import Field
from rowsieve.types.schema import schema_from_json

MAPPING_KEY: Final = b"rowsieve.mapping"
PAGE_INDEX_KEY: Final = b"rowsieve.foreign_page_index"
"""Marks an adapted footer whose page index may be used: its bounds are in the order of the type."""
SCHEMA_KEY: Final = b"rowsieve.schema"
_MAGIC: Final = b"PAR1"
_AFTER_FOOTER: Final = 8


class FileMapping(msgspec.Struct, frozen=True):
    """`names`: the file's column by field id. `constants`: text of the value of all rows by id.

    A column in neither is NULL in all rows, unless it was added to the table later; then it has its
    fill default. `schema`: the id of the table's schema when the file was imported.
    `nested`: the JSON form of the columns with fields, as the file has them.
    `instants`: whether times without a zone are in UTC where the table's column is an instant, as
    in INT96 of Spark.
    """

    names: dict[int, str]
    constants: dict[int, str | None] = {}
    schema: int = 0
    nested: dict[str, Any] | None = None
    instants: bool = False

    def nested_fields(self) -> dict[int, Field]:
        """The columns with fields, as the file has them, by field id."""
        if self.nested is None:
            return {}
        return {field.id: field for field in schema_from_json(self.nested)}

    def to_text(self) -> str:
        """Encode as the text that a manifest stores."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_text(text: str) -> FileMapping:
        """Decode the output of `to_text`; CorruptData for other text."""
        return _decoded(text)


@cached_by_text
def _decoded(text: str) -> FileMapping:
    try:
        return msgspec.json.decode(text, type=FileMapping)
    except msgspec.MsgspecError as error:
        raise CorruptData(
            f"a manifest maps the columns of a file by {text[:80]!r}, which is not valid: {error}; "
            "restore the manifest from a copy"
        ) from error


@cached_per_footer
def mapping_of(metadata: pq.FileMetaData) -> FileMapping | None:
    """The mapping of an adapted footer; None for a file of our writer."""
    text = (metadata.metadata or {}).get(MAPPING_KEY)
    return None if text is None else FileMapping.from_text(text.decode())


def adapted_tail(tail: bytes | memoryview, mapping: FileMapping, path: str) -> bytes:
    """Return the end of a file with an adapted footer; the bytes before the footer are unchanged.

    MalformedThrift if the footer is not valid, CorruptData if it lacks a mapped column.
    """
    data = bytes(tail)
    stop = len(data) - _AFTER_FOOTER
    start = stop - int.from_bytes(data[stop : -len(_MAGIC)], "little")
    if start < 0:
        raise CorruptData(f"the tail of {path} is shorter than its footer; restore the manifest")
    footer = data[start:stop]
    fields, _ = raw_fields(footer, 0)
    indexed = start > 0 and orders_by_type(footer, len(leaves_in(footer)))
    adapted = join_fields(_adapted(footer, fields, mapping, path, indexed=indexed))
    return data[:start] + adapted + len(adapted).to_bytes(4, "little") + _MAGIC


def _adapted(
    footer: bytes, fields: list[RawField], mapping: FileMapping, path: str, *, indexed: bool
) -> Iterator[tuple[int, int, bytes]]:
    pairs = {MAPPING_KEY: mapping.to_text().encode()}
    pairs[SCHEMA_KEY] = b"%d" % mapping.schema
    if indexed:
        pairs[PAGE_INDEX_KEY] = b"1"
    written = encoded_value([{1: key, 2: value} for key, value in pairs.items()])
    kept = [each for each in fields if each.number not in (PAIRS, ORDERS)]
    for field in sorted([*kept, RawField(PAIRS, 9, 0, 0), RawField(ORDERS, 9, 0, 0)]):
        if field.number == PAIRS:
            yield PAIRS, *written
        elif field.number == ORDERS:  # bounds in another order are removed
            yield ORDERS, 9, ordered_list(len(leaves_in(footer)))
        elif field.number == SCHEMA:
            yield SCHEMA, *encoded_value(_with_ids(footer, field.start, mapping, path))
        elif field.number == ROW_GROUPS:
            yield ROW_GROUPS, 9, sound_row_groups(footer, field)
        else:
            yield field.number, field.kind, footer[field.start : field.stop]


def _with_ids(footer: bytes, start: int, mapping: FileMapping, path: str) -> list[EncodedStruct]:
    """The schema elements: mapped top-level columns get the table's ids, others get none."""
    ids = {name: field_id for field_id, name in mapping.names.items()}
    count, position = read_list_head(footer, start)
    found: list[EncodedStruct] = []
    remaining = 0  # remaining elements of the top-level column
    for i in range(count):
        element, _ = read_struct(footer, position)
        fields, position = raw_fields(footer, position)
        top = i > 0 and not remaining
        remaining = remaining - 1 if remaining else 0
        if i:
            remaining += int(element.get(CHILDREN, 0))
        field_id = ids.pop(element[NAME].decode("utf-8", "replace"), None) if top else None
        found.append(_element(footer, fields, field_id))
    if ids:
        raise CorruptData(
            f"{path} lacks its column {next(iter(ids))!r}: another file has taken its place; "
            "restore the file, or open or import the files again"
        )
    return found


def _element(footer: bytes, fields: list[RawField], field_id: int | None) -> EncodedStruct:
    values = readable_element(footer, fields)
    if field_id is not None:
        values.append((FIELD_ID, *encoded_value(I32(field_id))))
    return join_fields(sorted(values))
