"""Builds output batches from matching rows: projects and computes columns, applies the limit.

Input rows have every column that the output needs; output batches have the result's schema. If a
computed column fails on a returned row, `EvaluationError` is raised (invariant 27).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rowsieve.errors import EvaluationError
from rowsieve.executor.text_views import as_output, with_views
from rowsieve.planner.plan import OutputColumn, ScanPlan
from rowsieve.predicate.bind import BoundOperand, bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.ir import BoundColumn, Cast, Column, Operand, walk
from rowsieve.predicate.semantics import OnFailure
from rowsieve.types.encodings import EXTENSION_KEYS, arrow_field, arrow_schema, arrow_type
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import shown_row

_END: Final[Any] = object()


class Packaging:
    """The output columns of one plan, bound once for all batches."""

    __slots__ = ("_casts", "_computed", "_names", "_schema", "needed", "output")

    def __init__(self, plan: ScanPlan, *, views: bool = False) -> None:
        schema = plan.schema
        self._schema = schema
        self._computed: dict[str, BoundOperand] = {}
        self._casts: dict[str, BoundOperand] = {}
        """The casts of computed values to the types in which they are stored."""
        self._names: list[str] = []
        for column in plan.columns:
            if (operand := column.operand) is None:
                self._names.append(schema.field(column.name).name)
            else:
                self._names.append(column.name)
                self._add_computed(column, operand, plan)
        whole = not self._computed and tuple(self._names) == schema.names
        self.needed = frozenset(self._read_names() if self._computed else self._names)
        needed = tuple(filter(self.needed.__contains__, schema.names))
        stored = arrow_schema(schema if whole else schema.select(needed))
        fields = (
            ()
            if whole
            else (
                self._output_field(stored, *each)
                for each in zip(plan.columns, self._names, strict=True)
            )
        )
        output = stored if whole else pa.schema(fields)
        self.output = with_views(output) if views else output

    def project(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The output columns of the returned rows."""
        if not self._names:
            return rows.select([])
        if not self._computed and rows.schema.equals(self.output, check_metadata=True):
            return rows
        columns = [
            self._compute(name, rows) if name in self._computed else rows.column(name)
            for name in self._names
        ]
        arrays = [as_output(*each) for each in zip(columns, self.output.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.output)

    def _add_computed(self, column: OutputColumn, operand: Operand, plan: ScanPlan) -> None:
        """Bind a computed column.

        Where the casts of an engine do not fail, that of a stored value to its column does.
        """
        rules, name = plan.semantics, column.name
        if column.is_stored:
            rules = rules.of_stored_values
        if column.is_stored and isinstance(operand, Cast) and not rules.is_ansi:
            bound = bind_operand(operand.operand, plan.schema, rules, now_us=plan.now_us)
            value = Schema(0, (Field(1, name, bound.type),))
            strict = replace(rules, failed_cast=OnFailure.ERROR, casts_wrap=False)
            self._casts[name] = bind_operand(Cast(Column(name), operand.type), value, strict)
        else:
            bound = bind_operand(operand, plan.schema, rules, now_us=plan.now_us)
        self._computed[name] = bound

    def _compute(self, name: str, rows: pa.RecordBatch) -> pa.Array:
        values, failed = compute(self._computed[name], rows)
        if (cast := self._casts.get(name)) is not None and not failed.any():
            values, failed = compute(cast, pa.record_batch([values], [name]))
        if failed.any():
            row = shown_row(rows, int(np.flatnonzero(failed)[0]), self._schema)
            raise EvaluationError(
                f"column {name!r} of the result cannot be computed for row {row}; guard the "
                "expression with CASE, NULLIF or TRY_CAST, or exclude such rows"
            )
        return values

    def _output_field(self, stored: pa.Schema, column: OutputColumn, name: str) -> pa.Field:
        if name not in self._computed:
            return stored.field(name)
        bound = self._casts.get(name, self._computed[name])
        if column.is_stored:
            return pa.field(name, arrow_type(bound.type))
        field = arrow_field(Field(0, name, bound.type))
        if isinstance(bound.root, BoundColumn):
            field = stored.field(bound.root.name).with_name(name).with_nullable(nullable=True)
        metadata = field.metadata or {}
        return field.with_metadata({k: metadata[k] for k in EXTENSION_KEYS if k in metadata})

    def _read_names(self) -> Iterator[str]:
        for name in self._names:
            if name not in self._computed:
                yield name
                continue
            for node in walk(self._computed[name].root):
                if isinstance(node, BoundColumn):
                    yield node.name


def take_first(
    batches: Iterator[pa.RecordBatch | None], limit: int | None
) -> Iterator[pa.RecordBatch]:
    """The first `limit` rows, in batches with rows; pulls no further batch once it has them."""
    remaining = limit
    while remaining is None or remaining > 0:
        batch = next(batches, _END)
        if batch is _END:
            return
        if batch is None or not batch.num_rows:
            continue
        yield batch if remaining is None else batch.slice(0, remaining)
        if remaining is not None:
            remaining -= batch.num_rows
