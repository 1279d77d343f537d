"""Compaction, `since` and leases: no time from `since` on changes, whatever happens in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import rowsieve as rs
from rowsieve import Table, errors
from rowsieve.differential import advancing
from rowsieve.retention.leases import Lease
from tests.differential.updates import Update, differential, modelled, sums, updates
from tests.faults.listings import ChangedListings
from tests.faults.stores import MortalProcess
from tests.faults.vocabulary import Crash, Fault
from tests.profiles import examples
from tests.retention.small_histories import later_by
from tests.small_tables import fresh_uri


def churned(count: int = 6) -> tuple[Table, list[Update]]:
    """Rows that come and go, one commit for each time."""
    table = differential()
    rows: list[Update] = [
        (k % 3, "ab"[k % 2], time, 2 if k < 5 else 1 - 2 * (time % 2))
        for time in range(count)
        for k in range(10)
    ]
    for time in range(count):
        table.append_updates(updates(*(row for row in rows if row[2] == time)), upper=time + 1)
    return table, rows


def test_compaction_merges_times_before_since_and_keeps_the_others() -> None:
    table, rows = churned()
    assert table.advance_since(3).committed
    assert not table.advance_since(2).committed  # it never goes back
    commit = table.compact()
    assert (commit.parts_removed, commit.parts_added, table.since) == (6, 1, 3)
    for at in (3, 4, 5):
        assert sums(table, at) == modelled(rows, at)
    with pytest.raises(errors.InvalidInput, match="before since=3"):
        table.scan(at=2)
    assert not table.compact().committed
    assert sums(table, 0, version=6) == modelled(rows, 0)  # an older version has its times


def test_an_append_keeps_a_since_that_moved_meanwhile() -> None:  # invariant 7
    table, _ = churned(3)
    data = updates((1, "a", 3, 1))

    def batches() -> Iterator[pa.RecordBatch]:
        """Read once the append has looked the frontiers up."""
        assert rs.open_table(table.uri).advance_since(1).committed
        yield from data.to_batches()

    reader = pa.RecordBatchReader.from_batches(data.schema, batches())
    assert table.append_updates(reader, upper=4).committed
    assert (table.since, table.upper) == (1, 4)


def test_what_cancels_is_gone() -> None:
    table = differential()
    table.append_updates(updates((1, "a", 0, 1), (2, "b", 0, 1)), upper=1)
    table.append_updates(updates((1, "a", 1, -1), (2, "b", 1, -1)), upper=2)
    table.advance_since(1)
    table.compact()
    assert (table.files().num_rows, table.to_arrow().num_rows) == (0, 0)


def test_an_overflow_outlives_compaction() -> None:
    table, most = differential(), 2**63 - 1
    table.append_updates(updates((1, "a", 0, most), (1, "a", 0, 1), (2, "b", 0, 1)), upper=2)
    table.advance_since(1)
    table.compact()
    with pytest.raises(errors.MultiplicityOverflow):
        table.to_arrow()
    table.append_updates(updates((1, "a", 2, -1)), upper=3)
    assert sums(table) == {(1, "a"): most, (2, "b"): 1}


def test_leases_hold_since_back() -> None:
    table, rows = churned()
    table.advance_since(1)
    with table.lease() as held:
        assert not table.advance_since(4).committed
        assert (table.since, sums(held, 1)) == (1, modelled(rows, 1))
    assert (table.advance_since(4).committed, table.since) == (True, 4)


def test_a_listing_that_lags_moves_no_since(monkeypatch: pytest.MonkeyPatch) -> None:
    table, rows = churned()
    with table.lease():
        lagging: Any = ChangedListings(table.handle.store, lambda *_: {})
        with monkeypatch.context() as patch:
            patch.setattr(table.handle, "store", lagging)
            with pytest.raises(errors.StoreError, match="listings lag"):
                table.advance_since(4)
        assert not table.advance_since(4).committed
    assert (table.since, sums(table, 0)) == (0, modelled(rows, 0))


def test_a_lease_whose_holder_died_no_longer_holds_since_once_it_is_over() -> None:
    table, rows = churned()
    store = table.handle.store
    Lease(store, "uuid", 1, 100, "dead")._ended.set()
    assert not table.advance_since(4).committed
    with later_by(store, 101, f".{int(advancing._OWN_LEASE_S * 1000)}."):
        assert table.advance_since(4).committed
    assert (table.since, sums(table, 4)) == (4, modelled(rows, 4))


def test_a_lease_that_names_a_time_holds_since_there() -> None:
    table, rows = churned()
    with table.lease(since=2), table.lease(since=3):
        assert (table.advance_since(5).committed, table.since) == (True, 2)
        assert not table.advance_since(5).committed
    with table.lease(since=4) as pinned:
        table.advance_since(5)
        assert (table.since, pinned.since) == (4, 2)
    assert sums(table, 4) == modelled(rows, 4)
    with (
        pytest.raises(errors.InvalidInput, match=r"since=3 is not in \[4, 6\)"),
        table.lease(since=3),
    ):
        pass
    with pytest.raises(errors.InvalidInput, match="only differential tables"):
        rs.create_table(fresh_uri(), updates()).lease(since=3).__enter__()


@pytest.mark.parametrize("to", [6, 9])
def test_since_stays_at_a_time_that_can_be_read(to: int) -> None:
    table, _ = churned()
    with pytest.raises(errors.InvalidInput, match="not complete"):
        table.advance_since(to)


def test_maintain_and_vacuum_keep_what_can_be_read() -> None:
    own, rows = churned()
    own.advance_since(4)
    own.maintain()
    assert own.detail()["rows_stored"] < len(rows)
    for at in (4, 5):
        assert sums(own, at) == modelled(rows, at)
    own.vacuum(retain_last=1, grace_s=0)
    assert sums(own, 5) == modelled(rows, 5)


def test_properties_that_delete_or_number_rows_are_refused() -> None:
    with pytest.raises(errors.UnsupportedOperation, match="expire_rows_when"):
        differential(properties={"expire_rows_when": "k < 0"})
    with pytest.raises(errors.UnsupportedOperation, match="row_versions"):
        differential().set_properties({"row_versions": "kept"})


def test_branches_clones_and_small_changes_in_the_log_keep_times() -> None:
    table = differential(properties={"inline_bytes": "10000"})
    rows: list[Update] = [(1, "a", 0, 1), (2, "b", 1, 1), (1, "a", 1, -1)]
    table.append_updates(updates(rows[0]), upper=1)
    branch = table.branch("other")
    table.append_updates(updates(*rows[1:]), upper=2)
    branch.append_updates(updates((3, "c", 1, 1)), upper=5)
    assert (branch.upper, sums(branch)) == (5, {(1, "a"): 1, (3, "c"): 1})
    copy = table.clone(fresh_uri())
    for each in (table, copy):
        assert (each.upper, sums(each, 0), sums(each)) == (2, {(1, "a"): 1}, modelled(rows, 1))
    table.compact()
    assert sums(table, 0) == {(1, "a"): 1}
    assert sums(table, 1) == modelled(rows, 1)


UPDATES = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from(["a", None]), st.integers(0, 2), st.integers(-2, 2)
    ),
    max_size=5,
)


class Collections(RuleBasedStateMachine):
    """Each time from since on has the sums of the model, after each step."""

    @initialize(inline=st.sampled_from([{}, {"inline_bytes": "5000"}]))
    def create(self, inline: dict[str, str]) -> None:
        self.table = differential(properties=inline)
        self.rows: list[Update] = []
        self.upper = self.since = 0

    def later(self, rows: list[Update]) -> tuple[list[Update], int]:
        """The updates, at times from the frontier on, and a frontier above them."""
        own = [(k, v, self.upper + time, diff) for k, v, time, diff in rows]
        return own, max((time + 1 for _, _, time, _ in own), default=self.upper + 1)

    @rule(rows=UPDATES)
    def append(self, rows: list[Update]) -> None:
        own, upper = self.later(rows)
        self.table.append_updates(updates(*own), lower=self.upper, upper=upper)
        self.rows += own
        self.upper = upper

    @rule(rows=UPDATES)
    def append_after_another(self, rows: list[Update]) -> None:
        own, upper = self.later(rows)
        other = rs.open_table(self.table.uri)
        other.append_updates(updates(*own), upper=upper)
        with pytest.raises(errors.UpperMismatch) as caught:
            self.table.append_updates(updates(*own), lower=self.upper, upper=upper)
        assert caught.value.upper == upper
        self.rows += own
        self.upper = upper

    @rule(
        rows=UPDATES,
        dies_at=st.integers(0, 4),
        fault=st.sampled_from([Fault.CRASH_BEFORE, Fault.CRASH_AFTER]),
    )
    def crash(self, rows: list[Update], dies_at: int, fault: Fault) -> None:
        own, upper = self.later(rows)
        with pytest.MonkeyPatch.context() as patch:
            MortalProcess(patch, fault, dies_at)
            with suppress(Crash):
                rs.open_table(self.table.uri).append_updates(updates(*own), upper=upper)
        self.table = rs.open_table(self.table.uri)
        if self.table.upper == upper:  # all of it, or nothing
            self.rows += own
            self.upper = upper

    @rule(step=st.integers(0, 3))
    def advance(self, step: int) -> None:
        if self.since + step < self.upper:
            self.table.advance_since(self.since + step)
            self.since += step

    @rule()
    def compact(self) -> None:
        self.table.compact()

    @rule()
    def vacuum(self) -> None:
        self.table.vacuum(retain_last=1, grace_s=0)

    @invariant()
    def every_time_has_the_sums_of_the_model(self) -> None:
        if not hasattr(self, "table"):
            return
        table = rs.open_table(self.table.uri)
        assert (table.since, table.upper) == (self.since, self.upper)
        for at in range(self.since, self.upper)[-3:]:
            found = table.scan(at=at).to_arrow().to_pylist()
            assert {(r["k"], r["v"]): r["_rowsieve_diff"] for r in found} == modelled(self.rows, at)


TestCollections = Collections.TestCase
TestCollections.settings = settings(cast("settings", examples(48)), stateful_step_count=12)
