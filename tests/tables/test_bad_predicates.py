"""Conditions and data that are wrong or enormous, through a table: a clear error, or an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve import Table
from rowsieve.cli import app as cli
from rowsieve.errors import EvaluationError, InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from tests.executor.planted import lie
from tests.profiles import IS_DEEP
from tests.small_tables import appended, keyed, pairs

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        ("v", pa.int64()),
        ("text", pa.string()),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())),
    ]
)


@pytest.fixture
def table() -> Table:
    return keyed({"k": [1, 2], "v": [1, 2]}, {"k": [30_000_001], "v": [5]})


@pytest.mark.parametrize(
    "where",
    [
        "text > 5",
        "k LIKE 'a%'",
        "k",
        "NOT text",
        "flag > 1",
        "day = 5",
        "day + day > day",
        "tags = 'a'",
        "k = 'five'",
        "k IN (1, 'x')",
        "day BETWEEN 1 AND 2",
        "date_trunc('day', k) IS NULL",
        "date_trunc('fortnight', day) IS NULL",
        "CAST(tags AS int) = 1",
        "CASE WHEN k THEN 1 ELSE 2 END = 1",
        "coalesce(k, text) = 'a'",
        "lower(k) = 'a'",
        "lower(text, text) = 'a'",
        "frobnicate(k) = 1",
        "k = frobnicate()",
    ],
)
def test_ill_typed_or_unknown_conditions_are_rejected_before_any_read(where: str) -> None:
    table = keyed(schema=SCHEMA)
    calls = (
        table.scan,
        table.require_pruning,
        table.delete,
        lambda text: table.update({"v": 1}, where=text),
        lambda text: table.scan(columns={"x": f"CASE WHEN {text} THEN 1 END"}).to_arrow(),
    )
    for call in calls:
        with pytest.raises(InvalidPredicate):
            call(where)
    assert table.version == 0


def nested(depth: int) -> ir.Predicate:
    found: ir.Predicate = ir.IsNull(ir.Column("k"))
    for _ in range(depth):
        found = ir.Not(found)
    return found


def test_ten_thousand_levels_are_refused(table: Table) -> None:
    deep = ["(" * 10_000 + "k = 1" + ")" * 10_000, "NOT " * 10_000 + "flag", nested(10_000)]
    for where in deep:
        for call in (table.scan, table.delete, table.require_pruning):
            with pytest.raises(InvalidPredicate, match="nest"):
                call(where)
    assert table.version == 2


def test_thousands_of_sibling_conditions_are_accepted(table: Table) -> None:
    assert pairs(table, " OR ".join(f"k = {i}" for i in range(2, 6_002))) == [(2, 2)]
    assert pairs(table, " AND ".join(f"k <> {i}" for i in range(2, 6_002))) == [
        (1, 1),
        (30_000_001, 5),
    ]


def test_ten_million_values_prune_and_one_more_is_refused(table: Table) -> None:
    even = np.arange(0, 20_000_002, 2)
    some = even[:-1] if IS_DEEP else even[:1_000_000]  # half a minute of CPU for all of them
    scan = table.scan(ir.InList(ir.Column("k"), ir.ValueSet(pa.array(some))))
    assert scan.to_arrow().to_pylist() == [{"k": 2, "v": 2}]
    assert scan.metrics.parts_pruned == 1
    with pytest.raises(InvalidPredicate, match="10,000,001 values"):
        table.scan(ir.InList(ir.Column("k"), ir.ValueSet(pa.array(even))))


MALFORMED = ["{", '{"a": }', "", "nul", '{"a": 1}}', '{"a": 01}', "[" * 5_000, '{"a": 1e99999}']


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_json_is_written_and_keeps_its_part(text: str) -> None:
    schema = pa.schema([("k", pa.int64()), ("doc", pa.json_())])

    def rows(k: int, *texts: str) -> dict[str, Any]:
        documents = pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts, pa.string()))
        return {"k": [*range(k, k + len(texts))], "doc": documents}

    table = appended(
        rows(1, '{"a": 5}', text),
        rows(11, '{"a": 50}', '{"a": 60}'),
        schema=schema,
        properties={"json_statistics": "doc.a"},
    )
    assert table.writer_metrics.statistics_mismatched == 0
    where = "CAST(doc->>'a' AS int) = 7"
    assert table.scan(where).explain().parts_read == 1  # the one that may hold anything
    answers = [answer(table, where, pruning) for pruning in ("on", "soft", "off")]
    assert answers[0] == answers[1] == answers[2]
    assert table.scan("CAST(doc->>'a' AS int) = 60 AND k > 10").count() == 1


def answer(table: Table, where: str, pruning: Any) -> list[Any] | str:
    try:
        return table.scan(where, pruning=pruning).to_arrow()["k"].to_pylist()  # type: ignore[no-any-return]
    except EvaluationError:
        return "an error"


@pytest.mark.parametrize(
    ("fact", "value"),
    [("lower", 100), ("upper", -100), ("null_count", 3)],
    ids=["lower above upper", "upper below lower", "more NULLs than rows"],
)
def test_statistics_that_contradict_themselves_are_ignored_and_counted(
    fact: str, value: int
) -> None:
    table = appended({"k": [1, 2], "v": [1, 5]}, {"k": [3, 4], "v": [50, None]})
    field_id = table.handle.pinned.schema.field("v").id
    lie(table, f"stats.{field_id}.{fact}", [value, None])
    scan = table.scan("v = 5")
    assert scan.to_arrow()["k"].to_pylist() == [2]
    assert scan.metrics.statistics_contradicting == 1
    assert table.scan("k = 2").metrics.statistics_contradicting == 0


# Conditions and values that an engine computes otherwise, by its dialect.
OTHERWISE = {
    "postgres": ("greatest(f, n) > 1", "greatest(f, n)", "to float32"),
    "duckdb": ("least(f, n) < 1", "least(f, n)", "another type"),
    "datafusion": ("coalesce(f, n) > 1", "coalesce(f, n)", "another type"),
    "spark": ("-d = 1", "-d", "34 digits"),
}
ENTRIES: dict[str, Callable[[Table, str, str, str], object]] = {
    "scan": lambda table, dialect, text, _: table.scan(where=text, dialect=dialect).to_arrow(),
    "column": lambda table, dialect, _, value: table.scan(columns={"x": value}, dialect=dialect),
    "count": lambda table, dialect, text, _: table.count(text, dialect=dialect),
    "delete": lambda table, dialect, text, _: table.delete(text, dialect=dialect),
    "update": lambda table, dialect, text, _: table.update({"n": 1}, where=text, dialect=dialect),
    "assigned": lambda table, dialect, _, value: table.update({"f": value}, dialect=dialect),
    "case": lambda table, dialect, text, _: table.update(
        {"n": f"CASE WHEN {text} THEN 1 ELSE 2 END"}, dialect=dialect
    ),
    "overwrite": lambda table, dialect, text, _: table.overwrite(
        table.scan().to_arrow(), where=text, dialect=dialect
    ),
    "vectors": lambda table, dialect, text, _: table.build_deletion_vectors(text, dialect=dialect),
    "feed": lambda table, dialect, text, _: list(table.changes(0, where=text, dialect=dialect)),
    "constraint": lambda table, dialect, text, _: table.add_constraint("c", text, dialect=dialect),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("entries") / "t")


@pytest.fixture(scope="module")
def numbers(place: str) -> Table:
    columns = {"f": pa.float32(), "n": pa.int64(), "d": pa.decimal128(38, 0)}
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), *columns.items()])
    table = rs.create_table(place, schema, key=["k"])
    table.upsert(pa.table({"k": [1], "f": [1.5], "n": [3], "d": [None]}).cast(schema))
    return table


@pytest.mark.parametrize("dialect", OTHERWISE)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_refuses_what_the_engine_computes_otherwise(
    numbers: Table, entry: str, dialect: str
) -> None:
    text, value, reason = OTHERWISE[dialect]
    with pytest.raises(UnsupportedOperation, match=rf"at offset \d+, .*{reason}"):
        ENTRIES[entry](numbers, dialect, text, value)
    assert numbers.version == 1


def test_a_property_with_a_condition_refuses_what_the_engine_computes_otherwise(
    numbers: Table,
) -> None:
    with pytest.raises(UnsupportedOperation, match="to float32"):
        numbers.set_properties({"expire_rows_when": OTHERWISE["postgres"][0]})


@pytest.mark.parametrize("arguments", ["delete", "show", "update --set n=1"])
def test_the_command_line_refuses_what_the_engine_computes_otherwise(
    numbers: Table, place: str, arguments: str
) -> None:
    command, *options = arguments.split()
    given = [command, place, OTHERWISE["duckdb"][0], "--dialect", "duckdb", *options]
    result = CliRunner().invoke(cli.app, given)
    assert result.exit_code
    assert numbers.version == 1
    assert "another type" in " ".join(result.output.split())


@pytest.mark.parametrize("dialect", ["duckdb", "datafusion"])
def test_sums_of_values_are_computed_in_float32_as_in_the_engine(
    numbers: Table, dialect: str
) -> None:
    whole = 2**24 + 1  # float32 has no such number
    rows = numbers.scan(columns={"x": f"n + {whole - 3} + f"}, dialect=dialect).to_arrow()
    assert rows["x"].to_pylist() == [float(np.float32(whole) + np.float32(1.5))]
