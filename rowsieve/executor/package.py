"""From live rows to the batches a reader gets: residual filter, output columns, limit.

Rows come in with every column that the predicate and the output need; they leave with the output
columns alone, in the result's schema. A row whose predicate fails raises `EvaluationError`
(invariant 27); so does a row that is returned and whose computed column fails.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rowsieve.errors import EvaluationError
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.bind import BoundOperand, BoundPredicate, bind, bind_operand
from rowsieve.predicate.evaluate import compute, matching
from rowsieve.predicate.ir import TRUE, BoundColumn, walk
from rowsieve.types.encodings import arrow_field, arrow_type
from rowsieve.types.schema import Schema


class Packaging:
    """How one plan's rows are filtered and shaped; bound once, used for every batch."""

    __slots__ = ("_computed", "_names", "filter", "needed", "output")

    def __init__(self, plan: ScanPlan) -> None:
        schema, semantics = plan.schema, plan.semantics
        predicate = plan.predicate
        self.filter: BoundPredicate | None = (
            None if predicate == TRUE else bind(predicate, schema, semantics, now_us=plan.now_us)
        )
        self._computed: dict[str, BoundOperand] = {}
        self._names: list[str] = []
        for column in plan.columns:
            if (operand := column.operand) is None:
                self._names.append(schema.field(column.name).name)
            else:
                self._names.append(column.name)
                self._computed[column.name] = bind_operand(
                    operand, schema, semantics, now_us=plan.now_us
                )
        self.output = pa.schema([self._output_field(schema, name) for name in self._names])
        self.needed = tuple(dict.fromkeys(self._read_names()))

    def columns_to_read(
        self, schema: Schema, *, filtered: bool, output: bool = True
    ) -> tuple[str, ...]:
        """Names of the columns that a piece's rows must have, in schema order.

        Without `output` the rows are only counted.
        """
        wanted = set(self.needed) if output else set()
        if filtered and self.filter is not None:
            wanted.update(column.name for column in self.filter.columns)
        return tuple(name for name in schema.names if name in wanted)

    def count(self, rows: pa.RecordBatch) -> int:
        """How many rows of a batch match."""
        if self.filter is None:
            return int(rows.num_rows)
        return int(matching(self.filter, rows).sum())

    def select(self, rows: pa.RecordBatch, *, filtered: bool) -> pa.RecordBatch:
        """The matching rows of a batch, with all their columns."""
        if not filtered or self.filter is None:
            return rows
        mask = matching(self.filter, rows)
        return rows if mask.all() else rows.filter(pa.array(mask))

    def project(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The output columns of rows that are returned."""
        if not self._names:
            return rows.select([])
        columns = [
            self._compute(name, rows) if name in self._computed else rows.column(name)
            for name in self._names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.output)

    def _compute(self, name: str, rows: pa.RecordBatch) -> pa.Array:
        values, failed = compute(self._computed[name], rows)
        if failed.any():
            row = rows.slice(int(np.flatnonzero(failed)[0]), 1).to_pylist()[0]
            raise EvaluationError(f"column {name!r} of the result cannot be computed for row {row}")
        return values

    def _output_field(self, schema: Schema, name: str) -> pa.Field:
        if name in self._computed:
            return pa.field(name, arrow_type(self._computed[name].type))
        return arrow_field(schema.field(name))

    def _read_names(self) -> Iterator[str]:
        for name in self._names:
            if name not in self._computed:
                yield name
                continue
            for node in walk(self._computed[name].root):
                if isinstance(node, BoundColumn):
                    yield node.name


def take_first(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The first `limit` rows; stops asking for more once it has them."""
    if limit is None:
        yield from batches
        return
    left = limit
    while left > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, left)
        left -= batch.num_rows
