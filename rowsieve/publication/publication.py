"""What a publication returns."""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.retention.published_files import Format


@dataclass(frozen=True, slots=True)
class Publication:
    """A version of a table, published as a snapshot of another format.

    `location` is the folder whose readers see it, and `number` that of the metadata file or of the
    log's version in it. Iceberg also has a `metadata_location` and a `snapshot_id`.
    """

    format: Format
    version: int
    location: str
    number: int
    metadata_location: str | None = None
    snapshot_id: int | None = None
