"""All schedules of two or three calls with at most two preemptions.

Of two calls, one makes some requests, then the other makes some, then each goes on to its end. Of
three, the first is interrupted by the second, which is interrupted by the third. A preemption
before a request that commutes with all that the other calls do would change nothing, and is left
out: files that are new, or never deleted, are such requests unless a call deletes or lists files.

    python -m tests.simulation.interleavings SHARE OF [SECONDS [VARIANT]]   runs a share of them all
"""

from __future__ import annotations

import itertools
import logging
import random
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rowsieve.storage.log.log_entry import version_of
from tests.simulation.calls import OPERATIONS
from tests.simulation.judge import judged
from tests.simulation.scheduler import Scheduler, Stuck, Task
from tests.simulation.world import Setting, World, begun

KEYED: Final = (
    "upsert",
    "delete_keys",
    "delete_where",
    "update",
    "overwrite",
    "restore",
    "add_column",
    "compact",
    "build_deletion_vectors",
    "set_properties",
    "expire_versions",
    "remove_orphans",
    "read",
    "read_leased",
    "rewrite_data_files",
    "merge",
    "stream_batch",
)
UNKEYED: Final = (
    "append",
    "delete_where",
    "update",
    "overwrite",
    "restore",
    "add_column",
    "compact",
    "expire_versions",
    "remove_orphans",
    "read",
    "read_leased",
    "rewrite_data_files",
    "merge",
    "stream_batch",
)
READERS: Final = frozenset(("read", "read_leased"))
UNLIMITED: Final = 1 << 30


class Calls(NamedTuple):
    """Calls that run concurrently, by the names of their operations."""

    names: tuple[str, ...]
    keyed: bool = False
    variant: int = 0
    """Other arguments of the same calls."""
    history: int = 3
    """Changes before the calls, one after the other."""

    def __str__(self) -> str:
        after = "" if self.history == 3 else f" after {self.history} changes"
        kind = "keyed" if self.keyed else "unkeyed"
        return f"{kind} {' '.join(self.names)} {self.variant}{after}"


def _pairs() -> Iterator[Calls]:
    for keyed, names in ((True, KEYED), (False, UNKEYED)):
        for pair in itertools.combinations_with_replacement(names, 2):
            if not READERS.issuperset(pair):
                yield Calls(pair, keyed)


PAIRS: Final = tuple(_pairs())
TRIPLES: Final = tuple(
    Calls((writer, compactor, "vacuum"), keyed)
    for keyed, writers in ((True, ("upsert", "update")), (False, ("append", "delete_where")))
    for writer in writers
    for compactor in ("compact", "rewrite_data_files")
)


class Finding(NamedTuple):
    """A schedule with a wrong result: the requests before each preemption, by actor."""

    calls: Calls
    schedule: tuple[tuple[int, int], ...]
    problems: Sequence[str]


def schedules(calls: Calls, *, preemptions: int = 2) -> Iterator[Finding]:
    """Run all schedules with at most so many preemptions, one or two."""
    for order in itertools.permutations(range(len(calls.names))):
        for first in itertools.count(1):
            is_first_left = False
            for second in itertools.count(1) if preemptions == 2 else [UNLIMITED]:
                program = _program(order, first, second)
                chooser = _Program(calls, program)
                yield Finding(calls, program, _run(calls, chooser, clean=(first + second) % 7 == 0))
                is_first_left = chooser.was_left[0]
                if not chooser.was_left[1]:
                    break
            if not is_first_left:
                break


def _program(order: Sequence[int], first: int, second: int) -> tuple[tuple[int, int], ...]:
    begun = ((order[0], first), (order[1], second))
    rest = order if len(order) == 2 else order[::-1]
    return (*begun, *((actor, UNLIMITED) for actor in rest))


class _Program:
    """Chooses the tasks of one actor after another, each for so many requests that matter."""

    def __init__(self, calls: Calls, program: Sequence[tuple[int, int]]) -> None:
        deletes = {"expire_versions", "remove_orphans", "vacuum"}
        self._all_matter = not deletes.isdisjoint(calls.names)
        self.program, self._place, self._made = program, 0, 0
        self.was_left = [False, False]
        """Whether the first and the second preemption came before the end of their calls."""

    def choose(self, ready: Sequence[Task]) -> Task:
        while self._place < len(self.program) - 1:
            actor, most = self.program[self._place]
            mine = [task for task in ready if _actor_of(task) == actor]
            if mine and self._made < most:
                self._made += self._matters(mine[0].what)
                return mine[0]
            if mine and self._place < 2:
                self.was_left[self._place] = True
            self._place, self._made = self._place + 1, 0
        last = [task for task in ready if _actor_of(task) == self.program[-1][0]]
        return (last or ready)[0]

    def _matters(self, what: str) -> bool:
        kind, _, path = what.partition(" ")
        if self._all_matter or kind not in ("get", "put", "size", "exists"):
            return True
        is_fresh = path.startswith("data/") or path.endswith((".arrow", ".stats"))
        return not is_fresh or version_of(path) is not None


def _actor_of(task: Task) -> int:
    return int(task.name.partition(".")[0].removeprefix("a"))


def _run(calls: Calls, chooser: _Program, *, clean: bool) -> Sequence[str]:
    scheduler = Scheduler(chooser.choose)
    world = begun(str(calls), Setting(keyed=calls.keyed, history=calls.history), scheduler)
    with world.entered(str(chooser.program)):
        for number, name in enumerate(calls.names):
            _spawn(world, f"a{number}", name)
        try:
            scheduler.run()
        except Stuck as error:
            world.problems.append(f"stuck: {error}")
        world.problems.extend(f"{name}: {error!r}" for name, error in scheduler.errors)
        scheduler.end()
        return world.problems or judged(world, thorough=clean)


def _spawn(world: World, name: str, operation: str) -> None:
    process = world.process(name)
    process.install()
    actor = world.actor(name, process)
    world.scheduler.spawn(process, name, lambda: world.act(actor, OPERATIONS[operation]))


def main(share: int, of: int, seconds: float = float("inf"), variant: int = 0) -> int:
    """Run a share of the pairs and triples; print what is wrong and how many schedules ran."""
    logging.disable(logging.CRITICAL)
    order = [each._replace(variant=variant) for each in (*PAIRS, *TRIPLES)]
    random.Random(3).shuffle(order)
    count = wrong = 0
    for whole, calls in enumerate(order[share::of], 1):
        if time.process_time() > seconds:
            break
        for finding in schedules(calls):
            count += 1
            if finding.problems:
                wrong += 1
                _show(f"{finding.calls} {finding.schedule}: {finding.problems[0]}")
        _show(f"{whole} of {len(order[share::of])}: {calls}, {count} schedules, {wrong} wrong")
    return wrong


def _show(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(min(main(*(int(each) for each in sys.argv[1:])), 1))
