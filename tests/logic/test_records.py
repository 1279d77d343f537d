"""Records are read as sqllogictest means them, and a wrong answer is noticed."""

from __future__ import annotations

from pathlib import Path

import datafusion
import pyarrow as pa
import pytest

from tests.logic.pair import Pair
from tests.logic.records import Query, Statement, records
from tests.logic.script import run_ours

TEXT = """\
# A comment, then settings that are passed over.
hash-threshold 8

statement ok
CREATE TABLE t (a int)
  AS VALUES (1);

statement error not found
DROP TABLE u

skipif datafusion
statement ok
not for us

onlyif sqlite # nor this
query I nosort
neither

onlyif DataFusion
skipif postgres
query IT rowsort label-1
SELECT 1, 'x'
----
1 x

query I
SELECT a FROM t

query I valuesort
SELECT a FROM t WHERE FALSE
----

query error No field
SELECT b FROM t

skipif datafusion
halt

statement count 1
INSERT INTO t VALUES (2)

halt

statement ok
never
"""


def test_records_of_other_engines_and_after_a_halt_are_skipped() -> None:
    assert list(records(TEXT)) == [
        Statement(4, "CREATE TABLE t (a int)\n  AS VALUES (1)"),
        Statement(8, "DROP TABLE u", "not found"),
        Query(21, "SELECT 1, 'x'", "rowsort", ("1 x",)),
        Query(26, "SELECT a FROM t"),
        Query(29, "SELECT a FROM t WHERE FALSE", "valuesort", ()),
        Query(33, "SELECT b FROM t", error="No field"),
        Statement(39, "INSERT INTO t VALUES (2)"),
    ]


@pytest.mark.parametrize("merges", [True, False])
def test_a_table_that_differs_is_noticed(merges: bool) -> None:
    pair = Pair(merges=merges)
    pair.statement("CREATE TABLE t (a int, b varchar) AS VALUES (1, 'x'), (2, 'y'), (3, NULL)")
    pair.compare(1, "SELECT * FROM t")
    assert pair.outcome.compared == 1
    wrong = pa.table({"a": pa.array([1, 2, 4], pa.int32()), "b": ["x", "y", None]})
    pair.ours.deregister_table("t")
    pair.ours.register_record_batches("t", [wrong.to_batches()])
    pair.compare(2, "SELECT sum(a) FROM t")
    pair.compare(3, "SELECT a FROM t LIMIT 1")
    pair.compare(4, "SELECT b FROM t WHERE a > 3")
    assert [line for line, _ in pair.outcome.wrong] == [2, 4]


def test_an_answer_that_depends_on_the_order_of_rows_is_not_compared() -> None:
    pair = Pair()
    pair.statement("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 100)")
    pair.compare(1, "SELECT a FROM t LIMIT 1")
    pair.compare(2, "SELECT first_value(a) FROM t")
    assert pair.outcome.wrong == []


def test_a_table_is_given_again_after_it_changed() -> None:
    pair = Pair()
    pair.statement("CREATE TABLE t (a int) AS VALUES (1)")
    pair.compare(1, "SELECT sum(a) FROM t")
    pair.compare(2, "INSERT INTO t VALUES (41)")
    assert pair.answers("SELECT sum(a) FROM t") == ([(42,)], [(42,)])
    pair.statement("DROP TABLE t")
    assert all(isinstance(answer, Exception) for answer in pair.answers("SELECT * FROM t"))


@pytest.mark.parametrize(
    "text",
    [
        "query I\nSELECT 1\n----\n2\n",
        "query error no such thing\nSELECT 1\n",
        "query error no such thing\nSELECT b\n",
        "statement error\nSELECT 1\n",
        "statement ok\nSELECT b\n",
        "query I\nSELECT b\n",
    ],
)
def test_our_own_files_are_checked(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.slt"
    path.write_text(text)
    assert run_ours(path, merges=True).wrong


def test_tables_are_ours_with_rows_that_were_written_more_than_once() -> None:
    pair = Pair()
    pair.statement("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10)")
    assert pair.answers("SELECT count(*) FROM t")[1] == [(10,)]
    assert isinstance(pair.ours, datafusion.SessionContext)
    plan = pair.ours.sql("SELECT a FROM t").execution_plan().display_indent()
    assert "DatasetExec" in plan
