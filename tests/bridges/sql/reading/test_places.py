"""Conditions that do not bind: the error has the offset, the part of the text and its columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.bridges.sql import parse_predicate
from rowsieve.cli import app as cli
from rowsieve.errors import InvalidInput, InvalidPredicate, UnknownColumn, UnsupportedOperation
from tests.small_tables import fresh_uri

DATA = pa.table(
    {
        "a": pa.array([1], pa.int64()),
        "name": ["x"],
        "day": pa.array([0], pa.date32()),
        "at": pa.array([0], pa.timestamp("us", "UTC")),
        "ok": [True],
        "f": [0.5],
        "raw": [b"x"],
        "l": [[1]],
        "s": [{"x": 1, "y": "b"}],
        "größe": pa.array([1], pa.int32()),
    }
)
WRONG = [
    # text, offset, part of the text, what the message says
    ("a = 5 AND name > 3", 10, "name > 3", ["string > int64", "name is string"]),
    ("3 < name OR a = 1", 0, "3 < name", ["name is string"]),
    ("nosuch = 1", 0, "nosuch", ["nosuch"]),
    ("a = 1 AND (a = 2 OR nosuch > 3)", 20, "nosuch", ["nosuch"]),
    ("a = 1 AND NOT upper(a) = 'X'", 14, "upper(a)", ["a is int64"]),
    ("name LIKE 'x%' AND a LIKE '5%'", 19, "a LIKE '5%'", ["a is int64"]),
    ("a IN ('x', 'y')", 0, "a IN ('x', 'y'", ["a is int64"]),
    ("a = 1 AND name IN (1, 2)", 10, "name IN (1, 2", ["name is string"]),
    ("ok > 3", 0, "ok > 3", ["ok is bool"]),
    ("a = 1 AND name", 10, "name", ["name is string"]),
    ("a = 1 AND name + 1 > 2", 10, "name + 1", ["name is string"]),
    ("a BETWEEN 'x' AND 'y'", 0, "a BETWEEN 'x' AND 'y'", ["a is int64"]),
    ("day = 'no day'", 0, "day = 'no day'", ["no day", "day is date"]),
    ("a = 1 AND at > 'noon'", 10, "at > 'noon'", ["noon", "at is timestamptz"]),
    ("day > 5", 0, "day > 5", ["day is date"]),
    ("raw = 5", 0, "raw = 5", ["raw is binary"]),
    ("a = 1 AND l > 2", 10, "l > 2", ["l is list"]),
    ("s = 4", 0, "s = 4", ["s is struct"]),
    ("a = 1 AND s.z = 4", 10, "s.z", ["z"]),
    ("a.x = 4", 0, "a.x", ["a is int64"]),
    ("extract(hour FROM name) = 3", 0, "extract", ["name is string"]),
    ("CASE WHEN ok THEN a ELSE name END = 1", 10, "a ELSE name", ["a is int64", "name is string"]),
    ("a = 1 AND coalesce(a, name) = 1", 10, "coalesce(a, name)", ["a is int64"]),
    ("a = 1\n  AND größe = name", 12, "größe = name", ["größe is int32", "name is string"]),
    ("CAST(l AS BIGINT) = 1", 5, "l", ["l is list"]),
    ("a = 1 AND nofunction(a) = 2", 10, "nofunction(a)", ["nofunction"]),
]


@pytest.fixture(scope="module")
def table() -> rs.Table:
    return rs.create_table(fresh_uri(), DATA, key=["a"])


@pytest.mark.parametrize(
    ("dialect", "text", "offset", "part", "said"),
    [
        (dialect, *wrong)
        for dialect in ("postgres", "duckdb", "datafusion", "trino")
        for wrong in WRONG
        if dialect != "trino" or "upper" not in wrong[0]  # no function that is read from Trino
    ],
)
def test_the_message_names_place_and_columns(
    table: rs.Table, text: str, offset: int, part: str, said: list[str], dialect: str
) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        table.scan(text, dialect=dialect)
    assert caught.value.position == offset
    assert f"offset {offset}, " in str(caught.value)
    assert part in str(caught.value)
    for each in said:
        assert each in str(caught.value)


def position_of(error: Exception) -> int | None:
    assert isinstance(error, InvalidPredicate | UnsupportedOperation)
    return error.position


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "datafusion", "trino", "spark"])
def test_every_dialect_names_place_and_columns(table: rs.Table, dialect: str) -> None:
    wide = " AND ".join(f"a <> {number}" for number in range(2_000))  # 24,000 characters
    for text, part in [
        ("a = 1 AND day > f", "day > f"),
        (f"{wide} AND (a = 3 OR NOT day = f)", "day = f"),
        ("a = 1 AND f > 1 + (f + day)", "f + day"),
    ]:
        with pytest.raises((InvalidPredicate, UnsupportedOperation)) as caught:
            table.scan(text, dialect=dialect)
        assert position_of(caught.value) == text.index(part)
        place = f"cannot read the filter at offset {text.index(part)}, {part!r}"
        assert place in str(caught.value)
        assert "day is date" in str(caught.value)
        assert "f is float64" in str(caught.value)


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "datafusion", "spark"])
def test_expressions_name_place_and_columns(table: rs.Table, dialect: str) -> None:
    asks: list[Callable[[str], object]] = [
        lambda text: table.update({"f": text}, dialect=dialect),
        lambda text: table.scan(columns={"new": text}, dialect=dialect),
    ]
    for ask in asks:
        with pytest.raises(
            (InvalidPredicate, UnsupportedOperation), match=r"expression at offset 5, 'f \+ day'"
        ) as caught:
            ask("1 + (f + day)")
        assert position_of(caught.value) == 5
        assert "day is date" in str(caught.value)
    with pytest.raises(InvalidPredicate, match=r"expression at offset 0, 'day'.*day is date"):
        table.update({"f": "day"}, dialect=dialect)  # it has a meaning, but not as a float
    for text, why in [
        ("f +", "cannot read the expression at offset 2"),
        ("'f", "the expression: "),
    ]:
        with pytest.raises(InvalidPredicate, match=why):
            table.update({"f": text}, dialect=dialect)


def test_trino_names_the_place_of_a_function(table: rs.Table) -> None:
    with pytest.raises(UnsupportedOperation, match="translated whole") as caught:
        table.scan("a = 1 AND cbrt(f) > 1", dialect="trino")
    assert caught.value.position == 10


def test_a_default_names_the_place(table: rs.Table) -> None:
    with pytest.raises(InvalidInput, match=r"at offset 4, 'LOWER\(2\)'"):
        table.sql("ALTER TABLE this ADD COLUMN n BIGINT DEFAULT 1 + lower(2)")


def test_the_command_line_names_the_place() -> None:
    uri = fresh_uri()
    rs.create_table(uri, DATA.select(["a", "day", "f"]), key=["a"])
    for words in (
        ["update", uri, "day > f", "--set", "f = 1"],
        ["update", uri, "a = 1", "--set", "f = day + f"],
        ["delete", uri, "day > f"],
    ):
        result = CliRunner().invoke(cli.app, words)
        assert result.exit_code != 0
        assert "at offset 0, 'day " in " ".join(result.stderr.split())


def test_changes_name_the_place_too(table: rs.Table) -> None:
    where = "a = 1 AND nosuch = 2"
    with pytest.raises(UnknownColumn, match=r"offset 10, 'nosuch'") as caught:
        table.delete(where)
    assert (caught.value.name, caught.value.position) == ("nosuch", 10)
    with pytest.raises(UnknownColumn, match=r"offset 10, 'nosuch'"):
        table.update({"f": 1.0}, where=where)
    assert table.count() == 1


def test_trees_have_no_place(table: rs.Table) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        table.scan(parse_predicate("name > 3"))
    assert caught.value.position is None
    assert "offset" not in str(caught.value)
