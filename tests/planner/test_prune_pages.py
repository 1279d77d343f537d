"""Pruned pages have no row that matches or fails; pages with wrong or missing indexes are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate
from rowsieve.objects import open_store
from rowsieve.parquet.footer import Tail, read_tail
from rowsieve.parquet.statistics import page_statistics
from rowsieve.parquet.thrift import read_struct
from rowsieve.planner.prune_pages import KeptPages, prune_pages
from rowsieve.planner.prune_row_groups import Verdicts, prune_row_groups
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.interpret import Verdict
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.rowset import RowSet
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.parts import part_file, part_writer
from rowsieve.storage.parts.part_writer import write_parts
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Field, Float, Int, String
from rowsieve.types.schema import Schema
from tests.oracle_texts import known_texts
from tests.profiles import examples
from tests.small_pages import small_pages
from tests.small_tables import fresh_uri
from tests.strategies import SCHEMA, SEMANTICS, batches, predicates

GROUP_ROWS, PAGE_ROWS = 8, 2
KEYED = Schema(
    1,
    (
        Field(1, "id", Int(), nullable=False),
        Field(2, "name", String()),
        Field(3, "x", Float()),
        Field(4, "n", Int()),
        Field(5, "down", Int()),
    ),
)


@pytest.fixture(scope="module", autouse=True)
def many_pages() -> Iterator[None]:
    with small_pages(PAGE_ROWS, GROUP_ROWS):
        yield


def written(schema: Schema, rows: pa.Table) -> Tail:
    store = open_store(fresh_uri())
    parts = write_parts(store, schema, (), rows, None, base_version=0, properties={})
    ref = parts.entry(0).data
    assert ref is not None
    return read_tail(store, ref)


def asked(tail: Tail, bound: BoundPredicate, schema: Schema, **options: Any) -> KeptPages:
    groups = prune_row_groups(bound, [(tail.metadata, None)], schema, **options)[0].verdicts
    return prune_pages(bound, [(tail, groups)], schema, GROUP_ROWS, **options)[0]


@given(
    batches(min_rows=1, max_rows=20),
    st.lists(predicates(1), min_size=1, max_size=4),
    st.sampled_from(SEMANTICS),
    st.none() | st.frozensets(st.sampled_from([column.id for column in SCHEMA])),
)
@examples(60)
@known_texts()
def test_no_pruned_page_has_a_row_that_matters(
    batch: pa.RecordBatch,
    terms: list[Predicate],
    semantics: Semantics,
    only: frozenset[int] | None,
) -> None:
    tail = written(SCHEMA, pa.Table.from_batches([batch]))
    for predicate in terms:
        bound = bind(normalize(predicate), SCHEMA, semantics)
        found = asked(tail, bound, SCHEMA, only=only)
        outcome = evaluate(bound, batch)
        matters = outcome.true | outcome.failed
        kept = np.repeat(found.chosen, found.rows)[: batch.num_rows]
        outcome.refuse_unread(matters & ~kept)  # no row to TRY_CAST, whatever the text is to it
        assert not (matters & ~kept).any()


def table(count: int) -> pa.Table:
    ids = list(range(count))
    return pa.table(
        {
            "id": ids,
            "name": [f"n{i:03}" for i in ids],
            "x": [float("nan") if i == 3 else i / 2 for i in ids],
            "n": [None if i % 8 < 4 else i for i in ids],
            "down": [-i for i in ids],
        },
        arrow_schema(KEYED),
    )


def pages(count: int, text: str, **options: Any) -> str:
    """One letter a page, `x` for those left out; row groups are 4 pages each."""
    tail = written(KEYED, table(count))
    found = asked(tail, bind(normalize(parse_predicate(text)), KEYED), KEYED, **options)
    kept = np.repeat(found.chosen, found.rows)[:count:PAGE_ROWS]
    return "".join("+" if one else "x" for one in kept)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 5", "xx+xxxxxx"),
        ("id IN (1, 12)", "+xxxxx+xx"),
        ("id BETWEEN 3 AND 9", "x++++xxxx"),
        ("name >= 'n013'", "xxxxxx+++"),
        ("x < 1", "+++++++++"),  # a NaN in the column: the file has no bounds of it
        ("n IS NULL", "++xx++xx+"),
        ("n > 0", "xx++xx++x"),
        ("id + 0 = 5", "xx+xxxxxx"),
        ("id = 5 OR name = 'n016'", "xx+xxxxx+"),
        ("10 / n > 1", "xx+xxxxxx"),
        ("10 / (n - 5) > 1", "xx++xxxxx"),  # fails on 5
        ("down = -5 AND id - 20 < 0", "xx+xxxxxx"),
        ("id < 100", "+++++++++"),
    ],
)
def test_pages_are_pruned_by_their_bounds(text: str, expected: str) -> None:
    assert pages(17, text) == expected


def test_columns_that_may_not_prune_do_not() -> None:
    assert pages(17, "id > 8 AND name = 'n010'", only=frozenset({1})) == "xxxx+++++"


def test_an_index_that_lacks_pages_is_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = read_struct
    assert pages(17, "id = 5") == "xx+xxxxxx"

    def short(data: Any, position: int = 0) -> Any:
        index, end = whole(data, position)
        return {
            field: one[:-1] if isinstance(one, list) else one for field, one in index.items()
        }, end

    monkeypatch.setattr(page_statistics, "read_struct", short)
    assert pages(17, "id = 5") == "++++xxxxx"


def test_files_are_pruned_together_and_each_gets_its_own_result() -> None:
    tails = [written(KEYED, table(count)) for count in (17, 3, 9)]
    bound = bind(parse_predicate("id = 5"), KEYED)
    files: list[tuple[Tail, Verdicts]] = [
        (tail, np.full(tail.metadata.num_row_groups, Verdict.SOME, dtype=np.int8)) for tail in tails
    ]
    found = prune_pages(bound, files, KEYED, GROUP_ROWS)
    assert [one.chosen.tolist() for one in found] == [
        [i == 2 for i in range(9)],
        [False, False],
        [i == 2 for i in range(5)],
    ]
    assert [(one.considered, one.pruned) for one in found] == [(9, 8), (2, 2), (5, 4)]


def test_the_example_of_the_two_phase_design(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are those of the pages that both columns leave: 200 to 249, not row 100."""
    monkeypatch.setattr(part_file, "PAGE_ROWS", 50)
    for module in (part_file, part_writer):
        monkeypatch.setattr(module, "ROW_GROUP_ROWS", 300)
    schema = Schema(0, (Field(1, "A", Int()), Field(2, "B", String())))
    numbers = [(10 if row < 200 else 30) + row % 11 for row in range(300)]
    spans = (("AC", 100), ("DG", 250), ("HZ", 300))
    ends = [next(letters for letters, stop in spans if row < stop) for row in range(300)]
    texts = [letters[row % 2] for row, letters in enumerate(ends)]
    tail = written(schema, pa.table([numbers, texts], arrow_schema(schema)))
    bound = bind(parse_predicate('"A" > 35 AND "B" = \'F\''), schema)
    groups = prune_row_groups(bound, [(tail.metadata, None)], schema)[0].verdicts
    (found,) = prune_pages(bound, [(tail, groups)], schema, 300)
    rows = RowSet.from_row_groups(found.chosen, found.rows, 300)
    assert [span.tolist() for span in rows.ranges()] == [[200], [250]]
