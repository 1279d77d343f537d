"""Hedged reads: which answer counts, and how often a request is sent twice."""

from __future__ import annotations

import threading
from collections.abc import Callable

import obstore
import pytest
from obstore.store import MemoryStore

import rowsieve as rs
from rowsieve.errors import InvalidInput
from rowsieve.metrics import HedgeCounts, hedge_counts
from rowsieve.objects import ObjectNotFound
from rowsieve.objects.hedged_reads import HedgedReads, hedging_of
from rowsieve.objects.remote import RemoteStore
from rowsieve.objects.storage_options import flat_options, secrets_of, split_options, static_options


class Answers:
    """A request whose first call waits until the test lets it go on."""

    def __init__(self, first: Callable[[], bytes], second: Callable[[], bytes]) -> None:
        self.go_on = threading.Event()
        self.calls = 0
        self._lock = threading.Lock()
        self._results = (first, second)

    def __call__(self) -> bytes:
        with self._lock:
            self.calls += 1
            number = self.calls
        if number == 1:
            assert self.go_on.wait(60)
        return self._results[number - 1]()


def fails() -> bytes:
    raise ConnectionError("reset")


def counted(act: Callable[[], object]) -> HedgeCounts:
    before = hedge_counts()
    act()
    after = hedge_counts()
    return HedgeCounts(
        after.reads - before.reads,
        after.sent_twice - before.sent_twice,
        after.second_first - before.second_first,
    )


def test_a_second_request_answers_where_the_first_one_is_late() -> None:
    answers = Answers(lambda: b"late", lambda: b"second")
    results: list[bytes] = []
    counts = counted(lambda: results.append(HedgedReads(0.01).read(answers)))
    answers.go_on.set()
    assert results == [b"second"]
    assert counts == HedgeCounts(1, 1, 1)


def test_a_quick_answer_is_asked_for_once() -> None:
    answers = Answers(lambda: b"first", fails)
    answers.go_on.set()
    results: list[bytes] = []
    counts = counted(lambda: results.append(HedgedReads(60.0).read(answers)))
    assert (results, answers.calls) == ([b"first"], 1)
    assert counts == HedgeCounts(1, 0, 0)


def test_a_second_request_that_fails_leaves_the_first_one_its_answer() -> None:
    def fails_and_releases() -> bytes:
        answers.go_on.set()
        return fails()

    answers = Answers(lambda: b"first", fails_and_releases)
    assert HedgedReads(0.01).read(answers) == b"first"
    assert answers.calls == 2


def test_the_error_of_the_first_request_is_raised_if_both_fail() -> None:
    def absent() -> bytes:
        raise ObjectNotFound("no object a", path="a")

    def fails_and_releases() -> bytes:
        answers.go_on.set()
        return fails()

    answers = Answers(absent, fails_and_releases)
    with pytest.raises(ObjectNotFound):
        HedgedReads(0.01).read(answers)


def test_a_tenth_of_the_reads_is_sent_twice_at_most() -> None:
    reads = HedgedReads(0.001)
    sent = 0
    for _ in range(40):
        answers = Answers(lambda: b"", lambda: b"")
        threading.Timer(0.01, answers.go_on.set).start()
        reads.read(answers)
        sent += answers.calls - 1
    assert 1 <= sent <= 40 / 10 + 1


def test_the_95th_percentile_says_nothing_about_a_few_reads() -> None:
    reads = HedgedReads(None)
    assert reads._delay_s() is None
    for _ in range(40):
        reads.read(lambda: b"")
    delay_s = reads._delay_s()
    assert delay_s is not None
    assert sum(each > delay_s for each in reads._times_s) <= 2


def test_reads_of_a_store_are_hedged_and_puts_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = MemoryStore()
    store = RemoteStore(memory, "memory:///hedged", hedged=HedgedReads(0.01))
    answers: list[Answers] = []
    get, put, puts = obstore.get, obstore.put, []

    def late(*args: object, **options: object) -> object:
        if not answers:
            answers.append(Answers(lambda: b"", lambda: b""))
            answers[0].go_on.wait(60)
        return get(*args, **options)  # type: ignore[arg-type]

    def noted(*args: object, **options: object) -> object:
        puts.append(args[1])
        return put(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(obstore, "get", late)
    monkeypatch.setattr(obstore, "put", noted)
    store.put_new("a", b"bytes")
    counts = counted(lambda: store.get_range("a", 1, 3))
    answers[0].go_on.set()
    assert counts == HedgeCounts(1, 1, 1)
    assert store.get("a") == b"bytes"
    assert puts == ["a"]


def test_the_option_is_ours_and_travels() -> None:
    options = {"region": "x", "hedge_after_ms": "p95"}
    assert split_options(options) == ({"region": "x"}, {})
    assert flat_options(options) == options
    assert static_options(options, "s3") == {"region": "x"}
    assert "p95" not in secrets_of(options)
    assert hedging_of({"region": "x"}) is None


@pytest.mark.parametrize("value", ["fast", 0, -1, True, "", float("nan"), 1e9])
def test_other_values_are_refused_by_name(value: str | float) -> None:
    options = {"hedge_after_ms": value, "region": "x"}
    with pytest.raises(InvalidInput, match="hedge_after_ms is a number of milliseconds from 1"):
        rs.open_table("s3://bucket/t", storage_options=options)
