"""Random runs over branches and tags, beside writers and retention; see `seeds`.

python -m tests.simulation.ref_runs FIRST LAST     runs seeds FIRST to LAST - 1
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from rowsieve.objects.ref_store import REFS
from rowsieve.storage.log.floors import floors_of, paths_of
from rowsieve.storage.log.log_entry import LogEntry, decode_entry, log_path
from rowsieve.storage.log.refs import Ref, refs_of
from tests.simulation import ref_calls
from tests.simulation.commands import main
from tests.simulation.judge import KEEPS_ROWS, Judge
from tests.simulation.model import State, Version, as_bag
from tests.simulation.scheduler import Scheduler
from tests.simulation.seeds import FAULTS, Run, applying_late, chooser, spawn_actors
from tests.simulation.world import URI, Setting, begun, with_drawn_storage

FAMILIES = (
    ("refs",),
    ("refs", "retention"),
    ("refs", "retention", "upkeep"),
    ("refs", "write", "retention"),
)
KINDS = tuple(sorted({*FAULTS} - {"disk"}))
assert ref_calls  # imported for its operations


def run_seed(seed: int, *, calls: int = 6) -> Run:
    """Run a seed and judge it."""
    draws = random.Random(f"refs {seed}")
    setting = Setting(
        keyed=draws.random() < 0.7,
        checkpoint_interval=draws.choice([1, 2, 5]),
        history=draws.choice([1, 3]),
    )
    setting = with_drawn_storage(setting, f"refs {seed}")
    scheduler = Scheduler(chooser(random.Random(f"schedule {seed}"), draws.choice([0, 0.6, 0.93])))
    world = begun(f"refs {seed}", setting, scheduler, overlaps=draws.random() < setting.overlapping)
    families, faults = draws.choice(FAMILIES), draws.choice(("none", *KINDS))
    with world.entered():
        spawn_actors(world, draws, families, faults, calls)
        scheduler.before_step = applying_late(world, random.Random(f"late {seed}"))
        world.run()
        if not world.problems:
            _RefsJudge(world).judged(thorough=True)
    shape = f"{setting}, {families}, faults {faults}, overlaps {world.overlaps}"
    return Run(seed, shape, world.problems, scheduler.trace, len(world.outcomes.calls))


class _RefsJudge(Judge):
    """Also replays the logs of branches, and holds what they and the tags have against it."""

    def check(self, *, thorough: bool) -> None:
        super().check(thorough=False)
        self._check_refs()
        if thorough and not self._world.problems:
            self._check_feed()
            self._drop_all()
            self._check_cleanup()
            left = [path for path in self._world.bucket.objects if path.startswith(REFS)]
            if left:
                self._wrong(f"after all refs were dropped: {left}")

    def effect_of(self, entry: LogEntry, versions: Mapping[int, Version], state: State) -> State:
        if entry.operation != "fast_forward":
            return super().effect_of(entry, versions, state)
        assert entry.info is not None
        ref = refs_of(entry.info.properties)[entry.metadata["ref"]]
        known = [(ref.version, ref.version), *ref.published]
        (_, since), (tip, number) = known[-2:]
        if number != entry.version:
            self._wrong(f"the publication at {entry.version} says that it is {number}")
        if versions[since].state.rows != state.rows:
            self._wrong(f"version {entry.version} published over rows changed since {since}")
        return self._states(ref, versions)[tip]

    def _states(self, ref: Ref, versions: Mapping[int, Version]) -> dict[int, State]:
        """The rows of each version of a branch or tag of the table."""
        states = {ref.version: versions[ref.version].state}
        root = f"{REFS}/{ref.folder}/"
        while True:
            number = max(states) + 1
            path = log_path(number).replace("_rowsieve/", root)
            if (data := self._world.bucket.ever.get(path)) is None:
                return states
            entry, state = decode_entry(data, number, path), states[number - 1]
            if (mark := entry.metadata.get("mark")) is not None:
                effect = self._outcomes.calls[mark].effect
                state = state if effect is None else effect(state, {}, entry)
            elif entry.operation not in KEEPS_ROWS:
                self._wrong(f"nobody has asked for the {entry.operation} at {path}")
            states[number] = state

    def _check_refs(self) -> None:
        versions = dict(enumerate(self._versions))
        refs = refs_of(self._table.handle.pinned.table.properties)
        by_uri = {f"{URI}/{REFS}/{ref.folder}": ref for ref in refs.values()}
        for name, ref in refs.items():
            self._check_ref(name, ref, self._states(ref, versions))
        for mark, uri, number in self._outcomes.seen.branch_writes:
            if uri in by_uri:
                path = log_path(number).replace("_rowsieve/", f"{uri.removeprefix(URI)[1:]}/")
                entry = decode_entry(self._world.bucket.ever[path], number, path)
                if entry.metadata.get("mark") != mark:
                    self._wrong(f"{mark} was acknowledged at {number} of {uri} and is not there")
        for mark, uri, number, rows in self._outcomes.seen.ref_reads:
            if (known := by_uri.get(uri)) is not None:
                expected = self._states(known, versions)[number].rows.values()
                if as_bag(rows) != as_bag(expected):
                    self._wrong(f"{mark} read {uri} at {number}: {rows}, expected {expected}")

    def _check_ref(self, name: str, ref: Ref, states: Mapping[int, State]) -> None:
        table = self._table.at_ref(name)
        head = table.handle.pinned
        floor = floors_of(head.table.properties).oldest_version
        for number in range(floor, head.version + 1):
            snapshot = table.handle.log.at(number)
            for path in paths_of(snapshot.parts):
                if path not in self._world.bucket.objects:
                    self._wrong(f"{path} of version {number} of {name} is missing")
            rows = table.scan(version=number).to_arrow().to_pylist()
            self._compare(f"{name} at {number}", rows, list(states[number].rows.values()))

    def _drop_all(self) -> None:
        cleaner = self._world.table(self._world.process("dropper"))
        for name in cleaner.refs().column("name").to_pylist():
            cleaner.drop_ref(name)
        self._entries = self._chain(cleaner.handle.latest().commit_id)


if __name__ == "__main__":
    main(lambda seed: [run_seed(seed)])
