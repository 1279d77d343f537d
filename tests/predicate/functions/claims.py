"""Checks what the registry claims of its functions, for `sample_calls` over `sample_ranges`.

The value that the evaluator gives on each row must be among those that the interpreter derives from
the ranges alone. It says nothing of precision, only of soundness.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import as_mask, null_mask
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import _Evaluator
from rowsieve.predicate.interpret import interpret_operand
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Float,
    is_ordered,
)
from tests.predicate.functions.sample_calls import Sample
from tests.predicate.functions.sample_ranges import Parts, draw_parts, schema_of


def violations(sample: Sample, semantics: Semantics, seed: int, part_count: int = 60) -> list[str]:
    """Rows whose value the interpreter does not allow; those of unread texts have none."""
    columns = sample.columns
    schema = schema_of(columns)
    parts = _drawn(sample, seed, part_count)
    bound = bind_operand(sample.operand, schema, semantics)
    evaluator = _Evaluator(parts.batch, semantics)
    computed, _ = evaluator.operand(bound.root)
    none = np.zeros(parts.batch.num_rows, np.bool_)
    failed = none if computed.failed is None else computed.failed
    unread = failed & np.logical_or.reduce([none, *(it.rows for it in evaluator.unread)])
    may = interpret_operand(bound, parts)
    wrong = outside(computed.values, failed, may, parts.part_of_row) & ~unread
    return [
        f"{semantics.name}: {sample.operand} on {shown(parts.batch.columns, row)} gives "
        f"{shown([computed.values], row)} (failed: {failed[row]}), part {parts.part_of_row[row]}"
        for row in np.flatnonzero(wrong)[:3]
    ]


@functools.lru_cache(maxsize=32)
def _drawn(sample: Sample, seed: int, part_count: int) -> Parts:
    """The parts of a sample; kept, as each semantics and each mutant asks for them in turn."""
    random_, nans = random.Random(seed), random.Random(~seed)
    return draw_parts(sample.columns, random_, part_count, nans=nans, texts=sample.texts)


def shown(columns: Sequence[pa.Array], row: int) -> str:
    """Cells as Arrow prints them: Python has no dates beyond the year 9999."""
    return " ".join(str(column.slice(int(row), 1)).replace("\n", "") for column in columns)


def precision(samples: Sequence[Sample], part_count: int = 30) -> list[int]:
    """In how many parts a lower bound, an upper bound, no NULL and no failure is known."""
    known = [0, 0, 0, 0]
    for index, sample in enumerate(samples):
        parts = _of_index(sample, index, part_count)
        may = interpret_operand(bind_operand(sample.operand, schema_of(sample.columns)), parts)
        counts = (
            part_count - may.lower.null_count,
            part_count - may.upper.null_count,
            int((~may.null).sum()),
            int((~may.fails).sum()),
        )
        known = [total + count for total, count in zip(known, counts, strict=True)]
    return known


@functools.lru_cache(maxsize=64)
def _of_index(sample: Sample, index: int, part_count: int) -> Parts:
    """The parts of a sample; kept, as many mutants of a row are asked for theirs."""
    return draw_parts(sample.columns, random.Random(index), part_count, texts=sample.texts)


def outside(values: pa.Array, failed: Any, may: AbstractValue, part: Any) -> Any:
    """(n,) bool: rows that the abstract value of their part excludes."""
    null = null_mask(values) & ~failed
    wrong = failed & ~may.fails[part]
    wrong |= null & ~may.null[part]
    present = ~failed & ~null
    wrong |= present & ~may.present[part]
    if not is_ordered(may.type):
        return wrong
    wrong |= present & ~_within(values, may, part)
    if may.alternatives:
        held = [_within(values, span, part) & span.present[part] for span in may.alternatives]
        wrong |= present & ~np.logical_or.reduce(held)
    return wrong


def _within(values: pa.Array, may: AbstractValue, part: Any) -> Any:
    """(n,) bool: rows whose value is NaN where it may be, or lies between the bounds."""
    lower, upper = may.lower.take(pa.array(part)), may.upper.take(pa.array(part))
    is_nan = np.zeros(len(values), np.bool_)
    inside = as_mask(pc.fill_null(pc.greater_equal(values, lower), True))  # noqa: FBT003
    if isinstance(may.type, Float):
        is_nan = as_mask(pc.is_nan(values))
        inside &= ~as_mask(pc.is_nan(lower))  # no number is above NaN
    inside &= as_mask(pc.fill_null(pc.less_equal(values, upper), True))  # noqa: FBT003
    return np.where(is_nan, may.nan[part], inside)
