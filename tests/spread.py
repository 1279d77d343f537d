"""How the tests are spread over processes: a file stays whole, and Spark's tests stay together.

The tests of a file share fixtures, but for those that are marked `spark` among others. Starting
Spark takes 11 s of CPU and a gigabyte, and its first queries take three times as long as later
ones. So one process starts it where there are three, as on two cores, and two where there are more:
one would still run when all others have ended. They get their tests first, and the others give way
to them. The other files follow, most expensive first (`tests/seconds.txt`), so that no process
waits for a long file at the end.
"""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Mapping, Sequence
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
MARK = "mark.spark"


@cache
def spark_functions(file: str) -> frozenset[str] | None:
    """The functions of a file that are marked `spark`; None if that does not say it of each test.

    Then the whole file is marked, or parameters are.
    """
    source = (TESTS.parent / file).read_text("utf-8")
    if MARK not in source:
        return frozenset()
    marks = {
        each.name: "\n".join(map(ast.unparse, each.decorator_list)).count(MARK)
        for each in ast.parse(source).body
        if isinstance(each, ast.FunctionDef)
    }
    if sum(marks.values()) < source.count(MARK):
        return None
    return frozenset(name for name, count in marks.items() if count)


@cache
def share_of(nodeid: str, processes: int = FEW) -> str:
    """What a test is kept together with: the others of its file, or the tests of Spark."""
    file, _, test = nodeid.partition("::")
    marked = spark_functions(file)
    if marked is not None and test.partition("[")[0] not in marked:
        return file
    return SPARK[processes > FEW and file.startswith(CONDITIONS)]


@cache
def known_seconds() -> Mapping[str, float]:
    """CPU seconds of the most expensive files, as `make test-times` prints them."""
    lines = (TESTS / "seconds.txt").read_text("utf-8").splitlines()
    rows = (line.split(maxsplit=1) for line in lines)
    return {file: float(seconds) for seconds, file in rows if file.startswith("tests/")}


def expensive_first(nodeids: Sequence[str]) -> list[int]:
    """The place of each test in the queue: before which others its part of a file comes."""
    known, files = known_seconds(), [file_of(nodeid) for nodeid in nodeids]
    counts = Counter(files)
    costs = {file: known.get(file, USUAL_S * count) for file, count in counts.items()}
    parts = [
        (share_of(nodeid) not in SPARK, -costs[file], file)
        for nodeid, file in zip(nodeids, files, strict=True)
    ]
    places = {part: number for number, part in enumerate(sorted(set(parts)))}
    return [places[part] for part in parts]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the files of a process of xdist in the order in which they are given out."""
    if not hasattr(config, "workerinput"):
        return
    nodeids = [item.nodeid for item in items]
    places = dict(zip(nodeids, expensive_first(nodeids), strict=True))
    items.sort(key=lambda item: places[item.nodeid])


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


class FilesTogether(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Whole files to each process, Spark's tests to one or two.

    Only tests to come are kept, and each one's place is looked up: xdist counts all tests that a
    process was ever given after each one, and searches the whole list for each that it gives out.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self.places: dict[Any, Mapping[str, int]] = {}

    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid, self.numnodes)

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
    if "PYTEST_XDIST_WORKER" in os.environ and share_of(nodeid) not in SPARK:
        give_way()


@cache
def give_way() -> None:
    """Lower the priority of this process, once."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
