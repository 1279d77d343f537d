"""The methods of `Table` that publish it as a table of another format."""

from __future__ import annotations

from rowsieve.arguments.annotations import StorageOptions, TableUri
from rowsieve.changes.table_handle import Handle
from rowsieve.changes.table_methods import TableMethods
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.objects import open_store, table_store
from rowsieve.publication.publication import Format, Publication
from rowsieve.publication.publish_version import FORMATS, publish_as_configured, publish_version


class PublishMethods(TableMethods):
    """Publication as Iceberg and as Delta."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        handle.publishes = publish_as_configured

    def publish(
        self,
        format: Format,  # noqa: A002 - the word of Delta and Spark
        uri: TableUri | None = None,
        *,
        storage_options: StorageOptions | None = None,
    ) -> Publication:
        """Write metadata with which readers of Iceberg or Delta read the newest version.

        They read the files of the table; no data is copied. The metadata is written at `uri`, by
        default in the folder of the table. Rows that only the log has are written beside it. Does
        nothing if this version is published already. Retention keeps the files of the version until
        a later one is published there. UnsupportedOperation, before anything is written, if these
        readers would read other rows, and what to do.
        """
        if format not in FORMATS:
            raise InvalidInput(f"publish: format must be 'delta' or 'iceberg', not {format!r}")
        handle = self.handle
        handle.require_committed("publish")
        snapshot, target = handle.committed(), handle.store
        if uri is None and target is not table_store(target):
            raise UnsupportedOperation(
                "publish: this is a branch or tag, and the metadata in the folder is that of the "
                "table; give uri="
            )
        if uri is not None:
            options = handle.storage_options if storage_options is None else storage_options
            target = open_store(uri, options or None)
        return publish_version(handle, snapshot, format, target, holds_all=True)
