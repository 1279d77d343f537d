"""Values are compared in every layout of their type."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.changes.data.same_rows import same_values
from rowsieve.errors import KeyViolation
from tests.small_tables import fresh_uri

NAN = float("nan")
LAYOUTS = [
    pa.list_,
    pa.large_list,
    pa.list_view,
    pa.large_list_view,
    lambda item: pa.list_(item, 2),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=["list", "large", "view", "large view", "fixed"])
def test_lists_are_compared_in_every_layout(layout: object) -> None:
    assert callable(layout)
    ours = [[1.0, NAN], [0.0, 1.0], None, [1.0, None], [2.0, 3.0], None]
    theirs = [[1.0, NAN], [-0.0, 1.0], None, [1.0, 2.0], [2.0, 3.0], [1.0, 1.0]]
    type_ = layout(pa.float64())
    same = same_values(pa.array(ours, type_), pa.array(theirs, type_))
    assert same.tolist() == [True, False, True, False, True, False]
    nested = layout(pa.struct([("a", pa.int64())]))
    structs = [pa.array([[{"a": 1}, {"a": n}] for n in each], nested) for each in ((2, 2), (2, 3))]
    assert same_values(*structs).tolist() == [True, False]


def test_a_repeated_change_with_a_list_of_fixed_size_is_one() -> None:
    schema = pa.schema([("id", pa.int64()), ("lsn", pa.int64()), ("v", pa.list_(pa.float32(), 2))])
    table = rs.create_table(fresh_uri(), schema, key=["id"], sequence="lsn")
    once = {"id": 1, "lsn": 5, "v": [1.0, None]}
    table.upsert(pa.Table.from_pylist([once, once], schema))
    assert table.to_arrow().num_rows == 1
    other = {**once, "v": [1.0, 2.0]}
    with pytest.raises(KeyViolation, match="two different changes"):
        table.upsert(pa.Table.from_pylist([once, other], schema))
