"""One version of a table: what it is, its schema and its parts.

Soundness (invariants, I2): a snapshot is the file set of one log version; it never changes, so it
may be shared between threads and kept for as long as its files are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from rowsieve.storage.manifest import PartTable
from rowsieve.types.schema import Schema

READER_VERSION: Final = 1  # the newest protocol that this code reads
WRITER_VERSION: Final = 2
ISOLATION_WRITER: Final = 2  # the first writer that keeps tables serializable
FEATURES: Final[frozenset[str]] = frozenset()  # the optional features that it knows
MODES: Final = ("upsert", "append")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Token(NamedTuple):
    """The last idempotent commit of one application; kept for ever (invariants, rule 7)."""

    sequence: int
    version: int
    commit_id: str
    timestamp_us: int
    operation: str


@dataclass(frozen=True, slots=True)
class TableInfo:
    """What a table is from its creation on. `uuid` is in every cache key (invariants, rule 22)."""

    uuid: str
    key: tuple[str, ...]
    mode: str
    properties: Mapping[str, str] = field(default_factory=dict)
    reader_version: int = READER_VERSION
    writer_version: int = WRITER_VERSION
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table at one version. `tokens`: by application id, its last idempotent commit."""

    version: int
    commit_id: str
    timestamp_us: int
    table: TableInfo
    schema: Schema
    next_field_id: int
    parts: PartTable
    tokens: Mapping[str, Token]

    def __repr__(self) -> str:
        return (
            f"<rowsieve.Snapshot version {self.version} of table {self.table.uuid}: "
            f"{len(self.schema):,} columns, {len(self.parts):,} parts>"
        )

    @property
    def timestamp(self) -> datetime:
        """When it was committed."""
        return instant(self.timestamp_us)


def instant(timestamp_us: int) -> datetime:
    """Turn microseconds since 1970 into an aware datetime."""
    return _EPOCH + timedelta(microseconds=timestamp_us)
