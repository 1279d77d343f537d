"""The equality deletes of an Iceberg snapshot: which data files they concern, and which rows.

An equality delete hides the rows whose values in some columns are those of a row in its file; NULL
equals NULL. It concerns data files with a lower sequence number in its partition, or in all
partitions if its spec has none (Iceberg specification, "Scan Planning"). pyiceberg reads the
manifests, but plans no snapshot with such files.

Soundness: floats are refused as keys, since engines compare -0.0 and NaN differently, and so are
fields inside of other columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.bridges.extras import imported
from rowsieve.errors import CorruptData, UnsupportedOperation
from rowsieve.executor.consolidation.equality_codes import column_codes, joined_codes

_DELETES: Final = "EQUALITY_DELETES"
_FLOATS: Final = ("float", "double")
_LONG: Final = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
"""Types with offsets of 64 bits: the text of several files may have more than 2 GiB."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a data file stands: its sequence number, and its partition."""

    sequence: int
    partition: str


@dataclass(slots=True, eq=False)
class DeleteGroup:
    """The delete files that compare the same columns in one partition, or in all for None.

    `sequences` are their sequence numbers by path, of which `newest` is the greatest.
    """

    field_ids: tuple[int, ...]
    sequences: dict[str, int] = field(default_factory=dict)
    newest: int = 0

    def add(self, path: str, sequence: int) -> None:
        """Add a delete file."""
        self.sequences[path] = sequence
        self.newest = max(self.newest, sequence)


@dataclass(frozen=True, slots=True)
class EqualityPlan:
    """The equality deletes of a snapshot; `standings` of its data files, by path."""

    groups: dict[str | None, dict[tuple[int, ...], DeleteGroup]] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)

    def add(self, entry: Any, table: Any) -> bool:
        """Note an entry of a manifest; return whether it is for pyiceberg to plan."""
        file, sequence = entry.data_file, int(entry.sequence_number or 0)
        partition = _partition(file, table)
        if str(file.content).rpartition(".")[2] != _DELETES:
            self.standings[file.file_path] = Standing(sequence, partition)
            return True
        form = str(file.file_format).rpartition(".")[2].upper()
        if form != "PARQUET":
            raise UnsupportedOperation(
                f"from_iceberg: {file.file_path} has equality deletes as {form}, and only Parquet "
                "files are read; rewrite the files of the table with an Iceberg writer"
            )
        ids = _compared_ids(file)
        scope = partition if _is_partitioned(table.specs()[file.spec_id]) else None
        groups = self.groups.setdefault(scope, {})
        groups.setdefault(ids, DeleteGroup(ids)).add(file.file_path, sequence)
        return False

    def of_file(self, path: str) -> tuple[DeleteGroup, ...]:
        """The groups with deletes that may hide rows of a data file."""
        if (standing := self.standings.get(path)) is None:
            return ()
        return tuple(
            group
            for scope in (None, standing.partition)
            for group in self.groups.get(scope, {}).values()
            if group.newest > standing.sequence
        )


def plan_files(scan: Any, table: Any) -> tuple[list[Any], EqualityPlan]:
    """The tasks of a scan, as pyiceberg plans it without equality deletes, and those deletes."""
    tables: Any = imported("pyiceberg.table", "iceberg")
    plan = EqualityPlan()
    planner = tables.ManifestGroupPlanner(table.metadata, scan.io)
    snapshot = scan.snapshot()
    manifests = () if snapshot is None else snapshot.manifests(scan.io)
    return list(planner.plan_files(manifests, lambda entry: plan.add(entry, table))), plan


def key_schema(field_ids: Sequence[int], current: Any, table: Any) -> Any:
    """The compared columns as an Iceberg schema; those that were dropped are of older schemas."""
    schemas: Any = imported("pyiceberg.schema", "iceberg")
    schemas_by_age = sorted(table.schemas().values(), key=lambda schema: int(schema.schema_id))
    known = {
        column.field_id: column for schema in (*schemas_by_age, current) for column in schema.fields
    }
    for field_id in field_ids:
        if field_id not in known:
            raise UnsupportedOperation(
                f"from_iceberg: equality deletes compare the field {field_id}, which is inside of "
                "another column or in no schema of the table"
            )
        type_ = known[field_id].field_type
        if not type_.is_primitive or str(type_) in _FLOATS:
            raise UnsupportedOperation(
                f"from_iceberg: equality deletes compare {known[field_id].name!r}, of type "
                f"{type_}, whose values (-0.0, NaN, nested ones) engines compare differently"
            )
    return schemas.Schema(*(known[field_id] for field_id in field_ids))


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """The compared columns of files, and each row's sequence number, that of its file."""

    rows: pa.Table
    sequences: Ints

    @classmethod
    def of(cls, files: Sequence[tuple[pa.Table, int]]) -> NumberedRows:
        """Join files, at least one, with their numbers."""
        sequences = [np.full(rows.num_rows, number) for rows, number in files]
        joined = pa.concat_tables([rows for rows, _ in files])
        fields = [(column.name, _LONG.get(column.type, column.type)) for column in joined.schema]
        return cls(joined.cast(pa.schema(fields)), np.concatenate(sequences))


def deleted_later(data: NumberedRows, deleted: NumberedRows) -> npt.NDArray[np.bool_]:
    """Which rows of data files equal a row that was deleted later, (rows,) bool."""
    both = pa.concat_tables([deleted.rows, data.rows])
    columns = [codes for column in both.columns for codes in column_codes(column.chunks)]
    codes = joined_codes(columns, both.num_rows)
    newest = np.full(both.num_rows, -1)  # the number of the newest delete of each code
    np.maximum.at(newest, codes[: deleted.rows.num_rows], deleted.sequences)
    return np.asarray(newest[codes[deleted.rows.num_rows :]] > data.sequences)


def _compared_ids(file: Any) -> tuple[int, ...]:
    if not file.equality_ids:
        raise CorruptData(
            f"from_iceberg: the manifest does not say which columns the equality deletes of "
            f"{file.file_path} compare"
        )
    return tuple(sorted(int(each) for each in file.equality_ids))


def _partition(file: Any, table: Any) -> str:
    """The partition of a file, as text that differs where partitions differ."""
    spec = table.specs()[file.spec_id]
    return repr((file.spec_id, [file.partition[place] for place in range(len(spec.fields))]))


def _is_partitioned(spec: Any) -> bool:
    return any(str(each.transform) != "void" for each in spec.fields)
