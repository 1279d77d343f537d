"""One object store: ranged reads, create-only puts, sorted listings, fsync on local disk.

`open_store` turns a URI into an `ObjectStore`. A table reads and writes all its files through one.
Objects are written once: only hints, on which nothing depends, are overwritten, and nothing is
renamed. Only retention deletes.

Soundness: a put that returned is durable and complete. A put that raised may still have created the
object (invariants, rule 1), so the caller must check the store before it decides what happened.
"""

from __future__ import annotations

from rowsieve.objects.drafts import Draft, Uploads
from rowsieve.objects.durable import put_fresh, put_if_absent, reading_whole
from rowsieve.objects.fetching import (
    FetchingStore,
    begin,
    beside,
    in_background,
    in_thread,
    together,
)
from rowsieve.objects.local import LocalStore
from rowsieve.objects.location import Location, local_folder
from rowsieve.objects.ref_store import RefStore, table_store, table_uri_of
from rowsieve.objects.remote import RemoteStore
from rowsieve.objects.store import (
    Details,
    NotCreated,
    ObjectDetail,
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    Place,
    SyncFailed,
)
from rowsieve.objects.store_opening import open_probe, open_store

__all__ = [
    "Details",
    "Draft",
    "FetchingStore",
    "LocalStore",
    "Location",
    "NotCreated",
    "ObjectDetail",
    "ObjectExists",
    "ObjectNotFound",
    "ObjectStore",
    "Place",
    "RefStore",
    "RemoteStore",
    "SyncFailed",
    "Uploads",
    "begin",
    "beside",
    "in_background",
    "in_thread",
    "local_folder",
    "open_probe",
    "open_store",
    "put_fresh",
    "put_if_absent",
    "reading_whole",
    "table_store",
    "table_uri_of",
    "together",
]
