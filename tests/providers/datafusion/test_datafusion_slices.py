"""Slices of structs inside structs reach DataFusion."""

from __future__ import annotations

import datafusion
import pyarrow as pa
import pytest

from rowsieve.providers.datafusion.nested_slices import without_slices

INNER = pa.struct([("d", pa.string()), ("e", pa.list_(pa.int64()))])
VALUES = [
    {"a": 1, "c": {"d": "x", "e": [1]}},
    None,
    {"a": None, "c": None},
    {"a": 4, "c": {"d": None, "e": [2, None]}},
]


@pytest.mark.parametrize("in_list", [False, True])
@pytest.mark.parametrize(("start", "stop"), [(0, 4), (1, 4), (2, 3), (3, 4)])
def test_slices_of_nested_structs_are_read(start: int, stop: int, in_list: bool) -> None:
    type_ = pa.struct([("a", pa.int64()), ("c", INNER)])
    values = [[value, value] for value in VALUES] if in_list else VALUES
    rows = pa.record_batch({"s": pa.array(values, pa.list_(type_) if in_list else type_)})
    cut = without_slices(rows.slice(start, stop - start))
    context = datafusion.SessionContext()
    context.register_record_batches("t", [[cut]])
    assert (
        context.sql("SELECT s FROM t").to_arrow_table().column("s").to_pylist()
        == (values[start:stop])
    )


def test_other_rows_are_not_copied() -> None:
    rows = pa.record_batch({"a": pa.array([1, 2]), "s": pa.array([{"x": 1}, None])})
    assert without_slices(rows) is rows
