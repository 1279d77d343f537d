"""Stored deletion vectors of tables with a key change no result, whenever they were built.

Histories of every operation that a table with a key has, with vectors built, merged and damaged in
between, against a dictionary. Every version is then read by a process that knows nothing: by the
vectors, and with all of them withheld.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.changes.table_handle import Handle
from rowsieve.compaction.rewrite_passes import Compaction
from rowsieve.errors import UnsupportedOperation, UnsupportedProtocol
from rowsieve.executor import live_rows, stored_vectors
from rowsieve.executor.merging.visibility import VisibilityCache, visible_rows
from rowsieve.objects import RemoteStore
from rowsieve.planner import part_facts
from rowsieve.planner.cache import PLANS
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import VECTORS_WRITER
from tests import random_tables
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Crash, Fault
from tests.profiles import judged, some
from tests.small_tables import appended, fresh_uri, keyed, kv, meddled, pairs

State = Mapping[int, int]
KEYS = 20


@pytest.fixture(autouse=True, scope="module")
def tiny_row_groups() -> Iterator[None]:
    yield from random_tables.tiny_row_groups(4)


@contextmanager
def a_fresh_process(*, withheld: bool = False) -> Iterator[None]:
    """Nothing is cached; `withheld`: the manifest has no vectors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_rows, "_VISIBLE", VisibilityCache())
        forget_plans()
        if withheld:
            patch.setattr(PartTable, "vectors", lambda self: [None] * len(self))
        yield
    forget_plans()


def forget_plans() -> None:
    PLANS.clear()


@contextmanager
def across_a_network(*, is_across: bool = True) -> Iterator[None]:
    """Requests of stores in memory overlap."""
    with pytest.MonkeyPatch.context() as patch:
        if is_across:
            patch.setattr(RemoteStore, "overlaps", property(lambda _: True))
        yield


@dataclass(frozen=True)
class Step:
    """One operation on the keys whose bit is set; `number` varies it."""

    kind: str
    keys: int
    number: int

    @property
    def chosen(self) -> list[int]:
        return [key for key in range(KEYS) if self.keys >> key & 1]


KINDS = (
    *("upsert", "upsert", "upsert", "delete", "delete where", "update", "build", "build"),
    *("build some", "merge vectors", "compact", "restore", "restore", "overwrite", "expire"),
    *("add column", "widen key", "damage", "lose"),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    steps = st.builds(
        Step, st.sampled_from(KINDS), st.integers(1, 2**KEYS - 1), st.integers(0, 1000)
    )
    first = Step("upsert", draw(st.integers(1, 2**KEYS - 1)), 0)
    return [first, *draw(st.lists(steps, min_size=4, max_size=14))]


class Played:
    """A table, and by version the rows that it should show."""

    def __init__(self, *, eager: bool = False, in_files: bool = False) -> None:
        self.table = rs.create_table(
            fresh_uri(),
            pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.int64())]),
            key=["k"],
            properties={
                "target_part_bytes": "1",
                "checkpoint_interval": "3",
                **({"visibility": "eager"} if eager else {}),
                **({"inline_bytes": "0"} if in_files else {}),
            },
        )
        self.versions: list[State] = [{}]
        self.oldest = 0

    def play(self, step: Step) -> None:
        state = dict(self.versions[-1])
        getattr(self, step.kind.replace(" ", "_"))(step, state)
        while len(self.versions) <= self.table.refresh():
            self.versions.append(state)

    def data(self, values: Mapping[int, int]) -> pa.Table:
        schema = self.table.schema
        known = {"k": list(values), "v": list(values.values())}
        none = [None] * len(values)
        return pa.table([pa.array(known.get(f.name, none), f.type) for f in schema], schema=schema)

    def upsert(self, step: Step, state: dict[int, int]) -> None:
        found = {key: step.number + key for key in step.chosen}
        self.table.upsert(self.data(found))
        state.update(found)

    def delete(self, step: Step, state: dict[int, int]) -> None:
        self.table.delete(keys=self.data(dict.fromkeys(step.chosen, 0)).select(["k"]))
        for key in step.chosen:
            state.pop(key, None)

    def delete_where(self, step: Step, state: dict[int, int]) -> None:
        self.table.delete(f"v % 3 = {step.number % 3} AND k < {step.number % KEYS}")
        for key, value in list(state.items()):
            if value % 3 == step.number % 3 and key < step.number % KEYS:
                del state[key]

    def update(self, step: Step, state: dict[int, int]) -> None:
        self.table.update({"v": "v + 1"}, where=f"v % 2 = {step.number % 2}")
        state.update({k: v + 1 for k, v in state.items() if v % 2 == step.number % 2})

    def build(self, _step: Step, _state: dict[int, int]) -> None:
        self.table.build_deletion_vectors()

    def build_some(self, step: Step, _state: dict[int, int]) -> None:
        self.table.build_deletion_vectors(f"k = {step.number % KEYS}")

    def merge_vectors(self, _step: Step, _state: dict[int, int]) -> None:
        self.table.rewrite_position_delete_files()

    def compact(self, _step: Step, _state: dict[int, int]) -> None:
        self.table.compact()

    def restore(self, step: Step, state: dict[int, int]) -> None:
        version = self.oldest + step.number % (len(self.versions) - self.oldest)
        try:
            self.table.restore(version)
        except UnsupportedOperation:
            return  # the columns have changed since
        state.clear()
        state.update(self.versions[version])

    def overwrite(self, step: Step, state: dict[int, int]) -> None:
        found = dict.fromkeys(step.chosen, step.number)
        self.table.overwrite(self.data(found))
        state.clear()
        state.update(found)

    def expire(self, step: Step, _state: dict[int, int]) -> None:
        done = self.table.vacuum(retain_last=1 + step.number % 3, grace_s=0.0)
        self.oldest = done.oldest_version

    def add_column(self, step: Step, _state: dict[int, int]) -> None:
        name = f"c{step.number}"
        if name not in self.table.schema.names:
            self.table.add_column(name, pa.int64())

    def widen_key(self, _step: Step, _state: dict[int, int]) -> None:
        if self.table.schema.field("k").type == pa.int32():
            self.table.widen_column("k", pa.int64())

    def damage(self, step: Step, _state: dict[int, int]) -> None:
        for path in self.vector_files()[step.number % 2 :: 2]:
            data = bytearray(self.table.handle.store.get(path))
            data[step.number % len(data)] ^= 1 + step.number % 255
            self.table.handle.store.delete([path])
            self.table.handle.store.put_new(path, bytes(data))

    def lose(self, step: Step, _state: dict[int, int]) -> None:
        self.table.handle.store.delete(self.vector_files()[step.number % 2 :: 2])

    def vector_files(self) -> list[str]:
        return [path for path in self.table.handle.store.list("data") if path.endswith(".vectors")]


@given(
    steps=histories(),
    key=st.integers(0, KEYS),
    looked_up=st.booleans(),
    eager=st.booleans(),
    is_across=st.booleans(),
    in_files=st.booleans(),
)
@judged(60)
def test_vectors_of_any_moment_change_no_result(
    steps: list[Step], key: int, looked_up: bool, eager: bool, is_across: bool, in_files: bool
) -> None:  # invariants I3 and I4
    played = Played(eager=eager, in_files=in_files)
    for step in steps:
        with a_fresh_process(), across_a_network(is_across=is_across):
            played.play(step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_vectors, "LOOKED_UP_TO_SHARE", 4.0 if looked_up else 0.0)
        for version in range(played.oldest, len(played.versions)):
            check(played, version, key)


def check(played: Played, version: int, key: int) -> None:
    """The version has the rows of the model, by every kind of read of a fresh process."""
    expected = sorted(played.versions[version].items())
    for withheld in (False, True):
        with a_fresh_process(withheld=withheld):
            table = rs.open_table(played.table.uri, version=version)
            assert rows(table.scan(columns=["k", "v"])) == expected
        with a_fresh_process(withheld=withheld):
            assert table.scan().count() == len(expected)
            where = f"k >= {key} AND v % 2 = 0"
            chosen = [(k, v) for k, v in expected if k >= key and v % 2 == 0]
            assert rows(table.scan(where, columns=["k", "v"])) == chosen
    with a_fresh_process():
        assert rows(table.scan(f"k = {key}")) == [(k, v) for k, v in expected if k == key]
    with a_fresh_process():
        ordered = table.scan(columns=["k", "v"], order_by_key=True).to_arrow()
        assert list(zip(*ordered.to_pydict().values(), strict=True)) == expected
    with a_fresh_process():
        snapshot, uri = table.handle.pinned, table.handle.store.uri
        plan = plan_scan(snapshot, uri, now_us=0, split_bytes=1, in_process=False)
        found = []
        for data in plan.splits_to_bytes():
            with a_fresh_process():
                found += rs.read_split(data).read_all().to_pylist()
        assert sorted((row["k"], row["v"]) for row in found) == expected


def rows(scan: Any) -> list[tuple[int, int]]:
    return sorted((row["k"], row["v"]) for row in scan.to_arrow().to_pylist())


def two_versions() -> rs.Table:
    """Keys 0 to 9 at version 1, and the even ones again at version 2."""
    table = keyed({"k": range(10), "v": [1] * 10})
    table.upsert(kv(*((k, 2) for k in range(0, 10, 2))))
    return table


EVENS_LAST = [(k, 2 - k % 2) for k in range(10)]


def test_what_is_committed_while_vectors_are_built_still_hides_rows() -> None:
    table = two_versions()

    def upsert_once(attempt: int) -> None:
        if not attempt:
            rs.open_table(table.uri).upsert(kv((1, 3)))

    meddled(table, upsert_once).build_deletion_vectors()
    with a_fresh_process():
        assert pairs(rs.open_table(table.uri)) == [(0, 2), (1, 3), *EVENS_LAST[2:]]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda table: table.restore(1), id="restore"),
        pytest.param(lambda table: table.compact(), id="compact"),
        pytest.param(lambda table: table.overwrite(kv((1, 1))), id="overwrite"),
        pytest.param(lambda table: table.build_deletion_vectors(), id="build"),
    ],
)
def test_vectors_of_parts_that_were_replaced_meanwhile_are_built_again(change: Any) -> None:
    table = two_versions()
    expected: list[Any] = []

    def replace_once(attempt: int) -> None:
        if not attempt:
            other = rs.open_table(table.uri)
            change(other)
            expected.extend(pairs(other))

    meddled(table, replace_once).build_deletion_vectors()  # invariant 13
    with a_fresh_process():
        assert pairs(rs.open_table(table.uri)) == expected


def test_a_compaction_starts_again_when_its_parts_got_vectors() -> None:
    table = two_versions()

    def build_once(attempt: int) -> None:
        if not attempt:
            rs.open_table(table.uri).build_deletion_vectors()

    meddled(table, build_once).compact()
    with a_fresh_process():
        found = rs.open_table(table.uri)
        assert pairs(found) == EVENS_LAST
        assert len(found.handle.pinned.parts) == 1


def test_properties_set_while_the_first_vectors_are_built_stay() -> None:
    table = two_versions()

    def set_once(attempt: int) -> None:
        if not attempt:
            rs.open_table(table.uri).set_properties({"checkpoint_interval": "7"})

    meddled(table, set_once).build_deletion_vectors()
    found = rs.open_table(table.uri).handle.pinned.table
    assert found.properties["checkpoint_interval"] == "7"
    assert found.writer_version == VECTORS_WRITER


def test_a_complete_vector_answers_without_reading_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    table = two_versions()
    table.build_deletion_vectors()

    def refuse(*_: Any) -> None:
        raise AssertionError("visibility was resolved by keys")

    monkeypatch.setattr(stored_vectors, "visible_rows", refuse)
    monkeypatch.setattr(live_rows.LiveRows, "merged", refuse)
    with a_fresh_process():
        assert pairs(rs.open_table(table.uri)) == EVENS_LAST
    with a_fresh_process():
        found = table.scan(order_by_key=True).to_arrow().column("v").to_pylist()
        assert found == [v for _, v in EVENS_LAST]


def test_a_count_with_complete_vectors_opens_no_file() -> None:
    table = two_versions()
    table.build_deletion_vectors()
    table.handle.store.delete(list(table.handle.store.list("data")))
    with a_fresh_process():
        assert rs.open_table(table.uri).count() == 10


def test_only_parts_that_later_commits_may_hide_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = keyed({"k": range(400), "v": [1] * 400}, {"k": range(0, 400, 2), "v": [2] * 200})
    table.build_deletion_vectors()
    table.upsert(kv((7, 3)))
    opened: list[int] = []
    former = visible_rows

    def counted(streams: Any, counts: Any, order: Any) -> Any:
        def noted(batches: Any) -> Any:
            for start, batch in batches:
                opened.append(batch.num_rows)
                yield start, batch

        again = [replace(stream, batches=noted(stream.batches)) for stream in streams]
        return former(again, counts, order)

    monkeypatch.setattr(stored_vectors, "visible_rows", counted)
    with a_fresh_process():
        expected = [(k, 3 if k == 7 else 2 - k % 2) for k in range(400)]
        assert rows(rs.open_table(table.uri).scan()) == expected
    assert 0 < sum(opened) < 20


@pytest.mark.parametrize("harm", ["lost", "changed", "shorter", "of another part"])
def test_a_harmed_vector_is_ignored(harm: str, caplog: pytest.LogCaptureFixture) -> None:
    table = two_versions()
    table.build_deletion_vectors()
    (path,) = (path for path in table.handle.store.list("data") if path.endswith(".vectors"))
    data = table.handle.store.get(path)
    table.handle.store.delete([path])
    if harm != "lost":
        other = RowSet.from_ids(np.array([1, 3]), 10).to_bitmap().serialize()
        harmed = {"changed": bytes([*data[:-1], 77]), "shorter": data[:-1]}.get(harm, other)
        table.handle.store.put_new(path, harmed)
    with a_fresh_process():
        assert rows(rs.open_table(table.uri).scan()) == EVENS_LAST
    assert path in caplog.text
    assert table.build_deletion_vectors().committed
    caplog.clear()
    with a_fresh_process():
        assert pairs(rs.open_table(table.uri)) == EVENS_LAST
    assert caplog.text == ""


def test_vectors_are_of_tables_with_a_key() -> None:
    with pytest.raises(UnsupportedOperation, match="no key"):
        appended({"k": [1], "v": [1]}).build_deletion_vectors()


def test_older_writers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = two_versions()
    table.build_deletion_vectors()
    monkeypatch.setattr("rowsieve.storage.log.commit_log.WRITER_VERSION", VECTORS_WRITER - 1)
    with pytest.raises(UnsupportedProtocol, match="writer protocol 4"):
        rs.open_table(table.uri).restore(1)


def test_merged_vectors_are_complete_through_the_same_versions() -> None:
    table = two_versions()
    table.build_deletion_vectors()
    table.upsert(kv((100, 1), (101, 1)))
    table.upsert(kv((101, 2)))
    table.build_deletion_vectors()
    before = [ref and ref.complete_through for ref in vectors_of(table)]
    assert len({ref.path for ref in vectors_of(table) if ref is not None and ref.path}) == 2
    assert table.rewrite_position_delete_files().committed
    assert sorted(map(str, before)) == sorted(
        str(ref and ref.complete_through) for ref in vectors_of(table)
    )
    assert len({ref.path for ref in vectors_of(table) if ref is not None and ref.path}) == 1
    assert not table.rewrite_position_delete_files().committed
    with a_fresh_process():
        assert pairs(rs.open_table(table.uri)) == [*EVENS_LAST, (100, 1), (101, 2)]


def vectors_of(table: rs.Table) -> list[Any]:
    return list(table.handle.pinned.parts.vectors())


EAGER = {"visibility": "eager"}


def test_eager_changes_store_what_they_hide() -> None:
    table = keyed({"k": range(10), "v": [1] * 10}, properties=EAGER)
    table.upsert(kv(*((k, 2) for k in range(0, 10, 2))))
    table.delete("k = 4")
    table.update({"v": "9"}, where="k = 5")
    table.delete(keys=kv((6, 0)).select(["k"]))
    assert all(is_complete_at_head(table))
    assert not table.build_deletion_vectors().committed
    with a_fresh_process():
        assert pairs(rs.open_table(table.uri)) == [
            (k, 9 if k == 5 else v) for k, v in EVENS_LAST if k not in (4, 6)
        ]


@pytest.mark.parametrize("is_across", [False, True], ids=["disk", "network"])
def test_an_eager_change_is_completed_for_the_version_that_it_follows(*, is_across: bool) -> None:
    properties = EAGER | {"inline_bytes": "0"}
    table = keyed({"k": range(10), "v": [1] * 10}, properties=properties)

    def upsert_twice(attempt: int) -> None:
        if attempt < 2:
            rs.open_table(table.uri).upsert(kv((1, 3 + attempt), (2, 3)))

    with across_a_network(is_across=is_across):
        meddled(table, upsert_twice).upsert(kv((1, 7)))
    found = rs.open_table(table.uri)
    assert all(is_complete_at_head(found))
    with a_fresh_process():
        assert pairs(found) == [(0, 1), (1, 7), (2, 3), *((k, 1) for k in range(3, 10))]


def test_a_compaction_outlasts_eager_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = two_versions()
    table.set_properties(EAGER)

    def upsert_always(attempt: int) -> None:
        if attempt < 3:
            rs.open_table(table.uri).upsert(kv((1, attempt)))

    planned: list[Any] = []

    former = Compaction.plan_pass

    def plan(*arguments: Any) -> Any:
        planned.append(former(*arguments))
        return planned[-1]

    monkeypatch.setattr(Compaction, "plan_pass", plan)
    assert meddled(table, upsert_always).compact().committed
    assert len(planned) == 1
    with a_fresh_process():
        assert pairs(rs.open_table(table.uri)) == [(0, 2), (1, 2), *EVENS_LAST[2:]]


def test_a_restore_brings_back_what_eager_changes_hid() -> None:
    table = keyed({"k": range(10), "v": [1] * 10}, properties=EAGER)
    table.upsert(kv((1, 2), (2, 2)))
    table.restore(1)
    with a_fresh_process():
        assert pairs(rs.open_table(table.uri)) == [(k, 1) for k in range(10)]
    table.restore(2)
    with a_fresh_process():
        assert pairs(rs.open_table(table.uri), "v = 2") == [(1, 2), (2, 2)]


def is_complete_at_head(table: rs.Table) -> list[bool]:
    parts = table.handle.pinned.parts
    planned = part_facts.planned_parts(parts, range(len(parts)))
    newest = max(planned, key=lambda part: part.commit_ts)
    return [stored_vectors.is_complete(part, newest) for part in planned]


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
@pytest.mark.parametrize("is_across", [False, True], ids=["disk", "network"])
@pytest.mark.parametrize("eager", [False, True], ids=["build", "eager"])
def test_a_crash_at_any_store_call_leaves_one_version_or_the_other(
    *, eager: bool, is_across: bool, fault: Fault
) -> None:
    for calls in some(range(1, 200), 3, 2 * eager + (fault is Fault.CRASH_AFTER)):
        table = two_versions()
        if eager:
            table.set_properties(EAGER)
        store: Any = FaultyStore(table.handle.store, fault, calls - 1)
        try:
            broken = rs.Table(Handle(store, CommitLog(store), table.handle.pinned))
            with a_fresh_process(), across_a_network(is_across=is_across):
                broken.upsert(kv((1, 3))) if eager else broken.build_deletion_vectors()
        except Crash:
            pass
        else:
            assert calls > 5
            return
        found = rs.open_table(table.uri)
        changed = [*EVENS_LAST[:1], (1, 3), *EVENS_LAST[2:]]
        with a_fresh_process():
            assert pairs(found) == (changed if eager and found.version > 3 else EVENS_LAST)
        found.vacuum(grace_s=0.0, retain_last=1)
        with a_fresh_process():
            assert pairs(rs.open_table(table.uri)) == pairs(found)
    raise AssertionError("it never ends")
