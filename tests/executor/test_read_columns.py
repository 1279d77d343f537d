"""The columns of a read are settled once for a plan, and never those of another plan."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.executor.read_columns import ReadColumns
from rowsieve.types.encodings import EXTENSION_KEY
from rowsieve.types.logical import type_name
from tests.small_tables import fresh_uri


@pytest.fixture(scope="module")
def table() -> rs.Table:
    rows = pa.table({"k": [1, 2, 3], "x": [1, 2, 3], "s": ["a", "b", None]})
    return rs.create_table("memory://read-columns", rows, key=["k"])


def test_a_plan_has_one_set_of_columns(table: rs.Table) -> None:
    columns = ReadColumns.of(table.scan("x > 1", ["s"]).plan())
    assert ReadColumns.of(table.scan("x > 1", ["s"]).plan()) is columns
    assert columns.columns.names == ("s",)
    assert columns.tested.names == ("x",)
    assert columns.keys.names == ("k",)
    assert not columns.is_whole
    assert ReadColumns.of(table.scan().plan()).is_whole


def test_another_result_or_filter_has_columns_of_its_own(table: rs.Table) -> None:
    plan = table.scan("x > 1").plan()
    others = [
        table.scan("x > 1", ["k"]).plan(),
        table.scan("x > 1", order_by_key=True).plan(),
        msgspec.structs.replace(plan, filter=table.scan("s = 'a'").plan().filter),
        msgspec.structs.replace(plan, filter=None),
    ]
    every = [ReadColumns.of(each) for each in (plan, *others)]
    every.append(ReadColumns.of(plan, views=True))
    assert len(set(map(id, every))) == len(every)
    for each, columns in zip((plan, *others), every, strict=False):
        without, with_filter = columns.readers
        assert without.predicate is None
        assert with_filter.predicate is each.filter
    assert every[3].tested.names == ("s",)


def test_expressions_are_bound_for_each_statement(table: rs.Table) -> None:
    plan = table.scan(columns={"at": "now()"}).plan()
    assert ReadColumns.of(plan) is not ReadColumns.of(plan)
    later = msgspec.structs.replace(plan, now_us=plan.now_us + 1)
    first, second = (
        [row["at"] for batch in table.scan(plan=each).to_batches() for row in batch.to_pylist()]
        for each in (plan, later)
    )
    assert [b - a for a, b in zip(first, second, strict=True)] == [
        pa.scalar(1, pa.duration("us")).as_py()
    ] * 3


def test_computed_columns_keep_the_names_of_their_types() -> None:
    schema = pa.schema(
        [
            pa.field("k", pa.int64(), nullable=False),
            pa.field("u", pa.uuid()),
            pa.field("j", pa.json_()),
        ]
    )
    table = rs.create_table(fresh_uri(), schema, key=["k"])
    columns = {"a": "u", "b": "coalesce(u, u)", "c": "j", "d": "j -> 'x'", "e": "k + 1"}
    scan = table.scan(columns=columns)
    expected = ["rowsieve.uuid.1"] * 2 + ["rowsieve.json.1"] * 2 + [None]
    for rows in (scan.to_arrow(), pa.table(scan)):
        names = [(field.metadata or {}).get(EXTENSION_KEY) for field in rows.schema]
        assert [None if name is None else name.decode() for name in names] == expected
    copy = rs.create_table(fresh_uri(), scan.to_arrow())
    types = [type_name(field.type) for field in copy.handle.pinned.schema]
    assert types == ["uuid", "uuid", "json", "json", "int64"]
