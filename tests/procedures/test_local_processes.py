"""`LocalEngine(processes=…)`: the same tasks in other processes, and what goes wrong there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import rowsieve as rs
from rowsieve.arguments.annotations import StorageOptions
from rowsieve.config import Config, configure, current
from rowsieve.errors import (
    CallCancelled,
    InvalidInput,
    MissingExtra,
    RowsieveError,
    StoreError,
    UnknownColumn,
)
from rowsieve.objects.store import NotCreated
from rowsieve.procedures.built_ins.rewrite_data_files import RewriteDataFiles
from rowsieve.procedures.engine import Job, LocalEngine
from rowsieve.procedures.local_processes import Failure
from rowsieve.procedures.procedure import DistributedProcedure
from tests.faults.tasks import DyingOnce, FailingOnce, Faulty
from tests.faults.vocabulary import Fault
from tests.procedures.cluster_subjects import SUBJECTS, described
from tests.profiles import IS_DEEP

deep = pytest.mark.skipif(not IS_DEEP, reason="starts processes: in the deep run")
REWRITE = SUBJECTS["rewrite"]


class Where(DistributedProcedure):
    """Reports the process that runs a task."""

    name = "where"

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Report it, and the memory of a read there."""
        yield 1, str(os.getpid()).encode()
        yield 0, str(current().memory_bytes).encode()


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=deep)])
def test_tasks_of_a_call_run_in_other_processes(tmp_path: Path, processes: int) -> None:
    catalog, twin = REWRITE.lake(tmp_path / "one"), REWRITE.lake(tmp_path / "two")
    twin.call(REWRITE.call)
    told: list[tuple[int, int]] = []
    engine = LocalEngine(None, lambda done, total: told.append((done, total)), processes=processes)
    catalog.call(REWRITE.call, engine=engine)
    assert described(catalog) == described(twin)
    assert told[-1][0] == told[-1][1] == len(told) > 1


@deep
def test_a_process_is_not_this_one_and_has_its_settings() -> None:
    before = configure(Config(memory_bytes=12_345_678))
    try:
        (report,) = LocalEngine(processes=1).run(Job(Where(), [b""], {}, "where"))
    finally:
        configure(before)
    process, memory = report.column("fragment").to_pylist()[1:]
    assert process != str(os.getpid()).encode()
    assert memory == b"12345678"


@deep
@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (FailingOnce, StoreError, Fault.TASK_FAILED.value),
        (DyingOnce, CallCancelled, "ended before its task was done"),
    ],
)
def test_a_task_that_is_lost_commits_nothing(
    tmp_path: Path, fault: type[Faulty], error: type[Exception], message: str
) -> None:
    catalog = REWRITE.lake(tmp_path)
    (tmp_path / "marks").mkdir()
    catalog.procedures.remove("rewrite_data_files")
    catalog.procedures.add(fault(tmp_path / "marks"))
    before = described(catalog)
    with pytest.raises(error, match=message):
        catalog.call(REWRITE.call, engine=LocalEngine(processes=2))
    assert described(catalog) == before


def test_what_cannot_run_in_processes_is_refused(tmp_path: Path) -> None:
    class Local(RewriteDataFiles):
        """A class that no other process can import."""

    catalog = rs.Catalog(REWRITE.lake(tmp_path).uri)
    catalog.procedures.remove("rewrite_data_files")
    catalog.procedures.add(Local())
    with pytest.raises(InvalidInput, match="define its class in a module, or use threads"):
        catalog.call(REWRITE.call, engine=LocalEngine(processes=1))
    with pytest.raises(InvalidInput, match="threads or processes, not both"):
        LocalEngine(1, processes=1)
    with pytest.raises(InvalidInput, match="processes must be at least 1"):
        LocalEngine(processes=0)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StoreError("what went wrong"), StoreError),
        (MissingExtra("what went wrong"), MissingExtra),
        (NotCreated("what went wrong"), StoreError),  # it is not public
        (UnknownColumn("what went wrong", name="x"), InvalidInput),  # it needs the name
    ],
)
def test_errors_of_processes_keep_class_and_message(
    error: RowsieveError, kind: type[RowsieveError]
) -> None:
    found = Failure.of(error).error()
    assert str(found) == "what went wrong"
    assert isinstance(found, kind)
