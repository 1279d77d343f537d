"""One version of a table: its properties, schema and parts.

Soundness (invariants, I2): a snapshot is the file set of one log version. It is immutable, so
threads may share it, and it is usable as long as its files exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from rowsieve.config import current
from rowsieve.flags.resolution import TableFlags
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.changes_since import ChangesSince
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.instants import from_microseconds
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema

READER_VERSION: Final = 11  # the newest protocol that this code reads
WRITER_VERSION: Final = 14  # the newest protocol that this code writes
ISOLATION_WRITER: Final = 2  # the first writer that keeps tables serializable
RETENTION_WRITER: Final = 3  # the first writer that obeys the floors of retention
VECTORS_WRITER: Final = 4  # the first writer that keeps stored deletion vectors right
ORDER_WRITER: Final = 5  # the first writer that keeps an event order, and rules to combine
CONSTRAINTS_WRITER: Final = 6  # the first writer that checks constraints
INLINE_PROTOCOL: Final = 7  # the first reader and writer that know parts in memory
REFS_WRITER: Final = 8  # the first writer that keeps what branches and tags read
DIFFERENTIAL_PROTOCOL: Final = 9  # the first reader and writer that sum differences
ENCODINGS_PROTOCOL: Final = 10  # the first reader and writer that know rows of codecs
MOVES_PROTOCOL: Final = 11  # the first reader and writer that know tables that moved
COLUMN_ORDER_WRITER: Final = 13  # the first writer that keeps an event order by column
TRUNCATES_WRITER: Final = 14  # the first writer that leaves out changes before a truncate
FIRST_READER: Final = 1  # the protocol of tables without such parts
SCHEMA_CHANGES: Final = "schema_changes"  # columns were added, dropped or changed: read by id
FIELD_CHANGES: Final = "field_changes"  # fields inside columns, keys or dates were changed
KIND_CHANGES: Final = "kind_changes"  # integers became floats or decimals, or dates nanoseconds
PLACED_FILES: Final = "placed_files"  # parts may be foreign files, by their URI
COLUMN_TAGS: Final = "column_tags"  # files have tags of field ids instead of names
EVENT_ORDER: Final = "event_order"  # keys keep the version with the greatest sequence
COLUMN_ORDER: Final = "column_order"  # and each value that of the event which set it
DIFFERENTIAL: Final = "differential"  # rows are updates of a collection; also the mode's name
ENCODINGS: Final = "row_codecs"  # files may have their rows as bytes of a codec
FEATURES: Final[frozenset[str]] = frozenset(  # what is supported
    {
        SCHEMA_CHANGES,
        FIELD_CHANGES,
        KIND_CHANGES,
        PLACED_FILES,
        COLUMN_TAGS,
        EVENT_ORDER,
        COLUMN_ORDER,
        DIFFERENTIAL,
        ENCODINGS,
    }
)
MODES: Final = ("upsert", "append", DIFFERENTIAL)

EAGER: Final = "eager"
"""The value of the property `visibility` with which every change stores vectors."""
OnRead: TypeAlias = Callable[[Predicate, Semantics, int], None]
"""Called with a condition, its semantics and its time in microseconds."""


class Token(NamedTuple):
    """The last idempotent commit of one application; kept for ever (invariants, rule 7)."""

    sequence: int
    version: int
    commit_id: str
    timestamp_us: int
    operation: str


@dataclass(frozen=True, slots=True)
class TableInfo:
    """Identity, key, mode, properties and protocol of a table.

    `uuid`, `key`, `mode` and `sequence` never change, but for names of columns. `uuid` is in every
    cache key (invariants, rule 22). `sequence` are the columns by which the versions of a key are
    ordered; `late_floor` is the greatest sequence of a tombstone that was dropped, as texts.
    """

    uuid: str
    key: tuple[str, ...]
    mode: str
    properties: Mapping[str, str] = field(default_factory=dict)
    reader_version: int = FIRST_READER
    writer_version: int = ISOLATION_WRITER
    features: tuple[str, ...] = ()
    sequence: tuple[str, ...] = ()
    late_floor: tuple[str, ...] = ()
    _flags: TableFlags | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def flags(self) -> TableFlags:
        """The flags, as this process resolves them; resolved again after `configure`."""
        flags = self._flags
        if flags is None or flags.defaults is not current():
            flags = TableFlags.of(self, current())
            object.__setattr__(self, "_flags", flags)
        return flags

    @property
    def settings(self) -> Mapping[str, str]:
        """What writers go by: the properties, and what the process's flags give beside them."""
        return self.flags.settings

    @property
    def is_eager(self) -> bool:
        """True if every change of the table stores vectors."""
        return bool(self.key) and self.flags.settings.get("visibility") == EAGER


@dataclass(frozen=True, slots=True)
class Reading:
    """A read of a differential table at a time: the sums of the differences up to it.

    `at`: None if no time is complete yet. `expanded`: a row of multiplicity n is n rows. `stored`:
    the columns of the updates, with their time and difference.
    """

    at: int | None
    expanded: bool
    stored: Schema


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table at one version. `tokens`: the last idempotent commit by application id.

    `owes_checkpoint`: a checkpoint was due at a change of columns, and the next commit that changes
    rows writes it; see `rowsieve.storage.log.checkpoint_turns`. A version inside a transaction
    calls `on_read` for each condition that a read of it is planned for, and names with `based_on`
    the committed version that the transaction began with. `reading`: how the updates of a
    differential table are read; its own version has none, and is not planned. `since`: the changes
    after the last checkpoint, where incremental checkpoints may follow it.
    """

    version: int
    commit_id: str
    timestamp_us: int
    table: TableInfo
    schema: Schema
    next_field_id: int
    parts: PartTable
    tokens: Mapping[str, Token]
    owes_checkpoint: bool = field(default=False, compare=False)
    on_read: OnRead | None = field(default=None, compare=False)
    based_on: int | None = field(default=None, compare=False)
    reading: Reading | None = field(default=None, compare=False)
    since: ChangesSince | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return (
            f"<rowsieve.Snapshot version {self.version} of table {self.table.uuid}: "
            f"{len(self.schema):,} columns, {len(self.parts):,} parts>"
        )

    @property
    def sequence_fields(self) -> tuple[Field, ...]:
        """The columns that order the versions of a key; empty without an event order."""
        return tuple(map(self.schema.field, self.table.sequence))

    @property
    def base_version(self) -> int:
        """The committed version that new files are based on, which their names have (rule 15)."""
        return self.version if self.based_on is None else self.based_on

    def note_read_of_all(self) -> None:
        """Call `on_read`, if it is set, for a read that depends on all rows and plans no scan."""
        if self.on_read is not None:
            self.on_read(TRUE, Semantics.SQL, 0)

    @property
    def timestamp(self) -> datetime:
        """Commit time."""
        return from_microseconds(self.timestamp_us)
