"""The parts of two consecutive versions that a commit's changed rows are computed from.

Only parts that one version lacks, or whose deletion vector differs, can contribute a changed row:
the touched parts. In a table with a key, the parts that overlap them in keys decide too. So any
process that has these parts can compute the commit, and each overlap group of a large commit
separately.

Soundness: overlap groups have disjoint keys, so both images of an update are in one share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.decoded_types import described
from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    UnsupportedOperation,
    UnsupportedProtocol,
)
from rowsieve.planner.overlap import Groups, overlap_groups
from rowsieve.storage.log.conflicts import OPERATIONS, Kind
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder

_SILENT = frozenset({Kind.REWRITING, Kind.SETTING, Kind.ALTERING})
"""Kinds of commits that change no rows."""

_REPEATING = frozenset({"restore", "rewrite_rows", "fast_forward"})
"""Operations that may move a row to another part unchanged."""


@dataclass(frozen=True, slots=True)
class CommitParts:
    """Parts before and after a commit: the touched ones, and those that overlap them in keys.

    `operation` is None if the log entry is gone, or for the net changes of several commits since
    `before_version`.
    """

    before_version: int
    version: int
    timestamp_us: int
    operation: str | None
    before: PartTable
    after: PartTable

    @property
    def touched(self) -> frozenset[str]:
        """The ids of parts that one version lacks, or that have another deletion vector in it."""
        return touched_parts(self.before, self.after)

    @property
    def may_repeat_rows(self) -> bool:
        """True if parts may differ without a change, as where a key's row moved to another file."""
        return self.operation is None or self.operation in _REPEATING

    @property
    def size_bytes(self) -> int:
        """Stored bytes of the parts of both versions; a part of both counts once."""
        return self.before.without(self.after.part_ids).stored_bytes + self.after.stored_bytes

    def shares(self, target: Snapshot) -> Iterator[CommitParts]:
        """Cut into shares with disjoint keys, in the order of the key; without a key, by part."""
        both = _both(self.before, self.after)
        ids = both.column("part_id").to_pylist()
        for members in _groups(both, target):
            chosen = frozenset(ids[i] for i in members)
            share = replace(
                self, before=self.before.chosen(chosen), after=self.after.chosen(chosen)
            )
            if share.touched:
                yield share

    def to_bytes(self) -> bytes:
        """Serialise for another process."""
        tables = [each.to_ipc() if len(each) else b"" for each in (self.before, self.after)]
        return msgspec.msgpack.encode(
            _CommitForm(
                self.before_version, self.version, self.timestamp_us, self.operation, *tables
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> CommitParts:
        """Decode the bytes of `to_bytes`; InvalidInput for others."""
        try:
            form = msgspec.msgpack.decode(data, type=described(_CommitForm))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidInput(
                f"these bytes are not the parts of a commit: {error}; pass those of "
                "CommitParts.to_bytes"
            ) from error
        before, after = (
            PartTable.from_ipc(each) if each else PartTable.empty()
            for each in (form.before, form.after)
        )
        return cls(
            form.before_version, form.version, form.timestamp_us, form.operation, before, after
        )


class _CommitForm(msgspec.Struct, frozen=True, array_like=True):
    before_version: int
    version: int
    timestamp_us: int
    operation: str | None
    before: bytes
    after: bytes


def parts_of_commit(
    before: Snapshot | None, after: Snapshot, operation: str | None, target: Snapshot
) -> CommitParts | None:
    """The parts to compute the changes of a commit from; None if it changes no rows.

    `before` is None for the first version. `target` has the schema that rows are read with. An
    operation without a kind is UnsupportedProtocol (invariant 34).
    """
    if operation is not None and _kind_of(operation, after) in _SILENT:
        return None
    old = PartTable.empty() if before is None else before.parts
    if operation is None and not target.table.key and touched_parts(old, after.parts):
        raise CorruptData(
            f"changes: the log entry of version {after.version} of table {after.table.uuid} is "
            "absent, so it is unknown whether its commit changed rows or only moved them; restore "
            "it from a copy, or begin after this version"
        )
    return _between(before, after, operation, target)


def parts_of_range(before: Snapshot | None, target: Snapshot) -> CommitParts | None:
    """The parts to compute the net changes between two versions from; None if no row can differ.

    Which commits came in between does not matter. UnsupportedOperation for a table without a key.
    """
    check_has_key(target)
    return _between(before, target, None, target)


def check_has_key(target: Snapshot) -> None:
    """Raise UnsupportedOperation for a table without a key, which identifies its rows."""
    if not target.table.key:
        raise UnsupportedOperation(
            "changes: the table has no key, so nothing tells which rows before and after a range "
            "of commits are the same row; omit net=True, or create a table with key="
        )


def _between(
    before: Snapshot | None, after: Snapshot, operation: str | None, target: Snapshot
) -> CommitParts | None:
    """The touched parts of two versions and those that overlap them in keys; None without any."""
    old = PartTable.empty() if before is None else before.parts
    touched = touched_parts(old, after.parts)
    if not touched:
        return None
    near = touched
    if target.table.key:
        near = _overlapping(old, after.parts, touched, target)
    return CommitParts(
        -1 if before is None else before.version,
        after.version,
        after.timestamp_us,
        operation,
        old.chosen(near),
        after.parts.chosen(near),
    )


def parts_of_rows(snapshot: Snapshot) -> CommitParts | None:
    """The parts of all rows of a version, as one commit that inserts them; None without rows."""
    if not len(snapshot.parts):
        return None
    return CommitParts(
        -1, snapshot.version, snapshot.timestamp_us, "append", PartTable.empty(), snapshot.parts
    )


def touched_parts(before: PartTable, after: PartTable) -> frozenset[str]:
    """The ids of parts that one version lacks, or that have another deletion vector in it."""
    return frozenset(part_id for part_id, _ in _identities(before) ^ _identities(after))


def _kind_of(operation: str, version: Snapshot) -> Kind:
    """The kind of a commit; UnsupportedProtocol if this library does not know the operation."""
    if (kind := OPERATIONS.get(operation)) is None:
        raise UnsupportedProtocol(
            f"changes: version {version.version} of table {version.table.uuid} is by the operation "
            f"{operation!r}, which this version of rowsieve does not know, so it may have changed "
            "rows or only moved them; upgrade rowsieve, or begin after this version"
        )
    return kind


def _identities(parts: PartTable) -> set[tuple[str, str | None]]:
    return set(zip(parts.part_ids, parts.column("dv.path").to_pylist(), strict=True))


def _both(before: PartTable, after: PartTable) -> PartTable:
    return before.append(after) if len(before) else after


def _groups(both: PartTable, target: Snapshot) -> Groups:
    if target.table.key:
        order = KeyOrder.of(target.schema, target.table.key)
        return overlap_groups(both.select("key.").table, order)
    places: dict[str, list[int]] = {}
    for i, part_id in enumerate(both.part_ids):
        places.setdefault(part_id, []).append(i)
    starts = np.cumsum([0, *map(len, places.values())])
    return Groups(np.array([i for each in places.values() for i in each]), starts)


def _overlapping(
    before: PartTable, after: PartTable, touched: frozenset[str], target: Snapshot
) -> frozenset[str]:
    """The ids of all parts in an overlap group of both versions that has a touched part."""
    both = _both(before, after)
    groups = _groups(both, target)
    ids = both.column("part_id")
    is_touched = np.asarray(pc.is_in(ids, value_set=pa.array(sorted(touched), pa.string())))
    numbers = groups.of_members()
    hit = np.zeros(len(groups), dtype=np.bool_)
    hit[numbers[is_touched[groups.members]]] = True
    return frozenset(ids.take(pa.array(groups.members[hit[numbers]])).to_pylist())
