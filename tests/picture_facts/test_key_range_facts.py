"""Bars of a table have the bounds of its parts and the outcomes of the explanation."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowsieve import Table
from rowsieve.errors import UnknownColumn
from tests.pictures.parsed import HOSTILE, page_of
from tests.small_tables import appended, keyed, kv


@pytest.fixture(scope="module")
def table() -> Table:
    table = keyed({"k": [*range(12)], "v": [*range(12)]}, {"k": [3, 4, 20], "v": [50, 60, 70]})
    table.upsert(kv((100, 1), (101, None)))
    table.delete(keys=pa.table({"k": [5]}))
    return table


def outcomes(table: Table, where: str | None, **options: object) -> dict[object, str]:
    (panel,) = table.key_ranges(where, **options).panels  # type: ignore[arg-type]
    return {part.lower: part.outcome for part in panel.parts}


def test_bars_have_bounds_of_the_key_and_of_other_columns(table: Table) -> None:
    (panel,) = table.key_ranges().panels
    assert {(part.lower, part.upper) for part in panel.parts} == {
        (0, 11),
        (3, 20),
        (100, 101),
        (5, 5),
    }
    assert sum(part.rows for part in panel.parts) == 17
    assert sum(part.tombstones for part in panel.parts) == 1
    (panel,) = table.key_ranges(column="v").panels
    assert (50, 70) in {(part.lower, part.upper) for part in panel.parts}


def test_outcomes_are_those_of_the_explanation(table: Table) -> None:
    assert outcomes(table, "k < 30") == {0: "merged", 3: "merged", 5: "hides", 100: "key"}
    assert outcomes(table, "k >= 90") == {0: "key", 3: "key", 5: "key", 100: "read"}
    assert set(outcomes(table, "v = 1000").values()) <= {"key", "statistics", "visibility"}
    assert set(outcomes(table, None).values()) == {"stored"}


def test_an_earlier_version_stands_beside_the_newest(table: Table) -> None:
    before, after = table.key_ranges(version=3, before=2).panels
    assert (before.heading, after.heading) == ("version 2", "version 3")
    assert len(before.parts) + 1 == len(after.parts)


def test_a_part_without_statistics_has_no_bounds() -> None:
    table = appended({"k": [1, 2], "v": [3, None]}, properties={"statistics": "off"})
    (panel,) = table.key_ranges(column="v").panels
    assert [(part.lower, part.upper) for part in panel.parts] == [(None, None)]
    page_of(table.key_ranges(column="v"))


def test_an_unknown_column_is_refused(table: Table) -> None:
    with pytest.raises(UnknownColumn, match="nope"):
        table.key_ranges(column="nope")


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.isprintable() and name])
def test_hostile_column_names_and_values(name: str) -> None:
    schema = pa.schema([pa.field("k", pa.string(), nullable=False), pa.field(name, pa.string())])
    table = keyed({"k": [name, "b"], name: ["x", name]}, schema=schema)
    page_of(table.key_ranges("k > 'a'", column=name))
    page_of(table.scan("k > 'a'").explain(row_groups=True).picture())


def test_a_transaction_shows_its_own_changes(table: Table) -> None:
    with table.transaction() as open_:
        open_.upsert(kv((500, 1)))
        (panel,) = open_.key_ranges().panels
        assert 500 in {part.lower for part in panel.parts}
        open_.rollback()
