"""One version of a table as a `pyarrow.dataset.Dataset`, whose reads prune by the pushed filter.

DuckDB calls `scanner`, Polars calls `to_batches`, pyarrow users call any method. Each read is
planned with the pushed filter and columns, so it opens only parts that can match. A read that
bypasses these methods raises (see `rowsieve.providers.arrow.unreadable`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from numbers import Integral
from types import FrameType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.metrics import Reporter, ScanMetrics
from rowsieve.objects import ObjectStore
from rowsieve.providers.arrow.filters import (
    PushedFilter,
    ReadFilter,
    polars_filter,
    pyarrow_filter,
)
from rowsieve.providers.arrow.scanner import Columns, DatasetScanner
from rowsieve.providers.arrow.unreadable import UnreadableDataset, plain_schema
from rowsieve.scan import Scan
from rowsieve.storage.snapshot import Snapshot

_IGNORED: Final = frozenset(
    {
        "batch_readahead",
        "fragment_readahead",
        "fragment_scan_options",
        "use_threads",
        "cache_metadata",
        "memory_pool",
    }
)
"""Options of `Dataset.scanner` that tune pyarrow's own reader, which we do not use."""


class TableVersion(UnreadableDataset):
    """A Dataset of one table version; every read of it sees the same rows."""

    def __init__(self, store: ObjectStore, snapshot: Snapshot, reporter: Reporter | None) -> None:
        schema = plain_schema(snapshot)
        super().__init__(schema)
        self._arrow_schema = schema
        self._store = store
        self._snapshot = snapshot
        self._reporter = reporter
        self._filter: pc.Expression | None = None
        self._last: Scan | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns, without metadata."""
        return self._arrow_schema

    @property
    def version(self) -> int:
        """The table version that this dataset reads."""
        return self._snapshot.version

    @property
    def metrics(self) -> ScanMetrics:
        """Counters of the last read; complete once its rows are consumed."""
        return ScanMetrics() if self._last is None else self._last.metrics

    def __repr__(self) -> str:
        condition = "" if self._filter is None else f", filter={self._filter}"
        return f"<rowsieve dataset of {self._store.uri} at version {self.version}{condition}>"

    def filter(self, expression: pc.Expression) -> TableVersion:
        """The same dataset with a filter that applies to every read."""
        dataset = TableVersion(self._store, self._snapshot, self._reporter)
        dataset._filter = _both(self._filter, expression)
        return dataset

    def scanner(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's name
        batch_size: int | None = None,
        **options: Any,
    ) -> Any:
        """A scanner of the rows that pass the filter, under pyarrow's semantics.

        `pyarrow.dataset.write_dataset` does not accept it: its C++ code needs pyarrow's own class.
        """
        scanner = self._scanner(pyarrow_filter, columns, filter, batch_size, options)
        if _is_function(sys._getframe(1), "pyarrow.dataset", "write_dataset"):
            return pads.Scanner.from_batches(scanner.to_batches(), schema=scanner.projected_schema)
        return scanner

    def to_batches(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002
        batch_size: int | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """The rows that pass the filter, batch by batch.

        Polars calls this method with a filter under its own semantics and does not apply the filter
        again. Only the calling frame shows that Polars is the caller.
        """
        read_filter = polars_filter if _is_polars(sys._getframe(1)) else pyarrow_filter
        return self._scanner(read_filter, columns, filter, batch_size, options).to_batches()

    def to_table(self, columns: Columns = None, **options: Any) -> pa.Table:
        """All rows in key order; `filter=` and the options are those of `scanner`."""
        return self._in_order(columns, **options).to_table()

    def head(self, num_rows: int, columns: Columns = None, **options: Any) -> pa.Table:
        """The first `num_rows` rows of `to_table`."""
        if type(num_rows) is not int:
            kind = type(num_rows).__name__
            raise InvalidInput(f"head: num_rows must be a whole number, not {kind}")
        num_rows = max(0, min(num_rows, sys.maxsize))
        return self._in_order(columns, **options).head(num_rows)

    def take(self, indices: Any, columns: Columns = None, **options: Any) -> pa.Table:
        """The rows of `to_table` at these indices; InvalidInput if they are not valid indices."""
        try:
            rows = pa.array(indices) if len(indices) else pa.array([], pa.int64())
            if not (pa.types.is_integer(rows.type) or rows.null_count == len(rows)):
                raise ValueError(f"got {rows.type}")
            places = rows.cast(pa.int64())
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"take: indices must be whole numbers from 0: {error}") from error
        if places.null_count:
            raise InvalidInput(f"take: {places.null_count} of the indices are NULL; remove them")
        try:
            return self._in_order(columns, **options).take(places)
        except pa.ArrowIndexError as error:
            raise InvalidInput(f"take: an index is not below the number of rows: {error}") from None

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:  # noqa: A002
        """Count the rows that pass the filter."""
        return self._scanner(pyarrow_filter, [], filter, None, options).count_rows()

    def sort_by(self, sorting: Any, **options: Any) -> pads.Dataset:
        """All rows in memory, sorted as `pyarrow.dataset.Dataset.sort_by` does."""
        return self._in_memory().sort_by(sorting, **options)

    def join(self, right_dataset: Any, *arguments: Any, **options: Any) -> pads.Dataset:
        """All rows in memory, joined as `pyarrow.dataset.Dataset.join` does."""
        right = _readable(right_dataset)
        return self._in_memory().join(right, *arguments, **options)

    def join_asof(self, right_dataset: Any, *arguments: Any, **options: Any) -> pads.Dataset:
        """All rows in memory, joined as `pyarrow.dataset.Dataset.join_asof` does."""
        right = _readable(right_dataset)
        return self._in_memory().join_asof(right, *arguments, **options)

    def get_fragments(self, filter: Any = None) -> Any:  # noqa: A002, ARG002
        """UnsupportedOperation: files have rows of several versions, which a read must merge."""
        raise _unsupported(
            "get_fragments", "; DataFusion takes the table itself: ctx.register_table(name, table)"
        )

    def replace_schema(self, schema: pa.Schema) -> Any:  # noqa: ARG002
        """UnsupportedOperation: the dataset always has the columns of the table."""
        raise _unsupported(
            "replace_schema, which a union of datasets also calls,",
            "; to combine rows of several datasets, pass their to_table() to pyarrow.concat_tables",
        )

    def __reduce__(self) -> Any:
        raise _unsupported("pickling")

    def _in_memory(self) -> pads.InMemoryDataset:
        return pads.InMemoryDataset(self.to_table())

    def _in_order(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002
        batch_size: int | None = None,
        **options: Any,
    ) -> DatasetScanner:
        """A scanner in key order, so that an index means the same row in every read."""
        return self._scanner(pyarrow_filter, columns, filter, batch_size, options, ordered=True)

    def _scanner(
        self,
        read_filter: ReadFilter,
        columns: Columns,
        expression: pc.Expression | None,
        batch_size: int | None,
        options: dict[str, Any],
        *,
        ordered: bool = False,
    ) -> DatasetScanner:
        if unknown := sorted(set(options) - _IGNORED):
            raise InvalidInput(
                f"a scanner of a dataset has no option {unknown[0]!r}; it takes columns, filter "
                "and batch_size"
            )
        if expression is not None and not isinstance(expression, pc.Expression):
            raise InvalidInput(
                "filter= must be a pyarrow expression, such as pyarrow.compute.field('id') == 5, "
                f"not {type(expression).__name__}; pass SQL text to table.scan(where=...)"
            )
        _check_read(columns, batch_size)
        if self._filter is not None and expression is not None and read_filter is polars_filter:
            raise UnsupportedOperation(
                "Polars pushed a filter to a dataset that has a pyarrow filter, and the semantics "
                "of the two filters differ: give Polars the unfiltered dataset"
            )
        if expression is None:
            read_filter = pyarrow_filter  # only the dataset itself can have a filter
        whole = _both(self._filter, expression)
        pushed = read_filter(whole, self._snapshot.schema)
        opened = partial(self._open, ordered=ordered and bool(self._snapshot.table.key))
        return DatasetScanner(self._arrow_schema, opened, pushed, whole, columns, batch_size)

    def _open(
        self, pushed: PushedFilter, names: Sequence[str], limit: int | None, *, ordered: bool
    ) -> Scan:
        self._last = Scan(
            self._store,
            self._snapshot,
            where=pushed.predicate,
            columns=names,
            limit=limit,
            order_by_key=ordered,
            semantics=pushed.semantics,
            reporter=self._reporter,
        )
        return self._last


def dataset_of(store: ObjectStore, snapshot: Snapshot, reporter: Reporter | None) -> TableVersion:
    """The dataset of a version; each read is reported to `reporter`."""
    return TableVersion(store, snapshot, reporter)


def _both(first: pc.Expression | None, second: pc.Expression | None) -> pc.Expression | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _check_read(columns: object, batch_size: Any) -> None:
    """Refuse wrong types here, in the method whose caller decides the semantics of the filter."""
    if not isinstance(columns, list | dict | None):
        raise InvalidInput(
            "columns= must be a list of names or a mapping of names to pyarrow expressions, not "
            f"{type(columns).__name__}"
        )
    if batch_size is None:
        return
    if isinstance(batch_size, bool) or not isinstance(batch_size, Integral):
        raise InvalidInput(f"batch_size must be a whole number, not {type(batch_size).__name__}")
    if batch_size < 1:
        raise InvalidInput(f"batch_size must be at least 1, got {batch_size}")


def _is_function(caller: FrameType, module: str, name: str) -> bool:
    """Return whether this is a frame of the function `name` in `module`."""
    return caller.f_globals.get("__name__") == module and caller.f_code.co_name == name


def _is_polars(caller: FrameType) -> bool:
    """Return whether this is a frame of Polars' own code."""
    return str(caller.f_globals.get("__name__", "")).partition(".")[0] == "polars"


def _readable(dataset: Any) -> Any:
    """The other side of a join; ours is read into memory, as pyarrow bypasses our methods."""
    return dataset._in_memory() if isinstance(dataset, TableVersion) else dataset


def _unsupported(what: str, instead: str = "") -> UnsupportedOperation:
    return UnsupportedOperation(
        f"a rowsieve dataset does not support {what}: read it by scanner, to_table, to_batches or "
        f"head{instead}"
    )
