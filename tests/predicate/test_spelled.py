"""A predicate's text for people: reads like SQL, and stays short."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import rowsieve
from rowsieve.bridges.where import to_predicate
from rowsieve.predicate import ir
from rowsieve.predicate.spelled import MAX_CHARACTERS
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Binary, Date, Int, Time, Timestamp, Uuid
from tests.small_tables import keyed

COLUMNS = pa.schema(
    [("a", pa.int64()), ("b", pa.string()), ("Big Name", pa.int8()), ("f", pa.bool_())]
)
SCHEMA, _ = schema_of(COLUMNS)


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("a = 1 AND b <> 'it''s'", "a = 1 AND b <> 'it''s'"),
        ("a = 1 OR (b IS NULL AND a > 2)", "a = 1 OR (b IS NULL AND a > 2)"),
        ("a IN (3, 1, 2)", "a IN (3, 1, 2)"),
        ("b LIKE 'x!%' ESCAPE '!'", "b LIKE 'x!%' ESCAPE '!'"),
        ("b ILIKE 'x%'", "b ILIKE 'x%'"),
        ('"Big Name" < 2', '"Big Name" < 2'),
        ("a IS DISTINCT FROM 2", "a IS DISTINCT FROM 2"),
        ("f", "f"),
        ("lower(b) = 'x'", "lower(b) = 'x'"),
        ("CASE WHEN a = 1 THEN a ELSE 2 END = 2", "CASE WHEN a = 1 THEN a ELSE 2 END = 2"),
        ("CAST(a AS DOUBLE PRECISION) > 1", "CAST(a AS float64) > 1"),
        ("TRUE", "TRUE"),
    ],
)
def test_a_predicate_reads_like_sql(where: str, shown: str) -> None:
    assert repr(to_predicate(where, "postgres", SCHEMA)) == shown


@pytest.mark.parametrize(
    ("constant", "shown"),
    [
        (ir.Literal(None), "NULL"),
        (ir.Literal(value=True), "TRUE"),
        (ir.Literal(-5, Int()), "-5"),
        (ir.Literal(19_000, Date()), "DATE '2022-01-08'"),
        (ir.Literal(-(2**31), Date()), "DATE '-2147483648'"),
        (ir.Literal(3_600_000_001, Time()), "TIME '01:00:00.000001'"),
        (ir.Literal(0, Timestamp(utc=True)), "TIMESTAMPTZ '1970-01-01 00:00:00Z'"),
        (ir.Literal(2**62, Timestamp(utc=False)), f"TIMESTAMP '{2**62}'"),
        (ir.Literal(b"\x01\xff", Binary()), "X'01ff'"),
        (ir.Literal(bytes(16), Uuid()), "UUID '00000000-0000-0000-0000-000000000000'"),
        (ir.Literal((1, None, "x")), "(1, NULL, 'x')"),
        (ir.Literal("\x1b[2J\n"), r"'\x1b[2J\n'"),
    ],
)
def test_constants_are_written_out(constant: ir.Literal, shown: str) -> None:
    assert repr(ir.Comparison(ir.ComparisonOp.EQ, ir.Column("a"), constant)) == f"a = {shown}"


def deep(levels: int) -> ir.Predicate:
    tree: ir.Predicate = ir.IsNull(ir.Column("a"))
    for _ in range(levels):
        tree = ir.Not(tree)
    return tree


TOO_LARGE: dict[str, Callable[[], ir.Node]] = {
    "wide": lambda: ir.Or(tuple(ir.IsNull(ir.Column(f"c{i}")) for i in range(100_000))),
    "deep": lambda: deep(50_000),
    "a list": lambda: ir.InList(ir.Column("a"), ir.ValueSet(pa.array(range(1_000_000)))),
    "a name": lambda: ir.IsNull(ir.Column("x" * 10_000)),
    "text": lambda: ir.Comparison(ir.ComparisonOp.EQ, ir.Column("a"), ir.Literal("x" * 10**6)),
    "another engine's": lambda: ir.Opaque("x" * 10_000, "spark"),
    "opaques": lambda: ir.And(tuple(ir.Opaque("y" * 1000, "spark") for _ in range(99))),
}


@pytest.mark.parametrize("made", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_long_predicate_is_cut(made: Callable[[], ir.Node]) -> None:
    assert 5 < len(repr(made())) <= MAX_CHARACTERS + 1


def test_names_and_values_of_others_cannot_move_the_cursor() -> None:
    tree = ir.Comparison(ir.ComparisonOp.EQ, ir.Column('\x1b"\n'), ir.Literal("\u202e\0"))
    assert repr(tree).isprintable()


def test_plans_and_snapshots_have_a_repr_of_one_line() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [11, 12], "v": [3, 4]})
    plan = table.scan("k = 11", limit=5).plan()
    assert repr(plan) == (
        f"<rowsieve.ScanPlan of {table.uri} version 2 where k = 11 limit 5: "
        "1 of 2 parts in 1 splits>"
    )
    shown = repr(table.handle.pinned)
    assert shown.startswith("<rowsieve.Snapshot version 2 of table ")
    assert shown.endswith(": 2 columns, 2 parts>")
    explained = table.scan("k = 11").explain()
    assert repr(explained) == str(explained)


def test_the_repr_of_a_commit_lists_its_changes() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]})
    commit = table.upsert({"k": [2, 3], "v": [5, 6]}, metadata={"<b>by</b>": "<i>me</i>\x1b"})
    shown = repr(commit)
    assert shown.startswith("<rowsieve.Commit version 2: operation upsert, at 2")
    assert f"rows +2 -0, parts +1 -0, id {commit.commit_id[:8]}>" in shown
    assert len(shown) < 160
    html = commit._repr_html_()
    assert "&lt;b&gt;by&lt;/b&gt;" in html
    assert "&lt;i&gt;me&lt;/i&gt;\\x1b" in html
    assert "<i>" not in html
    nothing = table.delete("k = 99")
    assert repr(nothing) == "<rowsieve.Commit: delete had nothing to do at version 2>"
    assert "had nothing to do" in nothing._repr_html_()
    assert all(repr(commit) == repr(found) for found in table.history(1))


def test_values_in_explanations_are_escaped_for_notebooks() -> None:
    table = rowsieve.create_table("memory:///explained", {"<i>": ["<b>", "\x1b[2J"]})
    html = table.scan("\"<i>\" = '<b>\x1b'").explain()._repr_html_()
    assert "&quot;&lt;i&gt;&quot; = &#x27;&lt;b&gt;\\x1b&#x27;" in html
    assert not {"<i>", "<b>"} & {html[i : i + 3] for i in range(len(html))}
    assert "\x1b" not in html
