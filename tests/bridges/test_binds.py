"""A tree is bound once under the same semantics: how often trees are bound, in calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.predicate.bind import bind, bind_each
from rowsieve.predicate.semantics import Semantics

_SCHEMA = pa.schema([("x", pa.int64()), ("s", pa.string()), ("at", pa.timestamp("us"))])


@contextmanager
def _counted() -> Iterator[list[str]]:
    """Collect the predicates that are bound while the block runs, those of one call together."""
    bound: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is bind.__code__:
            bound.append(str(frame.f_locals["predicate"]))
        if event == "call" and frame.f_code is bind_each.__code__:
            bound.append(" | ".join(map(str, frame.f_locals["predicates"])))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield bound
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("target", ["duckdb", "datafusion", "spark", "pyarrow_exprs"])
@pytest.mark.parametrize(
    "condition",
    [
        "x > 5",
        "x IN (1, 2, 3) OR s IS NULL",
        "x BETWEEN 1 AND 7",
        "x > 5 AND x < 9",
        "date_trunc('day', at) = TIMESTAMP '2026-01-01'",
    ],
)
def test_translate_binds_once_a_side(condition: str, target: str) -> None:
    """The source is bound under its rules and the target under its own."""
    with _counted() as bound:
        made = rs.translate(condition, "postgres", target=target, schema=_SCHEMA)
    assert made.exactness is rs.Exactness.EXACT
    assert len(bound) == 2, bound


def test_one_that_does_not_bind_leaves_the_others() -> None:
    """All conditions of the text are bound in one call, each with its own error."""
    text = "x > 5 AND s + 1 > 2 AND s LIKE 'a%'"
    with _counted() as bound:
        translation = rs.translate(text, "postgres", target="duckdb", schema=_SCHEMA)
    assert bound == ["x > 5 | add(s, 1) > 2 | s LIKE 'a%'", "x > 5 AND s LIKE 'a%'"]
    assert translation.residual == "s + 1 > 2"
    (note,) = translation.notes
    assert note.startswith("condition 2 of 3")


def test_given_semantics_bind_the_source_once_more() -> None:
    """Under other rules than those of its language a tree is another tree."""
    with _counted() as bound:
        rs.translate(
            "x > 5", "postgres", target="duckdb", schema=_SCHEMA, semantics=Semantics.DUCKDB
        )
    assert len(bound) == 3


@pytest.mark.parametrize("where", ["x > 5", "x IN (1, 2) AND s LIKE 'a%'"])
def test_a_scan_binds_once(tmp_path: Path, where: str) -> None:
    """The plan binds the condition; the pages, the rows and a second scan take the bound form."""
    rows = pa.table({"k": range(10), "x": range(10), "s": ["a"] * 10})
    table = rs.create_table(tmp_path / "t", rows, key=["k"])
    table.upsert(rows.slice(5))
    scans: list[Callable[[], pa.Table]] = [lambda: table.scan(where).to_arrow()] * 2
    with _counted() as bound:
        first, second = (scan() for scan in scans)
    assert first == second
    assert len(bound) == 1, bound


def test_explain_binds_a_condition_and_not_its_terms(tmp_path: Path) -> None:
    """Its report by part and by row group binds the conjuncts together, however many they are."""
    rows = pa.table({"k": range(10)} | {f"c{i}": range(10) for i in range(8)})
    table = rs.create_table(tmp_path / "t", rows, key=["k"])
    counts = []
    for terms in (2, 8):
        where = " AND ".join(f"c{i} > 3" for i in range(terms))
        table.scan(where).to_arrow()
        with _counted() as bound:
            report = table.scan(where).explain()
        assert len(report.conditions) == terms
        counts.append(len(bound))
    assert 0 < counts[0] == counts[1] <= 3
