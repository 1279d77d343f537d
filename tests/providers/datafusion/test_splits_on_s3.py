"""DataFusion over tables on a network store: splits are read by several threads, fetched by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table, clock
from rowsieve.objects import RemoteStore
from rowsieve.planner.cache import PLANS
from rowsieve.predicate.ir import TRUE
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.shared_splits import SharedSplits
from tests.faults.stores import EveryStore
from tests.faults.vocabulary import Fault
from tests.stores.proxy import Proxy, proxy_to
from tests.stores.s3_server import S3
from tests.stores.trips_table import forget

datafusion = pytest.importorskip("datafusion")

PARTS, ROWS = 8, 5
TOTAL = sum(range(PARTS * ROWS))


@pytest.fixture(scope="module")
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


@pytest.fixture(scope="module")
def table(s3: S3, proxy: Proxy) -> Table:
    """A table of parts that do not overlap, each a split of its own."""
    uri = s3.fresh_uri()
    writer = rs.create_table(uri, rows(0), key=["id"], storage_options=s3.options)
    for number in range(1, PARTS):
        writer.upsert(rows(number))
    return rs.open_table(uri, storage_options=S3(proxy.endpoint).options)


def rows(number: int) -> pa.Table:
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": ids, "v": [number] * ROWS})


@pytest.fixture(autouse=True)
def _each_part_is_a_split(monkeypatch: pytest.MonkeyPatch) -> None:
    from rowsieve.providers.datafusion import hybrid_table, registered_table

    for module in (registered_table, hybrid_table):
        monkeypatch.setattr(module, "split_bytes_for_cores", lambda *_, **__: 1)
    forget(monkeypatch)


def session(table: Table, kind: str, partitions: int) -> Any:
    config = datafusion.SessionConfig().with_target_partitions(partitions)
    if kind == "ours":
        from rowsieve.providers.datafusion import SessionContext

        context = SessionContext(config)
    else:
        context = datafusion.SessionContext(config)
    context.register_table("t", table)
    return context


STATEMENTS = {
    "SELECT sum(id) AS n FROM t": TOTAL,
    "SELECT sum(id) AS n FROM t WHERE v >= 3": sum(range(3 * ROWS, PARTS * ROWS)),
    "SELECT count(*) AS n FROM t WHERE id % 2 = 0": PARTS * ROWS // 2,
    "SELECT count(*) AS n FROM t WHERE v IN (2, 5)": 2 * ROWS,
    "SELECT count(*) AS n FROM t AS a JOIN t AS b ON a.id = b.id": PARTS * ROWS,
    "SELECT count(*) AS n FROM (SELECT * FROM t LIMIT 7)": 7,
}


@pytest.mark.parametrize("partitions", [1, 2, 5])
@pytest.mark.parametrize("kind", ["ours", "plain"])
def test_the_splits_of_a_statement_are_fetched_together(
    kind: str, partitions: int, table: Table, proxy: Proxy
) -> None:
    context = session(table, kind, partitions)
    before = len(proxy.requests)
    with proxy.in_lockstep([3, PARTS] if kind == "ours" else [PARTS]) as steps:
        assert context.sql("SELECT sum(id) AS n FROM t").to_pylist() == [{"n": TOTAL}]
    assert steps.stalled is None, steps.stalled
    assert len(proxy.requests) - before == (3 + PARTS if kind == "ours" else PARTS)


@pytest.mark.parametrize("kind", ["ours", "plain"])
def test_each_row_is_read_once(kind: str, table: Table) -> None:
    context = session(table, kind, 2)
    for statement, answer in STATEMENTS.items():
        for _ in range(2):
            assert context.sql(statement).to_pylist() == [{"n": answer}], statement


def test_a_frame_that_is_executed_twice_reads_all_rows_twice(table: Table) -> None:
    frame = session(table, "plain", 3).sql("SELECT id FROM t")
    for _ in range(2):
        ids = [value for batch in frame.collect() for value in batch.column(0).to_pylist()]
        assert sorted(ids) == list(range(PARTS * ROWS))


def test_each_round_of_a_recursive_query_reads_all_rows(table: Table) -> None:
    context = session(table, "plain", 2)
    asked = (
        "WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) "
        "SELECT count(*) AS n FROM r JOIN t ON t.v >= r.n"
    )
    walk = (
        f"WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT t.id + {ROWS} FROM r JOIN t "
        f"ON t.id = r.n WHERE t.id < {ROWS * (PARTS - 1)}) SELECT count(*) AS n FROM r"
    )
    assert context.sql(asked).to_pylist() == [{"n": sum((PARTS - n) * ROWS for n in range(4))}]
    assert context.sql(walk).to_pylist() == [{"n": PARTS}]


def test_an_error_ends_every_split(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = PLANS.plan(
        table.handle.pinned, table.uri, predicate=TRUE, semantics=Semantics.DATAFUSION,
        now_us=clock.now_us(), split_bytes=1, pruning=True,
    )[0]  # fmt: skip
    assert len(plan.splits) == PARTS
    shared = SharedSplits(plan.project(["id"]), table.handle.store, views=False)
    readings = [shared.of(number) for number in range(PARTS)]
    assert shared.of(0) is None  # its second reading
    assert readings[3] is not None
    assert next(readings[3])().num_rows == ROWS
    failing = SharedSplits(plan.project(["id"]), table.handle.store, views=False)
    EveryStore(monkeypatch, RemoteStore).meet_where(Fault.UNAVAILABLE, "get_range")
    forget(monkeypatch)
    for number in (2, 0, 5):
        with pytest.raises(rs.errors.StoreError, match=Fault.UNAVAILABLE.value):
            next(failing.of(number) or iter(()))()
