"""Orders, stages, limits and dry runs of rewrite_data_files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import CommitConflict, InvalidInput, StoreError, UnsupportedOperation
from rowsieve.objects.local import LocalStore
from rowsieve.procedures.engine import Job, LocalEngine
from tests.faults.stores import EveryStore
from tests.faults.tasks import FailingRuns
from tests.faults.vocabulary import Fault

IDS = pa.schema([("id", pa.int64()), ("v", pa.int64())])


pytestmark = pytest.mark.usefixtures("row_groups_of_three")


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    return rs.Catalog(tmp_path)


def call(catalog: rs.Catalog, arguments: str = "", engine: Any = None) -> dict[str, Any]:
    """Call the procedure on `db.t`; return its row."""
    text = f"CALL system.rewrite_data_files(table => 'db.t'{arguments})"
    (row,) = catalog.call(text, engine=engine).to_pylist()
    return dict(row)


def options(**given: str) -> str:
    """The argument `options`; `__` stands for a dot and `_` for a hyphen."""
    pairs = (
        f"'{name.replace('__', '.').replace('_', '-')}', '{value}'" for name, value in given.items()
    )
    return f", options => map({', '.join(pairs)})"


def table_of(catalog: rs.Catalog, *ranges: range, key: bool = False) -> rs.Table:
    """A table with a part for each range; `v` counts down."""
    table = catalog.create_table("db.t", IDS, ["id"] if key else None)
    for ids in ranges:
        data = pa.table({"id": ids, "v": [100 - i for i in ids]}, schema=IDS)
        (table.upsert if key else table.append)(data)
    return table


def rows(table: rs.Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist())


def test_sorted_parts_hold_disjoint_ranges(catalog: rs.Catalog) -> None:
    table = table_of(catalog, *(range(i, 60, 6) for i in range(6)))
    table.delete("id IN (7, 8)")
    before = rows(table)
    sizes = options(rewrite_all="true", target_file_size_bytes="1")
    row = call(catalog, f", strategy => 'sort', sort_order => 'v'{sizes}")
    table.refresh()
    assert rows(table) == before
    assert row["rewritten_data_files_count"] == 6
    assert row["removed_delete_files_count"] == 2
    assert table.scan().to_arrow().column("v").to_pylist() == [v for _, v in before][::-1]
    assert table.scan("v = 50").explain().parts_read == 1


@pytest.mark.parametrize("order", ["id", "k DESC", "zorder(id, k)"])
def test_sorted_or_not_a_table_has_the_same_rows(catalog: rs.Catalog, order: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.string()), ("deep", pa.list_(pa.int8()))])
    table = catalog.create_table("db.t", schema)
    for start in range(0, 50, 10):
        data = [
            {"id": i * 7 % 50, "k": None if i % 3 else str(i % 4), "deep": [i, None]}
            for i in range(start, start + 10)
        ]
        table.append(pa.Table.from_pylist(data, schema=schema))
    before = sorted(table.scan().to_arrow().to_pylist(), key=repr)
    call(catalog, f", sort_order => '{order}'")
    table.refresh()
    assert sorted(table.scan().to_arrow().to_pylist(), key=repr) == before
    assert table.detail()["parts"] == 1


@pytest.mark.parametrize(
    ("arguments", "key", "error", "reason"),
    [
        (", strategy => 'shuffle'", False, InvalidInput, "give one of binpack, sort"),
        (", strategy => 'sort'", False, InvalidInput, "needs an order"),
        (", strategy => 'binpack', sort_order => 'v'", False, InvalidInput, "remove one"),
        (", sort_order => 'v'", True, UnsupportedOperation, "always in its order"),
        (", sort_order => 'id DESC'", True, UnsupportedOperation, "always in its order"),
        (", sort_order => 'zorder(id, v)'", True, UnsupportedOperation, "always in its order"),
    ],
)
def test_orders_that_a_table_cannot_have_are_refused(
    catalog: rs.Catalog, arguments: str, key: bool, error: type[Exception], reason: str
) -> None:
    table = table_of(catalog, range(5), key=key)
    with pytest.raises(error, match=reason):
        call(catalog, arguments)
    assert table.refresh() == table.version


@pytest.mark.parametrize("arguments", [", strategy => 'sort'", ", sort_order => 'id'"])
def test_order_of_the_key_is_what_a_table_with_a_key_has(
    catalog: rs.Catalog, arguments: str
) -> None:
    table_of(catalog, *(range(i, i + 3) for i in range(0, 15, 3)), key=True)
    assert call(catalog, arguments)["rewritten_data_files_count"] == 5


def test_dry_run_counts_files_and_commits_nothing(catalog: rs.Catalog) -> None:
    table = table_of(catalog, *(range(i, i + 3) for i in range(0, 15, 3)))
    version = table.version
    row = call(catalog, ", dry_run => TRUE")
    assert row["rewritten_data_files_count"] == 5
    assert row["rewritten_bytes_count"] > 0
    assert (row["added_data_files_count"], row["version"]) == (0, version)
    assert table.refresh() == version


def test_delete_file_threshold_selects_parts_with_deletes(catalog: rs.Catalog) -> None:
    table = table_of(catalog, range(10), range(10, 20))
    table.delete("id = 3")
    plain = options(min_file_size_bytes="1b", delete_ratio="1")
    assert call(catalog, plain)["rewritten_data_files_count"] == 0
    chosen = options(min_file_size_bytes="1b", delete_ratio="1", delete_file_threshold="1")
    row = call(catalog, chosen)
    assert (row["rewritten_data_files_count"], row["removed_delete_files_count"]) == (1, 1)
    assert call(catalog, chosen)["rewritten_data_files_count"] == 0


class Recording(LocalEngine):
    """Notes the jobs that it runs."""

    def __init__(self) -> None:
        super().__init__(1)
        self.jobs: list[Job] = []

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Note the job, then run it."""
        self.jobs.append(job)
        return super().run(job)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("none", [2, 9, 5]),
        ("bytes-asc", [2, 5, 9]),
        ("bytes-desc", [9, 5, 2]),
    ],
)
def test_job_order_says_which_groups_come_first(
    catalog: rs.Catalog, order: str, expected: list[int]
) -> None:
    table_of(catalog, range(20, 40), range(100, 190), range(300, 350))
    engine = Recording()
    given = options(
        rewrite_all="true",
        max_file_group_size_bytes="1",
        rewrite_job_order=order,
        partial_progress__enabled="true",
        partial_progress__max_commits="3",
        max_concurrent_file_group_rewrites="2",
    )
    call(catalog, given, engine)
    assert len(engine.jobs) == 3
    assert {job.max_concurrent for job in engine.jobs} == {2}
    history = catalog.open_table("db.t").history(3)
    assert [commit.rows_written // 10 for commit in reversed(history)] == expected


def in_stages(most: str = "10") -> str:
    return options(
        rewrite_all="true",
        max_file_group_size_bytes="1",
        partial_progress__enabled="true",
        partial_progress__max_commits=most,
    )


@pytest.mark.parametrize("key", [True, False])
def test_partial_progress_commits_in_stages(catalog: rs.Catalog, key: bool) -> None:
    table = table_of(catalog, *(range(i, i + 3) for i in range(0, 15, 3)), key=key)
    before, version = rows(table), table.version
    row = call(catalog, in_stages("2"))
    assert row["rewritten_data_files_count"] == row["added_data_files_count"] == 5
    assert row["failed_data_files_count"] == 0
    assert row["version"] == table.refresh() == version + 2
    assert rows(table) == before


def broken(catalog: rs.Catalog, *numbers: int) -> None:
    catalog.procedures.remove("rewrite_data_files")
    catalog.procedures.add(FailingRuns(numbers))


def test_failed_stage_loses_only_its_own_work(
    catalog: rs.Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_of(catalog, *(range(i, i + 3) for i in range(0, 15, 3)), key=True)
    before, version = rows(table), table.version
    broken(catalog, 1)
    row = call(catalog, in_stages())
    assert (row["rewritten_data_files_count"], row["failed_data_files_count"]) == (4, 1)
    assert f"a stage was not committed: {Fault.TASK_FAILED.value}" in caplog.text
    assert table.refresh() == version + 4
    assert rows(table) == before


def test_error_is_raised_if_every_stage_fails(catalog: rs.Catalog) -> None:
    table = table_of(catalog, range(3), range(3, 6), key=True)
    version = table.version
    broken(catalog, 0, 1)
    with pytest.raises(StoreError, match=Fault.TASK_FAILED.value):
        call(catalog, in_stages())
    assert table.refresh() == version


def test_a_commit_of_unknown_outcome_ends_the_call(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(catalog, *(range(i, i + 3) for i in range(0, 15, 3)), key=True)
    before, version = rows(table), table.version
    second = f"{version + 2:020}.json"
    with monkeypatch.context() as patch:
        stores = EveryStore(patch, LocalStore)
        stores.meet_where(Fault.IO_ERROR, "put_new", lambda path: path.endswith(second))
        with pytest.raises(StoreError, match=r"not be durable\. Readers see commit [0-9a-f]+ as"):
            call(catalog, in_stages())
    assert table.refresh() == version + 2
    assert rows(table) == before


class Between(LocalEngine):
    """Does something after the tasks of each job."""

    def __init__(self, steps: Mapping[int, Any]) -> None:
        super().__init__(1)
        self._steps, self._jobs = steps, 0

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Run the tasks, then the step of this job."""
        yield from super().run(job)
        self._steps.get(self._jobs, lambda: None)()
        self._jobs += 1


def test_changes_between_stages_are_kept(catalog: rs.Catalog) -> None:
    table = table_of(catalog, *(range(i, i + 3) for i in range(0, 15, 3)), key=True)
    other = catalog.open_table("db.t")

    def change() -> None:
        other.upsert(pa.table({"id": [1, 13], "v": [0, 0]}, schema=IDS))
        other.delete("id = 4")

    row = call(catalog, in_stages(), Between({1: change, 3: lambda: other.delete("id = 5")}))
    assert row["failed_data_files_count"] == 0
    table.refresh()
    expected = {i: 100 - i for i in range(15) if i not in (4, 5)} | {1: 0, 13: 0}
    assert dict(rows(table)) == expected


def test_conflict_amid_the_stages_fails_those_that_it_concerns(catalog: rs.Catalog) -> None:
    table = table_of(catalog, *(range(i, i + 3) for i in range(0, 15, 3)))
    other = catalog.open_table("db.t")
    row = call(catalog, in_stages(), Between({1: lambda: other.delete("id = 13")}))  # rule 13
    assert (row["rewritten_data_files_count"], row["failed_data_files_count"]) == (4, 1)
    table.refresh()
    assert rows(table) == [(i, 100 - i) for i in range(15) if i != 13]


def test_restore_amid_the_stages_fails_all_that_follow(catalog: rs.Catalog) -> None:
    table = table_of(catalog, *(range(i, i + 3) for i in range(0, 15, 3)), key=True)
    other = catalog.open_table("db.t")
    row = call(catalog, in_stages(), Between({2: lambda: other.restore(3)}))
    assert (row["rewritten_data_files_count"], row["failed_data_files_count"]) == (2, 3)
    table.refresh()
    assert rows(table) == [(i, 100 - i) for i in range(9)]


def test_rewrite_of_the_same_parts_meanwhile_is_a_conflict(catalog: rs.Catalog) -> None:
    table_of(catalog, range(3), range(3, 6), key=True)
    given = options(rewrite_all="true")
    with pytest.raises(CommitConflict, match="nothing was committed"):
        call(catalog, given, Between({0: lambda: call(catalog, given)}))
