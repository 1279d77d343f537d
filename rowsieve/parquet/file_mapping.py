"""Map the columns of a foreign file to a table's columns, by an adapted footer.

A file of our writer has field ids, and a mark in its footer. A file of another writer is read with
an adapted footer, which is made when its tail is read: the top-level columns get the table's field
ids by name, all other ids and key-value pairs are removed, and chunks that do not fit the schema
lose their statistics (`rowsieve.parquet.foreign_footer`). INT96 becomes 12 fixed bytes, which
`rowsieve.parquet.int96` converts. Nothing else changes, so the byte ranges of its data are those of
the file.

Soundness: an adapted footer never has the marks of our writer (`rowsieve.format`, seals of chunks,
pages and bloom filters), even if our writer made the file. Its statistics have a mark of their own,
because they need more care (`rowsieve.parquet.statistics.foreign_statistics`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.foreign_footer.checked_footer import CheckedFooter
from rowsieve.parquet.foreign_footer.index_contradictions import checked_by_index
from rowsieve.parquet.foreign_footer.read_footer import check_footer
from rowsieve.parquet.foreign_footer.schema_tree import Element
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
        return msgspec.json.decode(text, type=described(FileMapping))
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


def adapted_tail(
    tail: bytes | memoryview, tail_start: int, mapping: FileMapping, path: str
) -> tuple[bytes, CheckedFooter]:
    """Return the end of a file with an adapted footer, and the checked footer of the file.

    `tail_start`: its position in the file. The bytes before the footer are unchanged.
    MalformedThrift and UnreadableFooter are those of `check_footer`; CorruptData if the file lacks
    a mapped column.
    """
    data = bytes(tail)
    stop = len(data) - _AFTER_FOOTER
    start = stop - int.from_bytes(data[stop : -len(_MAGIC)], "little")
    if start < 0:
        raise CorruptData(f"the tail of {path} is shorter than its footer; restore the manifest")
    checked = check_footer(data[start:stop])
    pairs = {MAPPING_KEY: mapping.to_text().encode(), SCHEMA_KEY: b"%d" % mapping.schema}
    if start > 0 and checked.ordered:
        if checked.has_usable_page_index:
            pairs[PAGE_INDEX_KEY] = b"1"
        checked = checked_by_index(checked, data[:start], tail_start)
    adapted = checked.sanitised(_with_ids(checked, mapping, path), pairs)
    return data[:start] + as_tail(adapted), checked


def as_tail(footer: bytes) -> bytes:
    """Add what follows the footer in a file."""
    return footer + len(footer).to_bytes(4, "little") + _MAGIC


def _with_ids(
    checked: CheckedFooter, mapping: FileMapping, path: str
) -> list[tuple[Element, int | None]]:
    """The schema elements: mapped top-level columns get the table's ids, others get none."""
    ids = {name: field_id for field_id, name in mapping.names.items()}
    elements = [
        (element, ids.pop(element.name, None) if element.depth == 1 else None)
        for element in checked.elements
    ]
    if ids:
        raise CorruptData(
            f"{path} lacks its column {next(iter(ids))!r}: another file has taken its place; "
            "restore the file, or open or import the files again"
        )
    return elements
