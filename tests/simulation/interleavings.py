"""All schedules of two or three calls with at most two preemptions.

Of two calls, one makes some requests, then the other makes some, then each goes on to its end. Of
three, the first is interrupted by the second, which is interrupted by the third. Of schedules that
differ only in the order of requests that commute, one runs (partial order reduction).

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

from tests.simulation import ref_calls, transaction_calls
from tests.simulation.calls import OPERATIONS
from tests.simulation.judge import judged
from tests.simulation.order_runs import run_calls
from tests.simulation.scheduler import Scheduler, Task
from tests.simulation.world import Setting, World, begun

_ = ref_calls, transaction_calls  # imported for their operations
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
    "apply_changes",
    "transaction",
    "tag",
    "branch",
    "publish",
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
    "transaction",
    "tag",
    "publish",
)
IN_LOG: Final = ("upsert", "delete_keys", "update", "compact", "expire_versions", "read_leased")
EXPIRING: Final = ("maintain", "upsert", "update", "read_leased")
IN_ORDER: Final = ("apply", "write", "truncate", "overwrite", "restore", "compact", "vectors")
"""Calls of `order_runs` on a table with an event order."""
BY_COLUMN: Final = tuple(name for name in IN_ORDER if name != "truncate")
READERS: Final = frozenset(("read", "read_leased"))
ORDERED: Final = ("in_order", "by_column")
"""Kinds of tables with an event order: of rows, or of each column."""
UNLIMITED: Final = 1 << 30


class Calls(NamedTuple):
    """Calls that run concurrently, by the names of their operations."""

    names: tuple[str, ...]
    keyed: bool = False
    kind: str = ""
    """`in_log` if log entries hold small changes, `expires` if rows do, or one of `ORDERED`."""
    variant: int = 0
    """Other arguments of the same calls."""
    history: int = 3
    """Changes before the calls, one after the other."""

    def __str__(self) -> str:
        after = "" if self.history == 3 else f" after {self.history} changes"
        kind = "keyed" if self.keyed else "unkeyed"
        kind = f"{kind} {self.kind}" if self.kind else kind
        return f"{kind} {' '.join(self.names)} {self.variant}{after}"


def _pairs() -> Iterator[Calls]:
    for keyed, kind, names in (
        (True, "", KEYED),
        (False, "", UNKEYED),
        (True, "in_log", IN_LOG),
        (True, "expires", EXPIRING),
    ):
        for pair in itertools.combinations_with_replacement(names, 2):
            if not READERS.issuperset(pair):
                yield Calls(pair, keyed, kind)
    for pair in itertools.combinations_with_replacement(IN_ORDER, 2):
        yield Calls(pair, keyed=True, kind="in_order")
    for name in BY_COLUMN:
        yield Calls(("apply", name), keyed=True, kind="by_column")


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
    """Run all schedules with at most so many preemptions, one or two, but for equivalent ones."""
    for order in itertools.permutations(range(len(calls.names))):
        left: dict[tuple[int, int], tuple[bool, bool]] = {}
        for first in itertools.count(1):
            is_first_left = False
            for second in itertools.count(1) if preemptions == 2 else [UNLIMITED]:
                if (first, second) not in left:
                    program = Program(_turns(order, first, second))
                    problems = problems_of(calls, program, clean=(first + second) % 7 == 0)
                    yield Finding(calls, program.turns, problems)
                    left |= equivalents(program)
                is_first_left, is_second_left = left[first, second]
                if not is_second_left:
                    break
            if not is_first_left:
                break


def _turns(order: Sequence[int], first: int, second: int) -> tuple[tuple[int, int], ...]:
    begun = ((order[0], first), (order[1], second))
    rest = order if len(order) == 2 else order[::-1]
    return (*begun, *((actor, UNLIMITED) for actor in rest))


class Step(NamedTuple):
    """A step of an actor and what it does: the kind of a request and its path."""

    actor: int
    kind: str
    path: str

    def commutes(self, other: Step) -> bool:
        """Whether both orders of two actors' steps have the same effect, but for the time."""
        if self.kind in INNER or other.kind in INNER:
            return True
        if self.kind in WAITS or other.kind in WAITS:
            return False
        if self.kind in READS and other.kind in READS:
            return True
        if self.kind == "list" or other.kind == "list":
            listed, path = (self.path, other.path)[:: 1 if self.kind == "list" else -1]
            return not path.startswith(listed)
        return self.path != other.path


INNER: Final = frozenset(("start", "result", "join", "hold", "sync"))
WAITS: Final = frozenset(("sleep", "wait"))
READS: Final = frozenset(("get", "size", "exists", "list"))


class Program:
    """Chooses the tasks of one actor after another, each for so many steps."""

    def __init__(self, turns: Sequence[tuple[int, int]]) -> None:
        self.turns = tuple(turns)
        self.steps: list[Step] = []
        self.ends: list[int] = []
        """How many steps were made by the end of each turn."""
        self.was_left = [False, False]
        """Whether the first and the second turn ended before their calls."""

    def choose(self, ready: Sequence[Task]) -> Task:
        """Choose who goes on."""
        task = self._chosen(ready)
        kind, _, path = task.what.partition(" ")
        self.steps.append(Step(_actor_of(task), kind, path))
        return task

    def _chosen(self, ready: Sequence[Task]) -> Task:
        while (turn := len(self.ends)) < len(self.turns) - 1:
            actor, most = self.turns[turn]
            mine = [task for task in ready if _actor_of(task) == actor]
            if mine and len(self.steps) - sum(self.ends[-1:]) < most:
                return mine[0]
            if mine and turn < 2:
                self.was_left[turn] = True
            self.ends.append(len(self.steps))
        last = [task for task in ready if _actor_of(task) == self.turns[-1][0]]
        return (last or ready)[0]


def equivalents(program: Program) -> dict[tuple[int, int], tuple[bool, bool]]:
    """Return the preemptions that end as this program did, with whether they leave both calls.

    A preemption comes one step later if that step commutes with all that others did before it.
    """
    (actor, first), (other, second) = program.turns[:2]
    steps = list(program.steps)
    begun, ended = [*program.ends, len(steps)][:2]
    left = {(first, second): (program.was_left[0], program.was_left[1])}
    while True:
        is_first_left = any(step.actor == actor for step in steps[begun:])
        later, end, number = list(steps), ended, second
        while _moves_ahead(later, other, end, end):
            end, number = end + 1, number + 1
            is_second_left = any(step.actor == other for step in later[end:])
            left[first, number] = (is_first_left, is_second_left)
        if not _moves_ahead(steps, actor, begun, ended):
            return left
        begun, ended, first = begun + 1, ended + 1, first + 1
        left[first, second] = (
            any(step.actor == actor for step in steps[begun:]),
            any(step.actor == other for step in steps[ended:]),
        )


def _moves_ahead(steps: list[Step], actor: int, to: int, after: int) -> bool:
    """Move the next step of an actor to an earlier place; False if its effect would be another."""
    for place in range(after, len(steps)):
        if steps[place].actor == actor:
            between = steps[to:place]
            if all(step.actor == actor or step.commutes(steps[place]) for step in between):
                steps.insert(to, steps.pop(place))
                return True
            return False
    return False


def _actor_of(task: Task) -> int:
    return int(task.name.partition(".")[0].removeprefix("a"))


def problems_of(calls: Calls, program: Program, *, clean: bool = True) -> Sequence[str]:
    """Run the calls as a program says; return what is wrong."""
    scheduler = Scheduler(program.choose)
    if calls.kind in ORDERED:
        by_column = calls.kind == "by_column"
        return run_calls(str(calls), calls.names, scheduler, by_column=by_column)
    setting = Setting(
        keyed=calls.keyed,
        history=calls.history,
        inline_bytes=None if calls.kind == "in_log" else 1,
        expires=calls.kind == "expires",
    )
    world = begun(str(calls), setting, scheduler)
    with world.entered(str(program.turns)):
        for number, name in enumerate(calls.names):
            _spawn(world, f"a{number}", name)
        world.run()
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
