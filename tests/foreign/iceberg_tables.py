"""Iceberg tables on the local disk, without a catalog's database: each commit writes a file."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata


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
