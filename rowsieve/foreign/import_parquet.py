"""Import foreign Parquet files into a new table without copying them: `from_parquet`.

The first version of the table refers to the files where they are. Changes write files of the
table's own; compaction copies the rows into such files. The imported files are never changed or
deleted (invariants, rule 15).
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from rowsieve.arguments import checked
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Properties,
    StorageOptions,
    TableUri,
)
from rowsieve.errors import InvalidInput
from rowsieve.foreign.created_in_place import PlacedFiles, TableInPlace
from rowsieve.foreign.footers import read_footers
from rowsieve.foreign.hive import partitions_of
from rowsieve.foreign.joined_columns import join_columns
from rowsieve.foreign.open_parquet import HiveTypes, Paths
from rowsieve.foreign.paths import find_files
from rowsieve.progress_bars import ShownProgress, shown
from rowsieve.table import Table


@checked
def from_parquet(
    paths: Paths,
    uri: TableUri,
    key: ColumnNames | None = None,
    *,
    hive: HiveTypes | None = None,
    schema: pa.Schema | None = None,
    match: Literal["name", "field_id"] = "name",
    binary_as_string: bool = False,
    properties: Properties | None = None,
    storage_options: StorageOptions | None = None,
    metadata: Metadata | None = None,
    progress: ShownProgress | None = None,
) -> Table:
    """Create a table of Parquet files where they are, as version 0; copies no rows.

    `paths`, `hive`, `schema` and `binary_as_string` are those of `open_parquet`. With a
    key, the key columns are read once to prove that every file is sorted by it and that no key
    occurs twice; KeyViolation otherwise. `match="field_id"` matches the columns of
    different files by their ids in Parquet. The files are never changed or deleted, and must stay
    as they are. `progress=True` shows a bar of the files read, once for the columns and once for
    the key. TableExists if a table exists at `uri`.
    """
    if match not in ("name", "field_id"):
        raise InvalidInput(f"from_parquet: match must be 'name' or 'field_id', not {match!r}")
    new = TableInPlace.of("from_parquet", uri, key, properties, metadata, storage_options)
    files = find_files(paths, storage_options)
    new.check([file.location for file in files])
    with shown(progress, "files read") as show:
        steps = new.steps(show, len(files))
        footers = read_footers(new.store, [file.uri for file in files], steps)
        partitions = partitions_of(files, hive)
        joined = join_columns(
            footers,
            partitions,
            schema=schema,
            by_field_id=match == "field_id",
            binary_as_string=binary_as_string,
        )
        return new.create(PlacedFiles(footers, joined, partitions), steps)
