"""Constraints as facts: what they decide, and that they never change an answer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.config import Pruning
from rowsieve.errors import ConstraintViolation, EvaluationError
from rowsieve.providers.datafusion import SessionContext
from tests.profiles import examples
from tests.small_tables import fresh_uri, keyed, kv, pairs


def positive(*batches: dict[str, Any], **options: Any) -> rs.Table:
    table = keyed(*(batches or ({"k": [1, 2, 3], "v": [10, 20, None]},)), **options)
    table.add_constraint("positive", "v > 0")
    return table


def parts_read(table: rs.Table, where: str, **options: Any) -> int:
    return int(table.scan(where, **options).explain().parts_read)


def evaluated(table: rs.Table, where: str) -> set[str]:
    """The columns of the conditions that a read evaluates."""
    bound = table.scan(where).plan().filter
    return set() if bound is None else {column.name for column in bound.columns}


def test_a_condition_that_no_row_can_match_reads_nothing() -> None:
    table = positive()
    table.set_properties({"statistics": "off"})
    table.upsert(kv((4, 40)))  # no statistics of v
    for where in ("v < -5", "v = 0", "v + 0 < 1 AND v <= 0", "v IN (-1, -2)", "v BETWEEN -9 AND 0"):
        assert parts_read(table, where) == 0
        assert pairs(table, where) == []
    assert parts_read(table, "v < 15") == 2
    assert parts_read(table, "v IS NULL") > 0
    assert pairs(table, "v IS NULL OR v < 0") == [(3, None)]


def test_the_explanation_names_the_constraint() -> None:
    table = positive()
    table.add_constraint("small", "v < 1000")
    table.rename_column("v", "amount")
    text = str(table.scan("amount < -5").explain())
    assert 'decided by the constraint positive: "amount" > 0' in text
    assert "small" not in text
    assert "no row of the table can match, by its constraints" in text
    assert table.scan("amount < -5").plan().pruned[0].by == "constraint"
    assert table.scan("amount < -5").metrics.pruned_by == {"constraint": 1}
    assert "constraint" not in str(table.scan("amount < 5").explain())


def test_an_implied_conjunct_is_not_evaluated_if_the_column_cannot_be_null() -> None:
    table = positive({"k": [1, 2], "v": [10, 20]})
    assert evaluated(table, "v > -5 AND k >= 1") == {"k", "v"}  # v may be NULL
    table.set_not_null("v")
    assert evaluated(table, "v > -5 AND k >= 1") == {"k"}
    plan = table.scan("v > -5 AND k >= 1").plan()
    assert plan.constraints == ("positive",)
    assert evaluated(table, "v >= 1") == set()
    assert pairs(table, "v > -5 AND k >= 2") == [(2, 20)]
    assert pairs(table, "v >= 1") == [(1, 10), (2, 20)]
    assert table.count("v > 0") == 2
    assert rs.ScanPlan.from_bytes(plan.to_bytes()).predicate == plan.predicate


def test_null_is_implied_away_only_by_is_not_null() -> None:
    table = keyed({"k": [1, 2], "v": [10, 20]})
    table.add_constraint("present", "v IS NOT NULL AND v > 0")
    assert evaluated(table, "v > 0") == set()
    assert parts_read(table, "v IS NULL") == 0


def test_an_earlier_version_does_not_use_it() -> None:
    table = keyed({"k": [1], "v": [-10]})
    old = table.version
    table.upsert(kv((1, 10)))
    table.add_constraint("positive", "v > 0")
    assert pairs(table, "v < 0", version=old) == [(1, -10)]
    assert pairs(table, "v < 0") == []
    table.drop_constraint("positive")
    table.upsert(kv((1, -3)))
    assert pairs(table, "v < 0") == [(1, -3)]


def test_the_change_feed_shows_rows_from_before_it() -> None:
    table = keyed({"k": [1], "v": [-10]})
    table.upsert(kv((1, 10)))
    table.add_constraint("positive", "v > 0")
    for net in (False, True):
        rows = table.changes(2, where="v < 0", net=net).read_all().to_pylist()
        assert [(row["_change_type"], row["v"]) for row in rows] == [("update_preimage", -10)]


def test_a_hidden_row_that_violates_it_stays_hidden() -> None:
    table = keyed({"k": [1, 2], "v": [-10, 3]})
    table.upsert(kv((1, 10)))
    table.add_constraint("positive", "v > 0")
    table.add_constraint("set", "v IS NOT NULL")
    assert pairs(table, "v < 0") == []
    assert pairs(table, "v > 0") == [(1, 10), (2, 3)]
    table.delete("v < 0")
    table.update({"v": "v + 1"}, where="v > 0")
    assert pairs(table) == [(1, 11), (2, 4)]


def test_audits_and_other_modes_give_the_same_rows() -> None:
    table = positive({"k": [1, 2], "v": [10, 20]})
    table.set_not_null("v")
    modes: tuple[Pruning, ...] = ("on", "soft", "off")
    for mode in modes:
        for where, expected in (("v < 0", 0), ("v > -1", 2)):
            scan = table.scan(where, pruning=mode, audit=100 if mode == "on" else None)
            assert scan.to_arrow().num_rows == expected


def test_a_false_constraint_is_found_by_an_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed({"k": [1, 2], "v": [-10, 20]})
    with monkeypatch.context() as patch:
        patch.setattr("rowsieve.changes.constraint_changes.check_parts", lambda *_: None)
        table.add_constraint("positive", "v > 0")
    assert table.scan("v < 0").count() == 0
    with pytest.raises(rs.errors.UnsoundPruning):
        table.scan("v < 0", audit=100).to_arrow()


def test_errors_are_those_of_a_read_without_it() -> None:
    table = positive({"k": [0, 2], "v": [10, 20]})
    for where in ("v < 0 AND 1 / k = 1", "1 / k = 1 AND v < 0"):
        assert pairs(table, where) == []
    with pytest.raises(EvaluationError):
        table.to_arrow("v > 0 AND 1 / k = 1")
    with pytest.raises(EvaluationError):
        table.to_arrow("1 / k < v")


def test_nan_obeys_a_lower_bound_and_violates_an_upper_one() -> None:
    schema = pa.schema([("k", pa.int64()), ("f", pa.float64())])
    table = rs.create_table(fresh_uri(), schema, key=["k"])
    table.add_constraint("low", "f > 0")
    table.upsert(pa.table({"k": [1, 2, 3], "f": [1.0, float("nan"), None]}, schema=schema))
    for where, count in (("f = 'NaN'", 1), ("f > 100", 1), ("f < 0", 0), ("f <> 'NaN'", 1)):
        assert table.scan(where).count() == table.scan(where, pruning="off").count() == count
    with pytest.raises(ConstraintViolation):
        table.add_constraint("high", "f < 100")
    table.delete("f = 'NaN'")
    table.add_constraint("high", "f < 100")
    assert parts_read(table, "f = 'NaN'") == parts_read(table, "f > 200") == 0
    assert table.count("f < 200") == 1


def test_nan_matches_no_comparison_of_an_engine_that_says_so() -> None:
    schema = pa.schema([("k", pa.int64()), pa.field("f", pa.float64(), nullable=False)])
    table = rs.create_table(fresh_uri(), schema, key=["k"])
    table.upsert(pa.table({"k": [1, 2], "f": [1.0, float("nan")]}, schema=schema))
    table.add_constraint("low", "f > 0")
    for where in (pc.field("f") > -1, pc.field("f") >= 0):
        assert table.to_arrow(where)["k"].to_pylist() == [1]
    assert table.count("f > -1") == 2


def test_a_list_with_null_allows_every_value() -> None:
    table = keyed({"k": [1, 2], "v": [1, 5]})
    table.add_constraint("listed", "v IN (1, NULL)")
    assert pairs(table, "v = 5") == [(2, 5)]
    table.add_constraint("short", "v IN (1, 5)")
    assert parts_read(table, "v = 3") == 0
    assert pairs(table, "v > 1") == [(2, 5)]


def test_datafusion_reads_no_part() -> None:
    table = positive({"k": [1, 2], "v": [10, 20]}, {"k": [3], "v": [None]})
    session = SessionContext()
    session.register_table("t", table)
    assert session.sql("SELECT count(*) AS n FROM t WHERE v < -5").to_pylist() == [{"n": 0}]
    plan = session.sql("EXPLAIN SELECT k FROM t WHERE v < -5").to_pylist()[-1]["plan"]
    assert "conditions leave 0 of 2 parts" in plan


TYPES = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        ("a", pa.int64()),
        pa.field("b", pa.int16(), nullable=False),
        ("f", pa.float64()),
        ("t", pa.string()),
    ]
)
CHECKS = [
    "a > 0", "a >= 1 AND a < 4", "a IN (1, 3)", "a IN (1, NULL)", "a <> 2", "a NOT IN (1, 2)",
    "b > 0", "b BETWEEN 0 AND 2", "f > 0", "f < 1.5", "f >= 0 AND f <= 1.5", "f <> 0", "t > 'b'",
    "t IN ('a', 'c')", "t IS NOT NULL", "a IS NOT NULL", "a IS NOT NULL AND a > 0", "a > b",
    "a > 0 OR b > 0", "NOT (a < 1)", "a IS NULL", "f IS NULL OR f > 0", "t LIKE 'a%'", "a + 1 > 2",
]  # fmt: skip
QUERIES = [
    "a < 0", "a <= 0", "a > 0", "a > -3", "a = 2", "a IN (2, 5)", "a NOT IN (1, 3)", "a IS NULL",
    "a IS NOT NULL", "b < 1", "b >= 0", "b > 0 AND a > 0", "f < 0", "f <= 0", "f > 0", "f >= -1",
    "f = 'NaN'", "f <> 'NaN'", "f > 2", "f < 2", "t = 'b'", "t < 'b'", "t > 'a'", "t LIKE 'b%'",
    "NOT (a > 0)", "a < 0 OR b < 0", "a > 0 OR a IS NULL", "a + b > 100", "10 / a > 0 AND a < 0",
    "a > 0 AND 10 / b > 1", "coalesce(a, -1) < 0", "a IS DISTINCT FROM 1", "f + 0 > 0",
]  # fmt: skip
ROW = st.fixed_dictionaries(
    {
        "k": st.integers(0, 5),
        "a": st.sampled_from([None, -1, 0, 1, 2, 3, 5]),
        "b": st.sampled_from([-1, 0, 1, 2]),
        "f": st.sampled_from([None, float("nan"), -0.0, 0.0, 1.0, 1.5, -2.0]),
        "t": st.sampled_from([None, "a", "ab", "b", "c"]),
    }
)


def outcome(table: rs.Table, where: str, pruning: Pruning) -> Any:
    try:
        rows = table.to_arrow(where) if pruning == "on" else table.scan(where, pruning="off")
        found = rows if isinstance(rows, pa.Table) else rows.to_arrow()
        return sorted(map(repr, found.to_pylist()))
    except EvaluationError:
        return "error"


@examples(150)
@given(
    checks=st.lists(st.sampled_from(CHECKS), min_size=1, max_size=3, unique=True),
    batches=st.lists(st.lists(ROW, min_size=1, max_size=3), min_size=1, max_size=3),
    queries=st.lists(st.sampled_from(QUERIES), min_size=1, max_size=6),
)
def test_no_constraint_changes_an_answer(
    checks: list[str], batches: list[list[dict[str, Any]]], queries: list[str]
) -> None:
    table = rs.create_table(fresh_uri(), TYPES, key=["k"])
    for rows in batches[:1]:
        table.upsert(pa.Table.from_pylist(rows, TYPES), on_duplicate="last")
    for i, check in enumerate(checks):
        try:
            table.add_constraint(f"c{i}", check)
        except ConstraintViolation:
            table.delete(f"NOT ({check})")
            table.add_constraint(f"c{i}", check)
    for rows in batches[1:]:
        try:
            table.upsert(pa.Table.from_pylist(rows, TYPES), on_duplicate="last")
        except ConstraintViolation:
            continue
    for query in queries:
        assert outcome(table, query, "on") == outcome(table, query, "off"), (checks, query)
