"""One object store: ranged reads, create-only puts, sorted listings, fsync on local disk.

`open_store` turns a URI into an `ObjectStore`. Everything a table keeps goes through one, and
everything is written once: there is no overwrite, no delete and no rename here.

Soundness: a put that returned is durable and complete; a put that raised may have landed
(invariants, rule 1), so whoever puts must look before it concludes.
"""

from __future__ import annotations

from rowsieve.objects.durable import put_fresh, reading_whole
from rowsieve.objects.fetching import FetchingStore, aside, begin, together
from rowsieve.objects.local import LocalStore
from rowsieve.objects.location import Location, local_folder
from rowsieve.objects.opening import open_store
from rowsieve.objects.remote import RemoteStore
from rowsieve.objects.store import ObjectExists, ObjectNotFound, ObjectStore, Place, SyncFailed
from rowsieve.objects.uploads import Uploads

__all__ = [
    "FetchingStore",
    "LocalStore",
    "Location",
    "ObjectExists",
    "ObjectNotFound",
    "ObjectStore",
    "Place",
    "RemoteStore",
    "SyncFailed",
    "Uploads",
    "aside",
    "begin",
    "local_folder",
    "open_store",
    "put_fresh",
    "reading_whole",
    "together",
]
