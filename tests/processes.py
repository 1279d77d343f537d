"""Starts processes that write, read or die while a test runs.

Each is forked from one server per test process, which has imported what they need: a process that
starts from nothing spends more than half a second on imports, several times what its test does.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "tests.corpora.judging",
        "tests.logic.script",
        "tests.retention.small_histories",
        "tests.small_tables",
        "tests.storage.log_fixtures",
        "tests.stores.s3_server",
    ]
)


def start(work: Callable[..., object], *arguments: Any, daemon: bool = False) -> BaseProcess:
    """Run a module's function in a process of its own, with this one's environment as it is now."""
    environment = dict(os.environ)
    process = PROCESSES.Process(target=_run, args=(environment, work, arguments), daemon=daemon)
    process.start()
    return process


def _run(
    environment: dict[str, str], work: Callable[..., object], arguments: tuple[Any, ...]
) -> None:
    os.environ.clear()  # the server's, as it was when it started
    os.environ.update(environment)
    work(*arguments)
