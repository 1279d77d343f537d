"""DataFusion scans files without their hidden rows, and meets these in no condition that may fail.

The oracle is DataFusion over the visible rows in memory.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datafusion
import numpy as np
import pyarrow as pa
import pytest
from datafusion import col, lit

import rowsieve as rs
from rowsieve.errors import CorruptData
from rowsieve.predicate.rowset import RowSet
from rowsieve.providers.datafusion import SessionContext, final_reads
from rowsieve.providers.datafusion.final_frame import FinalFrame
from rowsieve.providers.datafusion.hidden_rows import VisibleRows
from tests import random_tables
from tests.profiles import IS_DEEP
from tests.providers.datafusion.native_queries import random_query, random_table
from tests.providers.datafusion.test_datafusion_native import UPSTREAM, answer, files, plan_of

ROWS = 400
CHUNKS = 40 if IS_DEEP else 1


@pytest.fixture
def tiny_row_groups() -> Iterator[None]:
    yield from random_tables.tiny_row_groups()


def made(folder: Path) -> tuple[rs.Table, pa.Table]:
    """A table whose hidden rows fail in `1 / i` and in casts of `s`, and its visible rows."""
    ids = np.arange(ROWS)
    gone = ids[(ids % 7 == 3) | (ids > 380) | (ids < 20)]
    poison = np.isin(ids, gone)
    rows = pa.table(
        {
            "id": ids,
            "i": np.where(poison, 0, ids % 9 + 1),
            "s": [("text" if bad else str(n % 50)) for n, bad in zip(ids, poison, strict=True)],
            "x": np.where(poison, np.nan, ids / 4),
        }
    )
    table = rs.create_table(str(folder / "t"), rows, key=["id"])
    table.delete(keys=pa.table({"id": gone[::2]}))
    others = pa.table({"id": gone[1::2], "i": gone[1::2] + 1, "s": ["7"] * len(gone[1::2])})
    table.upsert(others.append_column("x", pa.array([0.5] * others.num_rows)))
    kept = rows.filter(pa.array(~poison))
    return table, pa.concat_tables([kept, others.append_column("x", [[0.5] * others.num_rows])])


def contexts(table: rs.Table, rows: pa.Table) -> tuple[Any, Any]:
    ours, memory = SessionContext(), datafusion.SessionContext()
    ours.register_table("t", table)
    memory.register_record_batches("t", [rows.to_batches()])
    return ours, memory


TOTAL = (
    "SELECT * FROM t",
    "SELECT count(*), sum(i), min(s), max(x), sum(1 / i) FROM t",
    "SELECT 1 / i AS y, s FROM t WHERE x > 3 AND s <> '5'",
    "SELECT i, count(*), sum(CAST(s AS INT)) FROM t WHERE s LIKE '%1%' OR x IS NULL GROUP BY i",
    "SELECT id, 1 / i AS y FROM t ORDER BY y DESC, id LIMIT 7",
    "SELECT id, CAST(s AS INT) AS y FROM t ORDER BY y, id LIMIT 7",
    "SELECT sum(x) FILTER (WHERE 10 / i > 2), i FROM t GROUP BY i HAVING count(*) > 3",
    "SELECT a.id, b.y FROM t a JOIN (SELECT 9 / i AS y, id FROM t) b ON a.i = b.y AND a.s < 'z'",
    "SELECT id, sum(10 / i) OVER (PARTITION BY s ORDER BY id) FROM t",
    "SELECT DISTINCT 5 / i FROM t UNION ALL SELECT CAST(s AS BIGINT) FROM t WHERE i IN (1, 2, 4)",
    "SELECT i FROM t WHERE i IN (SELECT 8 / i FROM t)",
    "SELECT CASE WHEN i > 0 THEN 8 / i END AS y, count(*) FROM t WHERE i < 8 GROUP BY y",
    "SELECT id FROM t WHERE id * 3 BETWEEN 30 AND 600 AND 2 * i + 1 > -x / 0.0",
    "SELECT s FROM t WHERE (i - 5) / 2 = i % 3 OR CAST(i AS DOUBLE) * 9 > x",
    "SELECT a.id, y FROM t a JOIN (SELECT i * 2 AS y FROM t) b ON a.i + 1 = b.y - a.id",
    "SELECT y, z FROM (SELECT i + 1 AS y, 9 / i AS z FROM t) WHERE y * y > 7",
    "SELECT i FROM t WHERE i = (SELECT max(9 / i) FROM t WHERE 9 / i < 5)",  # known by then
)
FAILING = (
    "SELECT a.id FROM t a LEFT JOIN (SELECT CAST(s AS INT) AS y FROM t) b ON a.id = b.y",
    "SELECT id FROM t WHERE 1 / i >= 0",
    "SELECT id FROM t WHERE CAST(s AS INT) >= 0 AND x > 1",
    "SELECT a.id FROM t a JOIN t b ON CAST(a.s AS INT) = b.i",
    "SELECT y FROM (SELECT 9 / i AS y FROM t) WHERE y > 2",
    "SELECT y, count(*) FROM (SELECT 9 / i AS y FROM t) GROUP BY y HAVING y > 2",
    "SELECT id, (SELECT max(i) FROM t WHERE 9 / i < 5) FROM t",
    "SELECT sum(i * (SELECT max(i) FROM t WHERE 9 / i < 5)) FROM t",
    "SELECT id FROM t WHERE x * random() >= 0 AND 1 / i >= 0",
    "SELECT id FROM (SELECT id, 9 / i + CAST(random() AS INT) * 0 AS y FROM t) WHERE y > 2",
    "SELECT y FROM (SELECT 9 / i AS y, random() AS r FROM t) WHERE y > 2 OR r > 7",
    "SELECT id FROM t WHERE id * 3 > 4 AND 10 % i < 5 AND id * 3 < 4000",
    "SELECT id FROM t WHERE i + CAST(s AS BIGINT) > 4",
    "SELECT id FROM t WHERE -i < 4",
    "SELECT id FROM t WHERE arrow_cast(x * 4, 'Int32') * 2 > 4",
)


@pytest.mark.parametrize("query", TOTAL)
def test_statements_that_fail_on_no_row_scan_without_hidden_rows(
    tmp_path: Path, tiny_row_groups: None, query: str
) -> None:
    ours, memory = contexts(*made(tmp_path))
    assert isinstance(ours.sql(query), FinalFrame)
    assert "without their hidden rows" in plan_of(ours, query, runs=True)
    assert answer(ours, query, ordered=False) == answer(memory, query, ordered=False)


@pytest.mark.parametrize("query", FAILING)
def test_conditions_that_may_fail_never_meet_a_hidden_row(tmp_path: Path, query: str) -> None:
    ours, memory = contexts(*made(tmp_path))
    ours.sql("SELECT * FROM t").collect()  # the visible rows are known from now on
    assert not isinstance(ours.sql(query), FinalFrame)
    assert answer(ours, query, ordered=False) == answer(memory, query, ordered=False)


def test_conditions_that_are_added_to_a_frame_never_meet_a_hidden_row(tmp_path: Path) -> None:
    ours, memory = contexts(*made(tmp_path))

    def texts(context: Any) -> list[Counter[str]]:
        frame = context.sql("SELECT * FROM t WHERE x >= 0 OR x IS NULL")
        divided = lit(9) / col("i") > lit(1)
        context.register_view("v", frame)
        other = context.sql("SELECT id AS k, i AS n FROM t").filter(lit(9) / col("n") > lit(2))
        found = [
            frame.filter(divided),
            frame.select("id", "i").filter(divided),
            frame.sort(col("id")).filter(divided).limit(1000),
            frame.join(other, left_on="id", right_on="k", how="inner").select("id"),
            other.join(frame, left_on="k", right_on="id", how="inner").select("id"),
            frame.union(frame).filter(divided),
            frame.with_column("y", lit(9) / col("i")).filter(col("y") > lit(1)),
            context.sql("SELECT id FROM v WHERE 9 / i > 1 AND CAST(s AS INT) < 30"),
            context.sql("SELECT id FROM $f WHERE CAST(s AS INT) < 30", f=frame),
            frame.aggregate([col("i")], [col("i").alias("n")]).filter(divided),
        ]
        return [Counter(map(repr, each.to_pylist())) for each in found]

    assert isinstance(ours.sql("SELECT * FROM t WHERE x >= 0 OR x IS NULL"), FinalFrame)
    assert texts(ours) == texts(memory)


def test_views_and_prepared_statements_never_meet_a_hidden_row(tmp_path: Path) -> None:
    ours, memory = contexts(*made(tmp_path))
    queries = (
        "SELECT count(*), max(x) FROM v",
        "SELECT id FROM v WHERE 9 / i > 1",
        "SELECT a.id FROM v a JOIN t b ON CAST(a.s AS INT) = b.i",
        "EXECUTE p(1)",
    )
    answers = []
    for context in (ours, memory):
        context.sql("CREATE VIEW v AS SELECT * FROM t WHERE x IS NOT NULL OR s <> ''")
        context.sql("PREPARE p(BIGINT) AS SELECT id FROM t WHERE 9 / i > $1")
        found = [answer(context, query, ordered=False) for query in queries]
        added = context.table("v").filter(lit(9) / col("i") > lit(1)).to_pylist()
        answers.append([*found, Counter(map(repr, added))])
    assert answers[0] == answers[1]
    assert isinstance(ours.sql(queries[0]), FinalFrame)


def test_all_calls_that_run_a_statement_give_the_same_rows(tmp_path: Path) -> None:
    ours, memory = contexts(*made(tmp_path))
    query = "SELECT id, s FROM t ORDER BY id"
    frame, expected = ours.sql(query), memory.sql(query)
    assert isinstance(frame, FinalFrame)
    rows = expected.to_pylist()
    assert frame.to_pylist() == rows
    assert frame.count() == frame.cache().count() == len(rows)
    assert frame.to_pydict() == expected.to_pydict()
    assert pa.Table.from_batches(frame.collect()).to_pylist() == rows
    assert pa.table(frame).to_pylist() == frame.to_arrow_table().to_pylist() == rows
    assert [row for batch in frame for row in batch.to_pyarrow().to_pylist()] == rows
    assert frame.collect_column("id").to_pylist() == [row["id"] for row in rows]
    parts = [batch for each in frame.collect_partitioned() for batch in each]
    assert sum(batch.num_rows for batch in parts) == len(rows)
    streams = [batch for each in frame.execute_stream_partitioned() for batch in each]
    assert sum(batch.to_pyarrow().num_rows for batch in streams) == len(rows)
    assert list(frame.to_pandas()["id"]) == frame.to_polars()["id"].to_list()
    assert "VisibleRows" not in str(frame.logical_plan())
    assert "rowsieve_visible" in frame.execution_plan().display_indent()


def test_a_limit_alone_reads_hidden_rows_by_us(tmp_path: Path) -> None:
    ours, memory = contexts(*made(tmp_path))
    rows = Counter(map(repr, memory.sql("SELECT * FROM t").to_pylist()))
    for is_known in (False, True):
        for taken, query in (
            (5, "SELECT * FROM t LIMIT 5"),
            (7, "SELECT * FROM (SELECT * FROM t LIMIT 9) LIMIT 7 OFFSET 1"),
            (3, "SELECT * FROM t LIMIT 3 OFFSET 200"),
            (sum(rows.values()) - 1, "SELECT * FROM t LIMIT 100000 OFFSET 1"),
        ):
            frame = ours.sql(query)
            assert not isinstance(frame, FinalFrame), is_known
            found = Counter(map(repr, frame.to_pylist()))
            assert sum(found.values()) == taken
            assert not found - rows
        ours.sql("SELECT x FROM t")


def test_a_condition_on_the_key_is_read_by_us(tmp_path: Path) -> None:
    ours, _ = contexts(*made(tmp_path))
    for query in (
        "SELECT * FROM t WHERE id > 5",
        "SELECT * FROM t WHERE s = '1' AND id IN (1, 2)",
    ):
        assert not isinstance(ours.sql(query), FinalFrame)
    assert isinstance(ours.sql("SELECT * FROM t ORDER BY x LIMIT 5"), FinalFrame)
    assert isinstance(ours.sql("SELECT * FROM t WHERE id * 2 > 5"), FinalFrame)


def test_each_version_has_its_own_hidden_rows(tmp_path: Path) -> None:
    table, rows = made(tmp_path)
    ours, _ = contexts(table, rows)
    before = ours.sql("SELECT id FROM t")
    old = rs.open_table(table.uri, version=0)
    ours.register_table("old", old)
    table.delete(keys=pa.table({"id": [25, 26]}))
    assert ours.sql("SELECT id FROM t").count() == before.count() - 2
    assert ours.sql("SELECT id FROM t").to_arrow_table().num_rows == rows.num_rows - 2
    assert before.to_arrow_table().num_rows == rows.num_rows
    both = "SELECT count(*) AS n FROM old LEFT ANTI JOIN t ON old.id = t.id"
    assert ours.sql(both).to_pylist() == [{"n": ROWS - (rows.num_rows - 2)}]


def test_the_batch_size_of_the_session_stays(tmp_path: Path) -> None:
    ours, _ = contexts(*made(tmp_path))
    before = ours.sql("SHOW ALL").to_pylist()
    ours.sql("SELECT * FROM t").collect()
    assert ours.sql("SHOW ALL").to_pylist() == before
    ours.sql("SET datafusion.execution.batch_size = 64").collect()
    frame = ours.sql("SELECT * FROM t")
    assert isinstance(frame, FinalFrame)
    assert max(batch.num_rows for batch in frame.collect()) <= 64


@pytest.mark.parametrize("query", ["SELECT * FROM t", "SELECT * FROM t WHERE x > 1"])
def test_batches_of_many_columns_have_fewer_rows(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = contexts(*made(tmp_path))
    monkeypatch.setattr(final_reads, "_SHORT_BATCH_ROWS", 1)
    monkeypatch.setattr(final_reads, "_LONG_BATCH_VALUES", 200)
    frame = ours.sql(query)
    assert isinstance(frame, FinalFrame)
    assert {batch.num_rows for batch in frame.collect()} <= set(range(51))  # of four columns
    narrow = ours.sql(query.replace("*", "count(x)")).collect()
    assert sum(batch.num_rows for batch in narrow) == 1


def test_a_file_with_hidden_rows_that_vanishes_is_an_error(tmp_path: Path) -> None:
    table, rows = made(tmp_path)
    ours, _ = contexts(table, rows)
    frame = ours.sql("SELECT count(x) FROM t")
    assert isinstance(frame, FinalFrame)
    largest = max(files(table), key=lambda path: path.stat().st_size)
    largest.unlink()
    with pytest.raises(Exception, match="is missing: data/"):
        frame.collect()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_queries_have_the_answers_of_memory(
    chunk: int, tmp_path: Path, tiny_row_groups: None
) -> None:
    chance = random.Random(1000 + chunk)
    config = {
        "datafusion.execution.target_partitions": chance.choice("1248"),
        "datafusion.execution.batch_size": chance.choice(("8192", "64")),
        "datafusion.optimizer.repartition_file_min_size": chance.choice(("0", "10485760")),
    }
    ours, memory = SessionContext(datafusion.SessionConfig(config)), datafusion.SessionContext()
    for name in ("t", "u"):
        table, rows = random_table(chance, tmp_path / name)
        ours.register_table(name, table)
        memory.register_record_batches(name, [rows.to_batches()])
        ours.sql(f"SELECT * FROM {name}")  # finds the visible rows
    final = 0
    for _ in range(60 if IS_DEEP else 25):
        query, ordered = random_query(chance)
        expected = answer(memory, query, ordered=ordered)
        if isinstance(expected, Exception):
            continue
        final += isinstance(ours.sql(query), FinalFrame)
        found = answer(ours, query, ordered=ordered)
        if not any(text in str(found) for text in UPSTREAM):
            assert found == expected, query
    assert final > (8 if IS_DEEP else 2)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_rows_are_looked_up_by_their_numbers_in_any_order(share: float) -> None:
    rng = np.random.default_rng(7)
    mask = rng.random(1000) >= share
    visible = VisibleRows("data/f", RowSet.from_mask(mask))
    for size in (0, 1, 2, 8, 63, 400):
        start = int(rng.integers(0, 1000 - size))
        run = np.arange(start, start + size)
        swapped = run.copy()
        swapped[1:-1] = swapped[1:-1][::-1]  # the ends are those of a run
        repeated = np.sort(rng.integers(0, 1000, size))
        for numbers in (run, swapped, repeated, rng.permutation(1000)[:size]):
            assert visible(pa.array(numbers)).to_pylist() == mask[numbers].tolist()
    for wrong in ([-1], [1000], [0, 999, 1000], [3, -1, 4]):
        with pytest.raises(CorruptData, match=r"data/f has a row .* restore the file"):
            visible(pa.array(wrong, pa.int64()))
