"""Manifests made of rows, and the check that no verdict contradicts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.bridges.sql import parse_predicate
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.semantics import Semantics
from rowsieve.stats.collect import StatisticsCollector
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.model import ColumnStatistics, Subject
from rowsieve.stats.tabulate import statistics_columns
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.schema import Schema

Statistics = Mapping[Subject, ColumnStatistics]


def manifest(
    counts: Sequence[int], statistics: Sequence[Statistics], schema: Schema
) -> PartStatistics:
    columns = {
        "data.rows": pa.array(counts, pa.int64()),
        "deletes.rows": pa.array([0] * len(counts), pa.int64()),
        **statistics_columns(statistics, schema),
    }
    return PartStatistics(PartTable(pa.table(columns)), schema)


def batch_of(rows: Sequence[Mapping[str, Any]], schema: Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(schema))


def collected(
    batch: pa.RecordBatch, schema: Schema, collector: StatisticsCollector | None = None
) -> dict[Subject, ColumnStatistics]:
    """Statistics of the rows, taken in two batches."""
    collector = collector or StatisticsCollector(schema)
    middle = batch.num_rows // 2
    for piece in (batch.slice(0, middle), batch.slice(middle)):
        collector.add(pa.table(piece))
    return collector.finish()


def bound(text: str, schema: Schema, semantics: Semantics = Semantics.SQL) -> BoundPredicate:
    return bind(parse_predicate(text), schema, semantics)


def verdicts(text: str, statistics: PartStatistics, schema: Schema) -> list[str]:
    found = interpret(bound(text, schema), statistics)
    return [Verdict(verdict).name for verdict in found]


def contradictions(
    predicate: BoundPredicate, batches: Sequence[pa.RecordBatch], statistics: PartStatistics
) -> list[str]:
    """Where a verdict says other than the rows do."""
    found = []
    for i, verdict in enumerate(interpret(predicate, statistics)):
        outcome = evaluate(predicate, batches[i])
        survives = outcome.true | outcome.failed
        if verdict == Verdict.NONE and survives.any():
            found.append(f"part {i}: NONE, but row {int(np.argmax(survives))} survives")
        if verdict == Verdict.ALL and not outcome.true.all():
            found.append(f"part {i}: ALL, but row {int(np.argmin(outcome.true))} is not TRUE")
    return found
