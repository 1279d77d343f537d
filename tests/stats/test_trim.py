"""Trimming fits a budget, keeps what is critical, and cuts in the order that costs least."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.metrics import WriterMetrics
from rowsieve.stats.collect import Collecting, StatisticsCollector
from rowsieve.stats.json_kinds import JsonKind, path_subject
from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.selection import StatisticsOptions, statistics_options
from rowsieve.stats.subjects import LENGTH
from rowsieve.stats.trim import Budget, critical_ids, is_critical_name, shortened, size_bytes, trim
from rowsieve.stats.values import Values
from rowsieve.types.logical import Field, Int, List, String, Struct
from rowsieve.types.schema import Schema
from tests.profiles import examples

LONG = ColumnStatistics(null_count=0, lower=pa.scalar("a" * 100), upper=pa.scalar("b" * 100))
SMALL = ColumnStatistics(null_count=0, lower=pa.scalar(1), upper=pa.scalar(2))


def test_within_the_budget_nothing_changes() -> None:
    whole: dict[Subject, ColumnStatistics] = {1: LONG, 2: ColumnStatistics()}
    assert trim(whole, 208, ()).statistics == whole
    assert trim(whole, 208, ()).count == 0


def test_useless_statistics_are_dropped_first() -> None:
    mixed = path_subject(4, ("k",))
    whole: dict[Subject, ColumnStatistics] = {
        1: SMALL,
        mixed: ColumnStatistics(kinds=int(JsonKind.INT | JsonKind.STRING)),
        path_subject(4, ("k",), "int"): SMALL,
        path_subject(4, ("z",)): ColumnStatistics(kinds=int(JsonKind.OTHER)),
    }
    cut = trim(whole, 40, ())
    assert set(cut.statistics) == {1, mixed}
    assert cut.count == 2


def test_text_is_shortened_before_anything_is_dropped() -> None:
    cut = trim({1: LONG, 2: SMALL}, 100, ())
    assert set(cut.statistics) == {1, 2}
    assert (cut.statistics[1].lower, cut.statistics[1].upper) == (
        pa.scalar("a" * 32),
        pa.scalar("b" * 31 + "c"),
    )
    assert cut.count == 1


def test_times_written_out_are_not_shortened() -> None:
    time = ColumnStatistics(
        lower=pa.scalar("2024-02-29T23:59:59.123456789+00:00"), lower_exact=True
    )
    assert shortened(time, 8) == time
    other = ColumnStatistics(lower=pa.scalar("2024-02-29 or so"), lower_exact=True)
    assert shortened(other, 8) == ColumnStatistics(lower=pa.scalar("2024-02-"))


def test_the_largest_goes_then_the_last_of_equal_ones() -> None:
    count = ColumnStatistics(null_count=0)
    whole: dict[Subject, ColumnStatistics] = {1: SMALL, 2: count, 3: SMALL}
    assert set(trim(whole, 40, ()).statistics) == {1, 2}
    assert set(trim(whole, 10, ()).statistics) == {2}
    assert trim(whole, 0, ()).statistics == {}


def test_t33_ancestors_of_critical_columns_stay() -> None:
    inner = Field(4, "createdAt", Int())
    fields = (
        Field(1, "a", Struct((Field(2, "b", List(Field(3, "item", Struct((inner,))))),))),
        Field(5, "c", Struct((Field(6, "d", Int()),))),
    )
    critical = critical_ids(fields)
    assert critical == {1, 2, 3, 4}
    whole: dict[Subject, ColumnStatistics] = dict.fromkeys(range(1, 7), SMALL)
    whole[Derived(2, LENGTH)] = SMALL
    assert set(trim(whole, 0, critical).statistics) == {1, 2, 3, 4, Derived(2, LENGTH)}


@pytest.mark.parametrize(
    "name", ["err", "ts", "TS", "receivedAt", "createdat", "last_seen", "event_timestamp", "uptime"]
)
def test_times_and_errors_are_critical_by_name(name: str) -> None:
    assert is_critical_name(name)
    path = path_subject(9, ("a", name))
    assert path in trim({path: ColumnStatistics(kinds=16)}, 0, ()).statistics
    assert not is_critical_name("amount")


def test_keys_and_named_columns_are_critical() -> None:
    key = Field(1, "id", Int(), nullable=False)
    inner = Field(3, "n", Int())
    schema = Schema(0, (key, Field(2, "s", Struct((inner, Field(4, "m", Int()))))))
    found = statistics_options({"critical_columns": "s.n"}, schema, (key,))
    assert found.budget.critical == {1, 2, 3}


def test_the_budget_grows_with_the_rows() -> None:
    options = statistics_options(
        {"statistics_bytes": "100", "statistics_bytes_per_1000_rows": "3"}, Schema(0, ())
    )
    assert [options.budget.bytes_for(rows) for rows in (0, 999, 1_000, 2_500)] == [
        100,
        102,
        103,
        107,
    ]


bounds_of = st.sampled_from(["", "a" * 40, "\U0010ffff" * 30, "2024-01-01"]).map(pa.scalar)
facts = st.builds(
    ColumnStatistics,
    null_count=st.none() | st.just(1),
    lower=st.none() | bounds_of,
    upper=st.none() | bounds_of,
)


@given(st.dictionaries(st.integers(1, 9), facts), st.integers(0, 800), st.sets(st.integers(1, 9)))
@examples(300)
def test_only_critical_statistics_may_exceed_the_budget(
    whole: dict[Subject, ColumnStatistics], budget: int, critical: set[int]
) -> None:
    cut = trim(whole, budget, critical)
    size = sum(map(size_bytes, cut.statistics.values()))
    kept = {subject for subject in whole if subject in critical}
    assert kept <= set(cut.statistics)
    assert all(cut.statistics[subject] == whole[subject] for subject in kept)
    assert size <= max(budget, sum(size_bytes(whole[subject]) for subject in kept))


class Fixed:
    """A collector that says what it was told to."""

    def __init__(self, *found: tuple[Subject, ColumnStatistics]) -> None:
        self._found = found

    def add(self, values: Values) -> None:
        """Nothing of the values counts."""

    def finish(self) -> Iterator[tuple[Subject, ColumnStatistics]]:
        """What it was told."""
        yield from self._found


def test_a_collector_can_be_replaced_and_uncollectable_columns_are_skipped() -> None:
    fields = (Field(1, "id", Int()), Field(2, "s", String()))
    wrong: list[tuple[Subject, ColumnStatistics]] = [
        (2, ColumnStatistics(lower=pa.scalar(1))),
        (2, ColumnStatistics(lower=pa.scalar("b"), upper=pa.scalar("a"))),
        (2, ColumnStatistics(null_count=3)),
        (2, ColumnStatistics(null_count=-1)),
        (1, ColumnStatistics(null_count=0)),
        (Derived(2, "sketch"), ColumnStatistics(null_count=0)),
    ]
    good = (2, ColumnStatistics(null_count=0, lower=pa.scalar("a")))
    metrics = WriterMetrics()
    collecting = Collecting({2: lambda _: Fixed(*wrong, good)}, metrics)
    collector = StatisticsCollector(Schema(0, fields), collecting=collecting)
    collector.add(pa.table({"id": [1, 2], "s": ["x", "y"]}))
    found = collector.finish()
    assert found[2] == good[1]
    assert set(found) == {1, 2}
    assert metrics.statistics_mismatched == len(wrong)
    assert metrics.statistics_bytes == 24 + 9
    assert metrics.statistics_s > 0


def test_a_table_writes_and_compacts_by_the_collector_it_was_given(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path), pa.table({"id": [1], "n": [5]}), key=["id"])
    table.collect_with("N", lambda field: Fixed((field.id, ColumnStatistics(null_count=0))))
    table.upsert(pa.table({"id": [1], "n": [7]}))
    scan = table.scan(where="n = 100")
    assert scan.to_arrow().num_rows == 0
    assert scan.metrics.parts_pruned == 1  # of the two, the one with bounds
    assert table.writer_metrics.statistics_bytes == 24 + 8
    table.compact()
    assert table.writer_metrics.statistics_bytes == 2 * (24 + 8)


def test_truncated_statistics_are_counted() -> None:
    metrics = WriterMetrics()
    options = StatisticsOptions(budget=Budget(bytes_per_part=10))
    collecting = Collecting(metrics=metrics)
    collector = StatisticsCollector(Schema(0, (Field(1, "n", Int()),)), options, collecting)
    collector.add(pa.table({"n": [1]}))
    assert collector.finish() == {}
    assert metrics == WriterMetrics(statistics_s=metrics.statistics_s, statistics_trimmed=1)


def test_nothing_is_collected_when_switched_off() -> None:
    collector = StatisticsCollector(
        Schema(0, (Field(1, "n", Int()),)), StatisticsOptions(enabled=False)
    )
    collector.add(pa.table({"n": [1]}))
    assert collector.finish() == {}
