"""Random changes of the fields of a struct, alone and inside a list, against a model and DuckDB.

The model knows fields by number only, and a number is never used again: a struct is NULL or
{number: value}. DuckDB applies each change to its own table in memory, as a second judge.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, replace
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
from tests.profiles import judged

T = TypeVar("T")
PRUNING: tuple[Literal["on", "soft", "off"], ...] = ("on", "soft", "off")
NAMES = ("a", "b", "c", "d")
POOLS: dict[pa.DataType, tuple[Any, ...]] = {
    pa.int64(): (0, 1, 5, -(2**40)),
    pa.int32(): (0, 1, 5),
    pa.string(): ("", "5", "zz"),
    pa.float32(): (0.5, 5.0, math.inf),
    pa.float64(): (0.5, -5.0),
}
WIDER = {pa.int32(): pa.int64(), pa.float32(): pa.float64()}
SQL_TYPES = {
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.string(): "VARCHAR",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
}


pytestmark = pytest.mark.usefixtures("row_groups_of_three")


@dataclass(frozen=True)
class ModelField:
    """A field of the struct: its number stands for its id."""

    number: int
    name: str
    type: pa.DataType


@dataclass(frozen=True)
class State:
    """One version: the fields of the struct in order, and a struct or None by id."""

    fields: tuple[ModelField, ...]
    rows: dict[int, dict[int, Any] | None]

    def shown(self, keys: list[int]) -> Any:
        return bag(self.row(key) for key in keys)

    def row(self, key: int) -> dict[str, Any]:
        row = self.rows[key]
        struct = None if row is None else {f.name: row[f.number] for f in self.fields}
        return {"id": key, "s": struct, "l": [struct, None] if key % 2 else None}


class FieldMachine(RuleBasedStateMachine):
    """A table with a struct `s`, and a list `l` of the same structs."""

    @initialize(data=st.data(), keyed=st.booleans())
    def create(self, data: st.DataObject, keyed: bool) -> None:
        self.data = data
        self.keyed = keyed
        struct = pa.struct([("a", pa.int64())])
        schema = pa.schema(
            [pa.field("id", pa.int64(), nullable=False), ("s", struct), ("l", pa.list_(struct))]
        )
        self.table: Table = rowsieve.create_table(
            f"memory:///fields-{uuid.uuid4().hex}",
            schema,
            key=["id"] if keyed else None,
            properties={
                "target_part_bytes": self.draw(st.sampled_from(("1", "100000")), "part bytes"),
                "checkpoint_interval": "3",
                "column_names": self.draw(st.sampled_from(("user", "tag")), "names in files"),
            },
        )
        self.versions = [State((ModelField(0, "a", pa.int64()),), {})]
        self.next_number = 1
        self.next_id = 0
        self.duck = duckdb.connect()
        self.duck.execute("CREATE TABLE t (id BIGINT, s STRUCT(a BIGINT))")

    def draw(self, strategy: st.SearchStrategy[T], label: str) -> T:
        return self.data.draw(strategy, label=label)

    @property
    def head(self) -> State:
        return self.versions[-1]

    def with_fields(self, fields: list[ModelField]) -> None:
        self.versions.append(replace(self.head, fields=tuple(fields)))

    def field(self, fields: tuple[ModelField, ...] | None = None) -> ModelField:
        return self.draw(st.sampled_from(fields or self.head.fields), "field")

    def free(self) -> str:
        taken = {field.name for field in self.head.fields}
        return self.draw(st.sampled_from([name for name in NAMES if name not in taken]), "name")

    @precondition(lambda self: len(self.head.fields) < len(NAMES))
    @rule()
    def add_field(self) -> None:
        name, type_ = self.free(), self.draw(st.sampled_from(list(POOLS)), "type")
        default = self.draw(st.none() | st.sampled_from(POOLS[type_]), "default")
        with self.table.alter() as change:
            for path in ("s", "l.element"):
                change.add_column(f"{path}.{name}", type_, default=default)
        new = ModelField(self.next_number, name, type_)
        self.next_number += 1
        rows = {
            key: None if row is None else {**row, new.number: default}
            for key, row in self.head.rows.items()
        }
        self.versions.append(State((*self.head.fields, new), rows))
        self.duck.execute(f"ALTER TABLE t ADD COLUMN s.{name} {SQL_TYPES[type_]}")
        self.duck.execute(
            f"UPDATE t SET s = struct_update(s, {name} := ?) WHERE s IS NOT NULL", [default]
        )

    @precondition(lambda self: len(self.head.fields) > 1)
    @rule()
    def drop_field(self) -> None:
        field = self.field()
        with self.table.alter() as change:
            change.drop_column(f"s.{field.name}").drop_column(f"l.element.{field.name}")
        self.with_fields([each for each in self.head.fields if each != field])
        self.duck.execute(f"ALTER TABLE t DROP COLUMN s.{field.name}")

    @precondition(lambda self: len(self.head.fields) < len(NAMES))
    @rule()
    def rename_field(self) -> None:
        field, name = self.field(), self.free()
        with self.table.alter() as change:
            for path in ("s", "l.element"):
                change.rename_column(f"{path}.{field.name}", name)
        self.with_fields(
            [replace(each, name=name) if each == field else each for each in self.head.fields]
        )
        self.duck.execute(f"ALTER TABLE t RENAME COLUMN s.{field.name} TO {name}")

    @precondition(lambda self: any(field.type in WIDER for field in self.head.fields))
    @rule()
    def widen_field(self) -> None:
        field = self.field(tuple(each for each in self.head.fields if each.type in WIDER))
        wide = replace(field, type=WIDER[field.type])
        with self.table.alter() as change:
            for path in ("s", "l.element"):
                change.widen_column(f"{path}.{field.name}", wide.type)
        self.with_fields([wide if each == field else each for each in self.head.fields])

    @precondition(lambda self: len(self.head.fields) > 1)
    @rule()
    def reorder_fields(self) -> None:
        fields = self.draw(st.permutations(self.head.fields), "order")
        if tuple(fields) == self.head.fields:
            return
        with self.table.alter() as change:
            for path in ("s", "l.element"):
                change.reorder_columns([f"{path}.{field.name}" for field in fields])
        self.with_fields(fields)  # DuckDB finds the fields of a struct by name

    @rule()
    def write(self) -> None:
        rows: dict[int, dict[int, Any] | None] = {}
        for _ in range(self.draw(st.integers(1, 4), "rows")):
            key = self.draw(st.integers(0, 7), "key") if self.keyed else self.next_id
            self.next_id += 1
            values = {
                field.number: self.draw(st.none() | st.sampled_from(POOLS[field.type]), "value")
                for field in self.head.fields
            }
            rows[key] = values if self.draw(st.sampled_from("yyn"), "struct") == "y" else None
        state = replace(self.head, rows={**self.head.rows, **rows})
        struct = pa.struct([(field.name, field.type) for field in state.fields])
        schema = pa.schema([("id", pa.int64()), ("s", struct), ("l", pa.list_(struct))])
        data = pa.Table.from_pylist([state.row(key) for key in rows], schema)
        if self.keyed:
            self.table.upsert(data)
        else:
            self.table.append(data)
        self.versions.append(state)
        for key in rows:
            self.duck.execute("DELETE FROM t WHERE id = ?", [key])
        self.duck.register("given", data.select(["id", "s"]))
        self.duck.execute("INSERT INTO t SELECT * FROM given")
        self.duck.unregister("given")

    def condition(self) -> str:
        field = self.field()
        kind = self.draw(st.sampled_from(("=", ">", "<=", "null", "some", "whole")), "operator")
        if kind == "whole":
            return "s IS NULL"
        if kind in ("null", "some"):
            return f"s.{field.name} IS {'NOT ' if kind == 'some' else ''}NULL"
        value = self.draw(st.sampled_from(POOLS[field.type]), "constant")
        if isinstance(value, float):
            return f"s.{field.name} {kind} CAST('{value}' AS DOUBLE PRECISION)"
        return f"s.{field.name} {kind} {value!r}"

    def matching(self, where: str) -> list[int]:
        found = self.duck.execute(f"SELECT id FROM t WHERE {where}").fetchall()
        return [key for (key,) in found]

    @rule()
    def delete(self) -> None:
        where = self.condition()
        gone = self.matching(where)
        assert self.table.delete(where).committed == bool(gone)
        if gone:
            rows = {key: row for key, row in self.head.rows.items() if key not in gone}
            self.versions.append(replace(self.head, rows=rows))
            self.duck.execute(f"DELETE FROM t WHERE {where}")

    @rule()
    def compact(self) -> None:
        if self.table.compact().committed:
            self.versions.append(self.head)

    @rule()
    def restore_what_is_whole(self) -> None:
        version = self.draw(st.integers(0, len(self.versions) - 1), "version")
        target = self.versions[version]
        kept = {field.number for field in self.head.fields}
        if not kept.issuperset(field.number for field in target.fields):
            with pytest.raises(UnsupportedOperation):
                self.table.restore(version)
            return
        if kept != {field.number for field in target.fields}:
            return  # the model does not know the defaults
        if self.table.restore(version).committed:
            self.versions.append(replace(self.head, rows=target.rows))
            self.duck.execute("DELETE FROM t")
            struct = pa.struct([(field.name, field.type) for field in self.head.fields])
            schema = pa.schema([("id", pa.int64()), ("s", struct)])
            rows = [self.head.row(key) for key in target.rows]
            data = pa.Table.from_pylist([{"id": r["id"], "s": r["s"]} for r in rows], schema)
            self.duck.register("given", data)
            self.duck.execute("INSERT INTO t SELECT * FROM given")
            self.duck.unregister("given")

    @rule()
    def scan(self) -> None:
        where = self.condition()
        expected = self.head.shown(self.matching(where))
        for pruning in PRUNING:
            assert bag(self.table.scan(where, pruning=pruning).to_arrow().to_pylist()) == expected

    @rule()
    def read_with_engines(self) -> None:
        expected = self.head.shown(list(self.head.rows))
        context = datafusion.SessionContext()
        context.register_table("t", self.table)
        assert bag(context.sql("SELECT * FROM t").to_pylist()) == expected
        assert bag(self.table.to_dataset().to_table().to_pylist()) == expected

    @invariant()
    def the_newest_version_is_the_model_and_duckdbs_table(self) -> None:
        if not hasattr(self, "versions"):
            return
        rows = self.table.scan().to_arrow()
        names = [field.name for field in self.head.fields]
        assert [field.name for field in rows.schema.field("s").type] == names
        found = rows.to_pylist()
        assert bag(found) == self.head.shown(list(self.head.rows))
        judged = self.duck.sql("SELECT id, s FROM t").to_arrow_table().to_pylist()
        for row in judged:
            row["s"] = None if row["s"] is None else {name: row["s"][name] for name in names}
        assert bag(judged) == bag({"id": row["id"], "s": row["s"]} for row in found)

    def teardown(self) -> None:
        for version, state in enumerate(getattr(self, "versions", ())):
            found = self.table.scan(version=version).to_arrow().to_pylist()
            assert bag(found) == state.shown(list(state.rows))


TestFields = FieldMachine.TestCase
TestFields.settings = settings(cast("settings", judged(8)), stateful_step_count=15)
