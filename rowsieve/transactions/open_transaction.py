"""The state of one transaction: its owner, its tables, its savepoints, and how it ends.

A transaction holds the layers and the conditions of each of its tables separately. Several of them
may be changed if something orders their commits, as the log of a database does. Else one may be
changed, and under serializable isolation no other is read either.

Soundness: a transaction is used by the thread that began it, in its process, until it ends, once.
It commits nothing unless `commit` is called.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final, Protocol

from rowsieve.changes.change import Change, nothing_done
from rowsieve.changes.table_handle import Handle
from rowsieve.changes.vector_building import with_eager_vectors
from rowsieve.errors import (
    InvalidInput,
    NotFound,
    TransactionEnded,
    UnsupportedOperation,
)
from rowsieve.metrics.running_operations import operation
from rowsieve.storage.log.commit_log import CommitRequest, check_writable
from rowsieve.storage.log.commit_request import check_request
from rowsieve.storage.log.conflicts import Isolation, isolation_of
from rowsieve.storage.log.log_entry import Commit, LogEntry
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S, Retries
from rowsieve.storage.snapshot import Snapshot
from rowsieve.transactions.layers import Mark, TableLayers
from rowsieve.transactions.net_changes import net_request, own_parts
from rowsieve.transactions.proofs import CommitProofs, expiry_is_a_conflict, written_keys
from rowsieve.transactions.transaction_handle import TransactionHandle

_LONGEST_NAME: Final = 128


class _State(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TransactionOptions:
    """What `transaction()` was called with. `isolation` None: the property of the table."""

    isolation: Isolation | None = None
    token: tuple[str, int] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    def isolation_on(self, table: Snapshot) -> Isolation:
        """The isolation on one table."""
        return self.isolation or isolation_of(table.table.properties)


class SharedOrder(Protocol):
    """What orders the commits of several tables, as the log of a database does."""

    def orders(self, outside: Handle) -> bool:
        """Whether the commits of this table are among those that are ordered."""

    def commit(
        self, changed: Mapping[str, Callable[[], Commit]], read: Mapping[str, Callable[[], int]]
    ) -> None:
        """Commit tables together, by URI; `read` proves others again.

        A proof returns the number that the table's next entry has.
        """

    def savepoint(self) -> Callable[[], None]:
        """What returns the order itself, such as the tables to create, to its present state."""


@dataclass(frozen=True, slots=True)
class _Savepoint:
    name: str
    marks: dict[str, Mark]
    """By table; a table that joins later is marked before its first change."""
    return_orders: Sequence[Callable[[], None]]


class OpenTransaction:
    """A transaction over tables, which `join` adds.

    Each of `orders` orders the commits of several; one may be added until a table of it joins.
    """

    def __init__(self, options: TransactionOptions, order: SharedOrder | None = None) -> None:
        check_request(
            CommitRequest("transaction", metadata=dict(options.metadata), token=options.token)
        )
        self.options = options
        self.orders: list[SharedOrder] = [] if order is None else [order]
        self._process, self._thread = os.getpid(), threading.get_ident()
        self._state = _State.OPEN
        self._tables: dict[str, TransactionHandle] = {}
        self._savepoints: list[_Savepoint] = []
        self._started_s = time.perf_counter()

    @property
    def is_open(self) -> bool:
        """True until the transaction has ended."""
        return self._state is _State.OPEN

    def __del__(self) -> None:
        """Warn about a transaction that was never ended; nothing of it was committed."""
        if getattr(self, "_state", None) is _State.OPEN and self._process == os.getpid():
            names = ", ".join(each.store.uri for each in self._tables.values())
            if not names:  # it could not begin, or has done nothing
                return
            warnings.warn(
                f"a transaction on {names} was dropped while it was open: nothing was committed. "
                "Use it in a with block, or call commit() or rollback()",
                ResourceWarning,
                stacklevel=2,
            )

    def check_usable(self, what: str) -> None:
        """Raise TransactionEnded after the end, and in another thread or process."""
        if self._process != os.getpid():
            raise TransactionEnded(
                f"{what}: the transaction belongs to process {self._process}, which forked this "
                "one; begin another one here"
            )
        if self._thread != threading.get_ident():
            raise TransactionEnded(
                f"{what}: the transaction belongs to the thread that began it; begin one in each "
                "thread"
            )
        if self._state is not _State.OPEN:
            raise TransactionEnded(
                f"{what}: the transaction was {self._state.value}; begin another one"
            )

    def join(self, outside: Handle) -> TransactionHandle:
        """Add a table at its newest version; the same handle for a table that is in already."""
        self.check_usable("transaction")
        if (known := self._tables.get(outside.newest.table.uuid)) is not None:
            return known
        outside.require_writable("transaction")
        order = self._order_of(outside)
        if order is not None:
            pinned = outside.newest
        else:
            with outside.turn():  # what an open writer has acknowledged is committed first
                pinned = outside.latest()
        check_writable("transaction", pinned)
        if self.options.isolation_on(pinned) is Isolation.SERIALIZABLE:
            for other in self._tables.values():
                if order is None or self._order_of(other.outside) is not order:
                    raise _no_common_log(other, outside)
        handle = TransactionHandle(self, outside, pinned)
        self._tables[pinned.table.uuid] = handle
        for savepoint in self._savepoints:
            savepoint.marks[pinned.table.uuid] = handle.layers.mark()
        return handle

    def _order_of(self, outside: Handle) -> SharedOrder | None:
        return next((order for order in self.orders if order.orders(outside)), None)

    # Savepoints

    def savepoint(self, name: str) -> None:
        """Mark the present state; an earlier savepoint of the name is hidden until the release."""
        self.check_usable("savepoint")
        if not 0 < len(name) <= _LONGEST_NAME:
            raise InvalidInput(
                f"savepoint: a name has 1 to {_LONGEST_NAME} characters, not {len(name)}"
            )
        marks = {uuid: handle.layers.mark() for uuid, handle in self._tables.items()}
        return_orders = [order.savepoint() for order in self.orders]
        self._savepoints.append(_Savepoint(name, marks, return_orders))

    def rollback_to(self, name: str) -> None:
        """Drop the changes since a savepoint, and later savepoints; the savepoint stays."""
        self.check_usable("rollback to savepoint")
        place = self._place_of(name)
        savepoint = self._savepoints[place]
        for uuid, mark in savepoint.marks.items():
            self._tables[uuid].layers.return_to(mark)
            self._tables[uuid].show_layers()
        for return_order in savepoint.return_orders:
            return_order()
        del self._savepoints[place + 1 :]

    def release(self, name: str) -> None:
        """Forget a savepoint and later ones; their changes stay."""
        self.check_usable("release savepoint")
        del self._savepoints[self._place_of(name) :]

    def _place_of(self, name: str) -> int:
        for place in reversed(range(len(self._savepoints))):
            if self._savepoints[place].name == name:
                return place
        known = ", ".join(each.name for each in self._savepoints) or "none"
        raise NotFound(f"savepoint {name!r} does not exist; there are: {known}")

    # The end

    def rollback(self) -> None:
        """End the transaction; nothing is committed. Files of its changes are left as orphans."""
        self.check_usable("rollback")
        self._end(_State.ROLLED_BACK)

    def commit(self) -> Commit | None:
        """Commit the net changes as one commit; any error ends the transaction without one.

        A transaction without changes returns what a call that had nothing to do returns. None if it
        has no table, or if one of `orders` has the commits.
        """
        self.check_usable("commit")
        try:
            commit = self._committed()
        except BaseException:
            self._end(_State.FAILED)
            raise
        self._end(_State.COMMITTED)
        return commit

    def _committed(self) -> Commit | None:
        tables = list(self._tables.values())
        changed = [each for each in tables if each.layers.layers]
        order = next(iter(self.orders), None)
        if changed:
            order = self._order_of(changed[0].outside)
        if any(each is not changed[0] and not self._is_in(order, each) for each in changed):
            raise UnsupportedOperation(
                f"transaction: it changed {len(changed)} tables "
                f"({', '.join(each.store.uri for each in changed)}), whose commits no common log "
                "orders; nothing was committed. Change one table in a transaction, or tables of "
                "one database"
            )
        if order is not None:
            self._commit_in_order(order, [each for each in tables if self._is_in(order, each)])
        elif changed or (tables and self.options.token is not None):
            first = (changed or tables)[0]
            return _TableCommit(first, self.options, self._started_s).run()
        elif tables:
            return nothing_done("transaction", tables[0].layers.pinned)
        return None

    def _is_in(self, order: SharedOrder | None, table: TransactionHandle) -> bool:
        return order is not None and self._order_of(table.outside) is order

    def _commit_in_order(self, order: SharedOrder, tables: Sequence[TransactionHandle]) -> None:
        changed = [each for each in tables if each.layers.layers]
        read = [each for each in tables if not each.layers.layers]
        with ExitStack() as turns:
            if changed:
                _take_turns(tables, turns)
            order.commit(
                {
                    each.store.uri: _TableCommit(each, self.options, self._started_s).run
                    for each in changed
                },
                {each.store.uri: _TableRead(each, self.options).prove for each in read},
            )

    def _end(self, state: _State) -> None:
        self._state = state
        self._savepoints.clear()
        for handle in self._tables.values():
            handle.layers.reads.is_open = False


def _take_turns(tables: Sequence[TransactionHandle], turns: ExitStack) -> None:
    """Take a turn among the calls of each open writer, so that the proofs see what it acknowledged.

    Also of tables that were only read: somebody may have read an acknowledged row without this
    transaction's changes, which could then come neither before nor after (invariant 41). All
    transactions take them in one order, so that none waits for another in a circle.
    """
    for each in sorted(tables, key=lambda each: each.store.uri):
        turns.enter_context(each.outside.turn())
        each.outside.writer = None  # the commit of the table takes no further turn


def _no_common_log(one: Handle, other: Handle) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"transaction on {one.store.uri}: {other.store.uri} has another log, and nothing orders "
        "the commits of two logs, so that a serializable transaction reads and changes one table, "
        "or several of one database. Open the other table at a version, use isolation='snapshot', "
        "which reads others as of the moment of their first use, or move both into one database"
    )


class _TableRead:
    """What a transaction read of a table that it did not change."""

    def __init__(self, handle: TransactionHandle, options: TransactionOptions) -> None:
        pinned, reads = handle.layers.pinned, handle.layers.reads
        self._log, self._pinned, self._known = handle.outside.log, pinned, pinned
        self._store = handle.outside.store
        isolation = options.isolation_on(pinned)
        self._proofs = CommitProofs(
            handle.outside.store, pinned, reads.questions(), frozenset(), isolation, (), frozenset()
        )

    def prove(self) -> int:
        """Prove it over what was committed since; the number that the next entry has."""
        with expiry_is_a_conflict(self._pinned, self._store):
            self._known, entries = self._log.since(self._known)
        self._proofs(entries)
        return self._known.version + 1


@dataclass(frozen=True, slots=True)
class _TableCommit:
    """The commit of the changes of one table."""

    handle: TransactionHandle
    options: TransactionOptions
    started_s: float

    def run(self) -> Commit:
        """Reduce the layers, prove what was read, and commit."""
        outside = self.handle.outside
        with operation("change", "transaction", outside.store.uri, outside.reporter):
            return self._run()

    def _run(self) -> Commit:
        handle, layers = self.handle, self.handle.layers
        outside, pinned = handle.outside, layers.pinned
        change = Change(
            outside.store,
            "transaction",
            dict(self.options.metadata),
            self.options.token,
            outside.collecting,
            Retries("transaction", RETRY_TIMEOUT_S),
            pinned.schema.id,
        )
        with outside.changing("transaction"):
            request = net_request(change, layers)
            if request is None and change.token is not None:
                request = change.request(None)  # the call may be repeated after others
            if request is None:
                return nothing_done("transaction", pinned)
            prove = self._proofs(layers, request)
            complete = partial(with_eager_vectors, outside.store)

            def rebase(head: Snapshot, entries: Sequence[LogEntry]) -> CommitRequest:
                prove(entries)
                return complete(head, request)

            with expiry_is_a_conflict(pinned, outside.store):
                head, entries = outside.log.since(pinned)
                if outside.log.committed_before(request.token, head) is None:
                    prove(entries)
                commit, after = outside.log.commit(
                    complete(head, request), head, rebase, change.retries
                )
        outside.pin(after)
        return outside.ended(commit, self.started_s)

    def _proofs(self, layers: TableLayers, request: CommitRequest) -> CommitProofs:
        pinned, store = layers.pinned, self.handle.outside.store
        isolation = self.options.isolation_on(pinned)
        touched_by = []
        if pinned.table.sequence or isolation is Isolation.SNAPSHOT:
            touched_by = [layer.touched_by for layer in layers.layers]
        parts = own_parts(layers)
        if isolation is Isolation.SNAPSHOT and pinned.table.key and len(parts):
            touched_by.append(written_keys(store, pinned, parts))
        return CommitProofs(
            store,
            pinned,
            layers.reads.questions(),
            frozenset(layer.kind for layer in layers.layers),
            isolation,
            touched_by,
            frozenset(request.removed),
        )
