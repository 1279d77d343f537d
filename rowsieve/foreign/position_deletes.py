"""The rows that position deletes of an Iceberg snapshot hide: Parquet files, and vectors in Puffin.

Soundness: a delete file is checked like a data file before a decoder sees it. One that is missing,
damaged or of another format is an error that names it; so is a row that its data file lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import CorruptData, NotFound, UnsupportedOperation
from rowsieve.foreign.footers import Footer
from rowsieve.foreign.paths import literal_location
from rowsieve.objects import ObjectNotFound, ObjectStore
from rowsieve.parquet.foreign_rows import ForeignRows
from rowsieve.predicate.rowset import RowSet
from rowsieve.publication.puffin import deleted_rows

REWRITE_DELETES: Final = (
    "rewrite the files of the table first, as in Spark: CALL catalog.system.rewrite_data_files("
    "table => 'db.t', options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')); "
    "or create a table of the rows that another reader gives, such as DuckDB's iceberg_scan"
)
"""The ways out for a table with deletes that are not read."""

_NO_ROWS: Final = np.empty(0, np.int64)
_SCHEMA: Final = pa.schema({"file_path": pa.string(), "pos": pa.int64()})


def rows_at_positions(
    store: ObjectStore,
    deletes: Sequence[tuple[str, Sequence[Any]]],
    footers: Sequence[Footer],
    scan: Any,
) -> dict[str, RowSet]:
    """The rows that position deletes hide, by the file's URI.

    `deletes`: the URI of each data file, with pyiceberg's delete files for it.
    """
    read: dict[str, Mapping[str, npt.NDArray[np.int64]]] = {}
    by_uri: dict[str, RowSet] = {}
    for (path, delete_files), footer in zip(deletes, footers, strict=True):
        count = footer.checked.row_count
        hidden = RowSet.empty(count)
        for delete in delete_files:
            uri = literal_location(delete.file_path).uri
            if uri not in read:
                read[uri] = _position_deletes(store, uri, delete)
                _check_entries(uri, read[uri], delete, scan)
            ids = np.unique(read[uri].get(path, _NO_ROWS))
            if len(ids) and not 0 <= ids[0] <= ids[-1] < count:
                raise CorruptData(
                    f"from_iceberg: {uri} deletes rows that {path}, which has {count} rows, "
                    "does not have; one of these files was replaced. Restore it from a copy"
                )
            hidden = hidden.union(RowSet.from_ids(ids, hidden.row_count))
        if not hidden.is_empty:
            by_uri[path] = hidden
    return by_uri


def _check_entries(
    uri: str, vectors: Mapping[str, npt.NDArray[np.int64]], delete: Any, scan: Any
) -> None:
    """Refuse a Puffin file with vectors that no entry of the snapshot names: they hide no row.

    pyiceberg's entries do not say which vectors of the file they name.
    """
    if str(delete.file_format).rpartition(".")[2].upper() != "PUFFIN":
        return
    count = _entries_of(scan, uri)
    if count != len(vectors):
        raise UnsupportedOperation(
            f"from_iceberg: {uri} has {len(vectors)} deletion vectors, and the snapshot names "
            f"{count} of them, but pyiceberg does not say which; {REWRITE_DELETES}"
        )


def _entries_of(scan: Any, uri: str) -> int:
    """How many entries of a snapshot's manifests of deletes name a file."""
    return sum(
        literal_location(entry.data_file.file_path).uri == uri
        for manifest in scan.snapshot().manifests(scan.io)
        if str(manifest.content).rpartition(".")[2].upper() == "DELETES"
        for entry in manifest.fetch_manifest_entry(scan.io, discard_deleted=True)
    )


def _position_deletes(
    store: ObjectStore, uri: str, delete: Any
) -> Mapping[str, npt.NDArray[np.int64]]:
    """The rows that a delete file hides, by the URI of their file; NULL is the row -1."""
    kind, form = (
        str(each).rpartition(".")[2].upper() for each in (delete.content, delete.file_format)
    )
    if kind != "POSITION_DELETES" or form not in ("PARQUET", "PUFFIN"):
        raise UnsupportedOperation(
            f"from_iceberg: {uri} has {kind.lower().replace('_', ' ')} as {form}, which is not "
            f"supported; {REWRITE_DELETES}"
        )
    try:
        data = store.get(uri)
    except ObjectNotFound as error:
        raise NotFound(
            f"from_iceberg: the delete file {uri} does not exist, and a snapshot names it; restore "
            "it from a copy, or open another snapshot by snapshot_id="
        ) from error
    if form == "PUFFIN":
        return {literal_location(path).uri: rows for path, rows in deleted_rows(data, uri).items()}
    table = _stored_positions(data, uri)
    places = pc.fill_null(table["file_path"], "").combine_chunks().dictionary_encode()
    rows = pc.fill_null(table["pos"], -1).to_numpy()
    codes = places.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(places.dictionary) + 1))
    deletes: dict[str, npt.NDArray[np.int64]] = {}
    for path, start, stop in zip(places.dictionary.to_pylist(), starts, starts[1:], strict=False):
        place = literal_location(path).uri
        positions = rows[order[start:stop]]
        deletes[place] = (
            np.concatenate([deletes[place], positions]) if place in deletes else positions
        )
    return deletes


def _stored_positions(data: bytes, uri: str) -> pa.Table:
    """The columns file_path and pos of a delete file in Parquet."""
    try:
        with ForeignRows(pa.BufferReader(data), {}) as rows:
            return rows.read(_SCHEMA.names).select(_SCHEMA.names).cast(_SCHEMA).combine_chunks()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise CorruptData(
            f"from_iceberg: the delete file {uri} has no paths and positions that can be read: "
            f"{error}; restore it from a copy"
        ) from error
    except UnsupportedOperation as error:
        raise UnsupportedOperation(f"from_iceberg: {uri}: {error}") from error
