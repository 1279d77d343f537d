"""The methods of `Table` that publish it as a table of another format."""

from __future__ import annotations

from rowsieve.arguments.annotations import StorageOptions, TableUri
from rowsieve.changes.table_handle import Handle
from rowsieve.changes.table_methods import TableMethods
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.objects import open_store, table_store
from rowsieve.publication.delta.publish_log import publish_log
from rowsieve.publication.earlier_versions import Versions
from rowsieve.publication.iceberg.publish_snapshot import publish_snapshot
from rowsieve.publication.publication import Format, Publication
from rowsieve.storage.differential import refuse_differential
from rowsieve.storage.snapshot import Snapshot

FORMATS = ("delta", "iceberg")


class PublishMethods(TableMethods):
    """Publication as Iceberg and as Delta."""

    def publish(
        self,
        format: Format,  # noqa: A002 - the word of Delta and Spark
        uri: TableUri | None = None,
        *,
        storage_options: StorageOptions | None = None,
    ) -> Publication:
        """Write metadata with which readers of Iceberg or Delta read the newest version.

        They read the files of the table; no data is copied. The metadata is written at `uri`, by
        default in the folder of the table. Small changes in the log are compacted into files first,
        in a commit. Does nothing if this version is published already. UnsupportedOperation, before
        anything is written, if these readers would read other rows, and what to do.
        """
        if format not in FORMATS:
            raise InvalidInput(f"publish: format must be 'delta' or 'iceberg', not {format!r}")
        self.handle.require_committed("publish")
        refuse_differential("publish", self.handle.newest.table)
        snapshot = _in_files(self.handle)
        target, source = self.handle.store, table_store(self.handle.store)
        if uri is None and target is not source:
            raise UnsupportedOperation(
                "publish: this is a branch or tag, and the metadata in the folder is that of the "
                "table; give uri="
            )
        if uri is not None:
            options = self.handle.storage_options if storage_options is None else storage_options
            target = open_store(uri, options or None)
        publish = publish_snapshot if format == "iceberg" else publish_log
        return publish(target, snapshot, source, Versions.of(self.handle.log, snapshot))


def _in_files(handle: Handle) -> Snapshot:
    """The version that is read, after its parts in memory were written into files."""
    snapshot = handle.committed()
    if not snapshot.parts.held_in_memory().any() or handle.read_only or handle.folds is None:
        return snapshot
    handle.folds(handle)
    return handle.resolve(None, None)
