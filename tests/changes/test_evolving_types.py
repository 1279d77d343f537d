"""A column of every type is added, with a default or without, and read in every way."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve.types import logical
from rowsieve.types.encodings import arrow_field
from tests.types.test_stored_defaults import VALUES

INT = logical.Int(8)
NESTED: list[tuple[logical.LogicalType, Any]] = [
    (logical.List(logical.Field(0, "item", INT)), None),
    (logical.Struct((logical.Field(0, "x", INT), logical.Field(0, "y", logical.String()))), None),
    (logical.Map(logical.Field(0, "key", INT, False), logical.Field(0, "value", INT)), None),  # noqa: FBT003
]
EVERY = [*VALUES, *((type_, None) for type_, _ in VALUES[::2]), *NESTED]


def stored(rows: pa.Table) -> list[Any]:
    """The values of c; numbers and times as their bits."""
    values = rows.column("c").combine_chunks()
    type_ = values.type
    if pa.types.is_floating(type_) or pa.types.is_temporal(type_):
        values = values.view(f"int{type_.bit_width}")
    found: list[Any] = values.to_pylist()
    return found


@pytest.mark.parametrize(("type_", "value"), EVERY, ids=range(len(EVERY)))
def test_a_column_of_every_type_may_be_added(type_: logical.LogicalType, value: Any) -> None:
    made = rowsieve.create_table(
        f"memory:///types-{uuid.uuid4().hex}", pa.table({"id": range(9)}), key=["id"]
    )
    made.add_column("c", arrow_field(logical.Field(0, "c", type_)), default=value)
    read = made.scan().to_arrow()
    column = read.column("c")
    assert column.null_count == (9 if value is None else 0)
    assert all(cell == stored(read)[0] for cell in stored(read))
    made.upsert(read.slice(0, 3))  # old and new parts overlap
    assert stored(made.scan(order_by_key=True).to_arrow()) == stored(read)
    test = "c IS NULL" if value is None else "c IS NOT NULL"
    for pruning in ("on", "soft", "off"):
        assert made.scan(f"id >= 2 AND {test}", pruning=pruning).count() == 7
        assert made.scan(f"NOT ({test})", pruning=pruning).to_arrow().num_rows == 0
    assert made.compact().committed
    assert stored(made.scan(order_by_key=True).to_arrow()) == stored(read)
    assert rowsieve.open_table(made.uri).to_dataset().to_table().num_rows == 9
