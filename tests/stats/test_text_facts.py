"""Numbers that text spells, and text in one case: claimed only where every text agrees."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate.semantics import Semantics
from rowsieve.stats.collect import Collecting, StatisticsCollector
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.selection import StatisticsOptions, statistics_options
from rowsieve.stats.subjects import AS_INT, AS_LOWER, AS_NUMBER, AS_UPPER
from rowsieve.stats.tabulate import statistics_columns
from rowsieve.stats.text_facts import are_whole
from rowsieve.stats.trim import Budget
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.logical import Field, Int, String
from rowsieve.types.schema import Schema
from tests.oracle_texts import known_texts
from tests.profiles import examples
from tests.stats.manifests import (
    batch_of,
    bound,
    collected,
    contradictions,
    manifest,
    verdicts,
)
from tests.strategies import SEMANTICS

SCHEMA = Schema(0, (Field(1, "id", Int(), nullable=False), Field(2, "s", String())))
OPTIONS = StatisticsOptions(text=frozenset({2}))
UNASKED = StatisticsOptions(sampled_text=frozenset({2}))


def statistics_of(
    cells: list[str | None], options: StatisticsOptions = OPTIONS
) -> dict[Subject, ColumnStatistics]:
    batch = batch_of([{"id": i, "s": cell} for i, cell in enumerate(cells)], SCHEMA)
    return collected(batch, SCHEMA, StatisticsCollector(SCHEMA, options))


def known(*parts: list[str | None], options: StatisticsOptions = OPTIONS) -> PartStatistics:
    statistics = [statistics_of(part, options) for part in parts]
    return manifest([len(part) for part in parts], statistics, SCHEMA)


@pytest.mark.parametrize(
    ("cells", "spelled"),
    [
        (["1", "-20", None, "007"], {AS_INT, AS_NUMBER}),
        (["1", "2.5"], {AS_NUMBER}),
        (["1", " 2"], set()),
        (["1", "1e3"], set()),
        (["1", ""], set()),
        (["1", "2\n"], set()),
        (["1", "9" * 19], set()),
        (["x", "1"], set()),
        ([None, None], {AS_INT, AS_NUMBER}),
    ],
)
def test_numbers_are_claimed_only_if_every_text_spells_one(
    cells: list[str | None], spelled: set[str]
) -> None:
    found = {subject.what for subject in statistics_of(cells) if isinstance(subject, Derived)}
    assert found & {AS_INT, AS_NUMBER} == spelled


@given(st.lists(st.none() | st.text("-01.9 x٣\n", max_size=20), max_size=4), st.integers(0, 2))
@examples(400)
def test_whole_numbers_are_known_by_their_bytes(cells: list[str | None], skipped: int) -> None:
    texts = pa.array(["x"] * skipped + cells, pa.string())[skipped:]
    expected = all(re.fullmatch(r"-?[0-9]{1,18}", cell) for cell in cells if cell is not None)
    assert are_whole(texts) == expected


def test_a_number_with_a_point_after_whole_ones_keeps_their_bounds() -> None:
    collector = StatisticsCollector(SCHEMA, OPTIONS)
    for texts in (["-5", "70"], ["2.5", None], ["6"]):
        collector.add(pa.table({"id": [1] * len(texts), "s": texts}))
    found = collector.finish()
    assert Derived(2, AS_INT) not in found
    number = found[Derived(2, AS_NUMBER)]
    assert (str(number.lower), str(number.upper)) == (
        "-5.000000000000000000",
        "70.000000000000000000",
    )
    assert number.null_count == 1


def test_case_is_claimed_only_for_ascii() -> None:
    ascii_only = statistics_of(["bAc", "abc", None])
    upper, lower = (ascii_only[Derived(2, what)] for what in (AS_UPPER, AS_LOWER))
    assert (upper.lower, upper.upper) == (pa.scalar("ABC"), pa.scalar("BAC"))
    assert (lower.lower, lower.upper) == (pa.scalar("abc"), pa.scalar("bac"))
    assert Derived(2, AS_UPPER) not in statistics_of(["abc", "é"])


def test_nothing_is_collected_without_a_request() -> None:
    found = collected(batch_of([{"id": 1, "s": "1"}], SCHEMA), SCHEMA)
    assert set(found) == {1, 2}


@pytest.mark.parametrize(
    ("cells", "taken"),
    [
        pytest.param(["1", None, "-20"], {AS_INT}, id="whole numbers say all of them"),
        pytest.param(["1", "2.5"], {AS_NUMBER}, id="numbers"),
        pytest.param(["1"] * 200 + ["x"], set(), id="a text after the sample is none"),
        pytest.param(["1"] * 200 + ["2.5"], {AS_NUMBER}, id="a fraction after the sample"),
        pytest.param(["x", "1"], set(), id="not of the sample"),
        pytest.param(["ab", "cd"], set(), id="case is not tried"),
        pytest.param([None], set(), id="nothing to go by"),
        pytest.param([], set(), id="no rows"),
    ],
)
def test_a_sample_chooses_facts_that_hold_of_all(cells: list[str | None], taken: set[str]) -> None:
    found = statistics_of(cells, UNASKED)
    assert {subject.what for subject in found if isinstance(subject, Derived)} == taken


def test_nulls_before_the_first_text_count() -> None:
    collector = StatisticsCollector(SCHEMA, UNASKED)
    for texts in ([None, None], [], ["7", None]):
        collector.add(pa.table({"id": [1] * len(texts), "s": pa.array(texts, pa.string())}))
    assert collector.finish()[Derived(2, AS_INT)].null_count == 3


def test_sampled_facts_are_dropped_first() -> None:
    """They never take the place of others, and are not counted as trimmed."""
    long = "x" * 32
    schema = Schema(0, (Field(1, "t", String()), Field(2, "s", String()), Field(3, "u", String())))
    rows = pa.table({"t": [long, long], "s": ["1", "2"], "u": ["7", "8"]})
    sizes = {}
    for size in (1024, 24 + 64 + 4 + 24, 24 + 64 + 4):
        options = StatisticsOptions(budget=Budget(size, 0), sampled_text=frozenset({1, 2, 3}))
        collecting = Collecting()
        collector = StatisticsCollector(schema, options, collecting)
        collector.add(rows)
        sizes[size] = len(collector.finish())
        assert not collecting.metrics.statistics_trimmed
    assert list(sizes.values()) == [5, 4, 3]


def test_tables_take_numbers_in_text_unless_they_name_columns() -> None:
    for properties, taken in (
        ({}, {2}),
        ({"text_statistics": ""}, set()),
        ({"text_statistics": "s"}, set()),
    ):
        assert statistics_options(properties, SCHEMA).sampled_text == taken


@pytest.mark.parametrize("options", [OPTIONS, UNASKED], ids=["asked", "unasked"])
def test_casts_prune(options: StatisticsOptions) -> None:
    parts = known(["1", "20", None], ["300", "1000"], ["x"], ["2.5"], options=options)
    assert verdicts("cast(s as bigint) = 300", parts, SCHEMA) == ["NONE", "SOME", "SOME", "SOME"]
    assert verdicts("cast(s as bigint) < 50", parts, SCHEMA) == ["SOME", "NONE", "SOME", "SOME"]
    assert verdicts("cast(s as double) > 250", parts, SCHEMA) == ["NONE", "ALL", "SOME", "NONE"]
    assert verdicts("cast(s as decimal(9,1)) = 2.5", parts, SCHEMA)[1:] == ["NONE", "SOME", "ALL"]
    assert verdicts("cast(s as tinyint) < 50", parts, SCHEMA)[1] == "SOME"  # 1000 is none


def test_case_prunes() -> None:
    words = known(["apple", "Bear"], ["Zoo", "yak"], ["\u00e9", "a"])
    assert verdicts("upper(s) = 'BEAR'", words, SCHEMA) == ["SOME", "NONE", "SOME"]
    assert verdicts("lower(s) >= 'y'", words, SCHEMA) == ["NONE", "ALL", "SOME"]


def test_a_cast_that_may_fail_may_be_null_where_failures_are() -> None:
    for semantics in SEMANTICS:
        check("cast(s as tinyint) is null", [["7", "99999"], ["7"]], semantics)


def test_t4_deleted_keys_count_for_text_facts_of_keys() -> None:
    schema = Schema(0, (Field(2, "s", String(), nullable=False),))
    parts = []
    for deleted in ("5", "é"):
        collector = StatisticsCollector(schema, OPTIONS)
        collector.add(pa.table({"s": ["10", "20"]}))
        collector.add_tombstones(pa.table({"s": [deleted]}))
        parts.append(collector.finish())
    only_deleted = StatisticsCollector(schema, OPTIONS)
    only_deleted.add_tombstones(pa.table({"s": ["5"]}))
    parts.append(only_deleted.finish())
    counts = {
        "data.rows": pa.array([2, 2, 0], pa.int64()),
        "deletes.rows": pa.array([1, 1, 1], pa.int64()),
    }
    keys = {"key.2.lower": pa.nulls(3, pa.string())}
    table = pa.table({**counts, **keys, **statistics_columns(parts, schema)})
    by_key = PartStatistics(PartTable(table), schema).only([2])
    assert verdicts("cast(s as bigint) = 5", by_key, schema) == ["SOME", "SOME", "ALL"]
    assert verdicts("cast(s as bigint) = 7", by_key, schema) == ["SOME", "SOME", "NONE"]
    assert verdicts("upper(s) = '5'", by_key, schema) == ["SOME", "SOME", "ALL"]


TEXTS = [
    "0",
    "-0",
    "7",
    "007",
    "-12",
    "2.5",
    "-2.50",
    "99999",
    "1e3",
    " 3",
    "",
    "a",
    "B",
    "b_",
    "é",
]
CASTS = ["bigint", "tinyint", "double", "real", "decimal(5,1)", "decimal(38,18)", "integer"]


@given(
    st.lists(st.lists(st.none() | st.sampled_from(TEXTS[:8]), max_size=4), min_size=1, max_size=3),
    st.lists(st.none() | st.sampled_from(TEXTS), max_size=4),
    st.sampled_from(CASTS),
    st.sampled_from(["=", "<", ">=", "<>", "is distinct from"]),
    st.sampled_from(["0", "7", "-12", "2.5", "-2.5", "100"]),
    st.sampled_from(["{}", "not ({})", "({}) is null", "coalesce({}, true)"]),
    st.sampled_from(SEMANTICS),
)
@examples(300)
@known_texts()
def test_verdicts_by_text_facts_never_contradict_the_rows(
    numbers: list[list[str | None]],
    mixed: list[str | None],
    target: str,
    op: str,
    value: str,
    form: str,
    semantics: Semantics,
) -> None:
    text = form.format(f"cast(s as {target}) {op} {value}")
    check(text, [*numbers, mixed], semantics)


@given(
    st.lists(st.lists(st.none() | st.sampled_from(TEXTS), max_size=4), min_size=1, max_size=3),
    st.sampled_from(["upper(s)", "lower(s)"]),
    st.sampled_from(["= 'A'", "< 'b'", ">= 'B_'", "is null", "in ('a', 'B')", "like 'B%'"]),
)
@examples(200)
def test_verdicts_by_case_never_contradict_the_rows(
    parts: list[list[str | None]], operand: str, test: str
) -> None:
    check(f"{operand} {test}", parts, Semantics.SQL)


def check(text: str, parts: list[Any], semantics: Semantics) -> None:
    batches = [batch_of([{"id": 0, "s": cell} for cell in part], SCHEMA) for part in parts]
    for options in (OPTIONS, UNASKED):
        statistics = known(*parts, options=options)
        assert contradictions(bound(text, SCHEMA, semantics), batches, statistics) == []
