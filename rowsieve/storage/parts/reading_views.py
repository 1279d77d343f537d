"""How reads take the rows of each part: from its columns, from its codec, or from both.

The properties of a version decide (`read_encoding`, `ignored_batch_versions`), or options of a read
in their place. The result is a view of the version: its parts name their reading, and where the
columns are not believed, nothing is known of their values and no engine reads the file by itself.

Soundness: statistics, Bloom filters and page indexes describe columns. Whoever does not believe the
columns of a part does not prune by them; only the index columns, which every file has as columns,
prune then. A part that cannot be read as asked is in the view, and refused when it is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.encodings.file_encoding import (
    ON_DIFFERENCE,
    READ_ENCODING,
    FileEncoding,
    batch_version,
    ignored_batches,
)
from rowsieve.errors import UnsupportedOperation
from rowsieve.properties import check_properties
from rowsieve.storage.differential import fields_of_updates
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.storage.manifests.manifest_layout import ENCODING, READING
from rowsieve.storage.snapshot import Snapshot

COLUMNS: Final = "columns"
CODEC: Final = "codec"
SHADOW: Final = "shadow"
SHADOW_RAISE: Final = "shadow, raise"
IGNORED: Final = "ignored"  # only columns, which the table declares to be wrong
FUTURE: Final = "future"  # of a batch version that the table has not reached

_MAX_VIEWS: Final = 4  # of one list of parts


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """The properties that decide how parts are read."""

    mode: str
    ignored: frozenset[int]
    newest: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ReadingRules:
        """Read the properties."""
        mode = properties.get(READ_ENCODING, COLUMNS)
        if mode == SHADOW and properties.get(ON_DIFFERENCE) == "raise":
            mode = SHADOW_RAISE
        return cls(mode, ignored_batches(properties), batch_version(properties))

    def reading(self, text: str | None) -> str | None:
        """How a part with this encoding is read; None as it has columns, and they are believed."""
        if text is None:
            return None
        encoding = FileEncoding.parse(text)
        if encoding.batch > self.newest:
            return FUTURE
        if encoding.halves == "codec":
            return CODEC
        is_ignored = encoding.batch in self.ignored
        if encoding.halves == "columns":
            return IGNORED if is_ignored else None
        if is_ignored:
            return CODEC
        return None if self.mode == COLUMNS else self.mode


def as_read(snapshot: Snapshot) -> Snapshot:
    """The version with the reading of each part; itself if all parts are read by their columns."""
    parts = snapshot.parts
    if parts.has_column(READING) or (rules := reading_rules(snapshot)) is None:
        return snapshot
    index = _index_ids(snapshot)
    known = ("reading", rules, index)
    view: PartTable | None = parts.derived.get(known)
    if view is None:
        view = _view(parts, rules, index)
        if sum(isinstance(key, tuple) and key[:1] == ("reading",) for key in parts.derived) < (
            _MAX_VIEWS
        ):
            parts.derived[known] = view.without_facts()
    return replace(snapshot, parts=view)


def reading_rules(snapshot: Snapshot) -> ReadingRules | None:
    """The rules of this version; None if no part has an encoding, which they are about."""
    if not snapshot.parts.has_column(ENCODING):
        return None
    return ReadingRules.of(snapshot.table.settings)


def with_options(
    snapshot: Snapshot, read_encoding: str | None, on_difference: str | None
) -> Snapshot:
    """The version as if its properties had these values; None: as they are.

    InvalidInput for a value that the property does not allow.
    """
    if read_encoding is None and on_difference is None:
        return snapshot
    options = {READ_ENCODING: read_encoding, ON_DIFFERENCE: on_difference}
    changed = check_properties({name: text for name, text in options.items() if text is not None})
    table = replace(snapshot.table, properties={**snapshot.table.properties, **changed})
    return replace(snapshot, table=table)


def believes_columns(snapshot: Snapshot) -> bool:
    """Return whether `as_read` of this version reads every part by its columns."""
    columns = snapshot.parts
    if not columns.has_column(READING):
        return True
    return int(snapshot.parts.column(READING).null_count) == len(columns)


def read_as(ref: FileRef, properties: Mapping[str, str]) -> FileRef:
    """The file with its reading, for a read of a part outside of a plan."""
    if ref.encoding is None or ref.reading is not None:
        return ref
    return replace(ref, reading=ReadingRules.of(properties).reading(ref.encoding))


def needs_codec(ref: FileRef) -> bool:
    """Return whether the rows of a file are read from its codec, or compared with it."""
    if ref.encoding is None:
        return False
    return ref.reading in (CODEC, SHADOW, SHADOW_RAISE) or ref.encoding.startswith("codec/")


def is_plain(ref: FileRef) -> bool:
    """Return whether a reader of Parquet files gets the values of the rows from the columns."""
    return ref.reading is None and not needs_codec(ref)


def read_by_codec(snapshot: Snapshot) -> bool:
    """Return whether a version has a file whose rows are not those of its columns."""
    if not snapshot.parts.has_column(ENCODING):
        return False
    files = as_read(snapshot).parts.files("data")
    return not all(ref is None or is_plain(ref) for ref in files)


def check_readable(ref: FileRef) -> None:
    """Raise UnsupportedOperation for a file whose reading says that it cannot be read."""
    if ref.reading not in (IGNORED, FUTURE):
        return
    assert ref.encoding is not None
    batch = FileEncoding.parse(ref.encoding).batch
    if ref.reading == FUTURE:
        raise UnsupportedOperation(
            f"{ref.path} has batch version {batch}, which is above the table's property "
            "batch_version; set batch_version to it, if its writer is to be believed"
        )
    raise UnsupportedOperation(
        f"{ref.path} has only columns, of batch version {batch}, which the property "
        "ignored_batch_versions declares wrong; nothing else has its rows. Remove "
        f"{batch} from ignored_batch_versions, or write the rows again"
    )


def _index_ids(snapshot: Snapshot) -> frozenset[int]:
    """The columns that every file has as columns: key, sequence, and those of an update."""
    stored = snapshot.schema if snapshot.reading is None else snapshot.reading.stored
    update = fields_of_updates(snapshot.table.properties, stored)
    fields = (*snapshot.sequence_fields, *update)
    return frozenset([*snapshot.parts.key_ids, *(field.id for field in fields)])


def _view(parts: PartTable, rules: ReadingRules, index: frozenset[int]) -> PartTable:
    texts = parts.column(ENCODING).combine_chunks()
    if isinstance(texts, pa.ChunkedArray):
        texts = pa.concat_arrays(texts.chunks)
    kinds = texts.unique()
    readings = pa.array([rules.reading(text) for text in kinds.to_pylist()], pa.string())
    reading = readings.take(pc.index_in(texts, value_set=kinds))
    doubted = np.asarray(reading.is_valid())
    table = parts.table.append_column(READING, reading)
    if not doubted.any():
        return PartTable(table)
    mask = pa.array(doubted)
    for place, field in enumerate(table.schema):
        if field.name == "native_safe":
            column = pc.and_(table.column(place), pc.invert(mask))
        elif _describes_values(field.name, index):
            column = pc.if_else(mask, pa.scalar(None, field.type), table.column(place))
        else:
            continue
        table = table.set_column(place, field, column)
    return PartTable(table)


def _describes_values(name: str, index: frozenset[int]) -> bool:
    """Return whether a column of the list of parts has facts of a column outside of the index."""
    if not name.startswith("stats."):
        return False
    subject = name.split(".", 2)[1]
    return not subject.isdigit() or int(subject) not in index
