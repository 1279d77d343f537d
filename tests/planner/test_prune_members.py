"""Row groups and pages are pruned by members of structs, and only where no row of theirs counts."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.planner.candidates import Candidates, find_candidates
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from tests.small_tables import fresh_uri

ROWS, PAGE = 80_000, 8_192
S = ir.Column("s")
INNER = ir.FieldAccess(S, "in")
A, T, F = ir.FieldAccess(S, "a"), ir.FieldAccess(INNER, "t"), ir.FieldAccess(INNER, "f")
OPS = tuple(op for op in ir.ComparisonOp if op.name in ("EQ", "NE", "LT", "LE", "GT", "GE"))


def _rows(rng: random.Random) -> pa.Table:
    """Members ascend page by page; some pages have NULL members, NULL structs, or NaN."""
    pages = np.arange(ROWS) // PAGE
    noise = np.random.default_rng(rng.randrange(99)).integers(0, 10, ROWS)
    a = pa.array(pages * 10 + noise, mask=(pages % 3 == 1) & (noise < 5))
    texts = pa.array([f"p{page:02}{each}" for page, each in zip(pages, noise, strict=True)])
    floats = np.where((pages == 4) & (noise == 0), math.nan, pages + noise / 16)
    inner = pa.StructArray.from_arrays(
        [texts, pa.array(floats)], ["t", "f"], mask=pa.array((pages == 6) & (noise > 2))
    )
    whole = pa.StructArray.from_arrays(
        [a, inner, pa.array([[int(n)] for n in noise])],
        ["a", "in", "items"],
        mask=pa.array((pages == 2) | ((pages == 5) & (noise == 1))),
    )
    return pa.table({"k": pa.array(range(ROWS)), "s": whole})


@pytest.fixture(scope="module")
def table() -> rs.Table:
    return rs.create_table(fresh_uri(), _rows(random.Random(1)), key=["k"])


def _found(table: rs.Table, predicate: ir.Predicate) -> tuple[Candidates, Any]:
    """The candidates of the only file, and which rows are TRUE or fail."""
    snapshot = table.handle.pinned
    ref = snapshot.parts.entry(0).data
    assert ref is not None
    bound = bind(predicate, snapshot.schema, Semantics.SQL)
    (found,) = find_candidates(table.handle.store, [ref], bound, snapshot.schema)
    rows = table.scan().to_arrow().combine_chunks().to_batches()[0]
    outcome = evaluate(bound, rows)
    return found, outcome.true | outcome.failed


def _drawn(rng: random.Random) -> ir.Predicate:
    kind = rng.randrange(6)
    if kind == 0:
        test = ir.IsNull(rng.choice((A, T, F)))
        return ir.Not(test) if rng.random() < 0.5 else test
    if kind == 1:
        joined = rng.choice((ir.And, ir.Or))
        return joined((_drawn(rng), _drawn(rng)))
    if kind == 2:
        text = f"p{rng.randrange(12):02}{rng.randrange(10)}"
        return ir.Comparison(rng.choice(OPS), T, ir.Literal(text))
    if kind == 3:
        number = ir.Literal(rng.choice([math.nan, 2.5, 4.0, 9.5]))
        return ir.Comparison(rng.choice(OPS), F, number)
    member: ir.Operand = rng.choice(
        (A, ir.Call("add", (A, ir.Literal(1))), ir.Call("coalesce", (A, ir.Literal(500))))
    )
    return ir.Comparison(rng.choice(OPS), member, ir.Literal(rng.randrange(-5, 105)))


def test_no_row_that_matches_or_fails_is_pruned(table: rs.Table) -> None:
    rng, pruned = random.Random(3), 0
    for _ in range(60):
        predicate = _drawn(rng)
        found, alive = _found(table, predicate)
        kept = found.rows.to_mask()
        assert not (alive & ~kept).any(), predicate
        pruned += found.by_statistics + found.by_page_index
    assert pruned > 60


@pytest.mark.parametrize(
    ("predicate", "groups", "pages"),
    [
        pytest.param(ir.Comparison(ir.ComparisonOp.LT, A, ir.Literal(0)), 2, 0, id="row groups"),
        pytest.param(ir.Comparison(ir.ComparisonOp.EQ, T, ir.Literal("p031")), 1, 7, id="pages"),
        pytest.param(ir.Not(ir.IsNull(A)), 0, 1, id="a page of NULL structs"),
        pytest.param(
            ir.Comparison(ir.ComparisonOp.GE, F, ir.Literal(8.0)), 0, 0, id="a member with NaN"
        ),
    ],
)
def test_members_prune(table: rs.Table, predicate: ir.Predicate, groups: int, pages: int) -> None:
    found, _ = _found(table, predicate)
    assert (found.by_statistics, found.by_page_index) == (groups, pages)


def test_a_member_with_the_path_of_a_column_has_no_statistics_in_the_file() -> None:
    """By its path alone, the column would get the statistics that its NaN forbids."""
    inner = pa.StructArray.from_arrays([pa.array([1.0, 2.0])], ["x"])
    rows = pa.table({"k": [1, 2], "s": inner, "s.x": [math.nan, 5.0]})
    table = rs.create_table(fresh_uri(), rows, key=["k"])
    for column in (ir.FieldAccess(S, "x"), ir.Column("s.x")):
        found, _ = _found(table, ir.Comparison(ir.ComparisonOp.GT, column, ir.Literal(9.0)))
        assert found.by_statistics == 0
