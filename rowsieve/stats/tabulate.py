"""Statistics of all parts as Arrow columns: `stats.<field id>.<fact>`, a row a part.

Facts: `null_count` of every column; `lower`, `upper` in its storage type, `lower_exact` and
`upper_exact` where its type has an order; `nan_count` of floats. NULL and a missing column both say
"unknown".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from rowsieve.stats.model import UNKNOWN, ColumnStatistics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field, Float, is_ordered
from rowsieve.types.schema import Schema


def statistics_fields(schema: Schema) -> list[pa.Field]:
    """Name and type the statistics columns of a schema."""
    return [
        pa.field(statistics_name(field.id, fact), type_)
        for field in schema
        for fact, type_ in _facts(field)
    ]


def statistics_columns(
    parts: Sequence[Mapping[int, ColumnStatistics]], schema: Schema
) -> dict[str, pa.Array]:
    """Tabulate the statistics of parts, by field id; what a part lacks is NULL."""
    columns: dict[str, pa.Array] = {}
    for field in schema:
        known = [part.get(field.id, UNKNOWN) for part in parts]
        for fact, type_ in _facts(field):
            values = [getattr(statistics, fact) for statistics in known]
            columns[statistics_name(field.id, fact)] = (
                scalar_array(values, type_)
                if fact in ("lower", "upper")
                else pa.array(values, type_)
            )
    return columns


def statistics_name(field_id: int, fact: str) -> str:
    """The manifest's column for one fact of one field."""
    return f"stats.{field_id}.{fact}"


def scalar_array(scalars: Sequence[pa.Scalar | None], type_: pa.DataType) -> pa.Array:
    """Scalars of one type as an array, None as NULL; exact for every type."""
    parts = [pa.nulls(1, type_) if scalar is None else pa.repeat(scalar, 1) for scalar in scalars]
    return pa.concat_arrays(parts) if parts else pa.nulls(0, type_)


def _facts(field: Field) -> list[tuple[str, pa.DataType]]:
    facts = [("null_count", pa.int64())]
    if is_ordered(field.type):
        bound = arrow_type(field.type)
        facts += [("lower", bound), ("upper", bound)]
        facts += [("lower_exact", pa.bool_()), ("upper_exact", pa.bool_())]
    if isinstance(field.type, Float):
        facts.append(("nan_count", pa.int64()))
    return facts
