"""Calls that publish the table as Iceberg or Delta, and what a reader of them then finds.

The newest snapshot of each publication must be readable at the end, whatever retention has done
(invariant 44), and have the rows of the version that it names.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

import pyarrow.parquet as pq

from rowsieve.errors import CommitConflict, SnapshotExpired, UnsupportedOperation
from rowsieve.objects.store import ObjectStore
from rowsieve.publication.delta.log_state import read_log
from rowsieve.publication.iceberg.manifests import read_list, read_manifests
from rowsieve.publication.iceberg.table_metadata import VERSION, read_newest
from rowsieve.publication.places import Folder
from rowsieve.publication.puffin import deleted_rows
from rowsieve.retention.published_files import Format
from tests.simulation.calls import Actor, Call, operation
from tests.simulation.model import Version

FORMATS: Final[tuple[Format, ...]] = ("iceberg", "delta")
Published = tuple[int, Counter[int], int]
"""The version, the keys in the data files, and how many of these rows are hidden."""


@operation("publish", keyed=4, unkeyed=4)
def publish(actor: Actor) -> Call:
    """Publish the version that the handle has; an older one is refused, as is a lost race."""
    table, format_ = actor.table, actor.draws.choice(FORMATS)
    refusals = (UnsupportedOperation, CommitConflict, SnapshotExpired)
    return Call(lambda: table.publish(format_), refusals=refusals, acknowledges=False)


def problems_of(store: ObjectStore, table_uuid: str, versions: Sequence[Version]) -> Iterator[str]:
    """What is wrong with the publications at the end of a run."""
    for format_, published in _READERS.items():
        if (found := published(store, table_uuid)) is None:
            continue
        version, keys, hidden = found
        expected = Counter(versions[version].state.rows.keys())
        if expected - keys or keys.total() - hidden != expected.total():
            yield f"{format_} of {version} has {keys}, {hidden} hidden; expected {expected}"


def _iceberg(store: ObjectStore, table_uuid: str) -> Published | None:
    folder = Folder.of(store)
    snapshot = read_newest(folder, table_uuid).snapshot
    if snapshot is None:
        return None
    manifests = read_manifests(folder, read_list(folder, snapshot["manifest-list"]))
    keys: Counter[int] = Counter()
    hidden: dict[str, Sequence[int]] = {}
    stored: dict[str, list[int]] = {}
    for entry in (entry for each in manifests for entry in each.entries):
        data = store.get(folder.relative(entry.path))
        if entry.of is None:
            stored[entry.path] = _keys_in(data)
            assert len(stored[entry.path]) == entry.rows, f"{entry.path} has other rows"
        else:
            hidden[entry.of] = deleted_rows(data, entry.path)[entry.of].tolist()
            assert len(hidden[entry.of]) == entry.rows, f"{entry.of} hides other rows"
    for path, own in stored.items():
        gone = set(hidden.pop(path, ()))
        keys.update(key for place, key in enumerate(own) if place not in gone)
    assert not hidden, f"vectors of files that are not there: {hidden}"
    return int(snapshot["summary"][VERSION]), keys, 0


def _delta(store: ObjectStore, table_uuid: str) -> Published | None:
    state = read_log(store, table_uuid)
    if state.version < 0:
        return None
    keys: Counter[int] = Counter()
    hidden = 0
    for path, add in state.files.items():
        own = _keys_in(store.get(unquote(path)))
        assert json.loads(add["stats"])["numRecords"] == len(own), f"{path} has other rows"
        keys.update(own)
        hidden += (add.get("deletionVector") or {}).get("cardinality", 0)
    return state.version, keys, hidden


def _keys_in(data: bytes) -> list[int]:
    file = pq.ParquetFile(io.BytesIO(data))
    name = next(each for each in file.schema_arrow.names if each.partition("@")[0] == "k")
    return file.read([name]).column(0).to_pylist()  # type: ignore[no-any-return]


_READERS: Final[Mapping[Format, Callable[[ObjectStore, str], Published | None]]] = {
    "iceberg": _iceberg,
    "delta": _delta,
}
