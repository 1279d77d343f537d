"""What was recorded before the bridges were redrawn holds: nothing lost, no other rows.

`make test` asks every 18th input of each group, the deep profile all of them.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest

from rowsieve.errors import UnreadText
from tests.profiles import IS_DEEP
from tests.redraw import record as records
from tests.redraw.answers import Answer, Judged
from tests.redraw.comparison import FAILURES, Finding, compared, is_right

# Inputs that differ on purpose, and why.
_NANVL = "DataFusion's nanvl is written beside what was, and not yet read"
_SUBSTR = "Spark's substr of a length that may be negative is refused, or read as Spark has it"
_NAN = "PostgreSQL's numeric has NaN, which was read as no value: rows with such a text fail"
_INSTANT = "casts to timestamptz are read as DuckDB has them; ' -12 ' is left unread"
_PAIR = "Spark groups <=> with other comparisons: refused without parentheses"
EXPECTED = {
    ("polars", 815): "regex_matches is written beside what was",
    ("pyarrow_exprs", 1038): "lists of UUIDs are read, which were left out",
    ("datafusion", 893): _NANVL,
    ("datafusion", 977): _NANVL,
    ("datafusion_exprs", 977): _NANVL,
    ("spark_columns", 298): "Spark refuses the NULL of type time that was written",
    **{("texts", number): _SUBSTR for number in (551, 772, 856)},
    **{("texts", number): _NAN for number in (252, 455)},
    **{("decided", number): _NAN for number in (316, 1548)},
    **{("decided", number): _INSTANT for number in (186, 1418)},
    **{("texts", number): _PAIR for number in (2688, 2953, 2967, 3020)},
    ("texts", 719): "date_trunc to decades is refused in Spark's text",
}
STEP = 1 if IS_DEEP else 18
SHOWN = 5


@cache
def recorded() -> records.Record:
    return records.load()


def replayed(group: str) -> tuple[Counter[Finding], list[str]]:
    """What became of the inputs of a group, and the failures in words."""
    record = recorded()
    counts: Counter[Finding] = Counter()
    failures: list[str] = []
    for number in range(0, len(record.answers[group]), STEP):
        old = record.answers[group][number]
        now = record.asked(group, number)
        finding = compared(old, now)
        if (group, number) in EXPECTED and is_right(now):
            finding = Finding.REWORDED
        if now.answer.rows == UnreadText.__name__:
            finding = Finding.REWORDED  # by the rules of an engine, which were those of all
        counts[finding] += 1
        if finding in FAILURES:
            shown = record.shown(group, number)
            failures.append(f"{group} {number}: {finding.value}\n{shown}\n  {old}\n  {now.answer}")
    return counts, failures


@pytest.mark.parametrize("group", [*records.BRIDGES, records.DECIDED, records.TEXTS])
def test_nothing_recorded_is_lost_or_changed(group: str) -> None:
    counts, failures = replayed(group)
    assert not failures, "\n".join([str(dict(counts)), *failures[:SHOWN]])
    assert counts[Finding.SAME] > 0


@pytest.mark.spark
def test_nothing_recorded_of_spark_columns_is_lost_or_changed(spark: Any) -> None:
    _, failures = replayed(records.SPARK_COLUMNS)
    assert not failures, "\n".join(failures[:SHOWN])


def test_the_record_has_20_000_inputs() -> None:
    assert sum(map(len, recorded().answers.values())) >= 20_000
    assert records.RECORD.stat().st_size < 1_500_000


OLD = Answer("exact", 0, "w", "exact", "t", "r")


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        (OLD, OLD, Finding.SAME),
        (OLD, Answer("exact", 0, "x", "exact", "u", "r"), Finding.REWORDED),
        (OLD, Answer("exact", 0, "x", "exact", "u", "s"), Finding.CHANGED),
        (OLD, Answer("exact", 0, "w", "unsupported", "", ""), Finding.LOST),
        (OLD, Answer("superset", 1, "w", "exact", "t", "r"), Finding.LOST),
        (OLD, Answer("InvalidPredicate"), Finding.LOST),
        (Answer("unsupported", 1), OLD, Finding.MORE),
        (Answer("superset", 2, "w"), Answer("superset", 1, "x"), Finding.MORE),
        (Answer("superset", 1, "w"), Answer("superset", 2, "x"), Finding.LOST),
        (Answer("InvalidPredicate"), Answer("UnknownColumn"), Finding.CHANGED),
        (Answer("decided", 0, "01"), Answer("decided", 0, "11"), Finding.LOST),
        (Answer("decided", 0, "11"), Answer("decided", 0, "01"), Finding.MORE),
        (Answer("decided", 0, "01"), Answer("decided", 0, "21"), Finding.CHANGED),
    ],
)
def test_an_answer_is_compared(old: Answer, new: Answer, finding: Finding) -> None:
    assert compared(old, Judged(new)) is finding
