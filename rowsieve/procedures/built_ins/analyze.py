"""`analyze`: collect statistics of parts that were written without them.

A task reads some parts and collects the statistics that a writer would have collected, JSON paths
that occur included, and on request sketches of the distinct values. The commit replaces the
manifest entries of these parts, not their files.

Soundness: statistics cover every row and tombstone of the part, hidden ones included (trap T4). A
part keeps its commit_ts (invariant I1). Parts with older columns are skipped: their statistics
would have other types. The commit fails if another one has replaced one of the parts (rule 13).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.changes.placed_commits import commit_rewrite
from rowsieve.decoded_types import described
from rowsieve.errors import InvalidInput
from rowsieve.maintenance.analyzing import (
    Analysis,
    of_current_columns,
    with_statistics,
    without_statistics,
)
from rowsieve.objects import open_store
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import (
    SCHEMA,
    TABLE_NAME,
    CallContext,
    DistributedProcedure,
    Handle,
)
from rowsieve.statements.call_values import Value
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import schema_from_json, schema_to_json

_COLUMN = re.compile(r'\s*("(?:[^"]|"")+"\s*|`(?:[^`]|``)+`\s*|[^,"`][^,]*)(,|$)')
_TASK_BYTES = 256 * 2**20


class AnalyzeTask(msgspec.Struct, frozen=True):
    """One task: the entries of its parts without statistics, and what is needed to read them."""

    table_uri: str
    parts: bytes
    schema: dict[str, Any]
    key: tuple[str, ...]
    columns: tuple[str, ...]
    properties: dict[str, str]
    sketched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Pinned:
    """The decisions of `begin`."""

    base: Snapshot
    removed: tuple[str, ...]
    skipped: int
    started_s: float


class Analyze(DistributedProcedure):
    """Collects statistics on workers and commits them once."""

    name = "analyze"
    meaning = "collect statistics of parts that were written without them"
    parameters = (
        SCHEMA,
        TABLE_NAME,
        Parameter(
            "columns",
            ParameterType.TEXT,
            meaning="'a, b': columns whose statistics to keep first, and whose values to count",
        ),
        Parameter(
            "rewrite_all",
            ParameterType.FLAG,
            default=False,
            meaning="collect anew for parts that have statistics, too",
        ),
        Parameter(
            "distinct_counts",
            ParameterType.FLAG,
            default=False,
            meaning="also estimate the numbers of different values of these columns, or of all",
        ),
    )
    columns = pa.schema(
        [
            ("analyzed_files_count", pa.int64()),
            ("skipped_files_count", pa.int64()),
            ("version", pa.int64()),
        ]
    )

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """Pin the version, and cut the parts without statistics into tasks."""
        started_s = time.perf_counter()
        snapshot = context.table.handle.pinned
        schema = snapshot.schema
        analysis = Analysis.of(
            schema,
            _named(arguments["columns"]),
            rewrite_all=bool(arguments["rewrite_all"]),
            distinct_counts=bool(arguments["distinct_counts"]),
        )
        wanted = analysis.chosen(snapshot.parts, schema)
        current = of_current_columns(snapshot.parts, schema)
        chosen = snapshot.parts.take(np.flatnonzero(wanted & current))
        context.scanned.update(chosen.part_ids)
        tasks = [
            AnalyzeTask(
                context.table.uri,
                without_statistics(some).to_ipc(),
                schema_to_json(schema),
                tuple(snapshot.table.key),
                analysis.columns,
                dict(snapshot.table.settings),
                tuple(field.name for field in analysis.sketched),
            )
            for some in _cut(chosen)
        ]
        removed, skipped = tuple(sorted(chosen.part_ids)), int((wanted & ~current).sum())
        return Handle(
            snapshot.version,
            tuple(msgspec.msgpack.encode(task) for task in tasks),
            _Pinned(snapshot, removed, skipped, started_s),
        )

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Read the parts; return their entries with statistics."""
        work = msgspec.msgpack.decode(task, type=described(AnalyzeTask))
        store, schema = open_store(work.table_uri, storage_options), schema_from_json(work.schema)
        parts = PartTable.from_ipc(work.parts)
        entries = with_statistics(
            store,
            parts,
            schema,
            work.key,
            work.properties,
            Analysis(work.columns, tuple(map(schema.field, work.sketched))),
        )
        yield len(entries), entries.to_ipc()

    def finish(
        self, context: CallContext, handle: Handle, fragments: Sequence[Sequence[bytes]]
    ) -> pa.Table:
        """Replace the entries of the parts in one commit; without tasks commit nothing."""
        pinned = handle.details
        assert isinstance(pinned, _Pinned)
        version = handle.version
        if handle.tasks:
            parts = [PartTable.from_ipc(each) for task_parts in fragments for each in task_parts]
            request = CommitRequest(
                operation=self.name,
                removed=pinned.removed,
                restored=PartTable.empty().append(*parts),
            )
            commit = commit_rewrite(context.table.handle, pinned.base, request, pinned.started_s)
            version = commit.version
        row = (len(pinned.removed), pinned.skipped, version)
        return pa.Table.from_pylist(
            [dict(zip(self.columns.names, row, strict=True))], schema=self.columns
        )


def _named(text: Value) -> list[str]:
    """The names in the argument; a name with a comma or a quote is quoted as in SQL."""
    names: list[str] = []
    place = None if text is None else 0
    while place is not None:
        if (match := _COLUMN.match(str(text), place)) is None or not match[1].strip():
            raise InvalidInput(
                f"""analyze: columns is {text!r}; give names such as 'a, b, "c, d"'"""
            )
        name = match[1].strip()
        quote = name[0] if name[0] in '"`' else ""
        names.append(name[1:-1].replace(quote * 2, quote) if quote else name)
        place = match.end() if match[2] else None
    return names


def _cut(parts: PartTable) -> Iterator[PartTable]:
    """Cut the parts into tasks by bytes."""
    sizes = parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")
    tasks = np.cumsum(sizes) // _TASK_BYTES
    for number in np.unique(tasks):
        yield parts.take(np.flatnonzero(tasks == number))
