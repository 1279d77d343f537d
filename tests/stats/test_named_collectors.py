"""A table's property names collectors of statistics, and every writer of it uses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.config import Config, current
from rowsieve.errors import InvalidInput, InvalidSchemaChange
from rowsieve.stats.model import ColumnStatistics
from rowsieve.stats.named_collectors import collector_names
from rowsieve.types.logical import Field, Int
from rowsieve.types.schema import Schema
from tests.small_tables import KV, fresh_uri, keyed, kv

pytestmark = pytest.mark.usefixtures("former_config")

SCHEMA = Schema(1, (Field(1, "a", Int()), Field(2, "odd, name", Int())))


class Tens:
    """Bounds rounded to tens, outward."""

    def __init__(self, field: Field) -> None:
        self.field, self.ends, self.nulls = field, list[int](), 0

    def add(self, values: Any) -> None:
        self.nulls += values.null_count
        self.ends += [end for end in pc.min_max(values).as_py().values() if end is not None]

    def finish(self) -> Iterator[tuple[int, ColumnStatistics]]:
        low, high = min(self.ends) // 10 * 10, -(-max(self.ends) // 10) * 10
        bounds = pa.scalar(low, pa.int64()), pa.scalar(high, pa.int64())
        yield self.field.id, ColumnStatistics(self.nulls, lower=bounds[0], upper=bounds[1])


def bounds(table: rs.Table) -> list[tuple[Any, Any]]:
    """The bounds of `v` of each part, from another handle."""
    snapshot = rs.open_table(table.uri).handle.newest
    parts, name = snapshot.parts, f"stats.{snapshot.schema.field('v').id}"
    ends = [parts.column(f"{name}.{fact}").to_pylist() for fact in ("lower", "upper")]
    return sorted(zip(*ends, strict=True))


def test_every_way_to_write_collects_by_name() -> None:
    rs.configure(replace(current(), collectors={"tens": Tens}))
    table = rs.create_table(
        fresh_uri(), kv((1, 11)), key=["k"], properties={"collectors": "v: tens"}
    )
    table.upsert(kv((2, 25)))
    rs.open_table(table.uri).update({"v": "v + 1"}, where="k = 2")
    with table.transaction() as transaction:
        transaction.upsert(kv((3, 31)))
    assert bounds(table) == [(10, 20), (20, 30), (20, 30), (30, 40)]
    assert table.scan("v > 40").explain().parts_read == 0
    assert table.scan("v = 26").to_arrow().to_pylist() == [{"k": 2, "v": 26}]
    table.compact()
    assert bounds(table) == [(10, 40)]


def test_tasks_of_procedures_and_analyses_collect_by_name() -> None:
    rs.configure(replace(current(), collectors={"tens": Tens}))
    catalog = rs.Catalog(fresh_uri())
    table = catalog.create_table("db.t", KV, key=["k"], properties={"statistics": "off"})
    table.upsert(kv((1, 11)))
    table.upsert(kv((1, 12)))
    table.set_properties({"collectors": "v: tens", "statistics": "on"})
    catalog.call("CALL system.analyze(table => 'db.t')")
    assert bounds(table) == [(10, 20), (10, 20)]
    options = "map('rewrite-all', 'true')"
    catalog.call(f"CALL system.rewrite_data_files(table => 'db.t', options => {options})")
    assert bounds(table) == [(10, 20)]


def test_a_writer_without_the_collector_fails_and_readers_do_not() -> None:
    rs.configure(replace(current(), collectors={"tens": Tens}))
    table = keyed({"k": [1], "v": [11]}, properties={"collectors": "v: tens"})
    rs.configure(replace(current(), collectors={"tenths": Tens}))
    with pytest.raises(InvalidInput, match=r"'tens'.*registered are: tenths; did you mean"):
        table.upsert(kv((2, 2)))
    assert table.scan("v > 40").explain().parts_read == 0
    assert not table.require_pruning("v > 40").parts_read
    table.unset_properties(["collectors"])
    table.upsert(kv((2, 2)))


def test_the_property_is_checked() -> None:
    table = keyed({"k": [1], "v": [11]})
    with pytest.raises(InvalidInput, match="names 'w', which is not a column"):
        table.set_properties({"collectors": "w: tens"})
    for text in ("v", "v: ", "v tens", ": tens", "v: tens w: tens", "v: tens,"):
        with pytest.raises(InvalidInput, match="has no column and collector at character"):
            table.set_properties({"collectors": text})
    with pytest.raises(InvalidInput, match="twice"):
        table.set_properties({"collectors": "v: tens, v: tens"})
    table.set_properties({"collectors": "v: tens"})
    with pytest.raises(InvalidSchemaChange, match="unset the property first"):
        table.rename_column("v", "w")
    pairs = collector_names({"collectors": ' a : x.y-z ,"odd, name":b'}, SCHEMA)
    assert pairs == {1: "x.y-z", 2: "b"}
    for wrong in (["tens"], {"tens": 7}, {7: Tens}):
        with pytest.raises(InvalidInput, match="collectors must be a dict"):
            Config(collectors=wrong)  # type: ignore[arg-type] # what is tested


def test_an_entry_point_is_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        value, name = "package:Tens", "tens"

        def load(self) -> Any:
            return Tens

    class Missing(Point):
        def load(self) -> Any:
            raise ModuleNotFoundError("package")

    for point, error in ((Point(), None), (Missing(), "cannot be loaded: ModuleNotFoundError")):
        monkeypatch.setattr("rowsieve.stats.named_collectors._points", lambda p=point: {"tens": p})
        table = keyed(properties={"collectors": "v: tens"})
        if error:
            with pytest.raises(InvalidInput, match=error):
                table.upsert(kv((2, 25)))
        else:
            table.upsert(kv((2, 25)))
            assert bounds(table) == [(20, 30)]
