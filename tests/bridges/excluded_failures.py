"""Engines that fail on a row which another term of the condition excludes: told from wrong rows.

Here FALSE AND a failure is FALSE (invariant 27). Engines evaluate terms in an order of their own,
and may fail there. That is no wrong row, if a term of the condition fails on a row here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.evaluate import evaluate

_C = TypeVar("_C")


def has_failing_term(predicate: BoundPredicate, batch: pa.RecordBatch) -> bool:
    """Whether any operand or condition of the predicate fails on a row, by itself."""
    return any(
        evaluate(
            replace(predicate, root=ir.IsNull(node) if isinstance(node, ir.Operand) else node),
            batch,
        ).failed.any()
        for node in ir.walk(predicate.root)
        if not isinstance(node, ir.Literal | ir.BoundColumn)
    )


def rows_or_failure(
    ask: Callable[[Sequence[_C]], list[list[int]]], conditions: Sequence[_C]
) -> list[list[int] | None]:
    """The rows kept by each of Spark's conditions; None for one that fails on a row."""
    if not conditions:
        return []
    try:
        return list(ask(conditions))
    except _failures():
        if len(conditions) == 1:
            return [None]
    half = len(conditions) // 2
    return rows_or_failure(ask, conditions[:half]) + rows_or_failure(ask, conditions[half:])


def _failures() -> tuple[type[Any], ...]:
    from pyspark.errors import ArithmeticException, DateTimeException, NumberFormatException

    return ArithmeticException, DateTimeException, NumberFormatException
