"""Base classes of the Datasets that DataFusion reads: schema, projection and pushed filters.

Subclasses define the fragments and the rows of each.

Soundness: DataFusion does not apply a pushed filter again, so a filter that cannot be translated is
an error, never dropped.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from rowsieve.bridges.pyarrow_exprs import pushed_predicate
from rowsieve.errors import RowsieveError
from rowsieve.predicate.ir import FALSE, TRUE, Predicate
from rowsieve.providers.arrow.unreadable import UnreadableDataset, projected
from rowsieve.providers.datafusion.open_reads import OPEN_READS, Batches, EngineUse
from rowsieve.table import Table
from rowsieve.types.encodings import relabelled


class PushdownDataset(UnreadableDataset):
    """A Dataset that DataFusion plans with; other reads of it raise FileNotFoundError."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._arrow_schema = schema

    @property
    def schema(self) -> pa.Schema:
        """The columns; cached, because DataFusion requests them many times per query."""
        return self._arrow_schema

    def scanner(self, columns: Sequence[str] | None = None, **_options: Any) -> SplitScanner:
        """A scanner for planning: DataFusion reads only its `projected_schema`."""
        return SplitScanner(projected(self._arrow_schema, columns), iter(()))


class PushdownFragment(EngineUse):
    """One partition of a Dataset."""

    __slots__ = ()

    def scanner(
        self, schema: pa.Schema, *, columns: Sequence[str] | None = None, **_options: Any
    ) -> SplitScanner:
        """Read these columns; the pushed filter was given to `get_fragments`."""
        self.last_call_s = time.monotonic()
        output = projected(schema, columns)
        return SplitScanner(output, Batches(self._read(output), self))

    @abstractmethod
    def _read(self, output: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield batches of exactly this schema."""


class RowsDataset(PushdownDataset):
    """A Dataset of rows that a method of ours reads, in one partition, which keeps their order."""

    def __init__(self, table: Table, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.table = table

    @abstractmethod
    def rows(self, names: Sequence[str], where: Predicate) -> Iterator[pa.RecordBatch]:
        """Read the rows that match, with at least these columns."""

    def get_fragments(self, filter: Any = None) -> list[PushdownFragment]:  # noqa: A002
        """Return the only fragment."""
        OPEN_READS.check_planning()
        return [_RowsFragment(self, pushed_filter(filter))]


class _RowsFragment(PushdownFragment):
    """The rows that match the pushed condition."""

    __slots__ = ("_dataset", "_where")

    def __init__(self, dataset: RowsDataset, where: Predicate) -> None:
        super().__init__()
        self._dataset = dataset
        self._where = where

    def _read(self, output: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._dataset.rows(output.names, self._where):
                if output.names:
                    yield relabelled(batch.select(output.names), output)
                else:
                    yield pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], ["row"]).select([])
        except RowsieveError as error:
            self._dataset.table.handle.engine_error = error
            raise


class SplitScanner:
    """Batches of exactly `projected_schema`; DataFusion does not check them."""

    __slots__ = ("_batches", "projected_schema")

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self.projected_schema = schema
        self._batches = batches

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The batches, once."""
        return self._batches


def pushed_filter(pushed: Any) -> Predicate:
    """Translate the pushed filter: an expression, or a boolean if DataFusion folded it to one."""
    if pushed is None:
        return TRUE
    if isinstance(pushed, pa.Scalar):
        pushed = pushed.as_py()
    if isinstance(pushed, bool | None):
        return TRUE if pushed else FALSE
    return pushed_predicate(pushed)
