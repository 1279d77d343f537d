"""Columns that lie here and there are those of one table, and what is not named is not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import CorruptData
from rowsieve.storage.manifests import manifest_columns as columns_module
from rowsieve.storage.manifests.manifest_columns import Columns, Indices, at_places
from tests.profiles import examples

TYPES = {"a": pa.int64(), "b": pa.string(), "c": pa.float64()}


@dataclass
class File:
    """A source that notes what it was asked for."""

    table: pa.Table
    asked: list[str] = field(default_factory=list)
    unreadable: dict[str, int] = field(default_factory=dict)
    unreachable: bool = False

    @property
    def row_count(self) -> int:
        return int(self.table.num_rows)

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def read(self, names: Sequence[str], rows: Indices | None) -> pa.Table:
        self.asked += names
        found = self.table.select(names)
        if rows is None:
            return found
        assert (np.diff(rows) > 0).all()
        return found.take(pa.array(rows))


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, unique=True))
    count, first = draw(st.integers(0, 5)), draw(st.integers(0, 100))
    columns = {n: pa.array(range(first, first + count)).cast(TYPES[n]) for n in names}
    return pa.table(columns)


def same(columns: Columns, table: pa.Table) -> None:
    assert len(columns) == table.num_rows
    assert set(columns.schema.names) == set(table.column_names)
    assert columns.table.select(table.column_names).equals(table)


@given(st.lists(st.tuples(tables(), st.booleans()), min_size=1, max_size=4), st.data())
@examples(200)
def test_they_are_what_one_table_would_be(
    pieces: list[tuple[pa.Table, bool]], data: st.DataObject
) -> None:
    first, *others = [Columns(File(table) if lies else table) for table, lies in pieces]
    columns = first.append(*others)
    table = pa.concat_tables([table for table, _ in pieces], promote_options="default")
    for _ in range(data.draw(st.integers(0, 3))):
        count = len(columns)
        if data.draw(st.booleans()):
            rows = sorted(
                data.draw(st.sets(st.integers(0, count - 1)) if count else st.just(set()))
            )
        else:
            rows = data.draw(st.lists(st.integers(0, count - 1)) if count else st.just([]))
        columns = columns.take(np.array(rows, dtype=np.int64))
        table = table.take(pa.array(rows, pa.int64()))
    name = data.draw(st.sampled_from(table.column_names))
    assert columns.column(name).equals(table.column(name))
    same(columns, table)
    same(columns.in_one_chunk(), table)
    same(columns.only(lambda each: each == name), table.select([name]))


def test_only_named_columns_are_read_and_only_once() -> None:
    file = File(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}))
    columns = Columns(file).append(Columns(pa.table({"a": [4]}))).take(np.array([0, 2, 3]))
    assert file.asked == []
    assert columns.column("a").to_pylist() == [1, 3, 4]
    assert columns.read(["a"]).num_rows == len(columns) == 3
    assert file.asked == ["a"]
    assert columns.column("b").to_pylist() == ["x", "z", None]
    with pytest.raises(KeyError, match="d"):
        columns.column("d")


@given(st.sets(st.integers(0, 39), min_size=1), st.sampled_from([1, 3, 4_096]))
@examples(200)
def test_runs_of_places_are_the_rows_at_them(places: set[int], least_run: int) -> None:
    rows = np.array(sorted(places))
    pieces = [pa.table({"a": range(start, start + 10)}) for start in (0, 10, 20, 30)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_module, "_MIN_RUN", least_run)
        found = at_places(pa.concat_tables(pieces), rows)
    assert found.column("a").to_pylist() == rows.tolist()


def test_tables_that_were_joined_are_one_table_in_the_order_of_the_schema() -> None:
    first = pa.table({"id": [1], "a.rows": [2]})
    second = pa.table({"a.rows": [4], "more": ["x"], "id": [3]})
    columns = Columns(first).append(Columns(second))
    assert columns.table is columns.table
    assert columns.table.schema.names == columns.schema.names == ["id", "a.rows", "more"]
    assert columns.only(lambda name: name != "a.rows").table.to_pylist() == [
        {"id": 1, "more": None},
        {"id": 3, "more": "x"},
    ]


def test_types_that_differ_are_not_mixed() -> None:
    with pytest.raises(CorruptData, match="a"):
        Columns(File(pa.table({"a": [1]}))).append(Columns(pa.table({"a": ["x"]})))


def test_columns_that_were_not_selected_stay_out_when_others_are_appended() -> None:
    kept = pa.table({"a": [1, 2], "b": ["x", "y"]})
    columns = Columns(File(kept)).append(Columns(kept)).take(np.array([1, 2]))
    for others, expected in (
        (pa.table({"a": [3]}), [(2, None), (1, None), (3, None)]),
        (pa.table({"a": [3], "b": ["z"]}), [(2, None), (1, None), (3, "z")]),
    ):
        first = columns.only(lambda name: name == "a")
        both = first.append(Columns(others)).take(np.array([0, 1, 2])).table
        names = both.schema.names
        assert [(row["a"], row.get("b")) for row in both.to_pylist()] == expected, names
        again = Columns(others).append(first).table
        assert sorted(again["a"].to_pylist()) == [1, 2, 3]
