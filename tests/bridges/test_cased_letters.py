"""Letters whose case is newer than an engine's Unicode decide no translation that is exact."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.meanings import keep_meaning
from rowsieve.bridges.sql import parse_predicate
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of

LETTERS = ("", "a", "B", "\u019b", "\ua7dc", "\u027c", "\ua7e2", "\ua7ce", "\ua7cf", "\uffff")
TEXTS = ["".join(each) for each in itertools.product(LETTERS, repeat=2)]
BATCH = pa.record_batch({"s": TEXTS, "t": [*TEXTS[1:], "b"]})
SCHEMA = schema_of(BATCH.schema)[0]
ALIKE = [
    "upper(s) = 'AB'",
    "lower(s) <> 'ab'",
    "upper(s) IN ('AB', 'A', NULL)",
    "upper(s) LIKE 'A_%'",
    "lower(s) < 'b'",
    "length(upper(s)) > 2",
    "starts_with(lower(s), 'ab')",
    "substr(upper(s), 2, 1) = 'B'",
    "CASE WHEN upper(s) = 'A' THEN lower(s) ELSE upper(t) END = 'b'",
    "upper(lower(s)) IS NULL",
]
DECIDED = [
    "upper(s) = upper(t)",
    "upper(s) = s",
    "upper(s) = '\ua7e2'",
    "lower(s) IN ('a', '\u027c')",
    "upper(s) LIKE '\ua7dc%'",
    "upper(s) < '\u1000'",
    "starts_with(lower(s), t)",
    "nullif(upper(s), t) IS NULL",
    "octet_length(upper(s)) = 2",
    "contains(concat(upper(s), t), '\ua7dc')",
]


@pytest.mark.parametrize("version", [15, 17])
@pytest.mark.parametrize("text", [*ALIKE, *DECIDED])
def test_conditions_that_such_letters_decide_are_refused(text: str, version: int) -> None:
    ours, theirs = Semantics.SQL, replace(Semantics.SQL, name="older", case_version=version)
    for one, other in ((ours, theirs), (theirs, ours)):
        bound = bind(parse_predicate(text), SCHEMA, one, simplified=False)
        if text in DECIDED:
            with pytest.raises(UnsupportedOperation, match="letters whose case is new"):
                keep_meaning(bound.root, one, other)
            continue
        kept = bind(keep_meaning(bound.root, one, other), SCHEMA, other, simplified=False)
        assert evaluate(kept, BATCH).true.tolist() == evaluate(bound, BATCH).true.tolist()


def test_each_refused_condition_has_rows_on_which_engines_differ() -> None:
    older = replace(Semantics.SQL, name="older", case_version=15)
    differing = 0
    for text in DECIDED:
        outcomes = [
            evaluate(bind(parse_predicate(text), SCHEMA, each), BATCH).true.tolist()
            for each in (Semantics.SQL, older)
        ]
        differing += outcomes[0] != outcomes[1]
    assert differing >= len(DECIDED) - 1  # one of them compares texts of equal length


def test_an_exact_translation_to_pyarrow_finds_the_rows_of_duckdb() -> None:
    schema = pa.schema([("s", pa.string()), ("t", pa.string())])
    for text, exact in (("upper(s) = 'AB'", True), ("s ILIKE 'a%'", True), (DECIDED[0], False)):
        found = rs.translate(text, source="duckdb", target="pyarrow_exprs", schema=schema)
        assert (found.residual is None) is exact
