"""pyiceberg over rows in memory: what its scans keep, and what its evaluator does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import bind as bind_expression
from pyiceberg.expressions.visitors import expression_evaluator
from pyiceberg.io.pyarrow import expression_to_pyarrow, schema_to_pyarrow
from pyiceberg.typedef import Record

from rowsieve.bridges.iceberg_exprs.read import foreign_schema
from rowsieve.types.schema import Schema


def scanned(
    expression: BooleanExpression, schema: Schema, batch: pa.RecordBatch
) -> list[int] | None:
    """The numbers of the rows that a scan of pyiceberg's keeps; None where it fails.

    Of UUIDs pyarrow has no comparison.
    """
    foreign = foreign_schema(schema)
    bound = bind_expression(foreign, expression, case_sensitive=True)
    wanted = schema_to_pyarrow(foreign)
    columns = {field.name: stored(batch.column(field.name), field.type) for field in wanted}
    columns["row number"] = pa.array(range(batch.num_rows))
    try:
        kept = pa.table(columns).filter(expression_to_pyarrow(bound, foreign))
    except pa.ArrowNotImplementedError as error:
        if "arrow.uuid" not in str(error):
            raise
        return None
    found: list[int] = kept["row number"].to_pylist()
    return found


def stored(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, column.cast(type_.storage_type))
    return column.cast(type_) if not pa.types.is_struct(type_) else column


def judged(expression: BooleanExpression, schema: Schema, batch: pa.RecordBatch) -> list[int]:
    """The numbers of the rows that pyiceberg's evaluator keeps."""
    foreign = foreign_schema(schema)
    evaluator = expression_evaluator(foreign, expression, case_sensitive=True)
    columns = [physical(batch.column(field.name)) for field in foreign.fields]
    rows = zip(*columns, strict=True)
    return [number for number, row in enumerate(rows) if evaluator(Record(*row))]


def physical(column: pa.Array) -> list[Any]:
    type_ = column.type
    if pa.types.is_date32(type_):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(type_) or pa.types.is_time64(type_):
        column = column.view(pa.int64())
    values: list[Any] = column.to_pylist()
    if pa.types.is_struct(type_):  # a member of NULL is NULL
        return [Record(*((value or {}).get(field.name) for field in type_)) for value in values]
    return values
