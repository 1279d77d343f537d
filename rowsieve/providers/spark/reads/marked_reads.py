"""Finds our reads in Spark's plans of their frames.

A frame has an alias with a name of its own. Analysed plans keep it, optimised ones do not have it.
Soundness: a name belongs to one read of one version; a forgotten name is not pruned.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from rowsieve.errors import SnapshotExpired, TableNotFound
from rowsieve.providers.spark.reads.spark_read import SparkRead

if TYPE_CHECKING:
    from rowsieve.table import Table

PREFIX: Final = "rowsieve_"
_MAX_REMEMBERED: Final = 10_000  # reads that are remembered; the oldest are forgotten


@dataclass(frozen=True, slots=True)
class MarkedRead:
    """A read without its table and session, and its allowed routes; it keeps no table in memory.

    `is_writable`: its table was opened at its newest version, and statements may change it.
    `settings` sums up the session's settings if the read has a condition of Spark's: Spark resolved
    it under these, and would resolve it again.
    """

    uri: str
    table_uuid: str
    version: int
    storage_options: Any = field(repr=False)  # may hold secrets
    table: weakref.ref[Table]
    read: SparkRead
    allowed: frozenset[str]
    settings: int | None
    is_writable: bool

    @property
    def is_whole_table(self) -> bool:
        """Whether the frame has all rows and columns of the version."""
        return self.read.where is None and not {"where", "predicate", "columns"} & set(
            self.read.source_options
        )

    def again(self, spark: Any) -> SparkRead | None:
        """The same read of the same version; None if that is gone, or other settings hold."""
        from rowsieve.opening import open_table  # noqa: PLC0415 - Spark's workers do not need it

        if self.settings is not None and self.settings != _settings(spark):
            return None
        table = self.table()
        if table is None or table.version != self.version:
            options = self.storage_options or None
            try:
                table = open_table(self.uri, version=self.version, storage_options=options)
            except (SnapshotExpired, TableNotFound):
                return None
        if table.handle.pinned.table.uuid != self.table_uuid:
            return None
        return replace(self.read, table=table, spark=spark)


_READS: OrderedDict[str, MarkedRead] = OrderedDict()
_LOCK = threading.Lock()


def marked(read: SparkRead, frame: Any, allowed: Collection[str]) -> Any:
    """The frame with an alias by which `read_named` finds the read; unchanged on a client."""
    if not hasattr(read.spark, "_jsparkSession"):
        return frame
    name, table = PREFIX + uuid.uuid4().hex, read.table
    mark = MarkedRead(
        table.uri,
        table.handle.pinned.table.uuid,
        table.version,
        table.handle.storage_options,
        weakref.ref(table),
        replace(read, table=None, spark=None),  # type: ignore[arg-type]
        frozenset(allowed),
        None if read.where is None else _settings(read.spark),
        is_writable=not table.handle.read_only,
    )
    with _LOCK:
        _READS[name] = mark
        while len(_READS) > _MAX_REMEMBERED:
            _READS.popitem(last=False)
    return frame.alias(name)


def read_named(name: str) -> MarkedRead | None:
    """The read whose frame has this alias; None if there is none."""
    with _LOCK:
        return _READS.get(name)


def _settings(spark: Any) -> int:
    """A hash of all settings of the session."""
    return hash(str(spark._jsparkSession.conf().getAll().mkString("\n")))
