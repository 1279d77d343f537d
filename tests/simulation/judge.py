"""Compares a finished run with the oracle: the log, every version, every read, every promise.

The versions are those that the log's entries chain to from the head, of all entries that were ever
stored. The oracle replays their calls on dictionaries.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rowsieve.errors import SnapshotExpired
from rowsieve.storage.log.floors import floors_of, paths_of
from rowsieve.storage.log.log_entry import LogEntry, decode_entry, log_path, version_of
from tests.simulation.model import EXPIRED, Effect, Row, State, Version, as_bag, floor_of
from tests.simulation.publish_calls import FORMATS, problems_of
from tests.simulation.world import World
from tests.simulation.writer_calls import picked

KEEPS_ROWS: Final = frozenset(
    (
        "analyze",
        "build_deletion_vectors",
        "compact",
        "create_branch",
        "create_tag",
        "drop_branch",
        "drop_tag",
        "expire_versions",
        "remove_orphans",
        "rewrite_data_files",
        "rewrite_position_delete_files",
        "set_properties",
        "unset_properties",
    )
)
DAY_US: Final = 86_400_000_000


def judged(world: World, *, thorough: bool) -> list[str]:
    """Return what is wrong after a run; `thorough`: also read without pruning, the feed, clean."""
    return Judge(world).judged(thorough=thorough)


def chain_of(world: World, head: str) -> list[LogEntry]:
    """The commits up to the head, of all entries that were ever stored."""
    by_id: dict[str | None, LogEntry] = {}
    for path, data in (*world.bucket.replaced, *world.bucket.ever.items()):
        if (version := version_of(path)) is not None:
            entry = decode_entry(data, version, path)
            by_id[entry.commit_id] = entry
    found, entry_id = [], head
    while entry_id:
        found.append(by_id[entry_id])
        entry_id = found[-1].predecessor or ""
    return found[::-1]


class Judge:
    """Compares one run with the oracle."""

    def __init__(self, world: World) -> None:
        self._world, self._outcomes = world, world.outcomes

    def judged(self, *, thorough: bool) -> list[str]:
        """Check everything."""
        self._world.judge_by(lambda: self.check(thorough=thorough))
        return self._world.problems

    def check(self, *, thorough: bool) -> None:
        """Check the log, every version and what callers were told."""
        self._table = self._world.table(self._world.judge)
        head = self._table.handle.pinned
        self._floor = floors_of(head.table.properties).oldest_version
        self._entries = self._chain(head.commit_id)
        if [entry.version for entry in self._entries] != list(range(len(self._entries))):
            self._wrong(f"the log is not a chain: {[e.version for e in self._entries]}")
            return
        self._check_promises()
        self._versions = self._replayed()
        self._check_observations()
        for version in range(len(self._entries)):
            self._check_version(version, thorough=thorough)
        self._check_publications()
        if thorough:
            self._check_history()
            self._check_feed()
            self._check_cleanup()

    def _wrong(self, what: str) -> None:
        self._world.problems.append(what)

    def _chain(self, head: str) -> list[LogEntry]:
        return chain_of(self._world, head)

    def _check_promises(self) -> None:
        at: defaultdict[str, list[int]] = defaultdict(list)
        for entry in self._entries:
            if mark := entry.metadata.get("mark"):
                at[mark].append(entry.version)
        for mark, versions in at.items():
            if len(versions) > 1:
                self._wrong(f"{mark} was committed {len(versions)} times")
            if mark in self._outcomes.refused:
                self._wrong(f"{mark} was committed at {versions} though it was refused")
        for mark, version in self._outcomes.acknowledged.items():
            if version not in at[mark] and not self._is_superseded(mark, version):
                self._wrong(f"{mark} was acknowledged at {version} but stands at {at[mark]}")

    def _is_superseded(self, mark: str, version: int) -> bool:
        """Whether a call was told of a later token of its actor, who had given it up by then.

        It had changed nothing, or failed, and a successor repeats it: tokens only rise.
        """
        actor, _, number = mark.partition(".")
        by, _, later = self._entries[version].metadata.get("mark", "").partition(".")
        return mark in self._outcomes.repeated and by == actor and int(later) > int(number)

    def _replayed(self) -> list[Version]:
        versions: list[Version] = []
        state = State()
        for entry in self._entries:
            state = self.effect_of(entry, dict(enumerate(versions)), state)
            floor = max(floor_of(entry), versions[-1].floor if versions else 0)
            versions.append(
                Version(state, self._effect(entry), entry.timestamp_us, entry.operation, floor)
            )
        return versions

    def effect_of(self, entry: LogEntry, versions: Mapping[int, Version], state: State) -> State:
        """The rows after a commit."""
        if (effect := self._effect(entry)) is None:
            if entry.metadata.get("mark") is None and entry.operation not in KEEPS_ROWS:
                self._wrong(f"nobody has asked for the {entry.operation} at {entry.version}")
            return state
        try:
            return effect(state, versions, entry)
        except AssertionError as error:
            self._wrong(f"version {entry.version} {entry.operation}: {error}")
            return state

    def _effect(self, entry: LogEntry) -> Effect | None:
        """What the call that made a commit does to the rows; None if it changes none."""
        if (mark := entry.metadata.get("mark")) is not None:
            return self._outcomes.calls[mark].effect
        if (number := entry.metadata.get("cherry_picked")) is not None:
            return picked(int(number))
        if "expire_rows_when" in entry.metadata:
            return lambda state, *_: state.without(state.matching(EXPIRED))
        return None

    def _check_observations(self) -> None:
        seen = self._outcomes.seen
        for mark, version, condition, found in seen.reads:
            if version >= len(self._versions):
                self._wrong(f"{mark} read version {version}, which is not in the log")
                continue
            state = self._versions[version].state
            rows = [state.rows[key] for key in state.matching(condition)]
            if isinstance(found, int):
                if found != len(rows):
                    self._wrong(f"{mark} counted {found}, not {len(rows)} at {version}")
            else:
                self._compare(f"{mark} at {version} where {condition}", found, rows)
        for mark, version in seen.expired:
            if version >= self._floor:
                self._wrong(f"{mark}: version {version} is gone, the floor is {self._floor}")
        for mark, first, last, changes in seen.feeds:
            self._check_changes(mark, first, last, changes)

    def _compare(
        self, what: str, found: Sequence[Row], expected: Sequence[Mapping[str, Any]]
    ) -> None:
        if as_bag(found) != as_bag(expected):
            self._wrong(f"{what}: got {as_bag(found)}, expected {as_bag(expected)}")

    def _check_version(self, version: int, *, thorough: bool) -> None:
        if version < self._floor:
            try:
                self._table.scan(version=version)
            except SnapshotExpired:
                return
            self._wrong(f"version {version} opens below the floor {self._floor}")
            return
        snapshot = self._table.handle.log.at(version)
        for path in paths_of(snapshot.parts):
            if path not in self._world.bucket.objects:
                self._wrong(f"{path} of version {version} is missing, the floor is {self._floor}")
        if version < self._outcomes.first_version and not thorough:
            return  # other runs have read it
        rows = list(self._versions[version].state.rows.values())
        for pruning in ("on", "off") if thorough else ("on",):
            found = self._table.scan(version=version, pruning=pruning).to_arrow().to_pylist()
            self._compare(f"version {version} with pruning {pruning}", found, rows)

    def _check_publications(self) -> None:
        store = self._world.judge.store
        assert store is not None
        for problem in problems_of(store, self._table.handle.pinned.table.uuid, self._versions):
            self._wrong(problem)

    def _check_history(self) -> None:
        found = [commit.version for commit in self._table.history()]
        expected = list(range(len(self._entries) - 1, self._floor - 1, -1))
        if found != expected:
            self._wrong(f"history has {found}, expected {expected}")

    def _check_feed(self) -> None:
        first, last = self._floor + 1 if self._floor else 0, len(self._entries) - 1
        if first <= last:
            changes = self._table.changes(first).read_all().to_pylist()
            self._check_changes("the judge", first, last, changes)
            if self._table.key:
                self._check_net_changes(first, last)

    def _check_net_changes(self, first: int, last: int) -> None:
        changes = self._table.changes(first, net=True).read_all().to_pylist()
        before = _pairs(self._versions[first - 1].state) if first else Counter()
        after = _pairs(self._versions[last].state)
        gone = _changed(changes, "delete", "update_preimage")
        new = _changed(changes, "insert", "update_postimage")
        if (gone, new) != (before - after, after - before):
            self._wrong(f"net changes from {first} to {last} have -{gone} +{new}: {before}")

    def _check_changes(
        self, mark: str, first: int, last: int, changes: Sequence[dict[str, Any]]
    ) -> None:
        for version in range(first, min(last, len(self._versions) - 1) + 1):
            before = _pairs(self._versions[version - 1].state) if version else Counter()
            after = _pairs(self._versions[version].state)
            mine = [change for change in changes if change["_commit_version"] == version]
            gone = _changed(mine, "delete", "update_preimage")
            new = _changed(mine, "insert", "update_postimage")
            if gone - before or (before - gone) + new != after:
                self._wrong(f"{mark}: feed of {version} has -{gone} +{new}: {before} to {after}")

    def _check_cleanup(self) -> None:
        """Check that only the files of the newest version remain at the end."""
        world = self._world
        world.scheduler.now_us += 2 * DAY_US
        cleaner = world.table(world.process("cleaner"))
        for name in cleaner.refs().column("name").to_pylist():
            cleaner.drop_ref(name)
        cleaner.compact()
        cleaner.vacuum(retain_last=1, grace_s=0)
        self._check_publications()  # whose files no version needs any more
        for format_ in FORMATS:
            cleaner.unpublish(format_)
        cleaner.expire_versions(retain_last=1)
        cleaner.remove_orphans(grace_s=0)
        world.scheduler.now_us += 2 * DAY_US
        for _ in range(2):
            cleaner.vacuum(retain_last=1, grace_s=0)
        self._table = world.table(world.process("after", overlaps=False))
        rows = list(self._versions[-1].state.rows.values())
        self._compare("after cleaning", self._table.scan().to_arrow().to_pylist(), rows)
        self._check_leftovers(set(world.bucket.objects))

    def _check_leftovers(self, paths: set[str]) -> None:
        head = self._table.handle.pinned
        floor = floors_of(head.table.properties).oldest_version
        used: set[str] = set()
        for version in range(floor, head.version + 1):
            used |= set(paths_of(self._table.handle.log.read_version(version).parts))
        data = {path for path in paths if path.startswith("data/")}
        if data != used:
            self._wrong(f"after cleaning: unused {data - used}, missing {used - data}")
        logged = [number for path in paths if (number := version_of(path)) is not None]
        if min(logged) < floor:
            self._wrong(f"after cleaning: entries {logged} below the floor {floor}")
        ids = {
            decode_entry(self._world.bucket.ever[log_path(number)], number, "").commit_id
            for number in logged
        }
        for path in paths:
            name = path.rpartition("/")[2].partition(".")[0]
            is_list = path.startswith("_rowsieve/log/") and version_of(path) is None
            if (is_list and name not in ids) or "/leases/" in path:
                self._wrong(f"after cleaning: {path} is left")


def _pairs(state: State) -> Counter[tuple[Any, Any]]:
    return Counter((row["k"], row["v"]) for row in state.rows.values())


def _changed(changes: Sequence[dict[str, Any]], *types: str) -> Counter[tuple[Any, Any]]:
    return Counter((row["k"], row["v"]) for row in changes if row["_change_type"] in types)
