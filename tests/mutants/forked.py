"""Runs tests against one fault after another: collected once, then a forked process for each fault.

The process that has collected the tests holds all functions of the module. A fork replaces their
code by that of the broken source. So a fault must be inside a function: modules that have imported
a constant would not see that it has another value.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

import psutil
import pytest

from tests.mutants.workshop import ends_never

PASSED, FAILED = 0, 1
CPU_LIMIT_S = 60.0
Place = tuple[str, int]
"""A function of a module: its qualified name, and its number among those of that name."""

Passes = Callable[[Callable[[], None]], bool]
"""Whether all tests pass in a fork that calls a function first."""


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


def with_collected(tests: tuple[str, ...], use: Callable[[Passes], None]) -> None:
    """Collect tests and call `use` with how to run them."""
    rewritten = "ignore::pytest.PytestAssertRewriteWarning"  # modules imported by this program
    arguments = ["-q", "-s", "-n0", "-p", "no:cacheprovider", "-W", rewritten, *tests]
    pytest.main(arguments, plugins=[_InsteadOfTests(use)])


class _InsteadOfTests:
    """A plugin of pytest that does something else with the tests once they are collected."""

    def __init__(self, use: Callable[[Passes], None]) -> None:
        self._use = use

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert session.items
        self._use(lambda first: _passes(session, first))
        return True


def _passes(session: pytest.Session, first: Callable[[], None]) -> bool:
    if not (child := os.fork()):
        _run_and_exit(session, first)
    running = psutil.Process(child)
    if ends_never(running, cpu_limit_s=CPU_LIMIT_S):
        running.kill()
    return bool(running.wait() == PASSED)


def _run_and_exit(session: pytest.Session, first: Callable[[], None]) -> None:
    status = FAILED
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        first()
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                break
        else:
            status = PASSED
    finally:
        os._exit(status)
