"""Parts in memory are read as parts in files are: random histories, by every reader."""

from __future__ import annotations

import functools
import random
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from datafusion import SessionContext
from hypothesis import given, reject
from hypothesis import strategies as st

from rowsieve import Table
from rowsieve.byte_cache import PROCESS
from rowsieve.errors import CorruptData, EvaluationError, UnreadText, UnsupportedOperation
from rowsieve.executor.execute import Execution
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion import SessionContext as OwnSessionContext
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.storage.parts.memory_rows import read_memory
from tests.oracle_table import Row, bag, to_rows
from tests.parts_in_memory import as_rows, count_in_memory, parts_in_memory
from tests.profiles import examples
from tests.random_tables import build
from tests.small_tables import appended, keyed, kv, pairs
from tests.strategies import COLUMN_TYPES, PAIR, predicates
from tests.table_strategies import TableShape, shape_of
from tests.tables.test_random_scans import DIALECTS, KEYS, VALUES, expected

pytestmark = pytest.mark.usefixtures("tiny_row_groups")


@functools.cache
def table(number: int) -> tuple[Table, TableShape, list[Row]]:
    """A table some of whose parts are in memory, or of numbers 0 and 5 all."""
    key = KEYS[number]
    shape = shape_of({**COLUMN_TYPES, "pair": PAIR}, key)
    turns = random.Random(number)

    def draw(chance: random.Random, name: str) -> Any:
        if name not in key and chance.random() < 0.2:
            return None
        return chance.choice(VALUES[name])

    with parts_in_memory(lambda: number in (0, 5) or turns.random() < 0.6):
        made, rows = build(shape, draw, seed=number)
    assert count_in_memory(made)
    return made, shape, rows


@examples(800)
@given(
    number=st.integers(0, len(KEYS) - 1),
    where=predicates(),
    dialect=st.sampled_from(sorted(DIALECTS)),
    pruning=st.sampled_from(("on", "on", "on", "off", "soft")),
    count=st.sampled_from((False, False, True)),
)
def test_a_scan_gives_the_rows_of_the_oracle(
    number: int, where: ir.Predicate, dialect: str, pruning: Any, count: bool
) -> None:
    made, shape, rows = table(number)
    try:
        matching = expected(rows, shape, where, DIALECTS[dialect])
    except UnreadText:
        reject()
    scan = made.scan(where, dialect=dialect, pruning=pruning)
    if matching is None:
        with pytest.raises((EvaluationError, UnsupportedOperation)):
            scan.to_arrow()
        return
    try:
        if count:
            assert scan.count() == len(matching)
        else:
            assert bag(to_rows(scan.to_arrow(), shape.schema)) == bag(matching)
    except UnreadText:
        reject()


@examples(120)
@given(number=st.integers(0, len(KEYS) - 1), where=predicates(), bound=st.integers(1, 3))
def test_the_splits_of_a_plan_carry_the_rows_to_other_processes(
    number: int, where: ir.Predicate, bound: int
) -> None:  # invariant 39
    made, shape, rows = table(number)
    try:
        matching = expected(rows, shape, where, Semantics.SQL)
    except UnreadText:
        reject()
    if matching is None:
        return
    scan = made.scan(where)
    plan = plan_scan(
        scan._snapshot,
        made.uri,
        predicate=scan.plan().predicate,
        now_us=0,
        split_bytes=bound * 2_000,
        in_process=False,
    )
    plan = ScanPlan.from_bytes(plan.to_bytes())
    batches = [
        batch for split in plan.splits for batch in Execution(plan, made.handle.store).read([split])
    ]
    ours = [row for batch in batches for row in to_rows(pa.table(batch), shape.schema)]
    assert bag(ours) == bag(matching)


CONDITIONS = (
    "k < 3",
    "k = 2",
    "v IS NULL",
    "v > 15 AND k <> 1",
    "k IN (1, 4, 5) OR v = 40",
)


def story(*, in_memory: tuple[bool, ...]) -> Table:
    """Overlapping parts and tombstones; each commit is in memory or not."""
    turns = iter(in_memory)
    with parts_in_memory(lambda: next(turns)):
        made = keyed({"k": [1, 2, 3], "v": [10, 20, None]}, {"k": [2, 4], "v": [21, 40]})
        made.delete(keys={"k": [1]})
        made.upsert(kv((5, 50), (1, None)))
        made.delete("v = 50")
    return made


@pytest.mark.parametrize(
    "in_memory", [(True,) * 5, (False, True) * 3, (True, False) * 3, (False,) * 3 + (True,) * 2]
)
def test_every_reader_sees_the_rows_of_parts_in_memory(in_memory: tuple[bool, ...]) -> None:
    ours, plain = story(in_memory=in_memory), story(in_memory=(False,) * 5)
    assert count_in_memory(ours) == sum(in_memory[:5])
    assert pairs(ours) == pairs(plain)
    contexts: list[Any] = [SessionContext(), OwnSessionContext()]
    for context in contexts:
        context.register_table("ours", ours)
    for where in CONDITIONS:
        rows = as_rows(plain.scan(where).to_arrow())
        assert as_rows(ours.scan(where).to_arrow()) == rows
        for context in contexts:
            query = f"SELECT * FROM ours WHERE {where}"
            assert as_rows(context.sql(query).to_arrow_table()) == rows
            counted = context.sql(f"SELECT count(*) AS n FROM ours WHERE {where}")
            assert counted.to_arrow_table()["n"].to_pylist() == [len(rows)]
        assert ours.scan(where).count() == len(rows)
        assert str(ours.scan(where).explain())
    dataset = ours.to_dataset()
    assert as_rows(dataset.to_table()) == as_rows(plain.scan().to_arrow())
    assert as_rows(dataset.to_table(filter=pads.field("k") < 3)) == as_rows(
        plain.scan("k < 3").to_arrow()
    )
    extremes = "SELECT min(k) AS a, max(k) AS b, max(v) AS c FROM ours"
    for context in contexts:
        assert context.sql(extremes).to_arrow_table().to_pylist() == [{"a": 1, "b": 4, "c": 40}]


def test_the_feed_compaction_and_time_travel_take_parts_in_memory_along() -> None:
    ours, plain = story(in_memory=(True, False) * 3), story(in_memory=(False,) * 5)
    fed = [
        pa.table(each.changes(0, 5)).drop_columns(["_commit_timestamp"]) for each in (ours, plain)
    ]
    assert as_rows(fed[0]) == as_rows(fed[1])
    for version in range(6):
        assert pairs(ours, version=version) == pairs(plain, version=version)
    ours.compact()
    assert count_in_memory(ours) == 0
    assert pairs(ours) == pairs(plain)
    ours.restore(3)
    plain.restore(3)
    assert pairs(ours) == pairs(plain)


def test_an_append_table_hides_rows_of_parts_in_memory() -> None:
    with parts_in_memory():
        ours = appended({"k": [1, 2, 2], "v": [1, 2, 3]}, {"k": [2, 5], "v": [4, None]})
    ours.delete("k = 2")
    assert pairs(ours) == [(1, 1), (5, None)]
    assert count_in_memory(ours) == 2
    ours.compact()
    assert pairs(ours) == [(1, 1), (5, None)]


def test_columns_that_changed_are_read_as_they_are_now() -> None:
    with parts_in_memory():
        ours = keyed(
            {"k": [1, 2], "v": [10, None]}, schema=pa.schema({"k": pa.int64(), "v": pa.int32()})
        )
    ours.add_column("w", pa.int64(), default=7)
    ours.rename_column("v", "u")
    ours.widen_column("u", pa.float64())
    rows = [{"k": 1, "u": 10.0, "w": 7}, {"k": 2, "u": None, "w": 7}]
    assert as_rows(ours.scan().to_arrow()) == rows
    assert as_rows(ours.scan("u > 9.5 AND w = 7").to_arrow()) == rows[:1]
    assert as_rows(ours.scan("w <> 7").to_arrow()) == []
    ours.drop_column("u")
    assert ours.scan().to_arrow().schema.names == ["k", "w"]


def test_damaged_bytes_are_an_error() -> None:
    with parts_in_memory():
        ours = keyed({"k": [1, 2], "v": [10, 20]})
    (ref,) = ours.handle.newest.parts.files("data")
    assert ref is not None
    assert ref.content is not None
    broken = FileRef(
        ref.path, ref.rows, ref.size_bytes, "xxh3_128:0", ref.tail_start, "", content=ref.content
    )
    with pytest.raises(CorruptData, match="checksum"):
        read_memory(broken)
    column = ours.handle.newest.parts.table
    place = column.column_names.index("data.content")
    longer = column.set_column(place, "data.content", pa.array([ref.content + b"x"], pa.binary()))
    with pytest.raises(CorruptData, match="bytes for data/"):
        PartTable.from_ipc(PartTable(longer).to_ipc())


def test_the_cache_counts_the_objects_around_small_values() -> None:
    """A decoded row takes more memory for its columns than for its values."""
    columns = pa.schema([("k", pa.int64()), *((f"c{i}", pa.int64()) for i in range(50))])
    small = keyed(schema=columns, properties={"inline_bytes": 9_000})
    small.upsert(pa.table({name: [1] for name in columns.names}))
    sizes = []
    for _ in range(2):
        sizes += [each.size_bytes for each in PROCESS.usage() if each.name == "rows in memory"]
        assert len(small.to_arrow()) == 1
    assert sizes[1] - sizes[0] > 51 * 1_000
