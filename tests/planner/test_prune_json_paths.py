"""Row groups and pages that a JSON path prunes have no row that matches or fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate
from rowsieve.objects import open_store
from rowsieve.parquet import shredded_columns
from rowsieve.parquet.footer import Tail, read_tail
from rowsieve.planner.prune_pages import prune_pages
from rowsieve.planner.prune_row_groups import prune_row_groups
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.parts.part_writer import write_parts
from rowsieve.types.logical import Field, Int, Json
from rowsieve.types.schema import Schema
from tests.json_documents import LONG, NUMBERS, OTHERS, TEXTS, batches
from tests.oracle_texts import known_texts
from tests.profiles import examples
from tests.small_pages import small_pages
from tests.small_tables import fresh_uri
from tests.stats.manifests import batch_of, bound
from tests.strategies import SEMANTICS

GROUP_ROWS, PAGE_ROWS = 4, 2
SCHEMA = Schema(0, (Field(1, "id", Int()), Field(2, "j", Json())))
PROPERTIES = {"json_shredding": "j.a.k, j.k"}

SQL = [
    "cast(j->'a'->>'k' as bigint) {op} {n}",
    "cast(j->'a'->>'k' as decimal(38,2)) {op} {n}",
    "cast(j->'a'->>'k' as double) {op} {n}",
    "cast(j->'a'->>'k' as boolean)",
    "(j->'a'->>'k') {op} {text}",
    "(j->'a'->>'k') in ({text}, 'b', '7')",
    "(j->'a'->>'k') like 'é%'",
    "(j->'a'->>'k') is null",
    "(j->'a'->'k') is null",
    "(j->>'k') = '1'",
    "(j#>>'{{a,k}}') {op} {text}",
    "coalesce(cast(j->'a'->>'k' as double), 0) {op} {n}",
]
conditions = st.builds(
    lambda template, form, **values: form.format(template.format(**values)),
    st.sampled_from(SQL),
    st.sampled_from(["{}", "not ({})", "({}) is null"]),
    op=st.sampled_from(["=", "<", ">=", "<>", "is distinct from"]),
    n=st.sampled_from(["0", "7", "-12", "1.0", "-2.68", "9223372036854775807", "1e30"]),
    text=st.sampled_from(["''", "'a'", "'7'", f"'{LONG}'", f"'{LONG}z'", "'zzz'", "'1.0'"]),
)


@pytest.fixture(scope="module", autouse=True)
def many_pages() -> Iterator[None]:
    with small_pages(PAGE_ROWS, GROUP_ROWS):
        yield


def rows_of(documents: Sequence[str | None]) -> pa.RecordBatch:
    rows = [{"id": i, "j": document} for i, document in enumerate(documents)]
    return batch_of(rows, SCHEMA)


def written(rows: pa.RecordBatch, properties: dict[str, str] = PROPERTIES) -> Tail:
    store = open_store(fresh_uri())
    table = pa.Table.from_batches([rows])
    parts = write_parts(store, SCHEMA, (), table, None, base_version=0, properties=properties)
    ref = parts.entry(0).data
    assert ref is not None
    return read_tail(store, ref)


def kept_rows(
    tail: Tail, predicate: BoundPredicate, count: int, **options: Any
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows are left after row groups and pages were pruned."""
    groups = prune_row_groups(predicate, [(tail.metadata, None)], SCHEMA, **options)[0].verdicts
    found = prune_pages(predicate, [(tail, groups)], SCHEMA, GROUP_ROWS, **options)[0]
    return np.repeat(found.chosen, found.rows)[:count]


@given(
    batches.filter(bool),
    st.lists(conditions, min_size=1, max_size=6),
    st.sampled_from(SEMANTICS),
)
@examples(60)
@known_texts()
def test_no_pruned_row_matters(
    documents: list[str | None], texts: list[str], semantics: Semantics
) -> None:
    batch = rows_of(documents)
    tail = written(batch)
    for text in texts:
        predicate = bound(text, SCHEMA, semantics)
        outcome = evaluate(predicate, batch)
        matters = outcome.true | outcome.failed
        lost = matters & ~kept_rows(tail, predicate, len(documents))
        outcome.refuse_unread(lost)
        assert not lost.any(), (text, [documents[i] for i in np.flatnonzero(lost)])


ODD = [
    *(f'{{"a": {{"k": {value}}}}}' for value in [*NUMBERS, *OTHERS]),
    *(json.dumps({"a": {"k": text}}) for text in TEXTS),
    '{"a": {"k": 1, "k": 9}}',
    '{"a": {"k": 9, "k": 1}}',
    '{"a": {"k": 1}, "a": {"k": "a"}}',
    '{"a": {"k": 1, "\\u006b": 9}}',
    '{"a": {"\\u006b": 9, "x": "k"}}',
    '{"a": {"k": 7}',
    '{"a": {"k": 7}} 1',
    '{"a": {"x": [{"k": 7}]}}',
    '{"a": [{"k": 7}]}',
    "",
    None,
]
SURE = [
    form.format(template.format(op=op, n=n, text=text))
    for template in SQL
    for form in ("{}", "not ({})")
    for op, n, text in (("=", "9", "'a'"), ("<", "1", "'b'"), (">=", "100", f"'{LONG}zz'"))
]


@pytest.mark.parametrize("semantics", [Semantics.SQL, Semantics.DUCKDB, Semantics.SPARK])
def test_each_odd_document_is_kept_where_it_matters(semantics: Semantics) -> None:
    batch = rows_of([document for document in ODD for _ in range(PAGE_ROWS)])
    tail = written(batch)
    cut = 0
    for text in dict.fromkeys(SURE):
        predicate = bound(text, SCHEMA, semantics)
        outcome = evaluate(predicate, batch)
        kept = kept_rows(tail, predicate, batch.num_rows)
        cut += int(np.count_nonzero(~kept))
        lost = (outcome.true | outcome.failed) & ~kept
        assert not lost.any(), (text, [ODD[i // 2] for i in np.flatnonzero(lost)])
    assert cut > 500


MISSING = object()


def pages(values: Sequence[Any], text: str, **options: Any) -> str:
    """One letter a page of two rows, `x` for those left out; row groups are two pages each."""
    rows = rows_of(
        [json.dumps({"a": {} if value is MISSING else {"k": value}}) for value in values]
    )
    predicate = bind(normalize(parse_predicate(text)), SCHEMA)
    kept = kept_rows(written(rows), predicate, len(values), **options)
    return "".join("+" if one else "x" for one in kept[::PAGE_ROWS])


CASES = [
    pytest.param(["a", "b", "c", "d", "e", "f"], "j->'a'->>'k' = 'd'", "x+x", id="text"),
    pytest.param(["a", "b", "c", "d", "e", "f"], "j->'a'->>'k' IN ('a', 'f')", "+x+", id="list"),
    pytest.param([1, 2, 3, 4, 5, 6], "(j->'a'->>'k')::bigint > 4", "xx+", id="number"),
    pytest.param([1, 2, 3, 4, 5, 6.5], "(j->'a'->>'k')::double > 4", "xx+", id="other number"),
    pytest.param([1, 2, None, 4, 5, 6], "j->'a'->>'k' IS NULL", "x+x", id="null"),
    pytest.param([True, False, True, True, 5, 6], "(j->'a'->>'k') = '7'", "+++", id="others"),
    pytest.param([True, True, False, False], "(j->'a'->>'k')::boolean", "+x", id="boolean"),
    pytest.param([True, False, None, False], "j->'a'->>'k' IS NULL", "x+", id="both booleans"),
    pytest.param([MISSING, False, True, True], "NOT (j->'a'->>'k')::boolean", "+x", id="between"),
    pytest.param([1, 2.5, 1, 2], "(j->'a'->>'k')::double > 2", "+x", id="a fraction among whole"),
    pytest.param(["a", "b", "c", None], "j->'a'->'k' IS NULL", "xx", id="null is a value"),
    pytest.param([LONG + "za", "a", "b", "c"], f"j->'a'->>'k' = '{LONG}zb'", "+x", id="prefix"),
    pytest.param([2**63, 1, 2, 3], "(j->'a'->>'k')::double >= 9.3e18", "xx", id="long integer"),
]


@pytest.mark.parametrize(("values", "text", "expected"), CASES)
def test_pages_are_left_out_by_what_a_path_holds(
    values: Sequence[Any], text: str, expected: str
) -> None:
    assert pages(values, text) == expected


def test_t1_a_path_prunes_nothing_before_the_merge() -> None:
    assert pages(["a", "b", "c", "d"], "j->'a'->>'k' = 'd'", only=frozenset({1})) == "++"
    assert pages(["a", "b", "c", "d"], "j->'a'->>'k' = 'd'", only=frozenset({2})) == "x+"


def test_a_path_without_columns_prunes_nothing() -> None:
    rows = rows_of(['{"a": {"k": 1}}'] * 4)
    predicate = bind(normalize(parse_predicate("(j->'a'->>'k')::bigint = 2")), SCHEMA)
    assert kept_rows(written(rows, {}), predicate, 4).all()
    assert kept_rows(written(rows, {"json_shredding": "j.a.x"}), predicate, 4).all()
    assert not kept_rows(written(rows), predicate, 4).any()


def test_an_unknown_version_of_the_columns_prunes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(['{"a": {"k": 1}}'] * 4)
    predicate = bind(normalize(parse_predicate("(j->'a'->>'k')::bigint = 2")), SCHEMA)
    tail = written(rows)
    monkeypatch.setattr(shredded_columns, "VERSION", 2)
    assert kept_rows(tail, predicate, 4).all()
