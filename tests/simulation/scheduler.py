"""A scheduler that lets one thread run at a time, and chooses who goes on at each request.

Threads are real, so that product code runs unchanged, but each one stops in `park` before every
request, sleep and wait. Time is a number that moves when nobody can go on. With the same choices a
run is the same, so a seed is a schedule.
"""

from __future__ import annotations

import _thread
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, Protocol, TypeVar

from tests.faults.vocabulary import Crash

REQUEST_US: Final = 500  # that a request takes
MOST_STEPS: Final = 8_000
DEADLOCK_S: Final = 120.0  # of real time in which a thread neither parks nor ends
START_US: Final = 1_700_000_000_000_000
_T = TypeVar("_T")


class Stuck(Exception):
    """No thread can go on, or the schedule does not end."""


class Process(Protocol):
    """What a thread belongs to: it dies as a whole, and has memory of its own."""

    name: str
    is_dead: bool

    def install(self) -> None:
        """Make the process's memory that of the interpreter."""
        ...


class Task:
    """One thread under the scheduler."""

    def __init__(
        self, scheduler: Scheduler, process: Process, name: str, body: Callable[[], object]
    ) -> None:
        self.process, self.name = process, name
        self.what = "start"
        self.is_done = False
        self.error: BaseException | None = None
        self.gate = _closed_gate()
        self.is_ready: Callable[[], bool] = lambda: True
        self.wakes_us: int | None = None
        self.children = 0
        self.scheduler, self._body = scheduler, body
        _thread.start_new_thread(self._run, ())  # a Thread would wait until it has begun

    @property
    def has_ended(self) -> bool:
        """Whether it is done, or dies before its next step."""
        return self.is_done or self.process.is_dead

    def _run(self) -> None:
        _here.task = self
        self.gate.acquire()
        try:
            self.scheduler.check_alive(self)
            self._body()
        except Crash:
            pass
        except BaseException as error:
            self.error = error
        self.is_done = True
        self.scheduler.leave()


def _closed_gate() -> threading.Lock:
    """Make a lock that one thread acquires and another releases: a semaphore in C."""
    gate = threading.Lock()
    gate.acquire()
    return gate


_here = threading.local()


def current_task() -> Task | None:
    """The task that runs in this thread, if one does."""
    return getattr(_here, "task", None)


class Scheduler:
    """Runs tasks one at a time; `choose` picks the next of those that can go on."""

    def __init__(self, choose: Callable[[Sequence[Task]], Task]) -> None:
        self.steps = 0
        self.now_us = START_US
        self.trace: list[str] = []
        self.before_step: Callable[[], None] = lambda: None
        self.is_over = False
        self._choose = choose
        self._tasks: list[Task] = []
        self._end = _closed_gate()
        self._stuck = ""

    @property
    def errors(self) -> list[tuple[str, BaseException]]:
        """Errors that ended tasks, by the task's name."""
        return [(task.name, task.error) for task in self._tasks if task.error is not None]

    def spawn(self, process: Process, name: str, body: Callable[[], object]) -> Task:
        """Add a task; it starts when it is chosen."""
        task = Task(self, process, name, body)
        self._tasks.append(task)
        return task

    def spawn_child(self, body: Callable[[], object]) -> Task:
        """Add a task of the process of the current one."""
        parent = self._mine()
        assert parent is not None
        parent.children += 1
        return self.spawn(parent.process, f"{parent.name}.{parent.children}", body)

    def park(
        self,
        what: str,
        is_ready: Callable[[], bool] = lambda: True,
        wakes_us: int | None = None,
    ) -> None:
        """Give way until `is_ready`, at `wakes_us` at the latest; Crash if the process has died."""
        if (task := self._mine()) is None:
            assert is_ready() or wakes_us is not None, f"{what} outside the simulation"
            self.now_us = max(self.now_us, wakes_us or 0)
            return
        if self.is_over:
            raise Crash
        task.what, task.is_ready, task.wakes_us = what, is_ready, wakes_us
        following = self._next()
        if following is not task:
            self._hand_over(following)
            task.gate.acquire()
        self.check_alive(task)

    def leave(self) -> None:
        """Let another task go on after one has ended."""
        if not self.is_over:
            self._hand_over(self._next())

    def check_alive(self, task: Task) -> None:
        """Raise Crash if the task must not go on."""
        if self.is_over or task.process.is_dead:
            raise Crash

    def note(self, line: str) -> None:
        """Add a line to the trace."""
        self.trace.append(line)

    def run(self) -> None:
        """Run all tasks to their end; Stuck if one of them waits for what never comes."""
        self._hand_over(self._next())
        steps = -1
        while not self._end.acquire(timeout=DEADLOCK_S):
            if steps == self.steps:
                running = [task.name for task in self._tasks if not task.is_done]
                raise Stuck(f"a thread holds a lock across a request, one of {running}")
            steps = self.steps
        if self._stuck:
            raise Stuck(self._stuck)

    def end(self) -> None:
        """Let all tasks that still run die."""
        self.is_over = True
        for task in self._tasks:
            if not task.is_done:
                task.gate.release()

    def _next(self) -> Task | None:
        """Choose who goes on, and let it have its memory; None at the end."""
        while alive := [task for task in self._tasks if not task.is_done]:
            if not (ready := [task for task in alive if self._can_go(task)]):
                wakes = [task.wakes_us for task in alive if task.wakes_us is not None]
                if not wakes:
                    self._stuck = "; ".join(f"{task.name} waits: {task.what}" for task in alive)
                    return None
                self.now_us = max(self.now_us, min(wakes))
                continue
            if self.steps == MOST_STEPS:
                self._stuck = f"no end after {MOST_STEPS} steps"
                return None
            self.before_step()
            task = self._choose(ready)
            self.steps += 1
            self.now_us += REQUEST_US
            self.note(f"{task.name} {task.what}")
            task.process.install()
            return task
        return None

    def _hand_over(self, task: Task | None) -> None:
        (self._end if task is None else task.gate).release()

    def _can_go(self, task: Task) -> bool:
        is_due = task.wakes_us is not None and task.wakes_us <= self.now_us
        return is_due or task.is_ready() or task.process.is_dead

    def _mine(self) -> Task | None:
        task = current_task()
        return task if task is not None and task.scheduler is self else None


class SimulatedClock:
    """The clock of a simulation, for `rowsieve.clock`."""

    def __init__(self, scheduler: Scheduler, jitter: random.Random) -> None:
        self._scheduler, self._jitter = scheduler, jitter

    def now_us(self) -> int:
        """Return the simulated time."""
        return self._scheduler.now_us

    def monotonic_s(self) -> float:
        """Return the simulated time in seconds."""
        return self._scheduler.now_us / 1e6

    def sleep(self, seconds: float) -> None:
        """Give way until the time has come."""
        wakes_us = self._scheduler.now_us + round(seconds * 1e6)
        self._scheduler.park("sleep", lambda: False, wakes_us)

    def sleep_up_to(self, longest_s: float) -> None:
        """Sleep for a random part of the time."""
        self.sleep(self._jitter.uniform(0, longest_s))

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Give way until the event is set, or the time has come."""
        wakes_us = self._scheduler.now_us + round(seconds * 1e6)
        self._scheduler.park("wait", event.is_set, wakes_us)
        return event.is_set()


class SimulatedFuture(Future[_T]):
    """The result of a task of the scheduler; asking for it gives way."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def result(self, timeout: float | None = None) -> _T:
        """Give way until the result is there."""
        self._scheduler.park("result", self.done)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Give way until the result is there."""
        self._scheduler.park("result", self.done)
        return super().exception(0)


class SimulatedPool:
    """Takes the place of a ThreadPoolExecutor: each task becomes one of the scheduler's."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def submit(self, call: Callable[..., _T], *args: Any) -> Future[_T]:
        """Begin a call; outside the simulation it runs at once."""
        future = SimulatedFuture[_T](self._scheduler)

        def body() -> None:
            try:
                future.set_result(call(*args))
            except Crash:
                raise
            except BaseException as error:
                future.set_exception(error)

        if current_task() is None:
            body()
        else:
            self._scheduler.spawn_child(body)
        return future

    def shutdown(self, wait: bool = True) -> None:
        """Do nothing: tasks end by themselves."""


class SimulatedThread:
    """Takes the place of `threading.Thread`; it does not run outside the simulation."""

    def __init__(self, scheduler: Scheduler, target: Callable[[], object]) -> None:
        self._scheduler, self._target = scheduler, target
        self._task: Task | None = None

    def start(self) -> None:
        """Begin, in the process of the current task."""
        if current_task() is not None:
            self._task = self._scheduler.spawn_child(self._target)

    def join(self) -> None:
        """Give way until it has ended."""
        if (task := self._task) is not None:
            self._scheduler.park("join", lambda: task.is_done)


class SimulatedCondition:
    """Takes the place of `threading.Condition`, lock included: its holder may give way."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._notified = scheduler, 0
        self._is_locked = False

    def __enter__(self) -> None:
        if self._is_locked:
            self._scheduler.park("lock", lambda: not self._is_locked)
        self._is_locked = True

    def __exit__(self, *_: object) -> None:
        self._is_locked = False

    def wait(self, timeout: float | None = None) -> None:
        """Give way until somebody notifies, or the time has come."""
        before, now_us = self._notified, self._scheduler.now_us
        wakes_us = None if timeout is None else now_us + max(1, round(timeout * 1e6))
        self._is_locked = False
        self._scheduler.park(
            "condition", lambda: self._notified != before and not self._is_locked, wakes_us
        )
        self.__enter__()

    def notify_all(self) -> None:
        """Let all go on that wait."""
        self._notified += 1


class SimulatedEvent:
    """Takes the place of `threading.Event`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._is_set = scheduler, False

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Let all go on that wait."""
        self._is_set = True

    def clear(self) -> None:
        """Let later waits wait."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Give way until it is set, or the time has come."""
        wakes_us = None if timeout is None else self._scheduler.now_us + round(timeout * 1e6)
        self._scheduler.park("event", self.is_set, wakes_us)
        return self._is_set
