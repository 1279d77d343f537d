"""Iceberg tables on the local disk, without a catalog's database: each commit writes a file."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    SetSnapshotRefUpdate,
    update_table_metadata,
)


class LocalCatalog(NoopCatalog):  # type: ignore[misc]  # pyiceberg has no types here
    """Commits by writing the next metadata file; one process at a time."""

    def commit_table(
        self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> CommitTableResponse:
        for requirement in requirements:
            requirement.validate(table.metadata)
        metadata = update_table_metadata(table.metadata, updates)
        return CommitTableResponse(
            metadata=metadata, metadata_location=write_metadata(metadata, table.io)
        )


def write_metadata(metadata: TableMetadata, io: Any) -> str:
    location = f"{metadata.location}/metadata/{uuid.uuid4()}.metadata.json"
    ToOutputFile.table_metadata(metadata, io.new_output(location))
    return location


def create(
    folder: Path,
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
    **properties: str,
) -> Table:
    io = PyArrowFileIO()
    metadata = new_table_metadata(
        schema, spec, UNSORTED_SORT_ORDER, folder.as_uri(), {"format-version": "2", **properties}
    )
    location = write_metadata(metadata, io)
    return Table(("db", folder.name), metadata, location, io, LocalCatalog("local"))


class _Deletes(ManifestWriterV2):  # type: ignore[misc]  # pyiceberg has no types here
    """A manifest of delete files, which pyiceberg reads and never writes."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def with_delete_file(
    table: Table,
    delete: DataFile,
    spec: PartitionSpec | None = None,
    sequence_number: int | None = None,
) -> Table:
    """The table with a snapshot more, which adds this delete file, as Flink adds them.

    `spec` is that of the delete file, by default the table's, and `sequence_number` its number, by
    default the snapshot's.
    """
    before = table.current_snapshot()
    number = before.snapshot_id + 1
    folder = f"{table.location()}/metadata"
    manifest = table.io.new_output(f"{folder}/{uuid.uuid4()}-deletes.avro")
    spec = table.spec() if spec is None else spec
    with _Deletes(spec, table.schema(), manifest, number, "null") as writer:
        entry = ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=number,
            sequence_number=sequence_number,
            data_file=delete,
        )
        writer.add_entry(entry)
    list_path = f"{folder}/{uuid.uuid4()}-list.avro"
    sequence = before.sequence_number + 1
    lists = write_manifest_list(
        2, table.io.new_output(list_path), number, before.snapshot_id, sequence, "null"
    )
    with lists as written:
        written.add_manifests([*before.manifests(table.io), writer.to_manifest_file()])
    snapshot = before.model_copy(
        update={"snapshot_id": number, "parent_snapshot_id": before.snapshot_id,
                "sequence_number": sequence, "manifest_list": list_path,
                "timestamp_ms": before.timestamp_ms + 1}
    )  # fmt: skip
    ref = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=number)
    metadata = update_table_metadata(table.metadata, (AddSnapshotUpdate(snapshot=snapshot), ref))
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
