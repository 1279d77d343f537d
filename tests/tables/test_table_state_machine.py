"""A table against a dictionary: random changes, and after each of them everything reads the same.

Row groups hold three rows and parts a few hundred bytes, so that a handful of rows makes several
parts, several groups and several merge windows.
"""

from __future__ import annotations

import math
import uuid
from datetime import datetime
from typing import Any, Literal, TypeVar, cast

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import rowsieve
from rowsieve import Commit, Table
from rowsieve.errors import EvaluationError
from rowsieve.predicate.ir import Call, Column, Operand, Predicate
from rowsieve.predicate.ir import Literal as Constant
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int
from tests.oracle import Answer, Oracle
from tests.oracle_table import Model, Row, bag, frozen, merge_by_row, to_arrow, to_rows
from tests.oracle_values import Failed
from tests.profiles import examples
from tests.table_strategies import TableShape, predicates, rows, table_shapes, values

PRUNING: tuple[Literal["on", "off"], ...] = ("on", "off")
T = TypeVar("T")
KEYED = precondition(lambda self: bool(self.shape.key))
UNKEYED = precondition(lambda self: not self.shape.key)


pytestmark = pytest.mark.usefixtures("row_groups_of_three")


class Failure(Exception):
    """The oracle says that a surviving row fails."""


class TableMachine(RuleBasedStateMachine):
    """One table, changed through one of two handles."""

    shape: TableShape
    model: Model
    tables: list[Table]
    times: list[datetime]

    @initialize(data=st.data(), keyed=st.sampled_from((True, True, False)))
    def create(self, data: st.DataObject, keyed: bool) -> None:
        self.data = data
        self.shape = data.draw(table_shapes(keyed=keyed), label="shape")
        self.oracle = Oracle(self.shape.schema, Semantics.SQL)
        self.model = Model(self.shape.schema, self.shape.key)
        first = data.draw(st.just([]) | self.some_rows(), label="first rows")
        self.uri = f"memory:///machine-{uuid.uuid4().hex}"
        properties = {
            "target_part_bytes": data.draw(st.sampled_from(("1", "100000")), label="part bytes"),
            "checkpoint_interval": data.draw(st.sampled_from(("2", "5")), label="checkpoints"),
        }
        source = to_arrow(first, self.shape.schema) if first else self.shape.arrow
        made = rowsieve.create_table(
            self.uri, source, key=list(self.shape.key) or None, properties=properties
        )
        self.model.write(first)
        self.model.versions = self.model.versions[1:]
        self.tables = [made, rowsieve.open_table(self.uri)]
        self.times = [made.history()[0].timestamp]

    # What is drawn

    def draw(self, strategy: st.SearchStrategy[T], label: str) -> T:
        return self.data.draw(strategy, label=label)

    def some_rows(self) -> st.SearchStrategy[list[Row]]:
        found = rows(self.shape)
        return found.map(self.once_per_key) if self.shape.key else found

    def once_per_key(self, found: list[Row]) -> list[Row]:
        return list({self.model.key_of(row): row for row in found}.values())

    def some_predicate(self) -> Predicate:
        return self.draw(predicates(self.shape), "where")

    def table(self) -> Table:
        return self.tables[self.draw(st.integers(0, 1), "handle")]

    # What the oracle says

    def matches(self, predicate: Predicate) -> Any:
        def judge(row: Row) -> bool:
            answer = self.oracle.judge(predicate, row)
            if answer is Answer.FAILED:
                raise Failure
            return answer is Answer.TRUE

        return judge

    def value_of(self, operand: Operand, row: Row) -> Any:
        try:
            return self.oracle.operand(operand, row).value
        except Failed:
            raise Failure from None

    def change(self, on_table: Any, on_model: Any) -> None:
        """Do it to both; where the oracle fails, the table must fail and stay as it is."""
        before = len(self.model.versions)
        try:
            on_model()
        except Failure:
            with pytest.raises(EvaluationError):
                on_table()
            return
        commit: Commit = on_table()
        self.committed(commit, before)

    def committed(self, commit: Commit, before: int) -> None:
        if commit.version == before - 1:  # there was nothing to change
            new, old = self.model.versions[-1], self.model.versions[-2]
            assert bag(new.values()) == bag(old.values())
            self.model.versions.pop()
            return
        assert commit.version == before
        assert commit.timestamp > self.times[-1]
        self.times.append(commit.timestamp)

    # Changes

    @KEYED
    @rule()
    def upsert(self) -> None:
        found = self.draw(self.some_rows(), "rows")
        data = to_arrow(found, self.shape.schema)
        self.change(lambda: self.table().upsert(data), lambda: self.model.write(found))

    @KEYED
    @rule()
    def upsert_the_last_of_each_key(self) -> None:
        found = self.draw(rows(self.shape, min_size=4), "rows")
        data = to_arrow(found, self.shape.schema)
        self.change(
            lambda: self.table().upsert(data, on_duplicate="last"),
            lambda: self.model.write(found),
        )

    @UNKEYED
    @rule()
    def append(self) -> None:
        found = self.draw(self.some_rows(), "rows")
        data = to_arrow(found, self.shape.schema)
        self.change(lambda: self.table().append(data), lambda: self.model.write(found))

    @KEYED
    @rule()
    def delete_keys(self) -> None:
        found = self.draw(rows(self.shape, max_size=3), "keys")
        data = to_arrow(found, self.shape.schema).select(list(self.shape.key))
        self.change(lambda: self.table().delete(keys=data), lambda: self.model.delete_keys(found))

    @rule()
    def delete_where(self) -> None:
        where = self.some_predicate()
        self.change(
            lambda: self.table().delete(where),
            lambda: self.model.replace(self.matches(where), ()),
        )

    @rule()
    def update(self) -> None:
        where, assigned = self.some_predicate(), self.draw(self.assignments(), "assignments")

        def changed(row: Row) -> Row:
            return {
                **row,
                **{name: self.value_of(operand, row) for name, operand in assigned.items()},
            }

        self.change(
            lambda: self.table().update(assigned, where=where),
            lambda: self.model.update(self.matches(where), changed),
        )

    def assignments(self) -> st.SearchStrategy[dict[str, Operand]]:
        ordered = [f for f in self.shape.schema if f.name in self.shape.payload]
        found: dict[str, st.SearchStrategy[Operand]] = {}
        for column in ordered:
            twins = [f.name for f in self.shape.schema if f.type == column.type]
            choices: list[st.SearchStrategy[Operand]] = [st.sampled_from(twins).map(Column)]
            if column.name not in self.nested:
                constants = values(column.type, nullable=True)
                choices.append(st.builds(Constant, constants, st.just(column.type)))
            if column.type == Int(64):
                one = Constant(1, Int(64))
                choices.append(st.just(Call("add", (Column(column.name), one))))
            found[column.name] = st.one_of(choices)
        return st.sampled_from(sorted(found)).flatmap(
            lambda name: st.fixed_dictionaries({name: found[name]})
        )

    @property
    def nested(self) -> set[str]:
        return {
            f.name
            for f in self.shape.schema
            if pa.types.is_nested(self.shape.arrow.field(f.name).type)
        }

    @rule()
    def overwrite(self) -> None:
        found = self.draw(self.some_rows(), "rows")
        data = to_arrow(found, self.shape.schema)
        self.change(
            lambda: self.table().overwrite(data),
            lambda: self.model.replace(lambda _: True, found),
        )

    @rule()
    def overwrite_where(self) -> None:
        where = self.some_predicate()
        try:
            found = [r for r in self.draw(self.some_rows(), "rows") if self.matches(where)(r)]
            gone = self.model.matching(self.matches(where))
        except Failure:
            return
        if self.shape.key:
            elsewhere = set(self.model.head) - {self.model.key_of(row) for row in gone}
            found = [row for row in found if self.model.key_of(row) not in elsewhere]
            # A key is stored canonical and may match as written only, so it is judged as stored.
            found = [row for row in found if self.matches(where)(self.model.stored(row))]
        if not found:
            return
        data = to_arrow(found, self.shape.schema)
        self.change(
            lambda: self.table().overwrite(data, where=where),
            lambda: self.model.replace(self.matches(where), found),
        )

    @KEYED
    @rule()
    def apply_changes(self) -> None:
        found = self.draw(rows(self.shape, max_size=6), "changes")
        ops = self.draw(
            st.lists(st.sampled_from("iucdD"), min_size=len(found), max_size=len(found)), "ops"
        )
        order = self.draw(st.permutations(range(len(found))), "sequence")
        data = to_arrow(found, self.shape.schema)
        data = data.append_column("op", pa.array(ops)).append_column("lsn", pa.array(order))

        def on_model() -> None:
            last: dict[Any, tuple[str, Row]] = {}
            for i in sorted(range(len(found)), key=lambda i: order[i]):
                last[self.model.key_of(found[i])] = (ops[i], found[i])
            written = [row for op, row in last.values() if op not in "dD"]
            taken = set(last)
            kept = {k: row for k, row in self.model.head.items() if k not in taken}
            self.model.commit(self.model._with(kept, written))

        self.change(lambda: self.table().apply_changes(data, op="op", sequence="lsn"), on_model)

    @rule()
    def restore(self) -> None:
        version = self.draw(st.integers(0, len(self.model.versions) - 1), "version")
        self.change(
            lambda: self.table().restore(version),
            lambda: self.model.commit(dict(self.model.versions[version])),
        )

    @rule()
    def compact(self) -> None:
        self.change(lambda: self.table().compact(), lambda: self.model.commit(self.model.head))

    @rule()
    def reopen(self) -> None:
        self.tables[self.draw(st.integers(0, 1), "handle")] = rowsieve.open_table(self.uri)

    @rule()
    def refresh(self) -> None:
        assert self.table().refresh() == len(self.model.versions) - 1

    # Reads

    @rule()
    def scan(self) -> None:
        where = self.some_predicate()
        version = self.draw(st.none() | st.integers(0, len(self.model.versions) - 1), "version")
        names = self.draw(
            st.none() | st.lists(st.sampled_from(self.shape.schema.names), unique=True), "columns"
        )
        at: dict[str, Any] = {"version": version}
        if version is not None and self.draw(st.booleans(), "by time"):
            at = {"as_of": self.times[version]}
        try:
            expected = self.model.matching(self.matches(where), version)
        except Failure:
            for pruning in PRUNING:
                with pytest.raises(EvaluationError):
                    self.table().scan(where, pruning=pruning, **at).to_arrow()
                with pytest.raises(EvaluationError):
                    self.table().scan(where, pruning=pruning, **at).count()
            return
        shown = [{n: row[n] for n in names or self.shape.schema.names} for row in expected]
        schema = self.shape.schema.select(tuple(names or self.shape.schema.names))
        for pruning in PRUNING:
            read = self.table().scan(where, names or None, pruning=pruning, **at)
            assert bag(to_rows(read.to_arrow(), schema)) == bag(shown)
            assert read.count() == len(expected)
            assert read.metrics.parts_read <= read.metrics.parts_considered

    @KEYED
    @rule()
    def first_rows_in_key_order(self) -> None:
        where, limit = self.some_predicate(), self.draw(st.none() | st.integers(0, 9), "limit")
        try:
            expected = self.model.matching(self.matches(where))
        except Failure:
            return
        expected.sort(key=lambda row: [self.place(name, row[name]) for name in self.shape.key])
        read = self.table().scan(where, limit=limit, order_by_key=True)
        found = to_rows(read.to_arrow(), self.shape.schema)
        assert list(map(frozen, found)) == list(map(frozen, expected[:limit]))
        assert read.count() == len(found)

    def place(self, name: str, value: Any) -> Any:
        """NaN last; text by its bytes."""
        if isinstance(value, float):
            return (math.isnan(value), 0.0 if math.isnan(value) else value)
        return value.encode() if isinstance(value, str) else value

    @rule()
    def a_limit_gives_that_many(self) -> None:
        where, limit = self.some_predicate(), self.draw(st.integers(0, 9), "limit")
        try:
            expected = bag(self.model.matching(self.matches(where)))
        except Failure:
            return
        found = bag(to_rows(self.table().scan(where, limit=limit).to_arrow(), self.shape.schema))
        assert found <= expected
        assert found.total() == min(limit, expected.total())

    @invariant()
    def the_newest_version_is_the_model(self) -> None:
        if not hasattr(self, "model"):
            return
        table = self.tables[0]
        table.refresh()
        assert table.version == len(self.model.versions) - 1
        expected = bag(self.model.head.values())
        assert bag(to_rows(table.scan().to_arrow(), self.shape.schema)) == expected
        assert table.scan().count() == expected.total()
        assert bag(merge_by_row(table)) == expected

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        for version, state in enumerate(self.model.versions):
            old = rowsieve.open_table(self.uri, version=version)
            assert bag(to_rows(old.scan().to_arrow(), self.shape.schema)) == bag(state.values())
        assert [c.version for c in self.tables[1].history()] == list(
            reversed(range(len(self.model.versions)))
        )


TestTable = TableMachine.TestCase
TestTable.settings = settings(cast("settings", examples(40)), stateful_step_count=30)
