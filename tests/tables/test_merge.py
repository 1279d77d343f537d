"""`Table.merge`: clauses in their order, one commit or none."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, KeyViolation, RowsieveError, UnknownColumn

ROWS = pa.table({"id": [1, 2, 3], "n": [10, 20, 30], "s": ["a", "b", None]})


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(tmp_path / "t", ROWS, ["id"])


def rows(table: rs.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.scan(order_by_key=True).to_arrow().to_pylist()]


def test_update_all_and_insert_all_are_one_commit(table: rs.Table) -> None:
    news = pa.table({"id": [2, 4], "n": [21, 41], "s": ["B", "D"]})
    merging = table.merge(news, "id", metadata={"from": "here"}, token=("loader", 1))
    commit = merging.when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(table) == [(1, 10, "a"), (2, 21, "B"), (3, 30, None), (4, 41, "D")]
    assert (commit.version, commit.operation, commit.rows_written) == (1, "merge", 2)
    assert table.history(1)[0].metadata["from"] == "here"
    again = table.merge(news, "id", token=("loader", 1)).when_matched_delete().execute()
    assert (again.version, table.count()) == (1, 4)


def test_the_first_clause_that_fits_a_row_applies(table: rs.Table) -> None:
    source = [{"id": 1, "n": 11}, {"id": 2, "n": 0}, {"id": 3, "n": None}]
    (
        table.merge(source)
        .when_matched_delete("source.n > target.n")
        .when_matched_update({"s": "'low'"}, "source.n < target.n")
        .when_matched_update({"s": "'unknown'"})
        .execute()
    )
    assert rows(table) == [(2, 20, "low"), (3, 30, "unknown")]


def test_rows_that_the_source_lacks_are_changed_by_source_clauses(table: rs.Table) -> None:
    merging = table.merge([{"id": 1}]).when_not_matched_by_source_update({"n": 0}, "target.n > 20")
    merging.when_not_matched_by_source_delete().execute()
    assert rows(table) == [(1, 10, "a"), (3, 0, None)]


def test_values_that_are_not_text_are_constants(tmp_path: Path) -> None:
    day, price = datetime.date(2026, 11, 29), decimal.Decimal("0.10")
    schema = pa.schema(
        [("id", pa.int64()), ("day", pa.date32()), ("price", pa.decimal128(9, 2)), ("s", "string")]
    )
    table = rs.create_table(tmp_path / "t", schema, ["id"])
    values = {"id": "source.id", "day": day, "price": price, "s": rs.lit("$x'")}
    table.merge([{"id": 1}]).when_not_matched_insert(values).execute()
    assert rows(table) == [(1, day, price, "$x'")]
    updates = {"day": None, "price": pa.scalar(7, pa.int8()), "s": rs.lit(None)}
    table.merge([{"id": 1}]).when_matched_update(updates).execute()
    assert rows(table) == [(1, None, decimal.Decimal("7.00"), None)]


def test_columns_may_be_left_out(table: rs.Table) -> None:
    merging = table.merge([{"id": 1, "n": 7}, {"id": 9, "n": 9}])
    merging.when_matched_update_all(except_cols=["s"]).when_not_matched_insert_all(
        except_cols=["s"]
    ).execute()
    assert rows(table)[0] == (1, 7, "a")
    assert rows(table)[-1] == (9, 9, None)


def test_on_may_be_a_condition_with_aliases(table: rs.Table) -> None:
    merging = table.merge(
        [{"k": 1, "x": 5}], "t.id = s.k AND s.x > 4", source_alias="s", target_alias="t"
    )
    merging.when_matched_update({"n": "t.n + s.x"}).execute()
    assert rows(table)[0] == (1, 15, "a")


def test_names_in_capitals_and_with_spaces_match_as_columns(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", pa.table({"My Id": [1], "N": [1]}), ["My Id"])
    source = pa.table({"My Id": [1, 2], "N": [5, 6]})
    table.merge(source).when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(table) == [(1, 5), (2, 6)]


def test_a_merge_in_a_transaction_commits_with_it(table: rs.Table) -> None:
    with table.transaction() as tx:
        tx.delete("id = 1")
        tx.merge([{"id": 1, "n": 1, "s": "x"}]).when_not_matched_insert_all().execute()
        assert (tx.count(), table.count()) == (3, 3)
    assert (rows(table)[0], table.version) == ((1, 1, "x"), 1)


def test_a_merge_is_computed_again_after_a_conflict(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, log = rs.open_table(table.uri), table.handle.log
    commit, calls = log.commit, list[int]()

    def overtaken(*arguments: Any, **named: Any) -> Any:
        if not calls:
            other.update({"n": "100"}, where="id = 1")
        calls.append(1)
        return commit(*arguments, **named)

    monkeypatch.setattr(log, "commit", overtaken)
    table.merge([{"id": 1, "n": 5}]).when_matched_update({"n": "target.n + source.n"}).execute()
    assert rows(table)[0] == (1, 105, "a")


def test_a_merge_takes_files(table: rs.Table, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n,s\n1,5,007\n")
    table.merge(tmp_path / "a.csv").when_matched_update_all().execute()
    assert rows(table)[0] == (1, 5, "007")


def test_a_merge_that_fits_no_row_commits_nothing(table: rs.Table) -> None:
    commit = table.merge([{"id": 7}]).when_matched_delete().execute()
    assert (commit.committed, table.version) == (False, 0)


@pytest.mark.parametrize(
    ("begin", "error", "message"),
    [
        pytest.param(lambda t: t.merge([{"id": 1}]), InvalidInput, "no clause", id="no clause"),
        pytest.param(
            lambda t: t.merge([{"id": 1}]).when_matched_update_all(),
            UnknownColumn,
            "'n' is not among its columns",
            id="a column that the source lacks",
        ),
        pytest.param(
            lambda t: t.merge([{"id": 1}]).when_matched_update({"zz": 1}),
            UnknownColumn,
            "no column 'zz'",
            id="an unknown column",
        ),
        pytest.param(
            lambda t: t.merge([{"id": 1}]).when_matched_update({"s": "007"}),
            InvalidInput,
            r"is the number 7 in SQL.*rs.lit\('007'\)",
            id="a number for text",
        ),
        pytest.param(
            lambda t: t.merge([{"id": 1}], on=["idx"]).when_matched_delete(),
            UnknownColumn,
            "on= names 'idx', and the table has",
            id="an unknown key",
        ),
        pytest.param(
            lambda t: t.merge([{"x": 1}]).when_matched_delete(),
            UnknownColumn,
            "on= names 'id', and the data has",
            id="data without the key",
        ),
        pytest.param(
            lambda t: t.merge([{"id": 1}]).when_matched_delete("target.zz = 1"),
            InvalidInput,
            "zz",
            id="an unknown name in a condition",
        ),
        pytest.param(
            lambda t: t.merge([{"id": 1}] * 2).when_matched_update({"n": 1}),
            KeyViolation,
            "two rows of the source",
            id="a row twice in the source",
        ),
        pytest.param(
            lambda t: t.merge([{"id": 8, "n": 1, "s": ""}] * 2).when_not_matched_insert_all(),
            KeyViolation,
            "repeat the key",
            id="a new row twice",
        ),
        pytest.param(
            lambda t: t.merge([{"id": 1}]).when_matched_delete(1),
            InvalidInput,
            "condition is 1 .int., not SQL text",
            id="a condition that is not text",
        ),
    ],
)
def test_merges_that_are_refused_change_nothing(
    table: rs.Table, begin: Callable[[rs.Table], Any], error: type[RowsieveError], message: str
) -> None:
    with pytest.raises(error, match=message):
        begin(table).execute()
    assert (table.refresh(), rows(table)[0]) == (0, (1, 10, "a"))


def test_a_key_that_is_nan_is_matched(tmp_path: Path) -> None:
    rows = pa.table({"id": [float("nan"), 1.0], "v": [1, 2]})
    table = rs.create_table(tmp_path / "floats", rows, key=["id"])
    news = pa.table({"id": [float("nan"), -0.0], "v": [5, 6]})
    merging = table.merge(news, "id").when_matched_update_all().when_not_matched_insert_all()
    merging.execute()
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [2, 5, 6]
