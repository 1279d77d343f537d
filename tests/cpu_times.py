"""`pytest --cpu-times`: CPU seconds that each test file takes, its child processes included.

CPU seconds rather than elapsed ones: they stay the same on a busy machine. Files are measured
from the start of their first test to the end of their last, fixtures included; imports and
collection are a row of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from typing import Any

import psutil
import pytest

SHOWN = 100  # files printed, dearest first
KEY = "cpu_times"  # in what a worker of xdist sends home
COLLECTING = "(imports and collection)"


def cpu_seconds(process: psutil.Process | None = None) -> float:
    """CPU seconds of a process (this one), of its children that ended, and of all that still run.

    A child that ends while it is being looked at counts once it has been waited for.
    """
    process = process or psutil.Process()
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        try:
            spent = each.cpu_times()
        except psutil.Error:
            continue
        total += spent.user + spent.system + spent.children_user + spent.children_system
    return total


class CpuTimes:
    """Sums CPU seconds by file in each process, and prints those of all processes at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.spent: dict[str, float] = defaultdict(float)
        self.last = 0.0

    def spend(self, name: str) -> None:
        now = cpu_seconds()
        self.spent[name] += max(now - self.last, 0.0)
        self.last = now

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        if not self.config.getoption("numprocesses", None):  # not the process that only waits
            self.spend(COLLECTING)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        outcome = yield
        if nextitem is None or nextitem.path != item.path:
            self.spend(str(item.path.relative_to(self.config.rootpath)))
        return outcome

    def pytest_sessionfinish(self) -> None:
        if (home := getattr(self.config, "workeroutput", None)) is not None:
            home[KEY] = dict(self.spent)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for name, seconds in getattr(node, "workeroutput", {}).get(KEY, {}).items():
            self.spent[name] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if hasattr(self.config, "workeroutput"):
            return
        terminalreporter.section("CPU seconds by file")
        dearest = sorted(self.spent, key=lambda name: -self.spent[name])
        for name in dearest[:SHOWN]:
            terminalreporter.write_line(f"{self.spent[name]:8.1f}  {name}")
        terminalreporter.write_line(
            f"{sum(self.spent.values()):8.1f}  all {len(self.spent)} rows, the others included"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rowsieve")
    group.addoption("--cpu-times", action="store_true", help="print CPU seconds by test file")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("cpu_times"):
        config.pluginmanager.register(CpuTimes(config), "cpu times")
