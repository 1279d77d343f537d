"""Random predicates through DataFusion: against the oracle, and against DataFusion in memory.

What DataFusion pushes into a table it does not apply again, so every pushed filter must be answered
exactly as DataFusion would have.
"""

from __future__ import annotations

import functools
import re

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from datafusion import SessionContext
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from rowsieve.bridges.differences import Direction, check
from rowsieve.bridges.sql import to_sql
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from tests.oracle import Answer, Oracle
from tests.profiles import examples
from tests.random_tables import EVERYTHING, everything, memory_table
from tests.table_strategies import predicates

TABLES = 2


pytestmark = pytest.mark.usefixtures("tiny_row_groups")


@functools.cache
def context() -> SessionContext:
    made = SessionContext()
    for number in range(TABLES):
        table, rows = everything(number)
        made.register_table(f"ours{number}", table)
        made.register_record_batches(
            f"theirs{number}", [memory_table(rows, EVERYTHING).to_batches()]
        )
    return made


UPSTREAM = r"unsupported operand type|Function 'bit_wise_(and|or)' has no kernel"  # the last test


def keys(query: str) -> list[int]:
    try:
        found: list[int] = context().sql(query).to_arrow_table()["k"].to_pylist()
    except Exception as error:  # CAST(NULL AS TIME) has nanoseconds and compares with none of ours
        assume(re.search(UPSTREAM, str(error)) is None and "Time64(ns)" not in str(error))
        raise
    return sorted(found)


def rendered(where: Predicate) -> str:
    """Its text, unless DataFusion's optimiser makes another condition of it."""
    root = bind(where, EVERYTHING.schema, Semantics.DATAFUSION, simplified=False).root
    try:
        check(root, "datafusion", Direction.READS | Direction.IN_CONJUNCTION)
        return to_sql(where, "datafusion")
    except UnsupportedOperation:
        reject()


numbers = st.integers(0, TABLES - 1)


@examples(500)
@given(
    number=numbers,
    where=predicates(EVERYTHING, functions=False),
    count=st.sampled_from((False, False, True)),
)
def test_datafusion_gives_the_rows_of_the_oracle(
    number: int, where: Predicate, count: bool
) -> None:
    _, rows = everything(number)
    text = rendered(where)
    oracle = Oracle(EVERYTHING.schema, Semantics.DATAFUSION)
    expected = sorted(row["k"] for row in rows if oracle.judge(where, row) is Answer.TRUE)
    if count:
        assert keys(f"SELECT count(*) AS k FROM ours{number} WHERE {text}") == [len(expected)], text
    else:
        assert keys(f"SELECT k FROM ours{number} WHERE {text}") == expected, text


@examples(150)
@given(number=numbers, where=predicates(EVERYTHING))
def test_datafusion_answers_as_from_memory(number: int, where: Predicate) -> None:
    text = rendered(where)
    try:
        expected = keys(f"SELECT k FROM theirs{number} WHERE {text}")
    except Exception:  # its errors have no class of their own; it fails on rows it need not judge
        return
    assert keys(f"SELECT k FROM ours{number} WHERE {text}") == expected, text


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM {t}",
        "SELECT count(v0) AS n, count(DISTINCT v3) AS m FROM {t}",
        "SELECT min(v3) AS a, max(v3) AS b, sum(v1) AS c FROM {t}",
        "SELECT v8, count(*) AS n FROM {t} GROUP BY v8 ORDER BY v8",
        "SELECT a.k, b.k AS other FROM {t} a JOIN {t} b ON a.v3 = b.v3 WHERE a.k < 9 ORDER BY 1, 2",
        "SELECT * FROM {t} ORDER BY k",
        "SELECT k FROM {t} WHERE v3 > 0 ORDER BY k DESC LIMIT 3",
        "SELECT k FROM {t} WHERE k IN (SELECT v3 FROM {t}) ORDER BY k",
        "SELECT k FROM {t} WHERE v8 LIKE 'a%' AND lower(v8) <> 'ab' ORDER BY k",
        "SELECT k FROM {t} WHERE v5 > 1 UNION ALL SELECT k FROM {t} WHERE v5 <= 1 ORDER BY k",
        "SELECT k, v13 FROM {t} WHERE v13 < now() ORDER BY k",
        "SELECT k FROM {t} WHERE extract(year FROM v12) = 2013 ORDER BY k",
        "SELECT k FROM {t} WHERE false",
    ],
)
@pytest.mark.parametrize("number", range(TABLES))
def test_whole_queries(number: int, query: str) -> None:
    ours = context().sql(query.format(t=f"ours{number}")).to_arrow_table()
    theirs = context().sql(query.format(t=f"theirs{number}")).to_arrow_table()
    assert ours.schema.types == theirs.schema.types
    assert repr(ours.to_pydict()) == repr(theirs.to_pydict())


@pytest.mark.parametrize("where", ["v IN (NULL, 1)", "v = NULL AND v = 1"])
def test_a_folded_null_is_beyond_datafusion_over_any_dataset(where: str) -> None:
    """It makes `NULL OR v = 1` of it and cannot hand that to Python; when this fails, it can."""
    made = SessionContext()
    made.register_dataset("t", pads.dataset(pa.table({"v": [1, 2]})))
    with pytest.raises(Exception, match=UPSTREAM):
        made.sql(f"SELECT v FROM t WHERE {where}").to_arrow_table()
