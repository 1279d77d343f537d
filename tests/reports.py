"""A process of xdist reports what each test came to, not that it was set up and torn down, too.

A report is taken apart, sent, put together and shown to each plugin, which takes a millisecond of
CPU in both processes together; there are three of each test. Nobody reads those of a set-up or a
teardown that passed, but for `--durations` and `--junit-xml`, which get them.
"""

from __future__ import annotations

from typing import Final

import pytest
from _pytest.runner import runtestprotocol

_READERS: Final = ("durations", "xmlpath")  # options that read every report


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") and not any(map(config.getoption, _READERS)):
        config.pluginmanager.register(FewReports(), "few reports")


class FewReports:
    """Runs each test as pytest does, and passes on the reports that somebody reads."""

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        hook, place = item.ihook, {"nodeid": item.nodeid, "location": item.location}
        hook.pytest_runtest_logstart(**place)
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(**place)
        return True
