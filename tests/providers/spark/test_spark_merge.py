"""`merge_spark` against a merge of dictionaries, its conflicts and its refusals."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    InvalidPredicate,
    KeyViolation,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedOperation,
)
from rowsieve.providers.spark import frames
from tests.profiles import IS_DEEP, judged

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
Row = Mapping[str, Any]
Rows = dict[int, Row]


def rows_of(*rows: tuple[int | None, int | None, str | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS
    )


def content(table: rs.Table) -> list[tuple[Any, ...]]:
    rows = rs.open_table(table.uri).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(
        str(tmp_path / "t"), rows_of((1, 1, "a"), (2, 2, "b"), (3, 3, "c")), key=["id"]
    )


# One row per condition and value: SQL over `source` and `target`, and the same in Python.
Test = Callable[[Any, Any], bool | None]
MATCHED_TESTS: dict[str | None, Test] = {
    None: lambda s, t: True,
    "source.n > target.n": lambda s, t: None if None in (s["n"], t["n"]) else s["n"] > t["n"],
    "source.s IS NULL": lambda s, t: s["s"] is None,
    "NOT target.n < 2": lambda s, t: None if t["n"] is None else not t["n"] < 2,
}
SOURCE_TESTS: dict[str | None, Test] = {
    None: lambda s, t: True,
    "source.n > 1": lambda s, t: None if s["n"] is None else s["n"] > 1,
}
TARGET_TESTS: dict[str | None, Test] = {
    None: lambda s, t: True,
    "target.n <> 2": lambda s, t: None if t["n"] is None else t["n"] != 2,
}
MATCHED_VALUES: dict[str, Callable[[Any, Any], Row]] = {
    "*": lambda s, t: {"n": s["n"], "s": s["s"]},
    "source.n + target.n": lambda s, t: {
        "n": None if None in (s["n"], t["n"]) else s["n"] + t["n"]
    },
}


def clauses(draw: st.DrawFn, actions: Sequence[str], tests: Mapping[Any, Test]) -> list[Any]:
    drawn = draw(
        st.lists(st.tuples(st.sampled_from(actions), st.sampled_from([*tests])), max_size=2)
    )
    return [(action, where, tests[where]) for action, where in drawn]


@st.composite
def merges(draw: st.DrawFn) -> tuple[Any, ...]:
    value = st.none() | st.integers(0, 3)
    text = st.none() | st.sampled_from("xy")
    ids = st.lists(st.integers(0, 7), max_size=7)
    target = {i: {"id": i, "n": draw(value), "s": draw(text)} for i in draw(ids)}
    source = [{"id": i, "n": draw(value), "s": draw(text)} for i in draw(ids)]
    unique = draw(st.sampled_from([True, True, False]))
    if unique:
        source = [*{row["id"]: row for row in source}.values()]
    return (
        target,
        source,
        clauses(draw, ["*", "source.n + target.n", "delete"], MATCHED_TESTS),
        clauses(draw, ["*", "1L"], SOURCE_TESTS),
        clauses(draw, ["target.n + 10", "delete"], TARGET_TESTS),
    )


def expected(
    target: Rows, source: Sequence[Row], matched: Any, unmatched: Any, rest: Any
) -> Rows | None:
    """The rows after the merge, row by row; None if two rows of the source change one key."""
    actions: list[tuple[int, Row | None]] = []
    for row in source:
        old = target.get(row["id"])
        for action, _, test in unmatched if old is None else matched:
            if test(row, old) is not True:
                continue
            if action == "delete":
                actions.append((row["id"], None))
            elif old is None:
                new = row if action == "*" else {"id": row["id"], "n": 1, "s": row["s"]}
                actions.append((row["id"], new))
            else:
                actions.append((row["id"], {**old, **MATCHED_VALUES[action](row, old)}))
            break
    known = {row["id"] for row in source}
    for key, old in target.items():
        for action, _, test in rest if key not in known else ():
            if test(None, old) is True:
                n = None if old["n"] is None else old["n"] + 10
                actions.append((key, None if action == "delete" else {**old, "n": n}))
                break
    if len({key for key, _ in actions}) < len(actions):
        return None
    result = {**target, **dict(actions)}
    return {key: row for key, row in result.items() if row is not None}


def asked(each: Any, insert: bool = False) -> list[dict[str, Any]]:
    found = []
    for action, where, _ in each:
        clause: dict[str, Any] = {} if where is None else {"where": where}
        if insert:
            values = {"id": "source.id", "n": action, "s": "source.s"}
            clause["insert"] = "*" if action == "*" else values
        elif action == "delete":
            clause["delete"] = "*"
        else:
            clause["update"] = "*" if action == "*" else {"n": action}
        found.append(clause)
    return found


@judged(20)
@given(merges())
def test_a_merge_is_that_of_the_oracle(spark: Any, tmp_path_factory: Any, case: Any) -> None:
    target, source, matched, unmatched, rest = case
    if not (matched or unmatched or rest):
        return
    uri = str(tmp_path_factory.mktemp("merge") / uuid.uuid4().hex)
    table = rs.create_table(uri, pa.Table.from_pylist([*target.values()], COLUMNS), key=["id"])
    frame = spark.createDataFrame(pa.Table.from_pylist(source, COLUMNS))
    wanted = expected(target, source, matched, unmatched, rest)

    def merge() -> None:
        table.merge_spark(
            frame,
            ["id"],
            when_matched=asked(matched),
            when_not_matched=asked(unmatched, insert=True),
            when_not_matched_by_source=asked(rest),
        )

    if wanted is None:
        with pytest.raises(KeyViolation, match="two rows"):
            merge()
        wanted = target
    else:
        merge()
    rows = rs.open_table(uri).scan().to_arrow().to_pylist()
    assert {row["id"]: row for row in rows} == wanted
    assert len(rows) == len(wanted)


def frame(spark: Any, *rows: tuple[int | None, int | None, str | None]) -> Any:
    return spark.createDataFrame(rows_of(*rows))


def test_a_merge_is_one_commit(spark: Any, table: rs.Table) -> None:
    commit = table.merge_spark(
        frame(spark, (2, 20, "x"), (4, 40, "y")),
        on=["ID"],
        when_matched={"update": {"n": "source.n + target.n"}},
        when_not_matched="insert",
        when_not_matched_by_source=[{"delete": "*", "where": "target.id = 1"}],
    )
    assert (commit.operation, commit.version) == ("merge", 1)
    assert (commit.rows_written, commit.rows_deleted) == (2, 1)
    assert content(table) == [(2, 22, "b"), (3, 3, "c"), (4, 40, "y")]
    same = table.merge_spark(frame(spark, (9, 9, "x")), ["id"], when_matched="delete")
    assert (same.version, same.parts_added) == (1, 0)  # nothing to do, no commit


def test_a_merge_of_whole_rows_is_an_upsert(spark: Any, table: rs.Table) -> None:
    wide = frame(spark, (2, 20, "x"), (4, 40, "y")).selectExpr("n", "id AS ID", "s", "1 AS more")
    commit = table.merge_spark(wide, ["id"], when_matched="update", when_not_matched="insert")
    assert (commit.operation, commit.rows_written) == ("upsert", 2)
    assert content(table) == [(1, 1, "a"), (2, 20, "x"), (3, 3, "c"), (4, 40, "y")]


def test_two_rows_of_the_source_for_one_row_are_an_error(spark: Any, table: rs.Table) -> None:
    twice = frame(spark, (2, 5, "x"), (2, 6, "y"))
    conditional = {"delete": "*", "where": "source.n > 0"}
    for clause in ("update", conditional) if IS_DEEP else (conditional,):
        with pytest.raises(KeyViolation, match=r"two rows of the source with the key {'id': 2}"):
            table.merge_spark(twice, ["id"], when_matched=clause)
    with pytest.raises(KeyViolation, match=r"{'id': 2}"):  # one row updates, the other deletes
        table.merge_spark(
            twice,
            ["id"],
            when_matched=[{"delete": "*", "where": "source.n = 5"}, {"update": {"n": "0L"}}],
        )
    assert rs.open_table(table.uri).version == 0
    table.merge_spark(twice.select("id"), ["id"], when_matched="delete")
    assert [row[0] for row in content(table)] == [1, 3]
    table.merge_spark(frame(spark, (2, 2, "b")), ["id"], when_not_matched="insert")
    only = {"update": {"n": "source.n"}, "where": "source.n = 6"}
    table.merge_spark(twice, ["id"], when_matched=only)
    assert content(table)[1] == (2, 6, "b")


def test_repeated_keys_that_all_delete_go_with_inserts(spark: Any, table: rs.Table) -> None:
    source = frame(spark, (2, 5, "x"), (2, 6, "y"), (7, 7, "z"))
    table.merge_spark(source, ["id"], when_matched="delete", when_not_matched="insert")
    assert content(table) == [(1, 1, "a"), (3, 3, "c"), (7, 7, "z")]
    same = frame(spark, (3, 1, "x"), (3, 1, "x"), (8, 8, "z"), (8, 8, "z"))
    with pytest.raises(KeyViolation, match=r"{'id': 8}"):
        table.merge_spark(same, ["id"], when_matched="delete", when_not_matched="insert")
    assert content(table) == [(1, 1, "a"), (3, 3, "c"), (7, 7, "z")]


def test_a_concurrent_commit_makes_the_merge_run_again(
    spark: Any, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant I7: both increments are in the result."""
    other, write = rs.open_table(table.uri), frames.write_rows
    races: list[object] = []

    def racing(*args: Any) -> Any:
        if not races:
            races.append(other.update({"n": "n + 100"}, where="id = 2"))
        return write(*args)

    monkeypatch.setattr("rowsieve.providers.spark.writes.merge_frame.write_rows", racing)
    one = frame(spark, (2, 5, "x"))
    add = {"update": {"n": "source.n + target.n"}}
    commit = table.merge_spark(one, ["id"], when_matched=add)
    assert (commit.version, content(table)[1]) == (2, (2, 107, "b"))
    races.clear()
    with pytest.raises(CommitConflict, match="nothing was committed"):
        table.merge_spark(one, ["id"], when_matched=add, retry_timeout_s=0)
    assert content(table)[1] == (2, 207, "b")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, InvalidInput, "give a clause: when_matched"),
        ({"on": ["n"], "when_matched": "delete"}, UnsupportedOperation, "on= must be the key"),
        ({"when_matched": "insert"}, InvalidInput, "clause 1 needs one of update, delete"),
        ({"when_matched": ["delete", {"delete": "*", "were": "x"}]}, InvalidInput, "clause 2"),
        ({"when_matched": {"delete": "*", "where": 1}}, InvalidInput, "'where' is SQL text"),
        ({"when_matched": {"update": {}}}, InvalidInput, "a dict of column names"),
        ({"when_not_matched_by_source": "update"}, InvalidInput, "no row of the source"),
        ({"when_matched": {"update": {"n": "n"}}}, InvalidPredicate, "(?i)ambiguous"),
        ({"when_matched": {"update": {"n": "source.zz"}}}, InvalidPredicate, "zz"),
        ({"when_matched": {"update": {"zz": "1"}}}, UnknownColumn, "zz"),
        ({"when_matched": {"update": {"n": "1 +"}}}, InvalidPredicate, "n = 1 \\+"),
        ({"when_matched": {"update": {"n": "1.5"}}}, SchemaMismatch, r"cast\(1.5 AS bigint\)"),
        ({"when_matched": {"delete": "*", "where": "1"}}, InvalidPredicate, "not boolean"),
        ({"when_matched": {"update": {"n": "bigint(rand())"}}}, UnsupportedOperation, "differ"),
        ({"when_matched": {"update": {"id": "source.n"}}}, UnsupportedOperation, "key column"),
        ({"when_not_matched": {"insert": {"n": "1"}}}, InvalidInput, "no value for s"),
        (
            {"when_not_matched": {"insert": "*", "where": "target.n = 1"}},
            InvalidPredicate,
            "target",
        ),
        (
            {"when_not_matched_by_source": {"delete": "*", "where": "source.n = 1"}},
            InvalidPredicate,
            "source",
        ),
    ],
)
def test_a_wrong_merge_is_refused_before_it_runs(
    spark: Any, table: rs.Table, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    one = frame(spark, (2, 5, "x"))
    with pytest.raises(error, match=message):
        table.merge_spark(one, **{"on": ["id"], **arguments})
    assert rs.open_table(table.uri).version == 0


def test_a_source_that_differs_each_time_is_named(spark: Any, table: rs.Table) -> None:
    one = frame(spark, (2, 5, "x")).where("rand() < 2")
    with pytest.raises(UnsupportedOperation, match="the source may differ each time"):
        table.merge_spark(one, ["id"], when_matched={"update": {"n": "source.n"}})


def test_frames_that_cannot_be_merged(spark: Any, table: rs.Table) -> None:
    with pytest.raises(InvalidInput, match="must be a Spark DataFrame, not Table"):
        table.merge_spark(rows_of((1, 1, "a")), ["id"], when_matched="delete")
    with pytest.raises(SchemaMismatch, match="its key: the source has no column 'id'"):
        table.merge_spark(frame(spark, (1, 1, "a")).drop("id"), ["id"], when_matched="delete")
    with pytest.raises(KeyViolation, match="'id' is NULL"):
        table.merge_spark(
            frame(spark, (None, 1, "a")), ["id"], when_not_matched={"insert": "*", "where": "true"}
        )


def test_keys_are_equal_as_in_the_table(spark: Any, tmp_path: Path) -> None:
    """Texts of a UUID, and zeros of a float, that Spark or the table reads as one key."""
    key = uuid.uuid4()
    columns = pa.schema([("u", pa.uuid()), ("f", pa.float64()), ("n", pa.int32())])
    rows = pa.Table.from_pylist([{"u": key.bytes, "f": 0.0, "n": 1}], columns)
    table = rs.create_table(str(tmp_path / "k"), rows, key=["u", "f"])
    source = spark.sql(f"SELECT '{str(key).upper()}' AS u, -0.0D AS f, 7 AS n")
    commit = table.merge_spark(
        source,
        ["f", "u"],
        when_matched={"update": {"n": "source.n + target.n"}},
        when_not_matched={"insert": "*", "where": "true"},
    )
    assert (commit.rows_written, table.count()) == (1, 1)
    assert table.scan(columns=["n"]).to_arrow().to_pydict() == {"n": [8]}
