"""Rows that expire: `maintain` deletes what the property `expire_rows_when` matches."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import EvaluationError, InvalidInput, InvalidSchemaChange
from rowsieve.executor.execute import Execution
from rowsieve.maintenance.advice import AdvisedAction
from tests.profiles import examples
from tests.small_tables import appended, fresh_uri, keyed, kv, overtake, pairs

OLD = {"expire_rows_when": "v < 10"}


def test_maintain_deletes_in_one_commit_and_null_stays() -> None:
    for make in (keyed, appended):
        table = make({"k": [1, 2, 3], "v": [5, 15, None]}, {"k": [7, 8], "v": [1, 2]})
        table.set_properties(OLD)
        version = table.version
        done = table.maintain()
        assert done.expired is not None
        assert (done.expired.version, done.expired.operation) == (version + 1, "delete")
        assert done.expired.metadata["expire_rows_when"] == "v < 10"
        assert pairs(table) == [(2, 15), (3, None)]
        assert table.maintain().expired is None


def test_nothing_happens_without_the_property() -> None:
    table = keyed({"k": [1], "v": [5]})
    assert table.maintain().expired is None
    assert table.maintenance_advice().expired_rows == 0


def test_the_condition_may_use_the_time() -> None:
    schema = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
    now = datetime.now(UTC)
    rows = {"k": [1, 2], "at": [now - timedelta(days=40), now]}
    properties = {"expire_rows_when": "at < now() - interval '30 days'"}
    table = rs.create_table(fresh_uri(), schema, key=["k"], properties=properties)
    table.upsert(pa.table(rows, schema=schema))
    table.maintain()
    assert table.to_arrow()["k"].to_pylist() == [2]


@pytest.mark.parametrize("make", [keyed, appended])
def test_whole_parts_leave_without_being_read(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make({"k": [1, 2], "v": [1, 2]}, {"k": [11, 12], "v": [11, 12]})
    table.set_properties(OLD)
    with monkeypatch.context() as patch:
        patch.setattr(Execution, "_read_part", lambda *_: pytest.fail("reads"), raising=False)
        patch.setattr(
            "rowsieve.executor.part_sources.PartSource.rows", lambda *_, **__: pytest.fail("reads")
        )
        done = table.maintain()
    assert done.expired is not None
    assert (done.expired.parts_removed, done.expired.parts_added) == (1, 0)
    assert done.expired.rows_deleted == 2
    assert pairs(table) == [(11, 11), (12, 12)]


def test_a_part_that_hides_older_rows_does_not_leave() -> None:  # trap T2
    table = keyed({"k": [1, 2], "v": [100, 20]}, {"k": [1], "v": [5]})
    table.set_properties(OLD)
    table.maintain()
    assert pairs(table) == [(2, 20)]
    table = keyed({"k": [1, 5], "v": [100, 20]})
    table.delete(keys=pa.table({"k": [1]}))
    table.upsert(kv((3, 5)))
    table.set_properties(OLD)
    table.maintain()
    assert pairs(table) == [(5, 20)]


def test_an_expired_row_of_an_event_order_keeps_its_sequence() -> None:  # invariant 37
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("lsn", pa.int64())])
    table = rs.create_table(fresh_uri(), schema, key=["k"], sequence="lsn", properties=OLD)
    table.upsert(pa.table({"k": [1, 2], "v": [1, 2], "lsn": [10, 10]}, schema=schema))
    table.upsert(pa.table({"k": [8], "v": [80], "lsn": [10]}, schema=schema))
    assert table.maintain().expired is not None
    commit = table.upsert(pa.table({"k": [1], "v": [50], "lsn": [9]}, schema=schema))
    assert commit.rows_late == 1
    assert table.to_arrow()["k"].to_pylist() == [8]


def test_the_change_feed_has_the_expired_rows_as_deletes() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [11, 12], "v": [11, 2]})
    table.set_properties(OLD)
    version = table.version + 1
    table.maintain()
    rows = table.changes(version, version).read_all().to_pylist()
    assert [(row["_change_type"], row["k"]) for row in rows] == [
        ("delete", 1),
        ("delete", 2),
        ("delete", 12),
    ]


def test_a_concurrent_change_of_an_expired_row_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]})
    table.set_properties(OLD)
    overtake(table, monkeypatch, lambda other: other.upsert(kv((1, 50), (3, 3))))
    table.maintain()
    table.refresh()
    assert pairs(table) == [(1, 50)]


def test_a_concurrent_compaction_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    table = appended({"k": [1], "v": [1]}, {"k": [2], "v": [20]}, {"k": [3], "v": [3]})
    table.set_properties(OLD)
    overtake(table, monkeypatch, lambda other: other.compact())
    table.maintain()
    assert pairs(table) == [(2, 20)]


def test_advice_counts_what_has_expired() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [11, 12, 13], "v": [11, 2, 3]})
    table.set_properties(OLD)
    advice = table.maintenance_advice()
    assert advice.expired_rows == 2
    (expiry,) = (e for e in advice.recommendations if e.action is AdvisedAction.EXPIRE_ROWS)
    assert (expiry.reason, expiry.parts) == ("2 rows have expired, and up to 3 more may have", 2)
    table.maintain()
    assert AdvisedAction.EXPIRE_ROWS not in {
        e.action for e in table.maintenance_advice().recommendations
    }


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("absent > 1", "absent"),
        ("v >", "expire_rows_when"),
        ("now() > now()", "uses no column"),
        ("v + 1", "not a condition"),
        ("v = 'x'", "expire_rows_when"),
    ],
)
def test_a_wrong_condition_is_refused_when_it_is_set(condition: str, message: str) -> None:
    table = keyed({"k": [1], "v": [1]})
    with pytest.raises(InvalidInput, match=message):
        table.set_properties({"expire_rows_when": condition})
    with pytest.raises(InvalidInput, match=message):
        keyed(properties={"expire_rows_when": condition})
    assert "expire_rows_when" not in table.detail()["properties"]


def test_a_column_of_the_condition_cannot_go() -> None:
    table = keyed({"k": [1], "v": [1]})
    table.set_properties(OLD)
    changes: tuple[Callable[[], object], ...] = (
        lambda: table.drop_column("v"),
        lambda: table.rename_column("v", "w"),
    )
    for change in changes:
        with pytest.raises(InvalidSchemaChange, match="unset the property first"):
            change()
    table.unset_properties(["expire_rows_when"])
    table.rename_column("v", "w")


ROWS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from([None, -3, 0, 5, 9, 10, 30])),
    min_size=1,
    max_size=5,
    unique_by=lambda row: row[0],
)
CONDITIONS = ["v < 10", "v >= 5 AND k > 3", "k < 6", "v IS NULL", "NOT (v = 5)", "v <= k", "k >= 0"]


@examples(80)
@given(
    batches=st.lists(ROWS, min_size=1, max_size=5),
    gone=st.lists(st.integers(0, 12), max_size=4, unique=True),
    condition=st.sampled_from(CONDITIONS),
    has_key=st.booleans(),
)
def test_what_is_left_is_what_does_not_match(
    batches: list[list[tuple[int, Any]]], gone: list[int], condition: str, *, has_key: bool
) -> None:
    table = (keyed if has_key else appended)()
    for batch in batches:
        (table.upsert if has_key else table.append)(kv(*batch))
        if gone and has_key:
            table.delete(keys=pa.table({"k": pa.array(gone, pa.int64())}))
        elif gone:
            table.delete(f"k IN ({', '.join(map(str, gone))}) AND v = 0")
    rows = table.to_arrow(f"({condition}) IS NOT TRUE").to_pylist()
    table.set_properties({"expire_rows_when": condition})
    table.maintain()
    assert sorted(map(repr, table.to_arrow().to_pylist())) == sorted(map(repr, rows))


@pytest.mark.parametrize("condition", ["v > 1 / 0", "v > 5 AND 1 / 0 = 1", "v < 5 OR 10 % 0 = v"])
def test_a_part_that_fails_for_every_row_is_refused_when_it_is_set(condition: str) -> None:
    table = keyed({"k": [1], "v": [1]})
    with pytest.raises(InvalidInput, match="fails for every row"):
        table.set_properties({"expire_rows_when": condition})
    with pytest.raises(InvalidInput, match="fails for every row"):
        table.sql(f"ALTER TABLE this SET TBLPROPERTIES ('expire_rows_when' = '{condition}')")
    with pytest.raises(InvalidInput, match="fails for every row"):
        rs.create_table(fresh_uri(), kv(), key=["k"], properties={"expire_rows_when": condition})
    table.set_properties({"expire_rows_when": "10 / v > 100 AND v <> 0"})
    assert "expire_rows_when" in table.handle.pinned.table.properties


@pytest.mark.parametrize("key", [["id"], None])
def test_a_condition_that_fails_for_some_row_deletes_none_and_stops_nothing_else(
    key: list[str] | None,
) -> None:
    rows = [{"id": n, "n": n % 3} for n in range(9)]
    table = rs.create_table(fresh_uri(), pa.Table.from_pylist(rows[:5]), key=key)
    (table.upsert if key else table.append)(rows[5:])
    table.set_properties({"expire_rows_when": "10 / n > 7"})
    with pytest.raises(EvaluationError, match=r"expire_rows_when is '10 / n > 7'.*No row was"):
        table.maintain()
    assert len(table.handle.newest.parts) == 1  # compacted
    assert table.count() == 9
    table.set_properties({"expire_rows_when": "10 / NULLIF(n, 0) > 7"})
    table.maintain()
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 2, 3, 5, 6, 8]
