"""The public `Table` class: scans, changes, and registration in engines.

A `Table` pins one version for the engines that it is registered in. The pinned version moves only
with the table's own commits and with `refresh()`, so two scans of one statement never see two
versions (invariant 23). `scan` and every change look up the newest version first. A table opened
at a version is read-only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from rowsieve.arguments import checked_methods
from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.changes.column_methods import ColumnMethods
from rowsieve.differential.differential_methods import DifferentialMethods
from rowsieve.flags.resolution import flags_as_dict
from rowsieve.maintenance.upkeep import UpkeepMethods
from rowsieve.metrics import Reporter, WriterMetrics
from rowsieve.picture_facts.history_list import History
from rowsieve.picture_facts.picture_methods import PictureMethods
from rowsieve.publication.publish_methods import PublishMethods
from rowsieve.refs.ref_methods import RefMethods
from rowsieve.shown import Shown, html, size_text
from rowsieve.stats.collect import MakeCollector
from rowsieve.storage.differential import plain_frontiers
from rowsieve.storage.manifests.part_sketches import distinct_count, sketched_fields
from rowsieve.table_methods.engine_methods import EngineMethods
from rowsieve.table_methods.frame_methods import FrameMethods
from rowsieve.table_methods.merge_methods import MergeMethods
from rowsieve.table_methods.row_methods import RowMethods
from rowsieve.table_methods.version_methods import VersionMethods
from rowsieve.transactions.transaction_handle import TransactionHandle
from rowsieve.transactions.transaction_methods import IsolationName, TransactionMethods, begun
from rowsieve.types.encodings import arrow_schema, commented_schema
from rowsieve.types.instants import from_microseconds
from rowsieve.writer.writer_methods import WriterMethods


@checked_methods
class Table(
    FrameMethods,
    EngineMethods,
    RowMethods,
    MergeMethods,
    VersionMethods,
    DifferentialMethods,
    WriterMethods,
    ColumnMethods,
    UpkeepMethods,
    RefMethods,
    PublishMethods,
    PictureMethods,
):
    """A handle on one table, from `create_table` or `open_table`. Thread-safe."""

    # Properties

    @property
    def uri(self) -> str:
        """The table's location, without credentials."""
        return self.handle.store.uri

    @property
    def version(self) -> int:
        """The pinned version, which engines read when this table is registered in them."""
        return self.handle.pinned.version

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema; field ids and comments are in the fields' metadata."""
        return commented_schema(self.handle.pinned.schema)

    @property
    def key(self) -> tuple[str, ...]:
        """The key columns, empty for a table without a key."""
        return self.handle.pinned.table.key

    @property
    def sequence(self) -> tuple[str, ...]:
        """The columns that order the changes of a key; empty without an event order."""
        return self.handle.pinned.table.sequence

    @property
    def writer_metrics(self) -> WriterMetrics:
        """Counters of all writes by this object, with the cost of collecting statistics."""
        return self.handle.collecting.metrics

    def collect_with(self, column: str, make: MakeCollector) -> None:
        """Use your own statistics collector for a column in the parts that this object writes.

        `make` takes the column's `Field` and returns a new collector for each part. The types of
        its statistics are checked against the column. Soundness: whether its bounds cover every
        value is not checked; the collector must guarantee that.
        """
        self.handle.collecting.overrides[self.handle.newest.schema.field(column).id] = make

    def report_to(self, reporter: Reporter | None) -> None:
        """Send a report to `reporter` for each read of a scan and for each commit of this object.

        Replaces the current reporter; with None, reports go to the process's reporter, if any.
        Scans that exist already keep their reporter.
        """
        self.handle.report_to(reporter)

    @property
    def engine_error(self) -> Exception | None:
        """The last error raised while an engine read this table; engines keep only its text.

        Each call returns a new object: the frames of one that is raised keep their variables alive.
        """
        return self.handle.engine_error

    def detail(self) -> dict[str, Any]:
        """Return facts about the pinned version as plain values.

        `sequence` is there only with an event order, `since` and `upper` in differential tables.
        `rows_stored` includes rows that newer versions, deletes or deletion vectors hide.
        `distinct_counts` has the columns that were analyzed: see the method of that name.
        """
        snapshot = self.handle.pinned
        snapshot.note_read_of_all()
        parts = snapshot.parts
        sketched = sketched_fields(parts, snapshot.schema)
        return {
            "uri": self.uri,
            "uuid": snapshot.table.uuid,
            "version": snapshot.version,
            "timestamp": from_microseconds(snapshot.timestamp_us).isoformat(),
            "mode": snapshot.table.mode,
            "key": list(snapshot.table.key),
            **({"sequence": list(snapshot.table.sequence)} if snapshot.table.sequence else {}),
            **plain_frontiers(snapshot),
            "properties": dict(snapshot.table.properties),
            "flags": flags_as_dict(snapshot.table.flags.by_name.values()),
            "parts": len(parts),
            "rows_stored": int(parts.numbers("data.rows").sum()),
            "tombstones": int(parts.numbers("deletes.rows").sum()),
            "size_bytes": parts.stored_bytes,
            "distinct_counts": {field.name: distinct_count(parts, field) for field in sketched},
        }

    def history(self, limit: int | None = None) -> History:
        """Return the commits as a list, newest first; at most `limit` of them."""
        return History(self.handle.log.history(limit), self.handle)

    def refresh(self) -> int:
        """Pin the newest version and return its number."""
        if self.handle.read_only:
            return self.version
        self.handle.pin_readable()
        return self.version

    def transaction(
        self,
        *,
        isolation: IsolationName | None = None,
        token: Token | None = None,
        metadata: Metadata | None = None,
    ) -> Transaction:
        """Begin a transaction: several changes as one commit, or none.

        The transaction is a table: its reads see its own changes over the version that it began
        with. `isolation`: "serializable" proves at the commit that nothing which it read was
        changed since; "snapshot" that no key which it writes was. By default, the table's property
        `isolation` decides, else serializable. In a `with` block it commits at the end, or rolls
        back if the block raises. `token` and `metadata` are as for other changes.
        """
        return Transaction(begun(self.handle, isolation, token, metadata))

    # Display

    def __bool__(self) -> bool:
        """Return True, also for an empty table."""
        return True

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count()

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return html(self._shown())

    def _shown(self) -> Shown:
        """Summarise the pinned version; reads nothing."""
        snapshot = self.handle.pinned
        parts = snapshot.parts
        size_bytes = parts.stored_bytes
        written = from_microseconds(snapshot.timestamp_us)
        rows, stored = int(parts.numbers("data.rows").sum()), size_text(size_bytes)
        facts = {
            "version": f"{snapshot.version}, {written:%Y-%m-%d %H:%M:%S} UTC",
            "key": ", ".join(snapshot.table.key) or "none",
            **({"sequence": ", ".join(snapshot.table.sequence)} if snapshot.table.sequence else {}),
            "stored": f"{rows:,} rows in {len(parts):,} parts, {stored}",
        }
        columns = []
        for declared, field in zip(snapshot.schema, arrow_schema(snapshot.schema), strict=True):
            null = "" if field.nullable else " NOT NULL"
            comment = f"  -- {declared.comment}" if declared.comment else ""
            columns.append((field.name, f"{field.type}{null}{comment}"))
        return Shown(f"rowsieve.Table {self.handle.store.uri}", facts, columns)


@checked_methods
class Transaction(TransactionMethods, Table):
    """A table inside a transaction, from `Table.transaction`. For the thread that began it.

    Changes of rows are those of `Table`; each returns a `Commit` whose `committed` is False.
    Changes of columns, properties, versions and files are refused. Engines read the transaction
    when it is registered in them. Used after its end, it raises TransactionEnded.
    """

    handle: TransactionHandle

    def __init__(self, handle: TransactionHandle) -> None:
        super().__init__(handle)

    @property
    def _check_usable(self) -> Callable[[str], None]:
        return self.handle.transaction.check_usable

    @property
    def version(self) -> int:
        """The version that the transaction began with."""
        return self.handle.layers.pinned.version
