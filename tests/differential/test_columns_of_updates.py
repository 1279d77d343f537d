"""Columns of differential tables change: sums are those of the rows with the columns of now."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table, errors
from tests.differential.updates import differential, updates

Row = dict[str, Any]


class Model:
    """All updates as rows with the columns of now, and what a table must return of them."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        schema = pa.schema([("a", pa.int16()), ("b", pa.string())])
        self.table = differential(schema)
        self.updates: list[tuple[Row, int, int]] = []
        self.kinds = {"a": "number", "b": "text"}
        self.since = self.upper = 0
        self.new = 0

    def value(self, name: str) -> Any:
        choices: dict[str, list[Any]] = {"number": [None, 0, 1, -5], "text": [None, "", "x"]}
        return self.draw.choice(choices[self.kinds[name]])

    def append(self) -> None:
        """Append updates, half of which take back what an earlier one added."""
        rows = []
        for _ in range(self.draw.randint(1, 6)):
            time, diff = self.upper + self.draw.randint(0, 2), self.draw.choice([1, 2])
            row = {name: self.value(name) for name in self.kinds}
            if self.updates and self.draw.random() < 0.5:
                row, _, diff = self.draw.choice(self.updates)
                row, diff = dict(row), -diff
            self.updates.append((row, time, diff))
            rows.append({**row, "time": time, "diff": diff})
        self.upper += 3
        self.table.append_updates(rows, upper=self.upper)

    def add(self) -> None:
        self.new += 1
        name, kind = f"c{self.new}", self.draw.choice(["number", "text"])
        default = self.draw.choice([None, 1 if kind == "number" else "x"])
        type_ = pa.int32() if kind == "number" else pa.string()
        self.table.add_column(name, type_, default=default)
        self.kinds[name] = kind
        for row, _, _ in self.updates:
            row[name] = default

    def drop(self) -> None:
        if len(self.kinds) > 1:
            name = self.draw.choice(list(self.kinds))
            self.table.drop_column(name)
            del self.kinds[name]
            for row, _, _ in self.updates:
                del row[name]

    def rename(self) -> None:
        self.new += 1
        name, new = self.draw.choice(list(self.kinds)), f"r{self.new}"
        self.table.rename_column(name, new)
        self.kinds[new] = self.kinds.pop(name)
        for row, _, _ in self.updates:
            row[new] = row.pop(name)

    def widen(self) -> None:
        for name in self.kinds:
            if self.table.schema.field(name).type in (pa.int16(), pa.int32()):
                self.table.widen_column(name, "int64")

    def compact(self) -> None:
        if self.upper > self.since + 1:
            self.since = self.draw.randint(self.since, self.upper - 1)
            self.table.advance_since(self.since)
        self.table.compact()

    def check(self) -> None:
        assert set(self.table.schema.names[:-2]) == set(self.kinds)
        assert self.table.schema.names[-2:] == ["_rowsieve_time", "_rowsieve_diff"]
        name = self.draw.choice(list(self.kinds))
        for at in range(self.since, self.upper):
            expected = self.sums(at)
            assert of_rows(self.table.scan(at=at)) == expected
            nulls = {row: count for row, count in expected.items() if (name, None) in row}
            assert of_rows(self.table.scan(f"{name} IS NULL", at=at)) == nulls

    def sums(self, at: int) -> dict[frozenset[Any], int]:
        total: Counter[frozenset[Any]] = Counter()
        for row, time, diff in self.updates:
            total[frozenset(row.items())] += diff if time <= at else 0
        return {row: count for row, count in total.items() if count}


def of_rows(scan: rs.Scan) -> dict[frozenset[Any], int]:
    rows = scan.to_arrow().to_pylist()
    counts = [row.pop("_rowsieve_diff") for row in rows]
    keys = [frozenset(row.items()) for row in rows]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, counts, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_sums_are_those_of_the_rows_with_the_columns_of_now(seed: int) -> None:
    model = Model(seed)
    model.append()
    for _ in range(12):
        steps: list[Callable[[], None]] = [
            *(model.append, model.append, model.add, model.drop, model.rename),
            *(model.widen, model.compact),
        ]
        model.draw.choice(steps)()
        model.check()


@pytest.fixture
def table() -> Table:
    made = differential()
    made.append_updates(updates((1, "a", 0, 1), (1, "b", 0, 1), (2, None, 1, 2)), upper=3)
    return made


def test_rows_that_differed_in_a_dropped_column_alone_are_one(table: Table) -> None:
    table.drop_column("v")
    rows = [{"k": 1, "_rowsieve_diff": 2}, {"k": 2, "_rowsieve_diff": 2}]
    assert table.scan(at=1).to_arrow().sort_by("k").to_pylist() == rows
    assert table.scan(version=1, at=1).count() == 3  # an older version has its columns


def test_columns_evolve_towards_a_schema_of_the_rows(table: Table) -> None:
    table.evolve(pa.schema([("v", pa.string()), ("w", pa.float64())]))
    assert table.schema.names[:3] == ["k", "v", "w"]
    table.sql("ALTER TABLE this ADD COLUMN x bigint FIRST")
    assert table.schema.names == ["x", "k", "v", "w", "_rowsieve_time", "_rowsieve_diff"]


def test_a_subscriber_gets_the_columns_of_the_version_that_it_reads(table: Table) -> None:
    table.add_column("w", "int64", default=7)
    table.append_updates([{"k": 1, "v": "a", "w": 7, "time": 3, "diff": -1}], upper=4)
    *_, last = table.subscribe(2, follow=False)
    assert last.rows.select(["w", "_rowsieve_diff"]).to_pylist() == [{"w": 7, "_rowsieve_diff": -1}]
    assert table.scan().to_arrow().to_pylist() == [
        {"k": 1, "v": "b", "w": 7, "_rowsieve_diff": 1},
        {"k": 2, "v": None, "w": 7, "_rowsieve_diff": 2},
    ]


def test_updates_for_columns_that_another_handle_changed_are_refused(table: Table) -> None:
    other = rs.open_table(table.uri)
    commit = other.handle.commit

    def overtaken(*given: Any) -> Any:
        table.drop_column("v")
        return commit(*given)

    other.handle.commit = overtaken  # type: ignore[method-assign, assignment]
    with pytest.raises(errors.CommitConflict, match="columns of the table were changed"):
        other.append_updates(updates((5, "c", 3, 1)), upper=4)
    assert table.upper == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_column("_rowsieve_time"), "stay as they are"),
        (lambda t: t.rename_column("_rowsieve_diff", "n"), "stay as they are"),
        (lambda t: t.relax_not_null("_rowsieve_time"), "stay as they are"),
        (lambda t: t.set_default("_rowsieve_diff", 1), "stay as they are"),
        (lambda t: t.sql("ALTER TABLE this DROP COLUMN k, DROP COLUMN v"), "keep one"),
        (lambda t: t.set_not_null("v"), "have NULL"),
    ],
)
def test_columns_of_updates_stay(
    table: Table, change: Callable[[Table], Any], message: str
) -> None:
    with pytest.raises(errors.InvalidSchemaChange, match=message):
        change(table)
    assert table.refresh() == 1
