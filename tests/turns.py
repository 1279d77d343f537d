"""`pytest --turns`, as `make test` calls it: of a test with many cases, some run each day.

Three quarters of the tests are cases of tests with six or more: one function over many types,
dialects, operators. Such a case has its turn once in `DAYS` days, by its name and the date. Tests
with fewer cases, traps and invariants run each day. `make test-deep`, and pytest without the
option, run every case; `ROWSIEVE_DAY=2026-11-28` those of a day.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Sequence

import pytest

from tests.daily import today
from tests.profiles import IS_DEEP

DAYS = 4
MANY = 6
EACH_DAY = ("tests/traps/", "tests/invariants/")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--turns", action="store_true", help="run each of many cases every few days")


def pytest_configure(config: pytest.Config) -> None:
    """Processes that collect before and after midnight collect the same."""
    if config.getoption("turns"):
        os.environ.setdefault("ROWSIEVE_DAY", str(today()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that have their turn on another day."""
    if IS_DEEP or not config.getoption("turns"):
        return
    due = due_on(today().toordinal(), [item.nodeid for item in items])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in due])
    items[:] = [item for item in items if item.nodeid in due]


def due_on(day: int, nodeids: Sequence[str]) -> frozenset[str]:
    """The tests that run on a day. A case's turn is by its name, so a new one moves no other."""
    counts = Counter(map(test_of, nodeids))
    return frozenset(
        nodeid
        for nodeid in nodeids
        if counts[test_of(nodeid)] < MANY
        or nodeid.startswith(EACH_DAY)
        or (zlib.crc32(nodeid.encode()) + day) % DAYS == 0
    )


def test_of(nodeid: str) -> str:
    """The test that a case belongs to."""
    return nodeid.partition("[")[0]
