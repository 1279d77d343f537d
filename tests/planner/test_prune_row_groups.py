"""A row group that is pruned has no row that matches or fails; one that is certain has no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate
from rowsieve.parquet.bloom import BloomFilter
from rowsieve.parquet.bloom_reader import BloomReader
from rowsieve.parquet.footer import read_footer
from rowsieve.parquet.leaf_columns import FileColumn
from rowsieve.parquet.statistics.row_groups import RowGroupStatistics
from rowsieve.planner.prune_row_groups import (
    MAX_PROBES,
    MAX_VALUES,
    PROBED_FROM,
    probe_blooms,
    prune_row_groups,
)
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Bool, Field, Float, Int, String
from rowsieve.types.schema import Schema
from tests.oracle_texts import known_texts
from tests.parquet.files import opened, written
from tests.profiles import examples
from tests.strategies import (
    COLUMN_TYPES,
    SCHEMA,
    SEMANTICS,
    arrow_array,
    batches,
    literals_of,
    predicates,
    values_of,
)

BLOOMED = [name for name, type_ in COLUMN_TYPES.items() if not isinstance(type_, Float | Bool)]


@st.composite
def points(draw: st.DrawFn) -> ir.Predicate:
    """`column = constant` and `column IN (constants)` in the column's own type."""
    name = draw(st.sampled_from(list(COLUMN_TYPES)))
    type_ = COLUMN_TYPES[name]
    if draw(st.booleans()):
        op = draw(st.sampled_from([ir.ComparisonOp.EQ, ir.ComparisonOp.NOT_DISTINCT]))
        sides = (ir.Column(name), draw(literals_of(type_)))
        return ir.Comparison(op, *(sides if draw(st.booleans()) else sides[::-1]))
    values = draw(st.lists(st.none() | values_of(type_), max_size=4))
    return ir.InList(ir.Column(name), ir.ValueSet(arrow_array(values, type_), type_))


@given(
    st.lists(batches(min_rows=1, max_rows=4), min_size=1, max_size=3),
    st.lists(predicates(1) | points(), min_size=1, max_size=3),
    st.lists(points(), min_size=1, max_size=3),
    st.sampled_from(SEMANTICS),
    st.none() | st.frozensets(st.sampled_from([column.id for column in SCHEMA])),
)
@examples(40)
@known_texts()
def test_no_verdict_contradicts_the_rows(
    groups: list[pa.RecordBatch],
    terms: list[ir.Predicate],
    looked_up: list[ir.Predicate],
    semantics: Semantics,
    only: frozenset[int] | None,
) -> None:
    metadata, blooms, _ = opened(written(SCHEMA, groups, BLOOMED))
    for predicate in (*terms, *looked_up):
        bound = bind(normalize(predicate), SCHEMA, semantics)
        verdicts = prune_row_groups(bound, [(metadata, blooms)], SCHEMA, only=only)[0].verdicts
        assert verdicts.shape == (len(groups),)
        for verdict, group in zip(verdicts, groups, strict=True):
            outcome = evaluate(bound, group)
            if verdict == Verdict.NONE:
                assert not outcome.true.any()
                assert not outcome.failed.any()
            if verdict == Verdict.ALL:
                assert outcome.true.all()


KEYED = Schema(
    1,
    (
        Field(1, "id", Int(), nullable=False),
        Field(2, "name", String()),
        Field(3, "x", Float()),
        Field(4, "n", Int()),
    ),
)


def rows(ids: Sequence[int]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([f"n{i}" for i in ids]),
            "x": pa.array([float(i) for i in ids]),
            "n": pa.array([0 for _ in ids], pa.int64()),
        }
    )


@dataclass
class Asked:
    """A reader of filters that notes what it was asked for."""

    reader: BloomReader
    groups: list[int] = field(default_factory=list)
    far_groups: frozenset[int] = frozenset()

    def far(self, column: FileColumn, row_groups: Sequence[int]) -> list[int]:
        """Those of the groups that a test chose."""
        return [group for group in row_groups if group in self.far_groups]

    def expect(self, column: FileColumn, row_groups: Sequence[int]) -> None:
        """Nothing is fetched early."""

    def filters(self, column: FileColumn, row_groups: Sequence[int]) -> list[BloomFilter | None]:
        self.groups += row_groups
        return self.reader.filters(column, row_groups)


@pytest.fixture
def file() -> tuple[Any, Asked]:
    """Even numbers in two groups that overlap, odd ones after them."""
    groups = [rows(range(0, 1000, 4)), rows(range(2, 1000, 4)), rows(range(1001, 2000, 2))]
    metadata, blooms, _ = opened(written(KEYED, groups, ["id", "name"], sure=True))
    return metadata, Asked(blooms)


def verdicts(file: tuple[Any, Asked], text: str, *, blooms: bool = True, **options: Any) -> str:
    """One letter per row group: None, Some, All."""
    metadata, asked = file
    bound = bind(normalize(parse_predicate(text)), KEYED)
    files = [(metadata, asked if blooms else None)]
    found = prune_row_groups(bound, files, KEYED, **options)[0].verdicts
    return "".join("NSA"[verdict] for verdict in found)


@pytest.mark.parametrize(
    ("text", "by_statistics", "with_blooms"),
    [
        ("id = 500", "SSN", "SNN"),
        ("500 = id", "SSN", "SNN"),
        ("id IS NOT DISTINCT FROM 500", "SSN", "SNN"),
        ("id = 500 OR id = 504", "SSN", "SNN"),
        ("id = 501", "SSN", "NNN"),
        ("id IN (501, 503, 1500)", "SSS", "NNN"),
        ("id IN (501, 1503)", "SSS", "NNS"),
        ("id IN (500, 502, NULL)", "SSN", "SSN"),
        ("id IN (501, NULL)", "SSN", "NNN"),
        ("id IN (0, 501)", "SSN", "SNN"),
        ("id IN (501, 996)", "SSN", "SNN"),
        ("id < 1000", "AAN", "AAN"),
        ("id <= 501", "SSN", "SSN"),
        ("id <> 501", "SSA", "SSA"),
        ("name = 'n502'", "SSN", "NSN"),
        ("id = 501 AND 1 / n > 0", "SSN", "NNN"),
        ("1 / n > 0 AND id = 501", "SSN", "NNN"),
        ("id = 501 OR x = 3.5", "SSN", "SSN"),
        ("NOT (id <> 501)", "SSN", "NNN"),
        ("x = 501.0", "SSN", "SSN"),
        ("id + 1 = 502", "SSN", "SSN"),
    ],
)
def test_points_are_looked_up_in_blooms(
    file: tuple[Any, Asked], text: str, by_statistics: str, with_blooms: str
) -> None:
    assert verdicts(file, text, blooms=False) == by_statistics
    assert verdicts(file, text) == with_blooms


def test_a_literal_of_another_number_type_is_looked_up_in_the_columns_type(
    file: tuple[Any, Asked],
) -> None:
    assert verdicts(file, "id = 501.0") == "NNN"
    assert verdicts(file, "id = 500.0") == "SNN"
    assert verdicts(file, "id = 500.5") == "NNN"


def test_given_verdicts_are_not_changed(file: tuple[Any, Asked]) -> None:
    metadata, asked = file
    bound = bind(parse_predicate("id = 501"), KEYED)
    statistics = RowGroupStatistics(metadata, KEYED)
    given_ = interpret(bound, statistics)
    assert probe_blooms(bound, statistics, given_, asked).tolist() == [0, 0, 0]
    assert given_.tolist() == [1, 1, 0]


def test_few_filters_that_cost_a_round_trip_are_not_read(file: tuple[Any, Asked]) -> None:
    metadata, asked = file
    asked.far_groups = frozenset({0})
    assert verdicts((metadata, asked), "id = 501") == "SNN"
    assert asked.groups == [1]


def test_many_filters_that_cost_a_round_trip_are_read(file: tuple[Any, Asked]) -> None:
    metadata, asked = file
    asked.far_groups = frozenset({0, 1})
    files = [(metadata, asked)] * (PROBED_FROM // 2 + 1)
    bound = bind(parse_predicate("id = 501"), KEYED)
    for pruned in prune_row_groups(bound, files, KEYED):
        assert pruned.by_bloom == 2


def test_columns_that_may_not_prune_are_not_looked_up(file: tuple[Any, Asked]) -> None:
    assert verdicts(file, "name = 'n5' AND id < 5000", only=frozenset({1})) == "SSS"
    assert file[1].groups == []
    assert verdicts(file, "id = 501", only=frozenset({1})) == "NNN"


def test_filters_of_groups_that_are_decided_are_not_read(file: tuple[Any, Asked]) -> None:
    verdicts(file, "id = 1500")
    assert file[1].groups == [2]
    verdicts(file, "id < 1000 AND name IN ('n500', 'zz')")
    assert file[1].groups == [2, 0, 1]


def test_filters_are_not_read_for_more_values_than_can_be_refuted(
    file: tuple[Any, Asked],
) -> None:
    few = ", ".join(str(i) for i in range(3, 3 + 2 * MAX_PROBES, 2))
    assert verdicts(file, f"id IN ({few})") == "NNN"
    assert file[1].groups == [0, 1]
    file[1].groups.clear()
    assert verdicts(file, f"id IN ({few}, {2 * MAX_PROBES + 3})") == "SSN"
    assert file[1].groups == []
    above = ", ".join(str(i) for i in range(2001, 2001 + MAX_VALUES - MAX_PROBES))
    assert verdicts(file, f"id IN ({few}, {above})") == "NNN"
    assert file[1].groups == [0, 1]
    file[1].groups.clear()
    assert verdicts(file, f"id IN ({few}, {above}, 9999)") == "SSN"
    assert file[1].groups == []


def test_no_groups_no_verdicts() -> None:
    metadata = read_footer(written(KEYED, []))
    bound = bind(parse_predicate("id = 1"), KEYED)
    assert np.array_equal(
        prune_row_groups(bound, [(metadata, None)], KEYED)[0].verdicts, np.zeros(0)
    )
