"""What an event does to a row or a table, and what other messages of a stream are."""

from __future__ import annotations

from enum import Enum


class EventAction(Enum):
    """What an event does."""

    WRITE = "write"
    DELETE = "delete"
    TRUNCATE = "truncate"


class Skipped(Enum):
    """Messages that change no row; they are counted by these names."""

    TOMBSTONE = "tombstones"
    HEARTBEAT = "heartbeats"
    TRANSACTION = "transaction markers"
    SCHEMA_CHANGE = "schema changes"
    MESSAGE = "logical messages"
    BOOTSTRAP = "bootstrap markers"
