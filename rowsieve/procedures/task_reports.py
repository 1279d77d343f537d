"""Reports of workers to the coordinator: rows of (row, fragment, context).

The first row of a task has the number of rows that it processed and no fragment; every other row
has one fragment. The context is the same in all rows of a task: which task, which attempt, and
whether the report is complete.

Soundness: a task may run several times (a retry, speculative execution, a worker believed dead).
The first complete report of a task wins; all others are ignored, and their files belong to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData
from rowsieve.procedures.procedure import DistributedProcedure

REPORT: Final = pa.schema(
    [("row", pa.int64()), ("fragment", pa.binary()), ("context", pa.binary())]
)


class TaskContext(msgspec.Struct, frozen=True):
    """The task and the attempt of a report; `attempt` is unique among the runs of the task."""

    task: int
    attempt: str
    is_complete: bool


def run_task(
    procedure: DistributedProcedure,
    number: int,
    task: bytes,
    attempt: str,
    storage_options: StorageOptions,
) -> pa.RecordBatch:
    """Run a task on this worker and return its report, with the schema REPORT."""
    row_count, fragments = 0, []
    for rows, fragment in procedure.work(task, storage_options):
        row_count += rows
        fragments.append(fragment)
    context = msgspec.msgpack.encode(TaskContext(number, attempt, is_complete=True))
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row_count, *[None] * len(fragments)], pa.int64()),
            pa.array([None, *fragments], pa.binary()),
            pa.array([context] * (len(fragments) + 1), pa.binary()),
        ],
        schema=REPORT,
    )


def fragments_by_task(reports: Iterable[pa.RecordBatch], task_count: int) -> list[Sequence[bytes]]:
    """The fragments of each task, from its first complete report.

    CorruptData if a task has no complete report, or a report is of an unknown task.
    """
    winners: dict[int, list[bytes]] = {}
    for report in reports:
        context = msgspec.msgpack.decode(
            report.column("context")[0].as_py(), type=described(TaskContext)
        )
        if not 0 <= context.task < task_count:
            raise CorruptData(
                f"a worker reported task {context.task} of {task_count}; nothing was committed. "
                "Call the procedure again"
            )
        if context.is_complete and context.task not in winners:
            fragments = report.column("fragment").drop_null()
            winners[context.task] = fragments.to_pylist()
    if missing := sorted(set(range(task_count)) - set(winners)):
        raise CorruptData(
            f"{len(missing)} of {task_count} tasks gave no complete report, the first is "
            f"{missing[0]}; nothing was committed. Call the procedure again"
        )
    return [winners[number] for number in range(task_count)]
