"""Every reader keeps the rows of a condition, of its negation and of its IS NULL: all, once each.

A difference has a name such as `12/3/duckdb`; `ROWSIEVE_PAIR=12/3/duckdb` with pytest replays it
alone, `python -m tests.ternary_logic FIRST LAST CONDITIONS` asks over the tables of more seeds.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from rowsieve.planner.part_facts import KnownParts
from rowsieve.predicate.interpret import Verdict
from tests.daily import today
from tests.parts_in_memory import count_in_memory
from tests.profiles import IS_DEEP
from tests.ternary_logic.engine_texts import check_texts
from tests.ternary_logic.histories import random_table
from tests.ternary_logic.pairs import Report, check_table, names_of
from tests.ternary_logic.readers import ALONE, WITH_SPARK

PAIR = os.environ.get("ROWSIEVE_PAIR")
TABLES, CONDITIONS = 2_000, 12 if IS_DEEP else 5
SHARES = 20 if IS_DEEP else 1
FIXED = (0, 1, 4)  # they find the planted faults of tests/mutants/of_machines.py
PLANTED = (1,)
NAMED = ((3, 0), (8, 6))  # a table and one of its conditions, which find two others


def seeds(share: int) -> list[int]:
    """The seeds of a share: fixed ones and one of the day, or in the deep profile new ones."""
    fresh = 10_000 * today().toordinal()
    if IS_DEEP:
        return [fresh + 1_000 + number for number in range(share, TABLES, SHARES)]
    return [*FIXED, fresh]


@pytest.mark.skipif(PAIR is not None, reason="one pair is replayed")
@pytest.mark.parametrize("share", range(SHARES))
def test_every_reader_keeps_the_rows_of_its_judge(share: int) -> None:
    report = Report()
    for seed in seeds(share):
        check_table(seed, range(CONDITIONS), ALONE, report)
    if not IS_DEEP:
        for seed, condition in NAMED:
            check_table(seed, [condition], ALONE, report)
    assert not report.findings
    assert min(report.compared[name] for name in ALONE) > 0


@pytest.mark.skipif(PAIR is not None, reason="one pair is replayed")
@pytest.mark.parametrize("seed", [pytest.param(5, id="log"), pytest.param(6, id="database")])
def test_every_reader_keeps_the_rows_of_changes_in_the_log_and_of_databases(seed: int) -> None:
    """Invariants 39 and 40."""
    with random_table(seed) as history:
        assert count_in_memory(history.table)
        assert ("/_tables/" in history.table.uri) == (seed == 6)
    report = Report()
    check_table(seed, range(CONDITIONS if IS_DEEP else 1), ALONE, report)
    assert not report.findings
    assert report.compared


@pytest.mark.skipif(PAIR is not None, reason="one pair is replayed")
@pytest.mark.parametrize("share", range(SHARES))
def test_every_reader_keeps_the_rows_of_the_engine_s_texts(share: int) -> None:
    report = Report()
    for seed in seeds(share)[::2]:
        check_texts(seed, range(CONDITIONS), ALONE, report)
    assert not report.findings
    assert report.compared


@pytest.mark.spark
@pytest.mark.usefixtures("judging_spark")
@pytest.mark.skipif(PAIR is not None or not IS_DEEP, reason="the deep profile asks Spark")
@pytest.mark.parametrize("share", range(SHARES))
def test_every_reader_of_spark_keeps_the_rows_of_its_judge(share: int) -> None:
    report = Report()
    seed, *_ = seeds(share)
    check_table(seed, range(CONDITIONS), WITH_SPARK, report)
    check_texts(seed, range(CONDITIONS), WITH_SPARK, report)
    assert not report.findings
    assert min(report.compared[name] for name in WITH_SPARK) > 0, report.skipped


@pytest.mark.skipif(PAIR is None, reason="no pair is named by ROWSIEVE_PAIR")
def test_the_named_pair_has_no_difference() -> None:
    seed, number, reader = names_of((PAIR or "").removeprefix("texts/"))
    report = Report()
    check = check_texts if (PAIR or "").startswith("texts/") else check_table
    check(seed, [number], [reader], report)
    assert not report.findings
    assert report.compared, report.skipped


def test_every_kind_of_change_is_in_some_history() -> None:
    operations: set[str] = set()
    for seed in range(6):
        with random_table(seed) as history:
            operations |= {commit.operation for commit in history.table.history()}
    assert operations >= {"append", "upsert", "alter", "delete", "update", "compact"}


def test_a_part_lost_to_pruning_is_found_through_every_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = KnownParts.judge

    def lossy(*arguments: Any) -> Any:
        verdicts, contradictions = whole(*arguments)
        verdicts[-1] = int(Verdict.NONE)
        return verdicts, contradictions

    monkeypatch.setattr(KnownParts, "judge", lossy)
    report = Report()
    for seed in PLANTED:
        check_table(seed, range(6), ALONE, report)
    found = {names_of(finding.name)[2] for finding in report.findings}
    assert found == {*ALONE} - {"whole scan"}
