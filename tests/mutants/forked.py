"""Runs tests against one fault after another: collected once, then a forked process for each fault.

The process that has collected the tests holds all functions of the module. A fork replaces their
code by that of the broken source. So a fault must be inside a function: modules that have imported
a constant would not see that it has another value.

A fault runs the tests that execute its function, the quickest first.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType, FunctionType
from typing import NamedTuple

import psutil
import pytest

from tests.mutants.workshop import ends_never

PASSED, FAILED = 0, 1
CPU_LIMIT_S = 60.0
Place = tuple[str, int]
"""A function of a module: its qualified name, and its number among those of that name."""


class Collected:
    """Tests that are collected; they run in forks of this process."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session

    def of(self, names: Sequence[str]) -> list[pytest.Item]:
        """The tests of some files, or of functions in them."""
        chosen = [each for each in self._session.items if each.nodeid.startswith(tuple(names))]
        assert chosen, f"no tests in {names}"
        return chosen

    def passes(self, items: Sequence[pytest.Item], first: Callable[[], None]) -> bool:
        """Whether all these tests pass in a fork that calls a function first."""
        return _passes(self._session, items, first)

    def executing(self, items: Sequence[pytest.Item], files: Sequence[Path]) -> list[Executing]:
        """Which functions of some modules each test executes; fails if one of the tests does."""
        with TemporaryDirectory() as folder:
            report = Path(folder) / "report"

            def watch() -> None:
                self._session.config.pluginmanager.register(_Watching(files, report))

            assert _passes(self._session, items, watch), "the tests fail without a fault"
            lines = [json.loads(line) for line in report.read_text().splitlines()]
        by_name = {each.nodeid: each for each in items}
        return [
            Executing(by_name[name], cpu_s, {(Path(file), line) for file, line in functions})
            for name, cpu_s, functions in lines
        ]


class Executing(NamedTuple):
    """A test, its CPU seconds, and file and first line of the functions that it executes."""

    item: pytest.Item
    cpu_s: float
    functions: set[tuple[Path, int]]


class _Watching:
    """A plugin of pytest that notes which functions of some files each test executes."""

    def __init__(self, files: Sequence[Path], report: Path) -> None:
        self._files, self._report = {*map(str, files)}, report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        functions: set[tuple[str, int]] = set()

        def note(frame: FrameType, _: str, __: object) -> None:
            code = frame.f_code
            if code.co_filename in self._files:
                functions.add((code.co_filename, code.co_firstlineno))

        started = time.process_time()
        with _profiled(note):
            result = yield
        with self._report.open("a") as report:
            took_s = time.process_time() - started
            report.write(json.dumps([item.nodeid, took_s, sorted(functions)]) + "\n")
        return result


@contextmanager
def _profiled(note: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def first_lines_at(source: str, line: int) -> set[int]:
    """The first lines of the functions of a module that have code in a line."""
    return {
        code.co_firstlineno
        for _, code in _functions(compile(source, "", "exec"))
        if any(at == line for _, _, at in code.co_lines())
    }


def break_functions(file: Path, broken: str) -> None:
    """Replace the code of all functions of a module by that of its broken source."""
    new = dict(_functions(compile(broken, str(file), "exec")))
    whole = _functions(compile(file.read_text(), str(file), "exec"))
    places = {(code.co_qualname, code.co_firstlineno): place for place, code in whole}
    gc.unfreeze()  # frozen objects are not listed
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(file):
            code = function.__code__
            function.__code__ = new[places[code.co_qualname, code.co_firstlineno]]


def _functions(code: CodeType) -> Iterator[tuple[Place, CodeType]]:
    """All code inside the code of a module, from the outside in."""
    counts = Counter[str]()
    waiting = [code]
    while waiting:
        for inner in waiting.pop(0).co_consts:
            if isinstance(inner, CodeType):
                counts[inner.co_qualname] += 1
                yield (inner.co_qualname, counts[inner.co_qualname]), inner
                waiting.append(inner)


def with_collected(tests: Sequence[str], use: Callable[[Collected], None]) -> None:
    """Collect tests and call `use` with how to run them."""
    rewritten = "ignore::pytest.PytestAssertRewriteWarning"  # modules imported by this program
    arguments = ["-q", "-s", "-n0", "-p", "no:cacheprovider", "-W", rewritten, *tests]
    pytest.main(arguments, plugins=[_InsteadOfTests(use)])


class _InsteadOfTests:
    """A plugin of pytest that does something else with the tests once they are collected."""

    def __init__(self, use: Callable[[Collected], None]) -> None:
        self._use = use

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert session.items
        self._use(Collected(session))
        return True


def _passes(
    session: pytest.Session, items: Sequence[pytest.Item], first: Callable[[], None]
) -> bool:
    if not (child := os.fork()):
        _run_and_exit(session, items, first)
    running = psutil.Process(child)
    if ends_never(running, cpu_limit_s=CPU_LIMIT_S):
        running.kill()
    return bool(running.wait() == PASSED)


def _run_and_exit(
    session: pytest.Session, items: Sequence[pytest.Item], first: Callable[[], None]
) -> None:
    status = FAILED
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        first()
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                break
        else:
            status = PASSED
    finally:
        os._exit(status)
