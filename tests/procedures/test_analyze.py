"""Statistics of parts that were written without them, collected later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import CommitConflict, InvalidInput, UnknownColumn
from rowsieve.procedures.engine import Job, LocalEngine
from tests.profiles import examples
from tests.small_tables import fresh_uri

ROWS = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("doc", pa.json_())])


pytestmark = pytest.mark.usefixtures("row_groups_of_three")


def rows(*ids: int) -> pa.Table:
    documents = pa.array([f'{{"n": {i}}}' for i in ids], pa.json_())
    return pa.table([pa.array(ids), pa.array([i * 10 for i in ids]), documents], schema=ROWS)


def table_of(catalog: rs.Catalog, *, key: bool, parts: int = 4) -> rs.Table:
    table = catalog.create_table(
        "db.t", ROWS, ["id"] if key else None, properties={"statistics": "off"}
    )
    for start in range(0, parts * 5, 5):
        (table.upsert if key else table.append)(rows(*range(start, start + 5)))
    return table


def call(catalog: rs.Catalog, arguments: str = "", engine: Any = None) -> dict[str, Any]:
    (row,) = catalog.call(
        f"CALL system.analyze(table => 'db.t'{arguments})", engine=engine
    ).to_pylist()
    return dict(row)


def read(table: rs.Table, where: str) -> int:
    return int(table.scan(where).explain().parts_read)


@pytest.mark.parametrize("key", [True, False])
def test_analyzed_parts_can_be_skipped(tmp_path: Path, *, key: bool) -> None:
    catalog = rs.Catalog(tmp_path)
    table = table_of(catalog, key=key)
    table.delete("id IN (6, 7)")
    before = sorted(table.scan().to_arrow().to_pylist(), key=repr)
    conditions = ("v = 120", "(doc->>'n')::int = 12")
    assert all(read(table, where) >= 4 for where in conditions)
    row = call(catalog)
    assert (row["analyzed_files_count"], row["skipped_files_count"]) == (4, 0)
    table.refresh()
    assert [read(table, where) for where in conditions] == [1, 1]
    assert sorted(table.scan().to_arrow().to_pylist(), key=repr) == before
    assert call(catalog)["version"] == table.version  # a repeated call is a no-op
    assert call(catalog, ", rewrite_all => TRUE")["version"] == table.version + 1
    table.vacuum(retain_last=1, grace_s=0)
    assert sorted(table.scan().to_arrow().to_pylist(), key=repr) == before


def test_parts_of_older_columns_are_passed_over(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = table_of(catalog, key=True)
    table.add_column("w", pa.int64(), default=1)
    row = call(catalog)
    assert (row["analyzed_files_count"], row["skipped_files_count"]) == (0, 4)
    assert row["version"] == table.refresh()


def test_columns_are_named(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table_of(catalog, key=True)
    with pytest.raises(UnknownColumn, match="'nope'"):
        call(catalog, ", columns => 'v, nope'")
    assert call(catalog, ", columns => 'v'")["analyzed_files_count"] == 4
    assert call(catalog, ", columns => 'v'")["analyzed_files_count"] == 0


class Before(LocalEngine):
    """Does something before the coordinator commits."""

    def __init__(self, then: Any) -> None:
        super().__init__(1)
        self._then = then

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Run the tasks, then the other change."""
        yield from super().run(job)
        self._then()


def test_concurrent_rewrites_conflict_and_upserts_do_not(tmp_path: Path) -> None:  # rule 13
    catalog = rs.Catalog(tmp_path)
    table_of(catalog, key=True)
    other = catalog.open_table("db.t")
    call(catalog, engine=Before(lambda: other.upsert(rows(7, 99))))
    assert other.refresh() == 6
    assert sorted(other.scan().to_arrow().column("id").to_pylist()) == [*range(20), 99]
    with pytest.raises(CommitConflict, match="nothing was committed"):
        call(catalog, ", rewrite_all => TRUE", Before(other.compact))


VALUES = st.lists(st.none() | st.integers(-5, 5), min_size=1, max_size=6)


@examples(25, promised=500)
@given(st.lists(VALUES, min_size=1, max_size=5), st.integers(-5, 5), st.booleans())
def test_pruning_by_analyzed_statistics_loses_no_row(
    parts: list[list[int | None]], value: int, keyed: bool
) -> None:
    catalog = rs.Catalog(fresh_uri())
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table = catalog.create_table(
        "db.t", schema, ["id"] if keyed else None, properties={"statistics": "off"}
    )
    for start, values in enumerate(parts):  # keys of neighbouring parts overlap
        data = pa.table({"id": range(start, start + len(values)), "v": values}, schema=schema)
        (table.upsert if keyed else table.append)(data)
    if keyed:
        table.delete("id = 1")
    conditions = [f"v = {value}", f"v > {value}", "v IS NULL", f"NOT (v <= {value})"]
    before = [sorted(table.scan(c).to_arrow().to_pylist(), key=repr) for c in conditions]
    call(catalog)
    table.refresh()
    for condition, expected in zip(conditions, before, strict=True):
        scan = table.scan(condition, audit=100)
        assert sorted(scan.to_arrow().to_pylist(), key=repr) == expected


def test_distinct_values_are_estimated(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = table_of(catalog, key=True)
    assert table.distinct_counts() == {"id": None, "v": None, "doc": None}
    analyze = ", distinct_counts => TRUE"
    assert [call(catalog, analyze)["analyzed_files_count"] for _ in range(2)] == [4, 0]
    table.upsert(
        pa.table([pa.array([3]), pa.array([30]), pa.array(["{}"], pa.json_())], schema=ROWS)
    )
    assert table.distinct_counts(["v"]) == {"v": None}  # of the new part
    assert call(catalog, analyze)["analyzed_files_count"] == 1
    found = table.distinct_counts(["id", "v"])
    assert found == {"id": pytest.approx(20, abs=2), "v": pytest.approx(20, abs=2)}
    call(catalog, ", rewrite_all => TRUE")  # keeps them: the rows of a part never change
    assert table.distinct_counts(["id", "v"]) == found
    table.rename_column("v", "w")
    assert table.distinct_counts(["w"]) == {"w": found["v"]}
    with pytest.raises(UnknownColumn, match="'v'"):
        table.distinct_counts(["v"])
    restored = catalog.open_table("db.t")
    restored.vacuum(retain_last=1, grace_s=0)
    assert restored.distinct_counts(["id"]) == {"id": found["id"]}


def test_sketches_of_another_kind_are_unknown(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table(
        "db.t", pa.table({"day": pa.array([1, 2], pa.date32()), "n": pa.array([1, 2], pa.int32())})
    )
    call(catalog, ", distinct_counts => TRUE")
    assert table.distinct_counts() == {"day": 2, "n": 2}
    table.widen_column("day", pa.timestamp("us"))
    table.widen_column("n", pa.int64())
    assert table.distinct_counts() == {"day": None, "n": 2}


def test_sketches_of_many_columns_are_read_from_a_checkpoint(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    names = [f"c{i}" for i in range(6)]
    table = catalog.create_table("db.t", pa.schema([(name, pa.int64()) for name in names]))
    for start in (0, 2_000):
        table.append(pa.table({name: range(start, start + 3_000) for name in names}))
    call(catalog, ", distinct_counts => TRUE")
    catalog.call("CALL system.rewrite_manifests('db', 't')")
    found = catalog.open_table("db.t").distinct_counts()
    assert all(count == pytest.approx(5_000, rel=0.065) for count in found.values())
    assert list(found) == names
    assert read(catalog.open_table("db.t"), "c0 > 4000") == 1


def test_values_that_are_equal_in_other_bytes_have_no_sketch(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    months = pa.array([pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 30, 0])])
    data = pa.table(
        {"n": [1, 2], "doc": pa.array(['{"a":1}', '{ "a": 1 }'], pa.json_()), "gap": months}
    )
    table = catalog.create_table("db.t", data)
    call(catalog, ", distinct_counts => TRUE")
    assert table.distinct_counts() == {"n": 2, "doc": None, "gap": None}
    assert call(catalog, ", distinct_counts => TRUE")["analyzed_files_count"] == 0


def by_call(catalog: rs.Catalog, column: str, *, rewrite_all: bool = False) -> int:
    more = ", rewrite_all => TRUE" if rewrite_all else ""
    row = call(catalog, f", columns => '{column}', distinct_counts => TRUE{more}")
    return int(row["analyzed_files_count"])


def by_method(catalog: rs.Catalog, column: str, *, rewrite_all: bool = False) -> int:
    table = catalog.open_table("db.t")
    return table.analyze([column], rewrite_all=rewrite_all, distinct_counts=True).parts_added


@pytest.mark.parametrize("analyze", [by_call, by_method])
def test_sketches_of_some_columns_leave_those_of_others(tmp_path: Path, analyze: Any) -> None:
    catalog = rs.Catalog(tmp_path)
    table = table_of(catalog, key=True)
    some = pytest.approx(20, abs=2)
    assert analyze(catalog, "v") == 4
    assert table.distinct_counts() == {"id": None, "v": some, "doc": None}
    assert analyze(catalog, "v") == 0
    assert analyze(catalog, "id") == 4
    both = table.distinct_counts()
    assert both == {"id": some, "v": some, "doc": None}
    assert analyze(catalog, "v", rewrite_all=True) == 4
    assert table.distinct_counts() == both
    table.upsert(rows(3))
    assert analyze(catalog, "v") == 1
    assert table.distinct_counts(["id", "v"]) == {"id": None, "v": some}
    assert analyze(catalog, "id") == 1
    assert table.distinct_counts(["id", "v"]) == {"id": some, "v": some}


def test_maintain_counts_the_chosen_columns_alone(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = table_of(catalog, key=False, parts=1)
    table.set_properties({"statistics": "on"})
    table.analyze(["v"], distinct_counts=True)
    table.append(rows(50))
    table.maintain()
    assert table.distinct_counts(["id", "v"]) == {"id": None, "v": 6}


@pytest.mark.parametrize("name", ["a", "a b", "a,b", 'a"b', "a`b", "A", "select"])
def test_columns_of_any_name_are_named(name: str, tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.t", pa.table({"id": [1, 2], name: [1, 1]}))
    quoted = name.replace('"', '""')
    for text in (f'"{quoted}"', f'id, "{quoted}" ', *([name] if name.isidentifier() else [])):
        call(catalog, f", columns => '{text}', distinct_counts => TRUE, rewrite_all => TRUE")
        table.refresh()
        assert table.distinct_counts([name]) == {name: 1}
    for wrong in ("", " ", "id,", ",id", '"id', '"id" x', '""'):
        with pytest.raises(InvalidInput, match="give names such as"):
            call(catalog, f", columns => '{wrong}'")


def test_analyze_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    table = table_of(rs.Catalog(tmp_path), key=True, parts=1)
    with pytest.raises(InvalidInput, match="column doc has the type json"):
        table.analyze(["doc"], distinct_counts=True)
    with pytest.raises(UnknownColumn, match="'nope'"):
        table.analyze(["nope"])
    assert table.analyze(["doc"]).parts_added == 1
    version = table.version
    assert not table.analyze(["doc", "doc"]).committed
    assert table.refresh() == version
