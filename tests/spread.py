"""How the tests are spread over processes: a file stays whole, and Spark's files stay together.

The tests of a file share fixtures. Starting Spark takes 11 s of CPU and a gigabyte, and its first
queries take three times as long as later ones. So one process starts it where there are three, as
on two cores, and two where there are more: one would still run when all others have ended. They get
their files first, and the others give way to them. The other files follow, most expensive first
(`tests/seconds.txt`), so that no process waits for a long file at the end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling, Scheduling

SPARK = ("the tests of Spark", "the tests of Spark's conditions")
FEW = 3  # with up to so many processes, one of them runs the tests of Spark
NICENESS = 5  # of the other processes
CONDITIONS = ("tests/bridges/", "tests/predicate/")
TESTS = Path(__file__).parent
USUAL_S = 0.03  # of a test in a file that is not on the list


@cache
def share_of(file: str, processes: int = FEW) -> str:
    """What a test file, as `tests/test_x.py`, is kept together with: itself, or Spark's files."""
    if "mark.spark" not in (TESTS.parent / file).read_text("utf-8"):
        return file
    return SPARK[processes > FEW and file.startswith(CONDITIONS)]


@cache
def known_seconds() -> Mapping[str, float]:
    """CPU seconds of the most expensive files, as `make test-times` prints them."""
    lines = (TESTS / "seconds.txt").read_text("utf-8").splitlines()
    rows = (line.split(maxsplit=1) for line in lines)
    return {file: float(seconds) for seconds, file in rows if file.startswith("tests/")}


def expensive_first(files: Mapping[str, int]) -> dict[str, int]:
    """The place of each file in the queue; `files` holds how many tests each one has."""
    known = known_seconds()

    def place(file: str) -> tuple[bool, float, str]:
        return share_of(file) not in SPARK, -known.get(file, USUAL_S * files[file]), file

    return {file: number for number, file in enumerate(sorted(files, key=place))}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the files of a process of xdist in the order in which they are given out."""
    if not hasattr(config, "workerinput"):
        return
    places = expensive_first(Counter(file_of(item.nodeid) for item in items))
    items.sort(key=lambda item: places[file_of(item.nodeid)])


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


class FilesTogether(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Whole files to each process, Spark's to one or two.

    Only tests to come are kept, and each one's place is looked up: xdist counts all tests that a
    process was ever given after each one, and searches the whole list for each that it gives out.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self.places: dict[Any, Mapping[str, int]] = {}

    def _split_scope(self, nodeid: str) -> str:
        return share_of(super()._split_scope(nodeid), self.numnodes)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        nodeid = self.registered_collections[node][item_index]
        work = self.assigned_work[node]
        del work[scope := self._split_scope(nodeid)][nodeid]
        if not work[scope]:
            del work[scope]
        self._reschedule(node)

    def _pending_of(self, workload: Mapping[str, Mapping[str, bool]]) -> int:
        return sum(map(len, workload.values()))

    def _assign_work_unit(self, node: Any) -> None:
        share, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][share] = tests
        node.send_runtest_some([self.places_of(node)[nodeid] for nodeid in tests])

    def places_of(self, node: Any) -> Mapping[str, int]:
        """The place of each test in the list of a process."""
        if node not in self.places:
            ids = self.registered_collections[node]
            self.places[node] = {nodeid: place for place, nodeid in enumerate(ids)}
        return self.places[node]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    config.option.loadscopereorder = False  # the queue keeps the order of the items
    return FilesTogether(config, log)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Let the process of Spark's tests go first: it would be the last to end."""
    if "PYTEST_XDIST_WORKER" in os.environ and share_of(file_of(nodeid)) not in SPARK:
        give_way()


@cache
def give_way() -> None:
    """Lower the priority of this process, once."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
