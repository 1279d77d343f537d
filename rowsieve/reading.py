"""A whole table, or some of it, in the form that a caller asks for; and what a table is, shown.

The base of `Table` for everything that reads and takes no engine to explain: rows as Arrow, pandas
or Polars, datasets for engines that push filters, the list of files, the text of a notebook.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rowsieve import engines
from rowsieve.arguments.annotations import Moment
from rowsieve.bridges.session import Session
from rowsieve.changes.handle import Handle
from rowsieve.scan import Columns, Scan
from rowsieve.shown import Shown, html, size_text
from rowsieve.storage.resolve import resolve_snapshot
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


class Reading(Handle):
    """Reads that need no options of their own; every one looks for the newest version first."""

    def __bool__(self) -> bool:
        """Always true: a table without rows is a table."""
        return True

    def __len__(self) -> int:
        """The number of rows."""
        return self.count()

    def count(
        self, where: Any = None, *, dialect: str = "postgres", session: Session | None = None
    ) -> int:
        """The number of rows, or of those that match; from the manifest alone where it knows."""
        return self._scan(where, None, dialect, session).count()

    def head(self, count: int = 5) -> pa.Table:
        """The first rows: by key, or in the order of the files for a table without a key."""
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
        """The rows as a pyarrow Table."""
        return self._scan(where, columns, dialect, session).to_arrow()

    def to_pandas(
        self,
        where: Any = None,
        columns: Columns | None = None,
        *,
        dialect: str = "postgres",
        session: Session | None = None,
    ) -> Any:
        """The rows as a pandas DataFrame; NULL is NaN, NaT or None there. MissingExtra without it.

        Whole numbers with NULLs become floats, as pandas has it, or the nullable Int64 where a
        float would change one; `to_arrow(…).to_pandas(types_mapper=pandas.ArrowDtype)` keeps all.
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
        """The rows as a Polars DataFrame. MissingExtra without polars."""
        return engines.polars().frame_of(self._scan(where, columns, dialect, session).to_arrow())

    def to_dataset(self, *, version: int | None = None, as_of: Moment | None = None) -> Any:
        """A `pyarrow.dataset.Dataset` of the newest version, or of the one asked for.

        DuckDB, Polars, pandas and pyarrow push their filters and columns into it, so that a query
        opens only the parts that can match. Every read of it sees that one version.
        """
        return engines.arrow().dataset_of(
            self._store, self._resolve(version, as_of), self._reporter
        )

    def scan_polars(self, *, version: int | None = None, as_of: Moment | None = None) -> Any:
        """A Polars LazyFrame of the newest version, or of the one asked for.

        Its filters and columns are pushed into each read, which opens only the parts that can
        match. Every read sees that one version. MissingExtra without polars.
        """
        return engines.polars().lazy_frame(
            self._store, self._resolve(version, as_of), self._reporter
        )

    def files(self) -> pa.Table:
        """The files of the newest version: (path, kind, part, rows, size_bytes).

        `kind` is data, deletes or vector. Paths are relative to the table. A data file alone is not
        the table: other files may hide rows of it.
        """
        parts = self._resolve(None, None).parts
        found: list[dict[str, Any]] = []
        for kind, prefix in (("data", "data"), ("deletes", "deletes"), ("vector", "dv")):
            paths = parts.column(f"{prefix}.path").to_pylist()
            sizes = parts.column(f"{prefix}.size_bytes").to_pylist()
            counts = [None] * len(paths)  # a vector has no rows of its own
            if kind != "vector":
                counts = parts.column(f"{prefix}.rows").to_pylist()
            for part, path, size, rows in zip(parts.part_ids, paths, sizes, counts, strict=True):
                row = {"path": path, "kind": kind, "part": part, "rows": rows, "size_bytes": size}
                if path is not None:
                    found.append(row)
        return pa.Table.from_pylist(found, FILES)

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return html(self._shown())

    def _shown(self) -> Shown:
        """What the pinned version is; reads nothing."""
        snapshot = self._pinned
        parts = snapshot.parts
        sizes = ("data.size_bytes", "deletes.size_bytes", "dv.size_bytes")
        size_bytes = sum(int(parts.numbers(name).sum()) for name in sizes)
        written = from_microseconds(snapshot.timestamp_us)
        rows, stored = int(parts.numbers("data.rows").sum()), size_text(size_bytes)
        facts = {
            "version": f"{snapshot.version}, {written:%Y-%m-%d %H:%M:%S} UTC",
            "key": ", ".join(snapshot.table.key) or "none",
            "stored": f"{rows:,} rows in {len(parts):,} parts, {stored}",
        }
        columns = [
            (field.name, f"{field.type}{'' if field.nullable else ' NOT NULL'}")
            for field in arrow_schema(snapshot.schema)
        ]
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
