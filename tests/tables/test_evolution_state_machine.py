"""Random changes of columns and rows against a model that knows columns by number, and DuckDB.

The model holds the rows of every version as {column number: value}. A number is never used again,
and an added column gets its default in every row at once, as a database without files would do it.
DuckDB executes each change on a table in memory: it also judges what a condition matches.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeVar, cast

import datafusion
import duckdb
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import rowsieve
from rowsieve import Table
from rowsieve.errors import UnsupportedOperation
from tests.oracle_table import bag
from tests.profiles import examples

T = TypeVar("T")
Row = dict[int, Any]  # by the number of the column
PRUNING: tuple[Literal["on", "soft", "off"], ...] = ("on", "soft", "off")
NAMES = ("b", "c", "d", "e")
POOLS: dict[pa.DataType, tuple[Any, ...]] = {
    pa.int64(): (0, 1, 5, 50, -(2**40)),
    pa.int32(): (0, 1, 5, 2**31 - 1),
    pa.float64(): (0.5, -1.5, 5.0, math.inf, math.nan),
    pa.string(): ("", "5", "b", "zz"),
    pa.bool_(): (True, False),
    pa.float32(): (0.5, -1.5, 5.0, math.inf, math.nan),
    pa.decimal128(5, 2): tuple(map(Decimal, ("-999.99", "0.01", "5.00", "50.00"))),
    pa.decimal128(9, 4): tuple(map(Decimal, ("-999.99", "0.0001", "5.00", "50.00"))),
}
WIDER = {
    pa.int32(): pa.int64(),
    pa.float32(): pa.float64(),
    pa.decimal128(5, 2): pa.decimal128(9, 4),
}
SQL_TYPES = {
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.float32(): "FLOAT",
    pa.decimal128(5, 2): "DECIMAL(5, 2)",
    pa.decimal128(9, 4): "DECIMAL(9, 4)",
}


pytestmark = pytest.mark.usefixtures("row_groups_of_three")


@dataclass(frozen=True)
class Condition:
    """A condition as SQL text, and as a function of a row; NULL is not TRUE."""

    sql: str
    holds: Callable[[Row], bool]


@dataclass(frozen=True)
class ModelColumn:
    """A column of the model: its number stands for its id."""

    number: int
    name: str
    type: pa.DataType


@dataclass(frozen=True)
class State:
    """One version: columns in order, rows by key."""

    columns: tuple[ModelColumn, ...]
    rows: dict[int, Row]

    def shown(self, rows: list[Row]) -> Any:
        return bag({c.name: row[c.number] for c in self.columns} for row in rows)


class EvolutionMachine(RuleBasedStateMachine):
    """One table, changed through one of two handles that are refreshed before each change."""

    versions: list[State]
    duck: duckdb.DuckDBPyConnection

    def place(self) -> str:
        return f"memory:///evolution-{uuid.uuid4().hex}"

    @initialize(data=st.data(), keyed=st.booleans())
    def create(self, data: st.DataObject, keyed: bool) -> None:
        self.data = data
        self.uri = self.place()
        self.keyed = keyed
        properties = {
            "target_part_bytes": self.draw(st.sampled_from(("1", "100000")), "part bytes"),
            "checkpoint_interval": self.draw(st.sampled_from(("2", "5")), "checkpoints"),
            "column_names": self.draw(st.sampled_from(("user", "tag")), "names in files"),
        }
        columns = (ModelColumn(0, "id", pa.int64()), ModelColumn(1, "b", pa.int64()))
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("b", pa.int64())])
        self.handles = [
            rowsieve.create_table(
                self.uri, schema, key=["id"] if keyed else None, properties=properties
            ),
            rowsieve.open_table(self.uri),
        ]
        self.versions = [State(columns, {})]
        self.next_number = 2
        self.next_id = 0
        self.duck = duckdb.connect()
        self.duck.execute("CREATE TABLE t (id BIGINT, b BIGINT)")

    def draw(self, strategy: st.SearchStrategy[T], label: str) -> T:
        return self.data.draw(strategy, label=label)

    @property
    def head(self) -> State:
        return self.versions[-1]

    def table(self) -> Table:
        found = self.handles[self.draw(st.integers(0, 1), "handle")]
        found.refresh()
        return found

    def value(self, type_: pa.DataType) -> Any:
        return self.draw(st.none() | st.sampled_from(POOLS[type_]), "value")

    def condition(self, state: State) -> Condition:
        parts = [self.comparison(state) for _ in range(self.draw(st.integers(1, 2), "terms"))]
        if len(parts) == 1:
            return parts[0]
        first, second = parts
        if self.draw(st.booleans(), "and"):
            return Condition(
                f"{first.sql} AND {second.sql}", lambda row: first.holds(row) and second.holds(row)
            )
        return Condition(
            f"{first.sql} OR {second.sql}", lambda row: first.holds(row) or second.holds(row)
        )

    def comparison(self, state: State) -> Condition:
        column = self.draw(st.sampled_from(state.columns), "column")
        number, kind = column.number, self.draw(st.sampled_from(("=", ">", "null", "some")), "op")
        if kind == "null":
            return Condition(f"{column.name} IS NULL", lambda row: row[number] is None)
        if kind == "some":
            return Condition(f"{column.name} IS NOT NULL", lambda row: row[number] is not None)
        wanted = self.draw(st.sampled_from(POOLS[column.type]), "constant")
        order = rank(wanted)
        if kind == "=":
            return Condition(
                f"{column.name} = {literal(wanted)}",
                lambda row: row[number] is not None and rank(row[number]) == order,
            )
        return Condition(
            f"{column.name} > {literal(wanted)}",
            lambda row: row[number] is not None and rank(row[number]) > order,
        )

    def judged(self, rows: dict[int, Row]) -> None:
        """Give DuckDB these rows of the head as well, which have new keys."""
        columns = self.head.columns
        names = ", ".join(column.name for column in columns)
        places = ", ".join("?" for _ in columns)
        for row in rows.values():
            values = [row[column.number] for column in columns]
            self.duck.execute(f"INSERT INTO t ({names}) VALUES ({places})", values)

    def commit(self, state: State) -> None:
        self.versions.append(state)

    # Changes of columns

    @precondition(lambda self: len(self.head.columns) <= len(NAMES))
    @rule()
    def add_column(self) -> None:
        free = sorted({"id", *NAMES} - {column.name for column in self.head.columns})
        name = self.draw(st.sampled_from(free), "name")
        type_ = self.draw(st.sampled_from(list(POOLS)), "type")
        default = self.value(type_)
        after = self.draw(st.none() | st.sampled_from(self.head.columns), "after")
        self.table().add_column(
            name, type_, default=default, after=None if after is None else after.name
        )
        column = ModelColumn(self.next_number, name, type_)
        self.next_number += 1
        columns = list(self.head.columns)
        columns.insert(len(columns) if after is None else columns.index(after) + 1, column)
        rows = {key: {**row, column.number: default} for key, row in self.head.rows.items()}
        self.commit(State(tuple(columns), rows))
        filled = "" if default is None else f" DEFAULT {literal(default)}"
        self.duck.execute(f"ALTER TABLE t ADD COLUMN {name} {SQL_TYPES[type_]}{filled}")

    @precondition(lambda self: len(self.head.columns) > 1)
    @rule()
    def drop_column(self) -> None:
        others = [column for column in self.head.columns if column.number]
        column = self.draw(st.sampled_from(others), "column")
        self.table().drop_column(column.name)
        left = tuple(each for each in self.head.columns if each != column)
        self.commit(State(left, self.head.rows))
        self.duck.execute(f"ALTER TABLE t DROP COLUMN {column.name}")

    @precondition(lambda self: 1 < len(self.head.columns) <= len(NAMES))
    @rule()
    def rename_column(self) -> None:
        column = self.draw(st.sampled_from(self.head.columns), "column")
        free = sorted({"id", *NAMES} - {each.name for each in self.head.columns})
        name = self.draw(st.sampled_from(free), "new name")
        self.table().rename_column(column.name, name)
        renamed = ModelColumn(column.number, name, column.type)
        columns = tuple(renamed if each == column else each for each in self.head.columns)
        self.commit(State(columns, self.head.rows))
        self.duck.execute(f"ALTER TABLE t RENAME COLUMN {column.name} TO {name}")

    @precondition(lambda self: any(column.type in WIDER for column in self.head.columns))
    @rule()
    def widen_column(self) -> None:
        narrow = [column for column in self.head.columns if column.type in WIDER]
        column = self.draw(st.sampled_from(narrow), "column")
        self.table().widen_column(column.name, WIDER[column.type])
        wide = ModelColumn(column.number, column.name, WIDER[column.type])
        columns = tuple(wide if each == column else each for each in self.head.columns)
        self.commit(State(columns, self.head.rows))
        self.duck.execute(f"ALTER TABLE t ALTER COLUMN {wide.name} TYPE {SQL_TYPES[wide.type]}")

    @precondition(lambda self: len(self.head.columns) > 1)
    @rule()
    def reorder_columns(self) -> None:
        columns = tuple(self.draw(st.permutations(self.head.columns), "order"))
        if columns != self.head.columns:
            self.table().reorder_columns([column.name for column in columns])
            self.commit(State(columns, self.head.rows))

    # Changes of rows

    @rule()
    def write(self) -> None:
        rows: dict[int, Row] = {}
        for _ in range(self.draw(st.integers(1, 5), "rows")):
            key = self.draw(st.integers(0, 9), "key") if self.keyed else self.next_id
            self.next_id += 1
            rows[key] = {
                column.number: self.value(column.type) if column.number else key
                for column in self.head.columns
            }
        data = pa.table(
            {
                column.name: pa.array([row[column.number] for row in rows.values()], column.type)
                for column in self.head.columns
            }
        )
        table = self.table()
        if self.keyed:
            table.upsert(data)
        else:
            table.append(data)
        self.commit(State(self.head.columns, {**self.head.rows, **rows}))
        named = next(column.name for column in self.head.columns if not column.number)
        for number in rows:
            self.duck.execute(f"DELETE FROM t WHERE {named} = ?", [number])
        self.judged(rows)

    @rule()
    def delete(self) -> None:
        where = self.condition(self.head)
        left = {key: row for key, row in self.head.rows.items() if not where.holds(row)}
        if self.table().delete(where.sql).committed:
            self.commit(State(self.head.columns, left))
        else:
            assert len(left) == len(self.head.rows)
        self.duck.execute(f"DELETE FROM t WHERE {where.sql}")

    @precondition(lambda self: len(self.head.columns) > 1)
    @rule()
    def update(self) -> None:
        where = self.condition(self.head)
        others = [column for column in self.head.columns if column.number]
        column = self.draw(st.sampled_from(others), "assigned")
        value = self.draw(st.sampled_from(POOLS[column.type]), "assigned value")
        rows = {
            key: {**row, column.number: value} if where.holds(row) else row
            for key, row in self.head.rows.items()
        }
        if self.table().update({column.name: literal(value)}, where=where.sql).committed:
            self.commit(State(self.head.columns, rows))
        else:
            assert not any(map(where.holds, self.head.rows.values()))
        self.duck.execute(f"UPDATE t SET {column.name} = {literal(value)} WHERE {where.sql}")

    @rule()
    def compact(self) -> None:
        if self.table().compact().committed:
            self.commit(self.head)

    @rule()
    def restore(self) -> None:
        version = self.draw(st.integers(0, len(self.versions) - 1), "version")
        target, head = self.versions[version], self.head
        table = self.table()
        numbers = {column.number for column in head.columns}
        if not numbers.issuperset(column.number for column in target.columns):
            with pytest.raises(UnsupportedOperation):
                table.restore(version)
            return
        fills = {number: self.fill_of(number) for number in numbers}
        if table.restore(version).committed:
            rows = {key: {**fills, **row} for key, row in target.rows.items()}
            self.commit(State(head.columns, rows))
            self.duck.execute("DELETE FROM t")
            self.judged(rows)

    def fill_of(self, number: int) -> Any:
        """The default that a column was added with, as the table's schema has it."""
        table = self.handles[0]
        table.refresh()
        place = [column.number for column in self.head.columns].index(number)
        field = table.handle.pinned.schema.fields[place]
        if field.fill is None:
            return None
        type_ = self.head.columns[place].type
        if pa.types.is_boolean(type_):
            return field.fill == "true"
        return pa.scalar(field.fill).cast(type_).as_py()

    @rule()
    def reopen(self) -> None:
        self.handles[self.draw(st.integers(0, 1), "handle")] = rowsieve.open_table(self.uri)

    # Reads

    @rule()
    def scan(self) -> None:
        version = self.draw(st.none() | st.integers(0, len(self.versions) - 1), "version")
        state = self.head if version is None else self.versions[version]
        where = self.condition(state)
        expected = state.shown([row for row in state.rows.values() if where.holds(row)])
        for pruning in PRUNING:
            read = self.table().scan(where.sql, version=version, pruning=pruning)
            assert bag(read.to_arrow().to_pylist()) == expected
            assert read.count() == expected.total()

    @rule()
    def query_with_datafusion(self) -> None:
        where = self.condition(self.head)
        expected = self.head.shown([row for row in self.head.rows.values() if where.holds(row)])
        context = datafusion.SessionContext()
        context.register_table("t", self.table())
        names = ", ".join(f'"{column.name}"' for column in self.head.columns)
        found = context.sql(f"SELECT {names} FROM t WHERE {where.sql}").to_pylist()
        assert bag(found) == expected

    @rule()
    def read_a_dataset(self) -> None:
        found = self.table().to_dataset().to_table().to_pylist()
        assert bag(found) == self.head.shown(list(self.head.rows.values()))

    @invariant()
    def the_newest_version_is_the_model(self) -> None:
        if not hasattr(self, "versions"):
            return
        table = self.handles[0]
        table.refresh()
        assert table.version == len(self.versions) - 1
        assert table.schema.names == [column.name for column in self.head.columns]
        found = table.scan().to_arrow().to_pylist()
        assert bag(found) == self.head.shown(list(self.head.rows.values()))
        names = ", ".join(column.name for column in self.head.columns)
        judged = self.duck.sql(f"SELECT {names} FROM t").to_arrow_table()
        assert bag(judged.to_pylist()) == bag(found)

    def teardown(self) -> None:
        if hasattr(self, "duck"):
            self.duck.close()
        for version, state in enumerate(getattr(self, "versions", ())):
            old = rowsieve.open_table(self.uri, version=version)
            found = old.scan().to_arrow()
            assert found.schema.names == [column.name for column in state.columns]
            assert bag(found.to_pylist()) == state.shown(list(state.rows.values()))


def literal(value: Any) -> str:
    """The SQL text of a value, in PostgreSQL's and DataFusion's dialect."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and not math.isfinite(value):
        return f"CAST('{value}' AS DOUBLE PRECISION)"
    return f"'{value}'" if isinstance(value, str) else str(value)


def rank(value: Any) -> Any:
    """NaN is the greatest number and equal to itself."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value


TestEvolution = EvolutionMachine.TestCase
TestEvolution.settings = settings(cast("settings", examples(25)), stateful_step_count=25)
