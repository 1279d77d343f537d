"""Rewriting data files keeps every row, in one commit or none."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import CommitConflict, InvalidInput, StoreError
from rowsieve.procedures.engine import Job, LocalEngine
from tests.faults.tasks import FailingRuns
from tests.faults.vocabulary import Fault
from tests.profiles import examples
from tests.small_tables import fresh_uri

IDS = pa.schema([("id", pa.int64()), ("v", pa.string())])


pytestmark = pytest.mark.usefixtures("row_groups_of_three")


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    return rs.Catalog(tmp_path)


def rewrite(
    catalog: rs.Catalog,
    where: str | None = None,
    engine: Any = None,
    order: str | None = None,
    **options: str,
) -> dict[str, Any]:
    """Call the procedure on `db.t`; return its row."""
    pairs = ", ".join(f"'{name.replace('_', '-')}', '{value}'" for name, value in options.items())
    condition = "" if where is None else f", where => '{where.replace(chr(39), chr(39) * 2)}'"
    sort = "" if order is None else f", sort_order => '{order}'"
    arguments = f"table => 'db.t', options => map({pairs}){condition}{sort}"
    text = f"CALL system.rewrite_data_files({arguments})"
    (row,) = catalog.call(text, engine=engine).to_pylist()
    return dict(row)


def rows(table: rs.Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=repr)


def ids(*values: int, v: str = "a") -> pa.Table:
    return pa.table({"id": values, "v": [v] * len(values)}, schema=IDS)


def ten_parts(catalog: rs.Catalog, key: Sequence[str] | None = ("id",)) -> rs.Table:
    table = catalog.create_table("db.t", IDS, list(key) if key else None)
    for i in range(10):
        (table.upsert if key else table.append)(ids(i))
    return table


def test_ten_parts_and_three_deletes_become_one_part_of_seven_rows(catalog: rs.Catalog) -> None:
    table = ten_parts(catalog)
    for i in (2, 5, 8):
        table.delete(f"id = {i}")
    before = rows(table)
    row = rewrite(catalog)
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (10, 1)
    assert row["removed_delete_files_count"] == 3
    table.refresh()
    assert rows(table) == before
    assert len(before) == 7
    assert table.detail()["parts"] == 1
    assert table.detail()["tombstones"] == 0
    assert rewrite(catalog)["version"] == table.version  # a repeated call is a no-op


@pytest.mark.parametrize("key", [("id",), None])
def test_filter_selects_parts_and_loses_no_row(
    catalog: rs.Catalog, key: Sequence[str] | None
) -> None:
    table = ten_parts(catalog, key)
    before = rows(table)
    assert rewrite(catalog, "1 = 0")["version"] == table.version
    assert rewrite(catalog, "id < 5", min_input_files="6")["version"] == table.version
    row = rewrite(catalog, "id < 5", min_input_files="5")
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (5, 1)
    table.refresh()
    assert rows(table) == before


def test_strict_refuses_a_filter_that_whole_parts_cannot_enforce(catalog: rs.Catalog) -> None:
    table = catalog.create_table("db.t", IDS, ["id"])
    for start in range(0, 50, 10):
        table.upsert(ids(*range(start, start + 10)))
    version = table.version
    with pytest.raises(InvalidInput, match="strict is set"):
        rewrite(catalog, "id < 15", strict="true")
    with pytest.raises(InvalidInput, match="strict is set"):
        catalog.call("CALL system.rewrite_data_files('db', 't', 'id < 15', strict => TRUE)")
    assert table.refresh() == version
    assert rewrite(catalog, "id < 50", strict="true")["rewritten_data_files_count"] == 5


def test_rows_that_all_are_deleted_leave_no_part(catalog: rs.Catalog) -> None:
    table = ten_parts(catalog)
    table.delete("TRUE")
    row = rewrite(catalog)
    assert (row["added_data_files_count"], row["added_bytes_count"]) == (0, 0)
    table.refresh()
    assert rows(table) == []
    assert table.detail()["parts"] == 0
    assert rewrite(catalog)["version"] == table.version


def test_empty_table_has_nothing_to_rewrite(catalog: rs.Catalog) -> None:
    table = catalog.create_table("db.t", IDS, ["id"])
    assert rewrite(catalog, rewrite_all="true")["version"] == table.version


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rewrite_al": "true"}, "no option 'rewrite-al'.*did you mean 'rewrite-all'"),
        ({"rewrite_all": "yes"}, "'yes'; give true or false"),
        ({"min_input_files": "0"}, "whole number above zero"),
        ({"target_file_size_bytes": "12 parsecs"}, "give a size above zero"),
        ({"target_file_size_bytes": "0"}, "give a size above zero"),
        ({"target_file_size_bytes": "9" * 5000}, "give a size above zero"),
        ({"min_input_files": "9" * 5000}, "whole number above zero"),
        ({"delete_ratio": "nan"}, "a number above 0"),
        ({"min_file_size_bytes": "2gb"}, "is above max-file-size-bytes"),
        ({"target_file_size_bytes": "2mb", "max_file_size_bytes": "1mb"}, "rewritten again"),
        ({"delete_ratio": "1", "delete_ratio_threshold": "1"}, "given twice"),
    ],
)
def test_wrong_options_are_refused_by_name(
    catalog: rs.Catalog, options: Mapping[str, str], reason: str
) -> None:
    ten_parts(catalog)
    with pytest.raises(InvalidInput, match=reason):
        rewrite(catalog, **options)


class During(LocalEngine):
    """Runs the tasks, then once something else before the coordinator commits."""

    def __init__(self, then: Any) -> None:
        super().__init__(1)
        self._then = then
        self.task_count = 0

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Run the tasks, then the other change."""
        self.task_count += len(job.tasks)
        yield from super().run(job)
        self._then()
        self._then = lambda: None


@pytest.mark.parametrize("target", ["5kb", "1gb"])
def test_group_larger_than_a_new_part_is_cut_into_several_tasks(
    catalog: rs.Catalog, target: str
) -> None:
    table = catalog.create_table("db.t", IDS, ["id"])
    for i in range(3):
        table.upsert(ids(*range(i, 30, 2)))
    table.delete("id = 7")
    before, counted = rows(table), During(lambda: None)
    found = rewrite(catalog, None, counted, rewrite_all="true", target_file_size_bytes=target)
    table.refresh()
    assert (counted.task_count > 1) is (target == "5kb")
    assert found["added_data_files_count"] >= counted.task_count
    assert rows(table) == before


def test_upserts_and_deletes_meanwhile_keep_their_rows(catalog: rs.Catalog) -> None:
    table = ten_parts(catalog)
    other = catalog.open_table("db.t")

    def change() -> None:
        other.upsert(ids(3, 77, v="new"))
        other.delete("id = 4")
        other.add_column("w", pa.int64(), default=9)

    rewrite(catalog, engine=During(change))
    other.refresh()
    expected = {i: "a" for i in range(10) if i != 4} | {3: "new", 77: "new"}
    assert {row["id"]: row["v"] for row in rows(other)} == expected
    assert {row["w"] for row in rows(other)} == {9}
    assert table.refresh() == other.version


@pytest.mark.parametrize("change", ["compact", "restore", "overwrite"])
def test_parts_that_were_replaced_meanwhile_are_a_conflict(
    catalog: rs.Catalog, change: str
) -> None:  # trap T25
    table = ten_parts(catalog)
    other = catalog.open_table("db.t")
    changes = {
        "compact": other.compact,
        "restore": lambda: other.restore(3),
        "overwrite": lambda: other.overwrite(ids(1)),
    }
    with pytest.raises(CommitConflict, match="nothing was committed"):
        rewrite(catalog, engine=During(changes[change]))
    assert table.refresh() == other.version


class Repeating(LocalEngine):
    """Runs every task three times, as a cluster with late and repeated attempts may."""

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Yield three reports of each task."""
        for _ in range(3):
            yield from super().run(job)


def test_repeated_tasks_are_committed_once(catalog: rs.Catalog) -> None:  # trap T29
    table = ten_parts(catalog)
    before = rows(table)
    row = rewrite(catalog, engine=Repeating(1))
    assert row["added_data_files_count"] == 1
    table.refresh()
    assert rows(table) == before


def test_failed_task_commits_nothing(catalog: rs.Catalog) -> None:
    table = ten_parts(catalog)
    before, version = rows(table), table.version
    catalog.procedures.remove("rewrite_data_files")
    catalog.procedures.add(FailingRuns(range(100)))
    with pytest.raises(StoreError, match=Fault.TASK_FAILED.value):
        rewrite(catalog)
    assert table.refresh() == version
    assert rows(table) == before


KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int16(), [-(2**15), -7, -1, 0, 1, 2, 9, 2**15 - 1]),
    "unsigned": (pa.uint64(), [0, 1, 2**63 - 1, 2**63, 2**64 - 1]),
    "float": (pa.float64(), [-math.inf, -1.5, 0.0, 5e-324, 2.0, math.inf, math.nan]),
    "text": (pa.string(), ["", "a", "a\x00", "aa", "é", "\U0010ffff", "zz" * 90]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff", b"\xff" * 80]),
    "decimal": (pa.decimal128(38, 3), [Decimal("-1e30"), Decimal("0.001"), Decimal("7e30")]),
    "date": (pa.date32(), [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    "instant": (pa.timestamp("us", "UTC"), [-(2**55), 0, 1, 2**57]),
    "bool": (pa.bool_(), [False, True]),
    "uuid": (pa.uuid(), [uuid.UUID(int=n).bytes for n in (0, 1, 2**127, 2**128 - 1)]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_large_groups_are_cut_by_any_type_of_key(catalog: rs.Catalog, kind: str) -> None:
    type_, values = KEYS[kind]
    pairs = [(value, n) for value in values for n in range(7)]
    schema = pa.schema([("k", type_), ("n", pa.int64()), ("v", pa.int64())])
    table = catalog.create_table("db.t", schema, ["k", "n"])
    for v in range(3):
        some = pairs[v::2]
        keys = pa.array([k for k, _ in some], getattr(type_, "storage_type", type_)).cast(type_)
        data = [keys, pa.array([n for _, n in some]), pa.array([v] * len(some))]
        table.upsert(pa.table(data, schema=schema))
    table.delete("n = 3")
    before = repr(rows(table))  # NaN is not equal to itself
    rewrite(catalog, rewrite_all="true", max_file_group_size_bytes="1kb")
    table.refresh()
    assert repr(rows(table)) == before
    files = table.files().num_rows
    assert files > 1
    assert rewrite(catalog, min_input_files="100")["version"] == table.version


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "delete"]),
        st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True),
    ),
    min_size=1,
    max_size=8,
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "rewrite_all": st.sampled_from(["true", "false"]),
        "min_input_files": st.sampled_from(["1", "2", "5"]),
        "max_file_group_size_bytes": st.sampled_from(["1", "2kb", "6kb"]),
        "target_file_size_bytes": st.sampled_from(["1kb", "100kb"]),
        "delete_file_threshold": st.sampled_from(["1", "3"]),
        "rewrite_job_order": st.sampled_from(["bytes-desc", "files-asc"]),
        "partial-progress.enabled": st.sampled_from(["true", "false"]),
        "partial-progress.max-commits": st.sampled_from(["1", "2", "10"]),
    },
)
ORDERS = st.sampled_from([None, None, "v DESC, id", "zorder(id, v)"])
FILTERS = st.sampled_from([None, "id < 10", "v = '1'", "id BETWEEN 5 AND 20 OR v IS NULL", "1 = 0"])


@examples(40, promised=1_000)
@given(CHANGES, CHANGES, OPTIONS, FILTERS, ORDERS, st.booleans())
def test_rows_are_the_same_before_and_after(
    changes: list[tuple[str, list[int]]],
    meanwhile: list[tuple[str, list[int]]],
    options: dict[str, str],
    where: str | None,
    order: str | None,
    keyed: bool,
) -> None:
    catalog = rs.Catalog(fresh_uri())
    table = catalog.create_table("db.t", IDS, ["id"] if keyed else None)
    twin = catalog.create_table("db.twin", IDS, ["id"] if keyed else None)

    def apply(to: rs.Table, steps: list[tuple[str, list[int]]], start: int) -> None:
        for step, (kind, numbers) in enumerate(steps, start):
            if kind == "delete":
                to.delete(f"id IN ({', '.join(map(str, numbers))})")
            else:
                (to.upsert if keyed else to.append)(ids(*numbers, v=str(step)))

    for each in (table, twin):
        apply(each, changes, 0)
    pinned, held = table.scan(version=table.version), rows(table)
    other = catalog.open_table("db.t")
    try:
        during = During(lambda: apply(other, meanwhile, 100))
        rewrite(catalog, where, during, None if keyed else order, **options)
    except CommitConflict:  # a delete replaced the deletion vector of a part that was rewritten
        assert not keyed
    if other.version == table.version:  # there was nothing to rewrite, so no task ran
        apply(other, meanwhile, 100)
    apply(twin, meanwhile, 100)
    table.refresh()
    assert rows(table) == rows(twin)
    assert sorted(pinned.to_arrow().to_pylist(), key=repr) == held


@pytest.mark.parametrize("kind", ["row versions", "differential"])
def test_the_checkpoint_of_a_rewrite_has_the_columns_and_the_mode_of_the_table(
    catalog: rs.Catalog, kind: str
) -> None:
    properties: dict[str, Any] = {"checkpoint_interval": 1, "inline_bytes": 0}
    if kind == "differential":
        table = catalog.create_table(
            "db.t", IDS, mode="differential", time="uint64", properties=properties
        )
        for time in range(1, 4):
            updates = [{"id": 1, "v": "x", "time": time - 1, "diff": 1}]
            table.append_updates(updates, lower=time - 1, upper=time)
    else:
        properties["row_versions"] = "kept"
        table = catalog.create_table("db.t", IDS, ["id"], properties=properties)
        for id_ in (1, 2, 1):
            table.upsert([{"id": id_, "v": "x"}])
    before = (table.schema, table.detail()["mode"], table.to_arrow().to_pylist())
    assert rewrite(catalog, rewrite_all="true")["added_data_files_count"]
    for opened in (rs.open_table(table.uri), catalog.open_table("db.t")):
        assert (opened.schema, opened.detail()["mode"], opened.to_arrow().to_pylist()) == before
