"""How the tests are spread over processes: a file stays whole, and all of Spark's files together.

The tests of a file share fixtures. Starting Spark takes some ten seconds and a gigabyte, so one
process alone starts it; that process gets its files first, since they take longest.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling, Scheduling

SPARK = "the tests of Spark"
TESTS = Path(__file__).parent


@cache
def share_of(file: str) -> str:
    """What a test file, as `tests/test_x.py`, is kept together with: itself, or all of Spark's."""
    return SPARK if "mark.spark" in (TESTS.parent / file).read_text("utf-8") else file


class FilesTogether(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Whole files to each process, all of Spark's to one."""

    def _split_scope(self, nodeid: str) -> str:
        return share_of(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    return FilesTogether(config, log)
