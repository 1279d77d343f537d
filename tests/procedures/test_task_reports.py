"""Reports of tasks: rows of (row, fragment, context); one complete report a task counts."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pytest

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.errors import CallCancelled, CorruptData, InvalidInput
from rowsieve.procedures.engine import Job, LocalEngine
from rowsieve.procedures.procedure import DistributedProcedure
from rowsieve.procedures.task_reports import REPORT, TaskContext, fragments_by_task, run_task


class Halves(DistributedProcedure):
    """Splits its task into two fragments; fails on an empty one."""

    name = "halves"
    columns = pa.schema([])

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Yield both halves."""
        del storage_options
        if not task:
            raise InvalidInput("the task is empty")
        middle = len(task) // 2
        yield middle, task[:middle]
        yield len(task) - middle, task[middle:]


def report(number: int, task: bytes, attempt: str) -> pa.RecordBatch:
    return run_task(Halves(), number, task, attempt, {})


def test_report_has_a_row_count_then_fragments_and_one_context() -> None:
    found = report(3, b"abcde", "first")
    assert found.schema == REPORT
    assert found.column("row").to_pylist() == [5, None, None]
    assert found.column("fragment").to_pylist() == [None, b"ab", b"cde"]
    contexts = set(found.column("context").to_pylist())
    assert [msgspec.msgpack.decode(each, type=TaskContext) for each in contexts] == [
        TaskContext(3, "first", is_complete=True)
    ]


def test_first_complete_report_of_a_task_wins() -> None:  # trap T29
    partial = report(0, b"xx", "zombie")
    context = msgspec.msgpack.encode(TaskContext(0, "zombie", is_complete=False))
    cut = pa.RecordBatch.from_arrays(
        [partial.column("row"), partial.column("fragment"), pa.array([context] * 3, pa.binary())],
        schema=REPORT,
    )
    reports = [cut, report(1, b"cd", "a"), report(0, b"ab", "b"), report(0, b"zz", "late")]
    assert fragments_by_task(reports, 2) == [[b"a", b"b"], [b"c", b"d"]]


@pytest.mark.parametrize(
    ("numbers", "reason"), [((0, 2), "1 of 3 tasks"), ((0, 1, 2, 3), "task 3 of 3")]
)
def test_missing_and_unknown_tasks_are_errors(numbers: tuple[int, ...], reason: str) -> None:
    with pytest.raises(CorruptData, match=reason):
        fragments_by_task([report(number, b"ab", "a") for number in numbers], 3)


def test_local_engine_runs_every_task_and_tells_its_progress() -> None:
    told: list[tuple[int, int]] = []
    engine = LocalEngine(2, progress=lambda done, all_: told.append((done, all_)))
    tasks = [bytes([65 + i]) * 4 for i in range(10)]
    reports = engine.run(Job(Halves(), tasks, {}, "test"))
    assert fragments_by_task(reports, 10) == [[task[:2], task[2:]] for task in tasks]
    assert told == [(i, 10) for i in range(1, 11)]


def test_local_engine_raises_the_first_failure() -> None:
    with pytest.raises(InvalidInput, match="the task is empty"):
        list(LocalEngine(2).run(Job(Halves(), [b"ab", b"", b"cd"], {}, "test")))


def test_cancelled_engine_begins_no_further_task() -> None:
    engine, ran = LocalEngine(1), []

    class Cancelling(Halves):
        """Cancels its engine."""

        def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
            """Run as the first and last task."""
            ran.append(task)
            engine.cancel()
            return super().work(task, storage_options)

    with pytest.raises(CallCancelled, match="nothing was committed"):
        list(engine.run(Job(Cancelling(), [b"ab", b"cd", b"ef"], {}, "test")))
    assert ran == [b"ab"]
