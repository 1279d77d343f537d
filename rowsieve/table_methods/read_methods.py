"""The methods of `Table` that read it: scans, frames, datasets, the change feed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from rowsieve import clock, engines
from rowsieve.arguments.annotations import (
    ColumnNames,
    Moment,
    Percentage,
    Version,
)
from rowsieve.bridges.session import Session
from rowsieve.bridges.sql.dialects import DialectName
from rowsieve.bridges.text_with_values import with_values
from rowsieve.bridges.where import locating_errors, semantics_of, to_predicate
from rowsieve.change_feed.feed import open_feed
from rowsieve.change_feed.last_changes import last_changes
from rowsieve.changes.history.history_columns import holds_at
from rowsieve.changes.method_base import TableMethods
from rowsieve.config import OnViolation, Pruning
from rowsieve.encodings.file_encoding import OnDifference, ReadEncoding
from rowsieve.errors import InvalidInput, RowsieveError, UnsupportedOperation
from rowsieve.objects import in_thread
from rowsieve.planner.explanation import Explanation
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.ir import conjoin
from rowsieve.scan import Columns, GivenPlan, Scan
from rowsieve.storage.differential import read_at, refuse_differential
from rowsieve.storage.manifests.part_sketches import distinct_count
from rowsieve.storage.parts.reading_views import with_options
from rowsieve.storage.snapshot import Reading, Snapshot

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow.dataset as ds

_T = TypeVar("_T")

FILES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        pa.field("rows", pa.int64()),
        pa.field("size_bytes", pa.int64()),
    ]
)
"""The columns of `files`."""


class ReadMethods(TableMethods):
    """Scans, frames and datasets, the change feed of a table."""

    def scan(
        self,
        where: Any = None,
        columns: Columns | None = None,
        *,
        limit: int | None = None,
        order_by_key: bool = False,
        version: Version | None = None,
        as_of: Moment | None = None,
        as_of_event: Any = None,
        at: Any = None,
        expanded: bool = False,
        pruning: Pruning | None = None,
        audit: Percentage | None = None,
        on_violation: OnViolation | None = None,
        read_encoding: ReadEncoding | None = None,
        on_encoding_difference: OnDifference | None = None,
        params: Mapping[str, Any] | None = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
        plan: GivenPlan | None = None,
        memory_bytes: int | None = None,
        threads: int | None = None,
    ) -> Scan:
        """Return a `Scan` of the newest version, or of `version` or `as_of`.

        `version` is a number, or the name of a tag.
        `where` is SQL text in `dialect`, a Rowsieve predicate or an engine's expression. `session`
        holds the session settings that text depends on (default: UTC, the dialect's defaults).
        `params` are the values of `$name` and `:name` in the text, as constants of their types;
        a list stands after IN.
        `columns` is a list of names, or a mapping of names to SQL expressions. Without
        `order_by_key`, rows have no defined order. `pruning="off"` reads every part; "soft" does
        too, and checks pruning against all rows. `audit` is the percentage of skipped data to
        check. A violation raises UnsoundPruning; with `on_violation="report"` it is logged and the
        rows are read without pruning. `read_encoding` ("columns", "codec" or "shadow") and
        `on_encoding_difference` ("report" or "raise") replace the table's properties for this read.
        `plan` reads an earlier scan's plan at its version; only
        `columns` may differ. `memory_bytes` limits the memory of a read; if it cannot hold a batch
        of every part in a merge, row groups are decoded several times. `threads` is the number of
        decoding threads (default: one per core); one thread costs the least CPU. `as_of_event`
        reads the rows that held at a moment of event time, of a table that keeps history.

        A differential table is read `at` a time, by default the latest complete one: rows have
        their multiplicity in `_rowsieve_diff`, or are there that often if `expanded`.
        """
        if params is not None:
            where = with_values(where, params, "scan")
        if plan is not None and (version, as_of, as_of_event, at) != (None, None, None, None):
            raise InvalidInput(
                "scan: plan= reads the plan's own version; remove version=, as_of=, as_of_event= "
                "and at="
            )
        if plan is not None:
            snapshot = self._version_of(plan)
        else:
            snapshot = read_at(self.handle.readable(version, as_of), at, expanded=expanded)
        semantics = None
        if as_of_event is not None:
            semantics = semantics_of(dialect, where, session)
            with locating_errors(where, dialect, snapshot.schema, semantics):
                condition = to_predicate(where, dialect, snapshot.schema, semantics, session)
            where = conjoin((holds_at(snapshot, as_of_event), condition))
        return Scan(
            self.handle.store,
            snapshot,
            where=where,
            semantics=semantics,
            columns=columns,
            limit=limit,
            order_by_key=order_by_key,
            pruning=pruning,
            audit=audit,
            on_violation=on_violation,
            read_encoding=read_encoding,
            on_encoding_difference=on_encoding_difference,
            dialect=dialect,
            session=session,
            plan=plan,
            memory_bytes=memory_bytes,
            threads=threads,
            reporter=self.handle.own_reporter,
            check_usable=self._check_usable,
        )

    def require_pruning(
        self, where: Any, *, dialect: DialectName = "postgres", session: Session | None = None
    ) -> Explanation:
        """Explain the scan of a predicate; reject a predicate that can never skip a part.

        UnprunablePredicate names each conjunct that cannot refute any part, the reason, and the
        remedy. Call this first where an application depends on pruning.
        """
        return self.scan(where, dialect=dialect, session=session).require_pruning()

    def count(
        self,
        where: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
    ) -> int:
        """Count all rows or those that match; from the manifest alone where that is exact."""
        where = with_values(where, params, "scan")
        return self._read_now(lambda scan, _: scan.count(), where, dialect=dialect, session=session)

    def distinct_counts(self, columns: ColumnNames | None = None) -> dict[str, int | None]:
        """Estimate the number of different values of columns, NULL excluded; reads no rows.

        From the sketches that `CALL system.analyze(…, distinct_counts => true)` collects, with a
        standard error of 1.6%. Hidden rows count. None for a column whose type has no sketches, and
        for a column that some newer part has no sketch of; `analyze` adds it.
        """
        snapshot = self.handle.resolve(None, None)
        snapshot.note_read_of_all()
        names = snapshot.schema.names if columns is None else columns
        fields = [snapshot.schema.field(name) for name in names]
        return {field.name: distinct_count(snapshot.parts, field) for field in fields}

    def to_arrow(
        self,
        where: Any = None,
        columns: Columns | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
    ) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        where = with_values(where, params, "to_arrow")
        return self._rows(where, columns, dialect=dialect, session=session)

    def to_pandas(
        self,
        where: Any = None,
        columns: Columns | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
    ) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame. MissingExtra without pandas.

        NULL becomes NaN, NaT or None. Integers with NULLs become floats, as is usual in pandas, or
        the nullable Int64 where a float would change a value. To keep all types, use
        `to_arrow(…).to_pandas(types_mapper=pandas.ArrowDtype)`.
        """
        where = with_values(where, params, "to_pandas")
        rows = self._rows(where, columns, dialect=dialect, session=session)
        return engines.pandas().frame_of(rows)

    def to_polars(
        self,
        where: Any = None,
        columns: Columns | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
    ) -> polars.DataFrame:
        """Return the rows as a Polars DataFrame. MissingExtra without polars."""
        where = with_values(where, params, "to_polars")
        rows = self._rows(where, columns, dialect=dialect, session=session)
        return engines.polars().frame_of(rows)

    def to_dataset(
        self,
        *,
        version: Version | None = None,
        as_of: Moment | None = None,
        at: Any = None,
        expanded: bool = False,
        read_encoding: ReadEncoding | None = None,
        on_encoding_difference: OnDifference | None = None,
    ) -> ds.Dataset:
        """Return a `pyarrow.dataset.Dataset` of the newest version, or of `version` or `as_of`.

        `at`, `expanded`, `read_encoding` and `on_encoding_difference` are as in `scan`.

        DuckDB, Polars, pandas and pyarrow push their filters and columns down to it, so a query
        opens only the parts that can match. All reads of the dataset see the same version.
        """
        snapshot = read_at(self.handle.readable(version, as_of), at, expanded=expanded)
        return engines.arrow().dataset_of(
            self.handle.store,
            with_options(snapshot, read_encoding, on_encoding_difference),
            self.handle.own_reporter,
        )

    def scan_polars(
        self,
        *,
        version: Version | None = None,
        as_of: Moment | None = None,
        at: Any = None,
        expanded: bool = False,
        read_encoding: ReadEncoding | None = None,
        on_encoding_difference: OnDifference | None = None,
    ) -> polars.LazyFrame:
        """Return a Polars LazyFrame of the newest version, or of `version` or `as_of`.

        `at`, `expanded`, `read_encoding` and `on_encoding_difference` are as in `scan`.

        Polars pushes filters and columns down to each read, which opens only the parts that can
        match. All reads see the same version. MissingExtra without polars.
        """
        snapshot = read_at(self.handle.readable(version, as_of), at, expanded=expanded)
        return engines.polars().lazy_frame(
            self.handle.store,
            with_options(snapshot, read_encoding, on_encoding_difference),
            self.handle.own_reporter,
        )

    def changes(
        self,
        from_version: int,
        to_version: int | None = None,
        *,
        columns: ColumnNames | None = None,
        where: Any = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
        net: bool = False,
    ) -> pa.RecordBatchReader:
        """Return the rows that the commits of a range inserted, updated and deleted, as a stream.

        Both ends are inclusive; without `to_version` the range ends at the newest version. Rows
        have the columns of the last version, then `_change_type` (insert, update_preimage,
        update_postimage or delete), `_commit_version` and `_commit_timestamp`. `where` selects rows
        of the feed; it may use these three columns. Commits that only rewrite files emit nothing.
        With `net`, the range counts as one commit: at most one row before and one after for each
        key, and no row that ends as it began. The table needs a key, and only the last version and
        the version before the range are read.
        SnapshotExpired if a version of the range, or the version before it, has expired.
        """
        self.handle.require_committed("changes")
        refuse_differential("changes", self.handle.newest.table)
        if isinstance(self.handle.read_only, str):
            raise UnsupportedOperation(f"changes: {self.handle.read_only}")
        return open_feed(
            self.handle.store,
            self.handle.log,
            self.handle.committed() if to_version is None else self.handle.resolve(),
            from_version,
            to_version,
            columns=columns,
            where=where,
            dialect=dialect,
            session=session,
            now_us=clock.now_us(),
            net=net,
        ).to_reader()

    def last_changed(
        self,
        since: int,
        *,
        columns: ColumnNames | None = None,
        where: Any = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows that commits after version `since` changed, as a stream.

        The last column `_commit_version` is the version of the commit that last changed the row;
        `where` is a condition on the table's columns. Parts of earlier commits are not read, and
        versions since then may have expired. Deleted rows are not there. The property
        `row_versions = "kept"` is needed: with it, rewrites keep the version of each row.
        """
        self.handle.require_committed("last_changed")
        snapshot = self.handle.committed()
        refuse_differential("last_changed", snapshot.table)
        semantics = semantics_of(dialect, where, session)
        with locating_errors(where, dialect, snapshot.schema, semantics):
            return last_changes(
                self.handle.store,
                snapshot,
                since,
                columns=columns,
                predicate=to_predicate(where, dialect, snapshot.schema, semantics, session),
                semantics=semantics,
                now_us=clock.now_us(),
            )

    def files(self) -> pa.Table:
        """Return the files of the newest version: (path, kind, part, rows, size_bytes).

        `kind` is data, deletes or vector. Paths are relative to the table. The data files alone do
        not hold the table's content: other files may hide some of their rows, and small changes
        are in the log (property `inline_bytes`).
        """
        snapshot = self.handle.resolve(None, None)
        snapshot.note_read_of_all()
        parts = snapshot.parts
        entries: list[dict[str, Any]] = []
        for kind, prefix in (("data", "data"), ("deletes", "deletes"), ("vector", "dv")):
            paths = parts.column(f"{prefix}.path").to_pylist()
            sizes = parts.column(f"{prefix}.size_bytes").to_pylist()
            counts = [None] * len(paths)  # a deletion vector contains no rows
            if kind != "vector":
                counts = parts.column(f"{prefix}.rows").to_pylist()
            stored = set(parts.file_paths().get(f"{prefix}.path", ()))
            for part, path, size, rows in zip(parts.part_ids, paths, sizes, counts, strict=True):
                row = {"path": path, "kind": kind, "part": part, "rows": rows, "size_bytes": size}
                if path in stored:
                    entries.append(row)
        for part, ref in zip(parts.part_ids, parts.vectors(), strict=True):
            if ref is not None and ref.path is not None:  # a file holds the vectors of several
                row = {"path": ref.path, "kind": "vector", "part": part, "rows": None}
                entries.append({**row, "size_bytes": ref.size_bytes})
        return pa.Table.from_pylist(entries, FILES)

    def _scanned(self, where: Any = None, columns: Columns | None = None, **options: Any) -> Scan:
        """A scan of what a read sees now."""
        return self._scan_at(self.handle.readable(), where, columns, **options)

    @property
    def _check_usable(self) -> Callable[[str], None] | None:
        """What a scan calls as a read begins, inside a transaction."""
        return None

    def _scan_at(
        self, snapshot: Snapshot, where: Any = None, columns: Columns | None = None, **options: Any
    ) -> Scan:
        return Scan(
            self.handle.store,
            read_at(snapshot),
            where=where,
            columns=columns,
            reporter=self.handle.own_reporter,
            check_usable=self._check_usable,
            **options,
        )

    def _rows(self, where: Any = None, columns: Columns | None = None, **options: Any) -> pa.Table:
        """The rows that a read sees now."""

        def read(scan: Scan, is_overtaken: Callable[[], bool]) -> pa.Table:
            batches = takewhile(lambda _: not is_overtaken(), scan.to_batches())
            return pa.Table.from_batches(batches, schema=scan.schema)

        return self._read_now(read, where, columns, **options)

    def _read_now(
        self,
        read: Callable[[Scan, Callable[[], bool]], _T],
        where: Any = None,
        columns: Columns | None = None,
        **options: Any,
    ) -> _T:
        """Read what a read sees now; from a network store while the newest version is looked up.

        If others have committed, what `read` returned is dropped, and it reads again. Its second
        argument tells whether they have, so that it can stop.
        """
        handle = self.handle

        def scan_at(snapshot: Snapshot, **others: Any) -> Scan:
            return self._scan_at(snapshot, where, columns, **options, **others)

        if handle.read_only or handle.writer is not None or not handle.may_build_ahead:
            return read(scan_at(handle.readable()), lambda: False)
        known, looking_up = handle.newest, in_thread(handle.latest)

        def is_current() -> bool:
            return looking_up.result().commit_id == known.commit_id

        def is_overtaken() -> bool:
            return looking_up.done() and not is_current()

        try:
            result = read(scan_at(known, is_current=is_current), is_overtaken)
        except RowsieveError:
            if is_current():
                raise
        else:
            if is_current():
                return result
        return read(scan_at(looking_up.result()), lambda: False)

    def _version_of(self, plan: ScanPlan) -> Snapshot:
        if plan.consolidation is not None:
            stored = plan.consolidation.stored
            reading = Reading(None, plan.consolidation.expanded, stored)
            version = self._stored_version_of(plan)
            return replace(version, schema=plan.schema, reading=reading)
        return self._stored_version_of(plan)

    def _stored_version_of(self, plan: ScanPlan) -> Snapshot:
        handle = self.handle
        pinned, newest = handle.pinned, handle.newest
        for snapshot in (pinned, newest):
            if handle.read_only or snapshot.version == plan.version:
                return snapshot
        if plan.table_uuid != pinned.table.uuid:
            return pinned  # check_fits rejects the plan of another table
        return handle.log.at(plan.version)
