"""CPU seconds of this process and of the processes below it: Spark's JVM and its Python workers.

Linux only. Spark's workers may end with a task, and nobody waits for them. So their clocks are read
five times a second: what a process uses after its last reading is missing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_READ: dict[int, float] = {}  # the last reading of each process
_COMPILED: dict[tuple[int, int], float] = {}  # that of each compiler's thread of a JVM
_LOCK = threading.Lock()


def cpu_s() -> float:
    """CPU seconds so far of this process and of those below it, as far as they were seen."""
    with _LOCK:
        for process in with_descendants(os.getpid()):
            _READ[process] = max(_READ.get(process, 0.0), _cpu_s(process))
        return sum(_READ.values())


def settled_cpu_s() -> float:
    """Like `cpu_s`, without the threads of JVMs that compile Java.

    For tens of runs of a query these take a fifth to a half of its CPU, more of them in one run
    than in another.
    """
    total = cpu_s()
    with _LOCK:
        for process in _READ:
            for folder in Path(f"/proc/{process}/task").glob("*"):
                try:
                    if (folder / "comm").read_text().startswith(("C1 Compiler", "C2 Compiler")):
                        used = int((folder / "schedstat").read_text().split()[0]) / 1e9
                        _COMPILED[process, int(folder.name)] = used
                except OSError:  # it has ended
                    continue
        return total - sum(_COMPILED.values())


def with_descendants(process: int) -> list[int]:
    """The process and those below it that live now."""
    parents, found = _parents(), [process]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


@contextmanager
def watched() -> Iterator[None]:
    """See processes that end before they are asked for."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.2):
            cpu_s()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _parents() -> dict[int, int]:
    """The parent of each process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text()
        except OSError:  # it has ended
            continue
        found[int(folder.name)] = int(text.rpartition(")")[2].split()[1])
    return found


def _cpu_s(process: int) -> float:
    clock = (~process << 3) | 2  # what clock_getcpuclockid() of Linux returns
    try:
        return time.clock_gettime(clock)
    except OSError:
        return 0.0
