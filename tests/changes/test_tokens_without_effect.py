"""A call with a token that finds nothing to do leaves its token, so that a repetition does nothing.

A program that failed runs its calls again. What the first of them did not find, a later one may
have written meanwhile: without its token, the repetition would change that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

import rowsieve as rs
from rowsieve import Table
from tests.changes.event_order.test_event_order import ordered
from tests.changes.event_order.test_event_order import rows as rows_in_order
from tests.small_tables import appended, keyed, pairs

Call = Callable[[Table, tuple[str, int]], Any]


def by_transaction(table: Table, token: tuple[str, int]) -> Any:
    with table.transaction(token=token) as tx:
        tx.delete("k = 9")
    return tx.committed


def by_function(table: Table, token: tuple[str, int]) -> Any:
    rs.run_transaction(lambda tx: tx.delete("k = 9"), table, token=token)
    return table.history(1)[0]


CALLS: dict[str, Call] = {
    "delete": lambda table, token: table.delete("k = 9", token=token),
    "update": lambda table, token: table.update({"v": "0"}, where="k = 9", token=token),
    "transaction": by_transaction,
    "run_transaction": by_function,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("make", [keyed, appended])
def test_a_repetition_does_not_change_what_came_after(make: Any, name: str) -> None:
    table = make({"k": [1], "v": [1]})
    first = CALLS[name](table, ("first", 1))
    version = table.refresh()
    assert (first.version, first.rows_deleted, first.rows_written) == (version, 0, 0)
    write = table.upsert if table.key else table.append
    write({"k": [9], "v": [90]}, token=("second", 1))
    for _ in range(2):
        assert CALLS[name](table, ("first", 1)).version in (version, table.version)
        write({"k": [9], "v": [90]}, token=("second", 1))
    assert (table.refresh(), pairs(table)) == (version + 1, [(1, 1), (9, 90)])


@pytest.mark.parametrize("partial", [False, True])
def test_late_events_leave_their_token_and_number(*, partial: bool) -> None:
    table = ordered((1, 50, "new"))
    version = table.version

    def apply() -> Any:
        events = [{"id": 1, "lsn": 40, "v": "late", "op": "u"}]
        missing: Literal["keep", "error"] = "keep" if partial else "error"
        return table.apply_changes(events, op="op", missing=missing, token=("feed", 1))

    assert (apply().version, apply().rows_late) == (version + 1, 1)
    table.restore(0)
    apply()
    assert (table.version, rows_in_order(table)) == (version + 2, [])


def test_a_call_without_a_token_commits_nothing() -> None:
    table = keyed({"k": [1], "v": [1]})
    version = table.version
    assert not table.delete("k = 9").committed
    with table.transaction() as tx:
        tx.delete("k = 9")
    assert tx.committed is not None
    assert (table.refresh(), tx.committed.committed) == (version, False)


def test_the_feed_shows_nothing_of_it() -> None:
    table = keyed({"k": [1], "v": [1]})
    commit = table.delete("k = 9", token=("a", 1))
    assert table.changes(commit.version).read_all().num_rows == 0
    assert table.changes(commit.version, net=True).read_all().num_rows == 0
    assert table.history(1)[0].operation == "delete"
    table.compact()
    assert pairs(rs.open_table(table.uri)) == [(1, 1)]
