"""CPU seconds of this process and of the processes that it has started: Spark's JVM and workers.

Linux only. A process that has ended does not count any more, so measure work whose processes stay.
"""

from __future__ import annotations

import os
import time
from pathlib import Path


def cpu_s() -> float:
    """CPU seconds so far of this process and all its descendants that are alive."""
    parents = _parents()
    found, waiting = 0.0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        found += _cpu_s(process)
        waiting.extend(child for child, parent in parents.items() if parent == process)
    return found


def _parents() -> dict[int, int]:
    """The parent of each process."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
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
