"""Partial changes that meet others: of the same keys they are resolved again, none is lost."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import CommitConflict
from tests.small_tables import fresh_uri, overtake

SCHEMA = pa.schema(
    [pa.field("k", pa.int64(), nullable=False), ("n", pa.int64()), ("a", pa.string())]
)


@pytest.fixture
def table() -> Table:
    table = rowsieve.create_table(fresh_uri(), SCHEMA, key=["k"])
    table.upsert({"k": [1, 2], "n": [10, 20], "a": ["x", "y"]})
    return table


def rows(table: Table) -> dict[int, tuple[Any, Any]]:
    return {r["k"]: (r["n"], r["a"]) for r in table.scan().to_arrow().to_pylist()}


def add(table: Table, key: int, number: int, **options: Any) -> Any:
    return table.upsert([{"k": key, "n": number}], columns="given", combine={"n": "sum"}, **options)


def test_two_concurrent_sums_both_count(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    overtake(table, monkeypatch, lambda other: add(other, 1, 5))
    commit = add(table, 1, 7)
    assert (commit.version, rows(table)[1]) == (3, (22, "x"))


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda t: t.upsert({"k": [1], "n": [0], "a": ["z"]}), id="upsert"),
        pytest.param(lambda t: t.delete(keys=pa.table({"k": [1]})), id="delete-keys"),
        pytest.param(lambda t: t.delete("k = 1"), id="delete"),
        pytest.param(lambda t: t.update({"a": "'z'"}, where="k < 2"), id="update"),
        pytest.param(lambda t: t.overwrite({"k": [1], "n": [3], "a": ["o"]}), id="overwrite"),
        pytest.param(lambda t: t.overwrite({"k": [5], "n": [3], "a": ["o"]}), id="overwritten"),
        pytest.param(lambda t: t.restore(0), id="restore"),
        pytest.param(lambda t: t.compact(), id="compact"),
        pytest.param(lambda t: t.upsert({"k": [9], "n": [0], "a": ["z"]}), id="another-key"),
        pytest.param(lambda t: t.set_properties({"isolation": "snapshot"}), id="property"),
    ],
)
def test_what_another_commit_did_first_is_what_a_change_begins_with(
    table: Table, meanwhile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_after_another = rowsieve.create_table(fresh_uri(), SCHEMA, key=["k"])
    one_after_another.upsert(table.scan().to_arrow())
    meanwhile(one_after_another)
    add(one_after_another, 1, 7)
    overtake(table, monkeypatch, meanwhile)
    add(table, 1, 7)
    assert rows(table) == rows(one_after_another)


def test_changed_columns_are_a_conflict(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    overtake(table, monkeypatch, lambda other: other.add_column("b", pa.int64()))
    with pytest.raises(CommitConflict, match="columns of the table were changed"):
        add(table, 1, 7)
    assert rows(rowsieve.open_table(table.uri))[1] == (10, "x")


def test_a_replay_with_its_token_counts_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    first = add(table, 1, 5, token=("loader", 3))
    again = add(rowsieve.open_table(table.uri), 1, 5, token=("loader", 3))
    assert first.commit_id == again.commit_id
    overtake(table, monkeypatch, lambda other: add(other, 1, 5, token=("loader", 4)))
    add(table, 1, 5, token=("loader", 4))
    changes = [{"k": 1, "n": 5, "op": "u", "lsn": 1}]
    for _ in range(2):
        table.apply_changes(
            changes,
            op="op",
            sequence="lsn",
            missing="keep",
            combine={"n": "sum"},
            token=("loader", 5),
        )
    assert rows(table)[1] == (25, "x")


def test_writers_in_threads_lose_no_change(table: Table) -> None:
    writers, rounds = 3, 4
    handles = [rowsieve.open_table(table.uri) for _ in range(writers)]
    failures: list[BaseException] = []

    def write(handle: Table) -> None:
        try:
            for _ in range(rounds):
                add(handle, 1, 1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(handle,)) for handle in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert rows(rowsieve.open_table(table.uri))[1] == (10 + writers * rounds, "x")


@pytest.mark.parametrize("visibility", ["lazy", "eager"])
def test_hidden_rows_are_not_read_as_current(visibility: str) -> None:
    table = rowsieve.create_table(
        fresh_uri(), SCHEMA, key=["k"], properties={"visibility": visibility}
    )
    table.upsert({"k": [1, 2], "n": [10, 20], "a": ["x", "y"]})
    add(table, 1, 1)
    table.delete(keys=pa.table({"k": [2]}))
    table.upsert([{"k": 1, "a": "new"}, {"k": 2, "a": "back"}], columns="given")
    assert rows(table) == {1: (11, "new"), 2: (None, "back")}
    table.compact()
    table.upsert([{"k": 1, "n": 0}, {"k": 2, "n": 0}], columns="given")
    assert rows(table) == {1: (0, "new"), 2: (0, "back")}
