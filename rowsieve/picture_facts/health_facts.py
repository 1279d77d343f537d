"""The health of a table's newest version: advice as it is given, and where the bytes are.

Lists the folders of the table and reads the entries of its kept versions; opens no data file.

Soundness: a file counts as left over only if no kept version has it. It may still belong to a
write that is about to commit, which is why nothing is deleted here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import pyarrow.compute as pc

from rowsieve import clock
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import RowsieveError
from rowsieve.maintenance.advice import Advice, advise
from rowsieve.objects import Details, table_store
from rowsieve.pictures.health import Fact, Health, Remedy, Share
from rowsieve.retention.kept_versions import KeptVersions, proven
from rowsieve.retention.leases import lease_files, oldest_leased
from rowsieve.retention.listing import Listing
from rowsieve.shown import size_text
from rowsieve.storage.log.floors import paths_of
from rowsieve.storage.snapshot import Snapshot

_WEAK_READS: Final = 1.5  # parts that a read looks at for a row
_BAD_READS: Final = 4.0
_WEAK_HIDDEN, _BAD_HIDDEN = 0.1, 0.5  # shares of the stored rows
_UNITS: Final = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def health_of(handle: Handle) -> Health:
    """Return the health of the newest version."""
    handle.require_committed("health")
    snapshot = handle.committed()
    snapshot.note_read_of_all()
    advice = advise(snapshot)
    notes: tuple[str, ...] = ()
    try:
        shares = proven(
            handle.log,
            handle.store,
            lambda: Listing.of(handle.store),
            lambda listing, versions: _shares(snapshot, listing, versions),
            lambda: oldest_leased(lease_files(handle.store)),
        )
    except RowsieveError as error:
        shares, notes = (), (f"Where the bytes are is not known: {error}",)
    uri = table_store(handle.store).uri
    return Health(
        handle.store.uri,
        snapshot.version,
        _facts(snapshot, advice),
        shares,
        tuple(
            Remedy(
                each.action.value,
                f"{each.reason} ({each.parts:,} parts, {size_text(each.size_bytes)})",
                f"rs.open_table({uri!r}).{each.action.value}()",
                _in_a_shell(each.action.value, uri),
            )
            for each in advice.recommendations
        ),
        notes,
    )


def _in_a_shell(action: str, uri: str) -> str:
    quoted = uri.replace("'", "'\\''")
    is_command = action in ("compact", "analyze", "maintain")
    return f"rowsieve {action if is_command else 'maintain'} '{quoted}'"


def _facts(snapshot: Snapshot, advice: Advice) -> tuple[Fact, ...]:
    hidden = advice.hidden_rows / advice.rows if advice.rows else 0.0
    reads = advice.read_amplification
    lacking = advice.parts_without_statistics
    age_s = max(clock.now_us() - snapshot.timestamp_us, 0) / 1e6
    return (
        Fact("stored", size_text(advice.size_bytes), "", f"{advice.rows:,} rows"),
        Fact("parts", f"{advice.parts:,}", "", f"{advice.small_parts:,} are small"),
        Fact(
            "read amplification",
            f"{reads:.2f}",
            _state(reads, _WEAK_READS, _BAD_READS),
            "parts that a read looks at for a row",
        ),
        Fact(
            "hidden rows",
            f"{hidden:.1%}",
            _state(hidden, _WEAK_HIDDEN, _BAD_HIDDEN),
            f"{advice.hidden_rows:,} rows by deletes, as far as known",
        ),
        Fact(
            "no statistics",
            f"{lacking:,}",
            "weak" if lacking else "good",
            "parts that conditions cannot skip",
        ),
        Fact("newest commit", _age(age_s), "", f"version {snapshot.version}"),
    )


def _state(value: float, weak: float, bad: float) -> str:
    return "good" if value < weak else "weak" if value < bad else "bad"


def _age(seconds: float) -> str:
    for unit_s, name in _UNITS:
        if seconds >= unit_s:
            return f"{seconds / unit_s:,.1f} {name} ago"
    return "just now"


def _shares(snapshot: Snapshot, listing: Listing, versions: KeptVersions) -> tuple[Share, ...]:
    live = frozenset(paths_of(snapshot.parts))
    of_all = {
        path: each for details in listing.of_others.values() for path, each in details.items()
    }
    data: Details = {**listing.data, **of_all}
    history = (versions.paths - live) & data.keys()
    left = data.keys() - versions.paths - live
    return (
        _share("read", "live", data, live & data.keys(), "of the newest version"),
        *_in_place(snapshot),
        _share("stored", "history", data, history, "only of older versions, branches and tags"),
        _share("weak", "left over", data, left, "of no version: writes that failed or still run"),
        _share("key", "log", listing.details, listing.details.keys(), "log and checkpoints"),
    )


def _in_place(snapshot: Snapshot) -> Iterator[Share]:
    """The files that the newest version reads outside of the table's folder, if there are any."""
    parts = snapshot.parts.select("data.")
    paths = parts.column("data.path").fill_null("")
    outside = pc.match_substring(paths, "://").to_numpy(zero_copy_only=False)
    if outside.any():
        sizes = parts.numbers("data.size_bytes")[outside]
        note = "of the newest version, outside of the table's folder: never deleted here"
        yield Share("merged", "in place", len(sizes), int(sizes.sum()), note)


def _share(kind: str, name: str, details: Details, paths: Collection[str], note: str) -> Share:
    return Share(kind, name, len(paths), sum(details[path].size_bytes for path in paths), note)
