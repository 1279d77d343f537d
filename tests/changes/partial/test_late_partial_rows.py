"""Partial changes of tables with an event order: late ones have no effect, none counts twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve
from rowsieve import Table
from rowsieve.errors import InvalidInput, RowsieveError
from tests.changes.partial.oracle import Rows, apply_change
from tests.profiles import examples
from tests.small_tables import fresh_uri, overtake

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("lsn", pa.int64(), nullable=False),
        pa.field("a", pa.int64()),
        pa.field("b", pa.string()),
    ]
)
DEFAULTS = {"lsn": None, "a": None, "b": None}


def ordered() -> Table:
    return rowsieve.create_table(fresh_uri(), SCHEMA, key=["k"], sequence=["lsn"])


def stored(table: Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: row["k"])


def apply(table: Table, *rows: Mapping[str, Any], **options: Any) -> Any:
    data = [{"op": "u", **row} for row in rows]
    return table.apply_changes(data, op="op", missing="keep", **options)


def events() -> st.SearchStrategy[dict[str, Any]]:
    columns = {"a": st.sampled_from([None, 1, 5]), "b": st.sampled_from([None, "x", "y"])}
    row = st.fixed_dictionaries({"k": st.integers(0, 2)}, optional=columns)
    deleted = st.builds(lambda k: {"k": k, "op": "d"}, st.integers(0, 2))
    return st.one_of(row, row, row, deleted)


def folded(batches: Sequence[Sequence[Mapping[str, Any]]], rules: Mapping[str, str]) -> list[Any]:
    """Batches in this order; of each, what is later than all of its key in the batches before."""
    rows: Rows = {}
    newest: dict[int, int] = {}
    for batch in batches:
        before = dict(newest)
        for change in sorted(batch, key=lambda row: row["lsn"]):
            if change["lsn"] > before.get(change["k"], -1):
                apply_change(rows, change, DEFAULTS, rules)
                newest[change["k"]] = change["lsn"]
    return [rows[key] for key in sorted(rows)]


@examples(300)
@given(
    st.lists(events(), min_size=1, max_size=8).flatmap(
        lambda rows: st.permutations([{**row, "lsn": 10 * n} for n, row in enumerate(rows)])
    ),
    st.lists(st.integers(1, 3), min_size=8, max_size=8),
    st.sampled_from([{}, {"a": "sum"}, {"a": "max", "b": "last_not_null"}]),
    st.booleans(),
)
def test_late_changes_have_no_effect_and_repeated_ones_count_once(
    rows: list[dict[str, Any]], sizes: list[int], rules: dict[str, str], repeats: bool
) -> None:
    table = ordered()
    batches: list[list[dict[str, Any]]] = []
    while rows:
        size = sizes[len(batches)]
        batches.append(rows[:size])
        rows = rows[size:]
    late = 0
    for batch in batches:
        twice = [*batch, *batch] if repeats else batch
        late += apply(table, *twice, combine=rules).rows_late
    expected = folded(batches, rules)
    assert stored(table) == expected
    if repeats:
        for batch in batches:
            apply(table, *batch, combine=rules)
        assert stored(table) == expected
    if len(batches) == 1:
        assert late == 0


def test_a_late_change_and_a_delete_are_counted() -> None:
    table = ordered()
    apply(table, {"k": 1, "lsn": 20, "a": 1, "b": "x"}, {"k": 2, "lsn": 30, "op": "d"})
    commit = apply(
        table,
        {"k": 1, "lsn": 10, "b": "late"},
        {"k": 2, "lsn": 25, "b": "late"},
        {"k": 1, "lsn": 21, "a": 2},
    )
    assert (commit.rows_late, commit.rows_written) == (2, 1)
    assert stored(table) == [{"k": 1, "lsn": 21, "a": 2, "b": "x"}]
    late = apply(table, {"k": 1, "lsn": 5, "op": "d"})
    assert (late.committed, late.rows_late) == (False, 1)


def test_upserts_of_some_columns_bring_their_sequence() -> None:
    table = ordered()
    table.upsert([{"k": 1, "lsn": 5, "a": 1, "b": "x"}])
    rows = [{"k": 1, "lsn": 7, "a": 7}, {"k": 1, "lsn": 6, "a": 6, "b": "y"}]
    commit = table.upsert(rows, columns="given", combine={"a": "sum"})
    assert commit.rows_written == 1
    assert stored(table) == [{"k": 1, "lsn": 7, "a": 14, "b": "y"}]
    assert table.upsert(rows, columns="given", combine={"a": "sum"}).rows_late == 2
    with pytest.raises(RowsieveError, match="'lsn'"):
        table.upsert([{"k": 1, "a": 1}], columns="given")
    with pytest.raises(RowsieveError, match="does not give column 'lsn'"):
        table.upsert([{"k": 1, "lsn": 8}, {"k": 2}], columns="given")
    with pytest.raises(InvalidInput, match="'lsn', which identifies its row or orders"):
        table.upsert([{"k": 1, "lsn": 8}], columns="given", combine={"lsn": "max"})


def test_columns_come_with_a_stream_in_order() -> None:
    table = ordered()
    apply(table, {"k": 1, "lsn": 5, "a": 1, "b": "x"})
    rows = [{"op": "u", "k": 1, "lsn": 4, "new": 9}, {"op": "u", "k": 2, "lsn": 4, "new": 8}]
    commit = table.apply_changes(rows, op="op", schema_mode="merge")
    assert commit.rows_late == 1
    table.upsert([{"k": 2, "lsn": 5, "a": 2**40, "b": "", "new": 1, "q": "!"}], schema_mode="merge")
    assert stored(table) == [
        {"k": 1, "lsn": 5, "a": 1, "b": "x", "new": None, "q": None},
        {"k": 2, "lsn": 5, "a": 2**40, "b": "", "new": 1, "q": "!"},
    ]


def test_a_newer_commit_meanwhile_makes_a_change_late(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ordered()
    apply(table, {"k": 1, "lsn": 5, "a": 1, "b": "x"})
    overtake(table, monkeypatch, lambda other: apply(other, {"k": 1, "lsn": 9, "a": 9}))
    commit = apply(table, {"k": 1, "lsn": 8, "b": "late"}, {"k": 2, "lsn": 1})
    assert commit.rows_late == 1
    assert stored(table) == [
        {"k": 1, "lsn": 9, "a": 9, "b": "x"},
        {"k": 2, "lsn": 1, "a": None, "b": None},
    ]
