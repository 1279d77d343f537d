"""Publish a branch: make its newest version that of the table, in one commit.

The commit takes over the branch's list of parts: parts that both have stay, parts of the table that
the branch lacks go, and parts of the branch come. Only numbers in the list change (`renumbering`).

Soundness (invariant 42): the table's rows, columns and properties are those of the version that the
branch began with, or was last published as. Every commit since is read, and only rewrites of files,
retention and other refs may be among them; commits that can no longer be read count as changes,
unless the list of parts is still the same. A lease protects the branch's version until the commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rowsieve.arguments.annotations import Metadata
from rowsieve.changes.change import Change, nothing_done
from rowsieve.changes.mutation import Mutation
from rowsieve.changes.operations import identities
from rowsieve.changes.table_handle import Handle
from rowsieve.compaction.pick import Picked
from rowsieve.compaction.rewrite_passes import COMPACTION_RETRY_TIMEOUT_S, Compaction
from rowsieve.errors import CommitConflict, InvalidInput, NotFound, UnsupportedOperation
from rowsieve.objects import RefStore
from rowsieve.objects.shared.shown_place import name_in_database, shown_place
from rowsieve.properties import CONSTRAINTS, MOVED, OLDEST_BASE, OLDEST_VERSION
from rowsieve.refs.opening_refs import handle_at
from rowsieve.refs.renumbering import Ages, layers
from rowsieve.retention.kept_versions import read_entries
from rowsieve.retention.retaining import leased
from rowsieve.storage.constraints import constraints_of, with_constraints
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.conflicts import OPERATIONS, RETENTION_OPERATIONS, Kind
from rowsieve.storage.log.log_entry import Commit, LogEntry
from rowsieve.storage.log.refs import (
    Published,
    Ref,
    dropped_of,
    ref_named,
    refs_of,
    with_refs,
    without_refs,
)
from rowsieve.storage.parts.row_versions import NOTES as ROW_VERSION_NOTES
from rowsieve.storage.parts.row_versions import noted_publication
from rowsieve.storage.snapshot import Snapshot, TableInfo

OPERATION: Final = "fast_forward"
_OF_TABLE: Final = (OLDEST_VERSION, OLDEST_BASE, MOVED, *ROW_VERSION_NOTES)
"""Properties that count in the table's versions, and not in the branch's."""
_NAMED: Final = 5  # commits that an error names


def fast_forward(
    handle: Handle, name: str, metadata: Metadata | None, retry_timeout_s: float | None
) -> Commit:
    """Publish the newest version of a branch; nothing if it has not changed since the last time."""
    with handle.changing(OPERATION):
        if isinstance(handle.store, RefStore):
            raise UnsupportedOperation(
                f"{OPERATION}: this is a branch or tag; call it on the table, with the name of the "
                "branch"
            )
        if handle.read_only:
            handle.require_writable(OPERATION)
        ref = _branch_named(name, handle.latest(), handle)
        branch = handle_at(handle, name)
        if branch.latest().version == Ages(ref).last.of_branch:
            return nothing_done(OPERATION, handle.latest())
        notes = {**(metadata or {}), "ref": name}
        change = handle.change(OPERATION, notes, None, retry_timeout_s)
        _in_one_layer(branch, Ages(ref))
        with leased(branch, holder=OPERATION) as leased_branch:
            tip = leased_branch.pinned
            if layers(tip, Ages(ref)):
                raise CommitConflict(
                    f"{OPERATION}: the branch {name!r} was written at the same time; call it again"
                )
            if tip.version == Ages(ref).last.of_branch:
                return nothing_done(OPERATION, handle.latest())
            published = _Publication(handle, branch, tip, name, ref, change)
            return handle.commit(change, handle.latest(), published.request_for)


def _branch_named(name: str, head: Snapshot, handle: Handle) -> Ref:
    ref = ref_named(name, head, shown_place(handle.store))
    if ref.is_tag:
        raise InvalidInput(
            f"{OPERATION}: {name!r} is a tag; restore the table to it, or publish a branch"
        )
    if ref.of:
        raise UnsupportedOperation(
            f"{OPERATION}: {name!r} began with a version of another branch, and not of the table; "
            "publish that branch"
        )
    return ref


def _in_one_layer(branch: Handle, ages: Ages) -> None:
    """Merge new parts of several commits that share keys, in a commit of the branch."""
    compaction = Compaction(branch.store, {"for": OPERATION}, collecting=branch.collecting)

    def plan(snapshot: Snapshot) -> Mutation | None:
        return compaction.plan_pass(snapshot, Picked(slices=layers(snapshot, ages)))

    if layers(branch.latest(), ages):
        change = branch.change("compact", None, None, COMPACTION_RETRY_TIMEOUT_S)
        branch.commit_mutation(change, plan, any_columns=True)


class _Publication:
    """One version of a branch, to be committed on any head of the table that has not changed."""

    def __init__(
        self,
        handle: Handle,
        branch: Handle,
        tip: Snapshot,
        name: str,
        ref: Ref,
        change: Change,
    ) -> None:
        self._handle = handle
        self._branch = branch
        self._tip = tip
        self._name = name
        self._ref = ref
        self._change = change

    def request_for(self, head: Snapshot) -> CommitRequest:
        """The commit on a head; CommitConflict if that has changed since the branch began."""
        ref = _branch_named(self._name, head, self._handle)
        if ref != self._ref:
            raise CommitConflict(
                f"{OPERATION}: the branch {self._name!r} was published or made again meanwhile; "
                "call it again"
            )
        self._check_unmoved(head)
        parts = Ages(ref).renumbered(self._tip.parts, head.version + 1)
        wanted, present = identities(parts), set(identities(head.parts))
        shared = {identity[0] for identity in wanted if identity in present}
        back = parts.take([i for i, each in enumerate(wanted) if each[0] not in shared])
        removed = tuple(part_id for part_id in head.parts.part_ids if part_id not in shared)
        new = back.take(Ages(ref).is_new(self._tip.parts.chosen(back.part_ids)).nonzero()[0])
        request = self._change.request(
            None,
            removed,
            restored=back if len(back) else None,
            rows_written=new.row_count if len(new) else 0,
            rows_deleted=int(new.numbers("deletes.rows").sum()) if len(new) else 0,
        )
        changed = self._tip.schema.id != head.schema.id
        return replace(
            request,
            info=self._info(head),
            schema=self._tip.schema if changed else None,
            next_field_id=self._tip.next_field_id if changed else None,
            adopts=True,
        )

    def _info(self, head: Snapshot) -> TableInfo:
        """The branch's table information, as the table: with its id, its floors and its refs."""
        theirs, ours = without_refs(self._tip.table.properties), head.table.properties
        properties = {name: text for name, text in theirs.items() if name not in _OF_TABLE}
        properties |= {name: ours[name] for name in _OF_TABLE if name in ours}
        properties = _constrained(properties, ours, head.version + 1)
        properties = noted_publication(ours, properties, head.version + 1)
        refs = refs_of(ours)
        published = Published(self._tip.version, head.version + 1)
        ref = refs[self._name]
        refs[self._name] = _with_publication(ref, published)
        info = replace(
            self._tip.table,
            uuid=head.table.uuid,
            properties=properties,
            reader_version=max(head.table.reader_version, self._tip.table.reader_version),
            writer_version=max(head.table.writer_version, self._tip.table.writer_version),
            features=tuple(dict.fromkeys((*head.table.features, *self._tip.table.features))),
        )
        return with_refs(info, refs, dropped_of(ours))

    def _subject(self) -> str:
        return name_in_database(self._handle.store) or "the table"

    def _check_unmoved(self, head: Snapshot) -> None:
        """Raise CommitConflict unless the head has the rows that the branch began with."""
        since = Ages(self._ref).last.of_table
        numbers = range(since + 1, head.version + 1)
        entries = list(read_entries(self._handle.log, self._handle.store, numbers))
        if moved := [entry for entry in entries if not _is_silent(entry)]:
            shown = ", ".join(f"{each.version} by {each.operation}" for each in moved[:_NAMED])
            word = "version" if len(moved) == 1 else "versions"
            more = f" and {len(moved) - _NAMED} more" if len(moved) > _NAMED else ""
            raise CommitConflict(
                f"{OPERATION}: {self._subject()} has moved since version {since}, from which the "
                f"branch {self._name!r} goes on: {word} {shown}{more}. Nothing was committed; "
                "make a new branch of the newest version, and repeat the changes there"
            )
        if len(entries) < len(numbers) and not self._is_same(head):
            raise CommitConflict(
                f"{OPERATION}: commits of {self._subject()} since version {since} have expired, "
                "so it is unknown whether they changed rows. Nothing was committed; make a new "
                "branch of the newest version, and repeat the changes there"
            )

    def _is_same(self, head: Snapshot) -> bool:
        """Return whether the head has the parts, columns and properties of the common version."""
        ages = Ages(self._ref)
        try:
            base = self._branch.log.at(ages.last.of_branch)
        except NotFound:
            return False
        parts = ages.renumbered(base.parts, head.version + 1)
        return (
            set(identities(parts)) == set(identities(head.parts))
            and base.schema == head.schema
            and _settings(base.table) == _settings(head.table)
        )


def _is_silent(entry: LogEntry) -> bool:
    """Return whether a commit changed neither rows nor columns nor settings."""
    is_rewrite = OPERATIONS.get(entry.operation) is Kind.REWRITING
    return is_rewrite or entry.operation in RETENTION_OPERATIONS


def _settings(info: TableInfo) -> Mapping[str, str]:
    return {
        name: text for name, text in without_refs(info.properties).items() if name not in _OF_TABLE
    }


def _with_publication(ref: Ref, published: Published) -> Ref:
    return Ref(
        ref.kind,
        ref.folder,
        ref.version,
        ref.commit_id,
        ref.timestamp_us,
        ref.of,
        (*ref.published, published),
    )


def _constrained(
    properties: Mapping[str, str], ours: Mapping[str, str], version: int
) -> dict[str, str]:
    """The properties with the number of the table since which each constraint is checked."""
    if properties.get(CONSTRAINTS) == ours.get(CONSTRAINTS):
        return dict(properties)
    known = {(each.name, each.condition): each for each in constraints_of(ours)}
    constraints = [
        known.get((each.name, each.condition), replace(each, since=version))
        for each in constraints_of(properties)
    ]
    return with_constraints(properties, constraints)
