"""Checks the properties of the forms of rows, and the protocol that tables with them need.

Soundness: an older reader would take a file whose rows only a codec has for one without columns,
and would believe columns that the table declares wrong; so it must not open the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rowsieve.encodings.codecs import codec_to_write
from rowsieve.encodings.file_encoding import (
    BATCH_VERSION,
    IGNORED_BATCHES,
    NAMES,
    ROW_CODEC,
    WRITE_ENCODING,
    batch_version,
    halves_to_write,
    ignored_batches,
)
from rowsieve.errors import InvalidInput
from rowsieve.storage.snapshot import ENCODINGS, ENCODINGS_PROTOCOL, TableInfo

_NOTHING: Final[Mapping[str, str]] = {}


def with_encodings(info: TableInfo, wanted: Mapping[str, str | None]) -> TableInfo:
    """Return the table information with the protocol that these properties require."""
    if all(wanted.get(name) is None for name in NAMES):
        return info
    features = info.features if ENCODINGS in info.features else (*info.features, ENCODINGS)
    return replace(
        info,
        reader_version=max(info.reader_version, ENCODINGS_PROTOCOL),
        writer_version=max(info.writer_version, ENCODINGS_PROTOCOL),
        features=features,
    )


def check_encodings(properties: Mapping[str, str], before: Mapping[str, str] = _NOTHING) -> None:
    """Raise InvalidInput if the properties contradict each other or those before them.

    UnsupportedOperation for a new codec that this process does not know.
    """
    if halves_to_write(properties) != "columns" and ROW_CODEC not in properties:
        raise InvalidInput(
            f"table property {WRITE_ENCODING!r} is {properties[WRITE_ENCODING]!r}, and the table "
            f"has no codec; set {ROW_CODEC!r} too, such as 'msgpack'"
        )
    if ROW_CODEC in properties and properties.get(ROW_CODEC) != before.get(ROW_CODEC):
        codec_to_write(properties[ROW_CODEC])
    if batch_version(properties) < batch_version(before):
        raise InvalidInput(
            f"table property {BATCH_VERSION!r} is {batch_version(before)} and never goes down to "
            f"{batch_version(properties)}: files of both would have one number"
        )
    ignored = ignored_batches(properties)
    if ignored and max(ignored) > batch_version(properties):
        raise InvalidInput(
            f"table property {IGNORED_BATCHES!r} names batch version {max(ignored)}, and no file "
            f"has one above {BATCH_VERSION!r}, which is {batch_version(properties)}"
        )
    if batch_version(properties) in ignored:
        raise InvalidInput(
            f"table property {IGNORED_BATCHES!r} names batch version "
            f"{batch_version(properties)}, which new files get; set {BATCH_VERSION!r} to "
            f"{batch_version(properties) + 1} as well"
        )
