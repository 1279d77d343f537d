"""Sequences that the log stores as texts: the floors of an event order, one row each."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema
from rowsieve.types.stored_defaults import constant, constant_text, widened_text


def floor_row(texts: Sequence[str], fields: Sequence[Field]) -> pa.Table:
    """The row that `floor_texts` stores as these texts."""
    values = [constant(text, field.type) for text, field in zip(texts, fields, strict=True)]
    schema = arrow_schema(Schema(0, tuple(fields)))
    return pa.table([pa.array([v], t) for v, t in zip(values, schema.types, strict=True)], schema)


def floor_texts(floor: pa.Table, fields: Sequence[Field]) -> tuple[str, ...]:
    """The texts that the log stores for a floor of one row."""
    texts = [constant_text(floor.column(f.name)[0], f.type, f.name) for f in fields]
    return tuple(text for text in texts if text is not None)


def widened_floor(
    texts: Sequence[str], old: Sequence[Field], new: Sequence[Field]
) -> tuple[str, ...]:
    """The texts of a floor whose columns had the types of `old`, in those that they were given."""
    widened = (
        widened_text(text, before.type, after.type, after.name)
        for text, before, after in zip(texts, old, new, strict=bool(texts))
    )
    return tuple(text for text in widened if text is not None)
