"""The rate limit, by a clock of its own, and stopping."""

from __future__ import annotations

import threading

import pytest

from rowsieve.compaction.pace import Pace, Stopped
from rowsieve.errors import InvalidInput
from tests.small_tables import keyed, pairs


def test_rate_waits_for_what_is_ahead_of_it() -> None:
    now_s, waits = [100.0], []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        now_s[0] += seconds

    pace = Pace(1_000, clock=lambda: now_s[0], wait=wait)
    pace.take(500)
    pace.take(1_500)
    assert waits == [0.5, 1.5]
    now_s[0] += 10
    pace.take(1_000)
    assert len(waits) == 2


def test_without_a_rate_nothing_waits() -> None:
    pace = Pace(wait=lambda _: pytest.fail("waited"))
    pace.take(10**15)


def test_stop_ends_a_wait_at_once() -> None:
    pace = Pace(1e-3)
    threading.Timer(0.05, pace.stop).start()
    with pytest.raises(Stopped):
        pace.take(10**9)
    with pytest.raises(Stopped):
        pace.check()


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_rate_is_above_zero(rate: float) -> None:
    table = keyed({"k": [1], "v": [1]}, {"k": [1], "v": [2]})
    with pytest.raises(InvalidInput, match="max_bytes_per_s"):
        table.compact(max_bytes_per_s=rate)
    table.compact(max_bytes_per_s=1e12)
    assert pairs(table) == [(1, 2)]
