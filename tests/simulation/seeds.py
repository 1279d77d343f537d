"""Random runs: a seed says the table, the actors, their calls, the faults and the schedule.

python -m tests.simulation FIRST LAST     runs seeds FIRST to LAST - 1 and prints what is wrong
ROWSIEVE_SEED=17 pytest tests/simulation  runs seed 17 alone, and prints its trace if it fails
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.faults.vocabulary import Fault
from tests.simulation.bucket import FaultPlan
from tests.simulation.calls import Operation, operations_of
from tests.simulation.judge import judged
from tests.simulation.processes import SimulatedProcess
from tests.simulation.scheduler import Scheduler, Task
from tests.simulation.world import Setting, World, acting, begun, with_drawn_storage

LATE: Final = 0.04  # how often a late request is applied before a step
TAKEN_OVER: Final = 0.8  # of the actors that may die, those with a successor
SLICED: Final = 0.15  # of the runs, those whose compaction merges a few commits
SLICED_TABLE: Final = Setting(keyed=True, history=8, compacts=False)
STYLES: Final = {
    "all": ("write", "columns", "upkeep", "retention", "read", "stream"),
    "columns": ("write", "columns"),
    "streams": ("stream", "upkeep"),
    "writers": ("write", "read"),
    "upkeep": ("write", "upkeep", "read"),
    "retention": ("write", "retention", "read"),
    "publications": ("write", "upkeep", "retention", "publish"),
}
FAULTS: Final[dict[str, dict[Fault, float]]] = {
    "none": {},
    "answers": {
        Fault.UNAVAILABLE: 0.03,
        Fault.LOST_ANSWER: 0.08,
        Fault.EXISTS_AFTER: 0.08,
    },
    "late": {Fault.APPLIED_LATE: 0.12, Fault.DUPLICATE: 0.05, Fault.LOST_ANSWER: 0.05},
    "stale": {Fault.STALE_LIST: 0.3, Fault.SLOW: 0.03},
    "denied": {Fault.DENIED: 0.01, Fault.EXPIRED_TOKEN: 0.01, Fault.TRUNCATED: 0.02},
    "disk": {Fault.NO_SPACE: 0.05, Fault.IO_ERROR: 0.05},
    "death": {},
}


@dataclass(frozen=True)
class Run:
    """A finished run."""

    seed: int
    shape: str
    problems: Sequence[str]
    trace: Sequence[str]
    calls: int


def run_seed(
    seed: int,
    *,
    calls: int = 2,
    thorough: bool | None = None,
    families: Sequence[str] | None = None,
) -> Run:
    """Run a seed and judge it; `calls`: the most that an actor makes, of these families."""
    draws = random.Random(f"seed {seed}")
    keyed = draws.random() < 0.65
    setting = Setting(
        keyed=keyed,
        checkpoint_interval=draws.choice([1, 2, 5]),
        statistics_inline_bytes=draws.choice([8192, 8192, 1]),
        visibility=draws.choice(["lazy", "lazy", "eager"]) if keyed else "lazy",
        history=draws.choice([1, 3, 5]),
    )
    scheduler = Scheduler(chooser(random.Random(f"schedule {seed}"), draws.choice([0, 0.6, 0.93])))
    slices = draws_slices(seed)
    setting = with_drawn_storage(SLICED_TABLE if slices else setting, f"seed {seed}")
    overlaps = draws.random() < setting.overlapping
    world = begun(f"seed {seed}", setting, scheduler, overlaps=overlaps, slices=slices)
    style, faults = draws.choice(sorted(STYLES)), draws.choice(["none", *sorted(FAULTS)])
    style = "upkeep" if slices else style
    with world.entered():
        spawn_actors(world, draws, families or STYLES[style], faults, calls)
        scheduler.before_step = applying_late(world, random.Random(f"late {seed}"))
        world.run()
        if not world.problems:
            judged(world, thorough=seed % 4 == 0 if thorough is None else thorough)
    shape = f"{setting}, {style}, faults {faults}, overlaps {overlaps}, slices {slices}"
    return Run(seed, shape, world.problems, scheduler.trace, len(world.outcomes.calls))


def draws_slices(seed: int) -> bool:
    """Whether compaction merges a few commits with one another in the run of a seed."""
    return random.Random(f"slices {seed}").random() < SLICED


def spawn_actors(
    world: World, draws: random.Random, families: Sequence[str], faults: str, calls: int
) -> None:
    known = [
        each for each in operations_of(keyed=world.setting.keyed).values()
        if each.family in families
    ]  # fmt: skip
    weights = [each.weight(keyed=world.setting.keyed) for each in known]
    shared = draws.random() < 0.25
    process: SimulatedProcess | None = None
    for number in range(draws.choice([2, 2, 2, 3, 3, 4])):
        name = f"a{number}"
        if process is None or not shared:
            process = world.process(f"p{number}", fault_plan(faults, draws))
        chosen: Sequence[Operation] = draws.choices(known, weights, k=draws.randint(1, calls))
        tokens = draws.choice([0.0, 0.3, 0.9] if faults != "death" else [0.0, 0.8])
        task = _spawn_actor(world, name, process, chosen, tokens)
        if faults == "death" and draws.random() < TAKEN_OVER:
            _spawn_actor(world, name, world.process(f"s{number}"), chosen, tokens, task)


def _spawn_actor(
    world: World,
    name: str,
    process: SimulatedProcess,
    calls: Sequence[Operation],
    tokens: float,
    predecessor: Task | None = None,
) -> Task:
    def body() -> None:
        acting(world, name, process, calls, tokens, predecessor)

    return world.scheduler.spawn(process, name if predecessor is None else f"{name}s", body)


def fault_plan(faults: str, draws: random.Random) -> FaultPlan:
    """Draw how a process fails; some never do."""
    if draws.random() < 0.3:
        return FaultPlan()
    if faults == "death":
        death = draws.choice([Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.CRASH_LATE])
        return FaultPlan({}, draws.randrange(3, 60), death)
    return FaultPlan(FAULTS[faults])


def chooser(draws: random.Random, stays: float) -> Callable[[Sequence[Task]], Task]:
    """Choose at random, but the task that ran last as often as `stays`."""
    last: list[Task] = []

    def choose(ready: Sequence[Task]) -> Task:
        if last and last[0] in ready and draws.random() < stays:
            return last[0]
        last[:] = [draws.choice(ready)]
        return last[0]

    return choose


def applying_late(world: World, draws: random.Random) -> Callable[[], None]:
    """Apply one of the late requests before a step, sometimes."""

    def before_step() -> None:
        if (late := world.bucket.late) and draws.random() < LATE:
            world.bucket.apply_late(draws.randrange(len(late)))

    return before_step
