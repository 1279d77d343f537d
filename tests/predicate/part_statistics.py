"""Statistics of parts, taken from their rows, and the check of verdicts that follow from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Float, LogicalType, String
from tests.oracle_values import python_row
from tests.strategies import (
    COLUMN_TYPES,
    SCHEMA,
    arrow_array,
)


@dataclass(frozen=True)
class Known:
    """Statistics of parts by column name."""

    part_count: int
    columns: dict[str, AbstractColumn]

    def column(self, column: ir.BoundColumn) -> AbstractColumn | None:
        return self.columns.get(column.name)


def bounds_of(values: Sequence[Any], type_: LogicalType) -> tuple[Any, Any]:
    """The least and the greatest value; no upper bound where there is a NaN."""
    if isinstance(type_, Float):
        plain = [value for value in values if not math.isnan(value)]
        lower = min(plain, default=None)
        return lower, max(plain) if len(plain) == len(values) and plain else None
    if not values:
        return None, None
    key = str.encode if isinstance(type_, String) else None
    return min(values, key=key), max(values, key=key)


def statistics(parts: Sequence[pa.RecordBatch], hidden: frozenset[str]) -> Known:
    """Exact statistics of each part for all columns but the hidden ones."""
    columns = {}
    for name, type_ in COLUMN_TYPES.items():
        if name in hidden:
            continue
        cells = [[python_row({name: cell})[name] for cell in part.column(name)] for part in parts]
        present = [[cell for cell in part if cell is not None] for part in cells]
        ends = [bounds_of(values, type_) for values in present]
        has_nan = [isinstance(type_, Float) and any(map(math.isnan, part)) for part in present]
        columns[name] = AbstractColumn(
            arrow_array([lower for lower, _ in ends], type_),
            arrow_array([upper for _, upper in ends], type_),
            np.array([not values for values in present], dtype=np.bool_),
            np.array([None in part for part in cells], dtype=np.bool_),
            np.array(has_nan, dtype=np.bool_) if isinstance(type_, Float) else None,
        )
    return Known(len(parts), columns)


def widened(known: Known, unbounded: frozenset[str], nullable: frozenset[str]) -> Known:
    """The same knowledge made vaguer: bounds dropped, NULLs and NaN admitted."""
    columns = {}
    for name, column in known.columns.items():
        count = known.part_count
        nothing = pa.nulls(count, column.lower.type)
        everywhere = np.ones(count, dtype=np.bool_)
        columns[name] = AbstractColumn(
            nothing if name in unbounded else column.lower,
            nothing if name in unbounded or name == "f32" else column.upper,
            column.empty & (name not in nullable),
            everywhere if name in nullable else column.may_be_null,
            None if name == "f32" else column.may_be_nan,
        )
    return Known(known.part_count, columns)


def check(
    predicate: ir.Predicate, parts: Sequence[pa.RecordBatch], known: Known, semantics: Semantics
) -> None:
    bound = bind(predicate, SCHEMA, semantics)
    verdicts = interpret(bound, known)
    assert verdicts.shape == (len(parts),)
    for verdict, part in zip(verdicts, parts, strict=True):
        outcome = evaluate(bound, part)
        if verdict == Verdict.NONE:
            assert not outcome.true.any()
            assert not outcome.failed.any()
        if verdict == Verdict.ALL:
            assert outcome.true.all()
