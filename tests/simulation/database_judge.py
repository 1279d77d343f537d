"""Compares a run over a database with the oracle: every version, every read, every promise.

The entries of the shared log are those that the head chains to, of all that were ever stored. The
oracle replays their calls on a dictionary of tables: an entry that lacks a table of a transaction,
or has one of another, gives rows that no version of the oracle has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rowsieve import Database
from rowsieve.errors import RowsieveError
from rowsieve.objects.ref_store import REFS
from rowsieve.objects.shared.shared_entry import LOG, Section, SharedEntry, unpacked
from rowsieve.storage.log.log_entry import LogEntry, decode_entry, log_path
from rowsieve.storage.log.refs import Ref, refs_of
from tests.simulation.database_calls import Plan, Rows, States, not_ingested, pinned, rows_of
from tests.simulation.judge import KEEPS_ROWS
from tests.simulation.world import World

DATABASE: Final = "memory:///database"
FIRST: Final = "first"
"""The mark of the commits before a run."""


@dataclass
class Told:
    """What callers were told, and what they have read."""

    plans: dict[str, Plan] = field(default_factory=dict)
    """Of calls that may have committed, by mark."""
    done: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    reads: list[tuple[str, int | None, States]] = field(default_factory=list)
    """Mark, the version if the reader chose it, and the rows of some tables."""
    branch_reads: list[tuple[str, str, int, Rows]] = field(default_factory=list)
    """Mark, the URI of the branch, its version, and the rows."""
    ingested: str = ""
    """The table of the writer with a log of its own."""


class DatabaseJudge:
    """Judges one run; problems go to the world."""

    def __init__(self, world: World, told: Told, first: States) -> None:
        self._world, self._told, self._first = world, told, first
        self._marks: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        """By table id."""
        self._numbered: dict[tuple[str, int], Rows] = {}
        """The rows of each version of a table, by its id and number."""

    def check(self) -> None:
        """Check the log, every version, and what callers were told."""
        database = Database(DATABASE)
        entries = self._chain(database._shared.log.latest().commit_id)
        if [each.version for each in entries] != list(range(len(entries))):
            self._wrong(f"the log is not a chain: {[each.version for each in entries]}")
            return
        self._versions: list[States] = []
        for entry in entries:
            self._versions.append(self._after(entry))
        self._check_promises()
        self._check_reads()
        for version in range(len(entries)):
            self._check_version(database, version, is_head=version == len(entries) - 1)
        self._check_branches(database)

    def _wrong(self, what: str) -> None:
        self._world.problems.append(what)

    def _chain(self, head: str) -> list[SharedEntry]:
        bucket, by_id = self._world.bucket, {}
        folder = f"{DATABASE.removeprefix('memory:///')}/{LOG}/"
        for path, data in (*bucket.replaced, *bucket.ever.items()):
            if path.startswith(folder) and path.removeprefix(folder).isdigit():
                entry = unpacked("entry", data, SharedEntry, path)
                by_id[entry.commit_id] = entry
        chain, entry_id = [], head
        while entry_id:
            chain.append(by_id[entry_id])
            entry_id = chain[-1].predecessor or ""
        return chain[::-1]

    def _after(self, entry: SharedEntry) -> States:
        """The rows of all tables after an entry."""
        before = self._versions[-1] if self._versions else {name: {} for name in self._first}
        after, marks = dict(before), dict[str, set[str]]()
        for section in entry.sections:
            if section.name is not None:
                self._names[section.table] = section.name
            if section.number is not None:
                own = decode_entry(section.data, section.number, section.table)
                name = self._names[section.table]
                if (mark := own.metadata.get("mark")) is None or own.operation in KEEPS_ROWS:
                    self._check_unmarked(name, own)
                elif mark == FIRST:
                    after[name] = self._first[name]
                elif own.operation == "fast_forward":
                    after[name] = self._published(section, own, before[name])
                else:
                    marks.setdefault(mark, set()).add(name)
        for mark, names in marks.items():
            self._apply(entry.version, mark, names, before, after)
        for section in entry.sections:
            if section.number is not None:
                name = self._names[section.table]
                self._numbered[section.table, section.number] = after[name]
        return after

    def _check_unmarked(self, name: str, own: LogEntry) -> None:
        is_known = own.operation in KEEPS_ROWS or name == self._told.ingested
        if not is_known:
            self._wrong(f"nobody has asked for the {own.operation} of {name} at {own.version}")

    def _apply(
        self, version: int, mark: str, names: set[str], before: States, after: dict[str, Rows]
    ) -> None:
        """Replay the call of a mark: the tables that it changes must be those of the entry."""
        self._marks[mark] += 1
        if (plan := self._told.plans.get(mark)) is None:
            self._wrong(f"nobody has made the call {mark} at {version}")
            return
        states, seen = plan.effect(before)
        if not plan.may_have_seen(seen):
            self._wrong(f"{mark} at {version} has seen {plan.attempts}, not {seen}")
        changed = {name for name, rows in states.items() if rows != before[name]}
        if not changed <= names:
            self._wrong(f"{mark} at {version} changes {sorted(changed)}; there are {sorted(names)}")
        after.update({name: states[name] for name in changed})

    def _published(self, section: Section, own: LogEntry, rows: Rows) -> Rows:
        """The rows of a branch that becomes the table, which may not have changed since."""
        assert own.info is not None
        ref = refs_of(own.info.properties)[own.metadata["ref"]]
        known = [(ref.version, ref.version), *ref.published]
        (_, since), (tip, number) = known[-2:]
        if number != own.version:
            self._wrong(f"the publication at {own.version} says that it is {number}")
        if self._numbered[section.table, since] != rows:
            self._wrong(f"{own.version} of {section.table} published over rows changed since")
        return self._of_branch(section.table, ref)[tip]

    def _of_branch(self, table: str, ref: Ref) -> dict[int, Rows]:
        """The rows of each version of a branch."""
        name, states = self._names[table], {ref.version: self._numbered[table, ref.version]}
        root = f"{DATABASE.removeprefix('memory:///')}/_tables/{table}/{REFS}/{ref.folder}/"
        while True:
            number = max(states) + 1
            path = log_path(number).replace("_rowsieve/", root)
            if (data := self._world.bucket.ever.get(path)) is None:
                return states
            own, rows = decode_entry(data, number, path), states[number - 1]
            mark = own.metadata.get("mark")
            if mark is not None and own.operation not in KEEPS_ROWS:
                rows = self._told.plans[mark].effect({name: rows})[0][name]
            states[number] = rows

    def _check_promises(self) -> None:
        for mark, count in self._marks.items():
            if count > 1:
                self._wrong(f"{mark} was committed {count} times")
            if mark in self._told.refused:
                self._wrong(f"{mark} was committed though it was refused")
        if lost := sorted(self._told.done - set(self._marks)):
            self._wrong(f"{lost} were acknowledged and are not there")

    def _check_reads(self) -> None:
        for mark, version, rows in self._told.reads:
            versions = self._versions if version is None else [self._versions[version]]
            if not any(self._shows(each, rows) for each in versions):
                self._wrong(f"{mark} read {rows}, which no version of {version} shows")

    @staticmethod
    def _shows(states: States, rows: States) -> bool:
        return all(states[name] == not_ingested(each) for name, each in rows.items())

    def _check_version(self, database: Database, version: int, *, is_head: bool) -> None:
        for name in database.tables() if is_head else self._first:
            try:
                rows = not_ingested(rows_of(database.open_table(name, version=version).scan()))
            except RowsieveError as error:
                if is_head:
                    self._wrong(f"{name} at {version}: {error!r}")
                continue
            if rows != self._versions[version][name]:
                expected = self._versions[version][name]
                self._wrong(f"{name} at {version} has {rows}, not {expected}")

    def _check_branches(self, database: Database) -> None:
        """Every branch and tag that is there has its rows, and readers had those of theirs."""
        states: dict[str, Mapping[int, Rows]] = {}
        for table_id, name in self._names.items():
            table = database.open_table(name)
            for ref_name, ref in refs_of(table.handle.pinned.table.properties).items():
                beside = table.at_ref(ref_name)
                states[beside.uri] = known = self._of_branch(table_id, ref)
                if (rows := not_ingested(rows_of(pinned(beside)))) != known[beside.version]:
                    self._wrong(f"{name}@{ref_name} has {rows}, not {known[beside.version]}")
        for mark, uri, number, read in self._told.branch_reads:
            if uri in states and not_ingested(read) != states[uri][number]:
                self._wrong(f"{mark} read {read} of {uri} at {number}: {states[uri][number]}")
