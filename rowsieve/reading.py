"""The reading methods of `Table` that need no scan options, and its display in a notebook.

Returns rows as Arrow, pandas or Polars data, datasets for engines that push filters down, and the
list of files.
"""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa

from rowsieve import clock, engines
from rowsieve.arguments.annotations import ColumnNames, Moment, StorageOptions, TableUri
from rowsieve.bridges.session import Session
from rowsieve.change_feed.feed import open_feed
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.maintenance.maintaining import Maintaining
from rowsieve.objects import open_store
from rowsieve.scan import Columns, Scan
from rowsieve.shown import Shown, html, size_text
from rowsieve.storage.log.version_arguments import resolve_snapshot
from rowsieve.storage.manifests.part_sketches import distinct_count
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.instants import from_microseconds

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


class Reading(Maintaining):
    """Base class of `Table` with simple reads; each looks up the newest version first."""

    def __bool__(self) -> bool:
        """Return True, also for an empty table."""
        return True

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count()

    def count(
        self, where: Any = None, *, dialect: str = "postgres", session: Session | None = None
    ) -> int:
        """Count all rows or those that match; from the manifest alone where that is exact."""
        return self._scan(where, None, dialect, session).count()

    def distinct_counts(self, columns: ColumnNames | None = None) -> dict[str, int | None]:
        """Estimate the number of different values of columns, NULL excluded; reads no rows.

        From the sketches that `CALL system.analyze(…, distinct_counts => true)` collects, with a
        standard error of 1.6%. Hidden rows count. None for a column whose type has no sketches, and
        for a column that some newer part has no sketch of; `analyze` adds it.
        """
        snapshot = self._resolve(None, None)
        names = snapshot.schema.names if columns is None else columns
        fields = [snapshot.schema.field(name) for name in names]
        return {field.name: distinct_count(snapshot.parts, field) for field in fields}

    def head(self, count: int = 5) -> pa.Table:
        """Return the first rows: in key order, or in file order if the table has no key."""
        snapshot = self._resolve(None, None)
        ordered = bool(snapshot.table.key)
        return Scan(
            self._store, snapshot, limit=count, order_by_key=ordered, reporter=self._reporter
        ).to_arrow()

    def to_arrow(
        self,
        where: Any = None,
        columns: Columns | None = None,
        *,
        dialect: str = "postgres",
        session: Session | None = None,
    ) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        return self._scan(where, columns, dialect, session).to_arrow()

    def to_pandas(
        self,
        where: Any = None,
        columns: Columns | None = None,
        *,
        dialect: str = "postgres",
        session: Session | None = None,
    ) -> Any:
        """Return the rows as a pandas DataFrame. MissingExtra without pandas.

        NULL becomes NaN, NaT or None. Integers with NULLs become floats, as is usual in pandas, or
        the nullable Int64 where a float would change a value. To keep all types, use
        `to_arrow(…).to_pandas(types_mapper=pandas.ArrowDtype)`.
        """
        return engines.pandas().frame_of(self._scan(where, columns, dialect, session).to_arrow())

    def to_polars(
        self,
        where: Any = None,
        columns: Columns | None = None,
        *,
        dialect: str = "postgres",
        session: Session | None = None,
    ) -> Any:
        """Return the rows as a Polars DataFrame. MissingExtra without polars."""
        return engines.polars().frame_of(self._scan(where, columns, dialect, session).to_arrow())

    def to_dataset(self, *, version: int | None = None, as_of: Moment | None = None) -> Any:
        """Return a `pyarrow.dataset.Dataset` of the newest version, or of `version` or `as_of`.

        DuckDB, Polars, pandas and pyarrow push their filters and columns down to it, so a query
        opens only the parts that can match. All reads of the dataset see the same version.
        """
        return engines.arrow().dataset_of(
            self._store, self._resolve(version, as_of), self._reporter
        )

    def scan_polars(self, *, version: int | None = None, as_of: Moment | None = None) -> Any:
        """Return a Polars LazyFrame of the newest version, or of `version` or `as_of`.

        Polars pushes filters and columns down to each read, which opens only the parts that can
        match. All reads see the same version. MissingExtra without polars.
        """
        return engines.polars().lazy_frame(
            self._store, self._resolve(version, as_of), self._reporter
        )

    def changes(
        self,
        from_version: int,
        to_version: int | None = None,
        *,
        columns: ColumnNames | None = None,
        where: Any = None,
        dialect: str = "postgres",
        session: Session | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows that the commits of a range inserted, updated and deleted, as a stream.

        Both ends are inclusive; without `to_version` the range ends at the newest version. Rows
        have the columns of the last version, then `_change_type` (insert, update_preimage,
        update_postimage or delete), `_commit_version` and `_commit_timestamp`. `where` selects rows
        of the feed; it may use these three columns. Commits that only rewrite files emit nothing.
        SnapshotExpired if a version of the range, or the version before it, has expired.
        """
        if isinstance(self._read_only, str):
            raise UnsupportedOperation(f"changes: {self._read_only}")
        return open_feed(
            self._store,
            self._log,
            self._resolve(None, None),
            from_version,
            to_version,
            columns=columns,
            where=where,
            dialect=dialect,
            session=session,
            now_us=clock.now_us(),
        ).to_reader()

    def files(self) -> pa.Table:
        """Return the files of the newest version: (path, kind, part, rows, size_bytes).

        `kind` is data, deletes or vector. Paths are relative to the table. The data files alone do
        not hold the table's content: other files may hide some of their rows.
        """
        parts = self._resolve(None, None).parts
        found: list[dict[str, Any]] = []
        for kind, prefix in (("data", "data"), ("deletes", "deletes"), ("vector", "dv")):
            paths = parts.column(f"{prefix}.path").to_pylist()
            sizes = parts.column(f"{prefix}.size_bytes").to_pylist()
            counts = [None] * len(paths)  # a deletion vector contains no rows
            if kind != "vector":
                counts = parts.column(f"{prefix}.rows").to_pylist()
            for part, path, size, rows in zip(parts.part_ids, paths, sizes, counts, strict=True):
                row = {"path": path, "kind": kind, "part": part, "rows": rows, "size_bytes": size}
                if path is not None:
                    found.append(row)
        for part, ref in zip(parts.part_ids, parts.vectors(), strict=True):
            if ref is not None and ref.path is not None:  # a file holds the vectors of several
                row = {"path": ref.path, "kind": "vector", "part": part, "rows": None}
                found.append({**row, "size_bytes": ref.size_bytes})
        return pa.Table.from_pylist(found, FILES)

    def export(
        self,
        format: Literal["delta", "iceberg"],  # noqa: A002 - the word of Delta and Spark
        uri: TableUri | None = None,
        *,
        storage_options: StorageOptions | None = None,
    ) -> int:
        """Write metadata with which readers of Delta or Iceberg read the same files.

        Writes the newest version as the next version of a Delta log, or as the next Iceberg
        metadata file (`metadata/v<number>.metadata.json`), at `uri`, by default in the table's own
        folder, and returns its number; copies no data. Hidden rows become position deletes of
        Iceberg. UnsupportedOperation, which says to compact first, if these readers would read
        other rows. Later changes of the table are not exported; expiring a version deletes files
        that its export refers to.
        """
        if format not in ("delta", "iceberg"):
            raise InvalidInput(f"export: format must be 'delta' or 'iceberg', not {format!r}")
        snapshot = self._resolve(None, None)
        target = self._store
        if uri is not None:
            options = self._storage_options if storage_options is None else storage_options
            target = open_store(uri, options or None)
        if format == "iceberg":
            return engines.iceberg().export_metadata(target, snapshot, self._store)
        return engines.delta().export_log(target, snapshot, self._store.uri)

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return html(self._shown())

    def _shown(self) -> Shown:
        """Summarise the pinned version; reads nothing."""
        snapshot = self._pinned
        parts = snapshot.parts
        size_bytes = parts.stored_bytes
        written = from_microseconds(snapshot.timestamp_us)
        rows, stored = int(parts.numbers("data.rows").sum()), size_text(size_bytes)
        facts = {
            "version": f"{snapshot.version}, {written:%Y-%m-%d %H:%M:%S} UTC",
            "key": ", ".join(snapshot.table.key) or "none",
            "stored": f"{rows:,} rows in {len(parts):,} parts, {stored}",
        }
        columns = []
        for declared, field in zip(snapshot.schema, arrow_schema(snapshot.schema), strict=True):
            null = "" if field.nullable else " NOT NULL"
            comment = f"  -- {declared.comment}" if declared.comment else ""
            columns.append((field.name, f"{field.type}{null}{comment}"))
        return Shown(f"rowsieve.Table {self._store.uri}", facts, columns)

    def _scan(
        self, where: Any, columns: Columns | None, dialect: str, session: Session | None
    ) -> Scan:
        snapshot = self._resolve(None, None)
        return Scan(
            self._store,
            snapshot,
            where=where,
            columns=columns,
            dialect=dialect,
            session=session,
            reporter=self._reporter,
        )

    def _resolve(self, version: int | None, as_of: Moment | None) -> Snapshot:
        if version is None and as_of is None:
            return self._pinned if self._read_only else self._latest()
        return resolve_snapshot(self._log, version, as_of)
