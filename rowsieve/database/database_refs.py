"""Tags and branches of a whole database: one of the same name on each of its tables, in one entry.

Soundness (invariant 42): a ref of the database is a ref of each table, which retention of the table
obeys. All are registered, published or dropped by one entry, so nobody finds some of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from rowsieve.arguments.annotations import Metadata, RetryTimeout, StorageOptions
from rowsieve.changes.table_handle import Handle
from rowsieve.database.joint_tables import JointTable
from rowsieve.database.table_versions import newest_of
from rowsieve.errors import UnsupportedOperation, VersionNotFound
from rowsieve.objects import open_store
from rowsieve.objects.shared.joint import JointCommit
from rowsieve.objects.shared.shared_state import State
from rowsieve.objects.shared.shared_tables import SharedTables
from rowsieve.refs.publishing import fast_forward
from rowsieve.refs.registering import REFS, create_ref, list_refs, unregister_ref
from rowsieve.retention.dropped_refs import remove_dropped
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.refs import Ref, RefKind, refs_of
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot

MAX_TABLES: Final = 1_000
"""The most tables of one call: each has a thread until the entry is put."""
_COLUMNS: Final = pa.schema([pa.field("table", pa.string(), nullable=False), *REFS])

TableCall = Callable[[Handle], Commit]


class DatabaseRefs(ABC):
    """The methods of `Database` for tags and branches of all tables together."""

    _shared: SharedTables
    _storage_options: StorageOptions
    _uri: str

    def tag(
        self, name: str, *, version: int | None = None, metadata: Metadata | None = None
    ) -> dict[str, Commit]:
        """Give a version of the database a name under which it can be read for ever.

        Each table that it has gets a tag of this name, all in one entry; without `version`, of the
        newest version. Retention keeps the files until `drop_ref`. Returns the commits by table.
        """
        return self._created_ref(RefKind.TAG, name, version, metadata)

    def branch(
        self, name: str, *, version: int | None = None, metadata: Metadata | None = None
    ) -> dict[str, Commit]:
        """Begin a branch of this name on each table that a version has, all in one entry.

        Open the tables with `ref=`; their changes are seen nowhere else until `fast_forward`.
        """
        return self._created_ref(RefKind.BRANCH, name, version, metadata)

    def fast_forward(
        self,
        name: str,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> dict[str, Commit]:
        """Publish the branch on all tables that have it, in one entry, or on none.

        CommitConflict, which names the table's commits, if one of them has moved since its branch
        began. Tables whose branch has not changed stay as they are.
        """
        state = self._shared.log.latest()
        names = self._with_ref(name, state)
        published = self._together(
            names, state, lambda handle: fast_forward(handle, name, metadata, retry_timeout_s)
        )
        return {table: commit for table, commit in published.items() if commit.committed}

    def drop_ref(self, name: str, *, metadata: Metadata | None = None) -> dict[str, Commit]:
        """Remove the tag or branch from all tables that have it, in one entry, then its files.

        VersionNotFound if no table has one.
        """
        state = self._shared.log.latest()
        names = self._with_ref(name, state)
        commits = self._together(
            names, state, lambda handle: unregister_ref(handle, name, None, metadata)
        )
        for table_id in names.values():
            log = CommitLog(open_store(self._place_of(table_id), self._storage_options))
            remove_dropped(log.store, log)
        return commits

    def refs(self) -> pa.Table:
        """Return the branches and tags of all tables: `table`, then the columns of `Table.refs`."""
        state = self._shared.log.latest()
        listed = [_COLUMNS.empty_table()]
        for table, table_id in self._ids(state).items():
            if refs_of(self._snapshot(table_id, state).table.properties):
                rows = list_refs(self._handle(table_id, state))
                names = pa.array([table] * len(rows), pa.string())
                listed.append(rows.add_column(0, _COLUMNS.field(0), names))
        return pa.concat_tables(listed)

    @abstractmethod
    def _at(self, version: int) -> State:
        """The state of the database at a version."""

    def _created_ref(
        self, kind: RefKind, name: str, version: int | None, metadata: Metadata | None
    ) -> dict[str, Commit]:
        state = self._shared.log.latest() if version is None else self._at(version)
        names = self._ids(state)
        if not names:
            raise UnsupportedOperation(
                f"create_{kind.value}: version {state.version} of {self._uri} has no table"
            )

        now = set(self._ids(self._shared.log.latest()).values())
        if gone := sorted(each for each, table_id in names.items() if table_id not in now):
            raise UnsupportedOperation(
                f"create_{kind.value}: version {state.version} of {self._uri} has tables that were "
                f"dropped or have left since: {', '.join(gone)}. Give the others a {kind.value} "
                f"each: open_table(name).{kind.value}(…, version=)"
            )

        def created(handle: Handle) -> Commit:
            return create_ref(handle, kind, name, handle.pinned.version, None, metadata)[0]

        return self._together(names, state, created)

    def _together(
        self, names: Mapping[str, str], state: State, call: TableCall
    ) -> dict[str, Commit]:
        """Make one commit to each of these tables, all in one entry; the commits by name."""
        if len(names) > MAX_TABLES:
            raise UnsupportedOperation(
                f"{self._uri} has {len(names):,} tables; a tag or branch of a whole database is "
                f"for up to {MAX_TABLES:,}. Use those of the tables, by open_table(name)"
            )
        joint = JointCommit(self._shared.group, {})
        members = {
            name: JointTable.opened(
                self._shared, table_id, state, joint.hold, self._storage_options
            )
            for name, table_id in names.items()
        }
        commits = joint.run({name: _called(call, each.waiting) for name, each in members.items()})
        for member in members.values():
            member.follow()
        return commits

    def _ids(self, state: State) -> dict[str, str]:
        log = self._shared.log
        ids = {name: log.id_of(name, state) for name in log.names(state)}
        return {name: table_id for name, table_id in ids.items() if table_id is not None}

    def _with_ref(self, name: str, state: State) -> dict[str, str]:
        """The tables that have a ref, by name; VersionNotFound if none has."""
        refs: dict[str, Mapping[str, Ref]] = {
            table_id: refs_of(self._snapshot(table_id, state).table.properties)
            for table_id in self._ids(state).values()
        }
        names = {each: i for each, i in self._ids(state).items() if name in refs[i]}
        if not names:
            known = sorted({each for table in refs.values() for each in table})
            raise VersionNotFound(
                f"no table of {self._uri} has a branch or tag {name!r}; there are: "
                f"{', '.join(known) or 'none'}"
            )
        return names

    def _snapshot(self, table_id: str, state: State) -> Snapshot:
        log = CommitLog(open_store(self._place_of(table_id), self._storage_options))
        return newest_of(self._shared.log, log, table_id, state)

    def _handle(self, table_id: str, state: State) -> Handle:
        store = open_store(self._place_of(table_id), self._storage_options)
        log = CommitLog(store)
        snapshot = newest_of(self._shared.log, log, table_id, state)
        return Handle(store, log, snapshot, storage_options=self._storage_options)

    def _place_of(self, table_id: str) -> str:
        return self._shared.place_of(table_id)


def _called(call: TableCall, handle: Handle) -> Callable[[], Commit]:
    return lambda: call(handle)
