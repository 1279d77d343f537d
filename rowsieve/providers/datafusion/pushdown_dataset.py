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
from rowsieve.predicate.ir import FALSE, TRUE, Predicate
from rowsieve.providers.arrow.unreadable import UnreadableDataset, projected
from rowsieve.providers.datafusion.open_reads import Batches, EngineUse


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
        return TRUE if pushed.as_py() else FALSE
    return pushed_predicate(pushed)
