"""A copy of the package in which one thing at a time is broken, to see whether a test notices.

A mutant replaces a text that stands exactly once in a module. The module's tests run against the
copy in a process of their own: if they pass, nothing tests what was broken.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import psutil

from tests.cpu_times import cpu_seconds

REPOSITORY = Path(__file__).parent.parent.parent
# A mutant may compute or wait for ever, which is noticed, too. Neither limit is of elapsed time: on
# a busy machine a mutant that nothing notices would then count as noticed.
CPU_LIMIT_S = 240
LOOK_S, QUIET_LOOKS = 2, 30  # it waits for ever if it sleeps, and spends nothing, this often
PASSED, FAILED = 0, 1

# The first example that fails is enough, it need not become small.
_PROFILE = """
settings.register_profile("mutants", parent=settings(), phases=(Phase.explicit, Phase.generate))
settings.load_profile("mutants")
"""
_RUN = """
import os, sys, traceback, pytest
try:
    import rowsieve
    assert rowsieve.__file__.startswith(sys.argv[1]), rowsieve.__file__
except Exception:
    traceback.print_exc()
    sys.exit(os.EX_SOFTWARE)
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def ends_never(running: psutil.Process | psutil.Popen, cpu_limit_s: float | None = None) -> bool:
    """Wait for a process; True if it computes or sleeps for so long that it will not end."""
    spent, quiet = 0.0, 0
    limit_s = CPU_LIMIT_S if cpu_limit_s is None else cpu_limit_s
    while quiet < QUIET_LOOKS and spent < limit_s:
        try:
            running.wait(LOOK_S)
        except psutil.TimeoutExpired:
            before, spent = spent, cpu_seconds(running)
            asleep = running.status() == psutil.STATUS_SLEEPING and spent == before
            quiet = quiet + 1 if asleep else 0
        else:
            return False
    return True


@dataclass(frozen=True)
class Mutant:
    """`what` is wrong in `module` once `new` stands in the place of `old`.

    `tests` are those that must notice, if they are not those of the module. `seed` is the run of a
    machine that notices, by itself and within `make test` (`planted.py`).
    """

    module: str
    what: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    seed: str = ""

    def __str__(self) -> str:
        return f"{self.module}: {self.what}"

    def applied(self, source: str) -> str:
        """The broken source; fails unless `old` stands there exactly once."""
        count = source.count(self.old)
        assert count == 1, (
            f"{self.module} has the text {self.old!r} {count} times, so the mutant {self.what!r} "
            "no longer breaks what it was made for: break the same idea in the code as it is now"
        )
        return source.replace(self.old, self.new)


def source_of(module: str) -> str:
    """The text of a module of the package, by its path there."""
    return (REPOSITORY / "rowsieve" / module).read_text()


class Workshop:
    """A copy of package and tests in a folder; `suites` says which tests know which module."""

    def __init__(self, root: Path, suites: Mapping[str, tuple[str, ...]]) -> None:
        self._root = root
        self._suites = suites
        # With bytecode, where there is some: a copy has the time of its source, a mutant another.
        unwanted = shutil.ignore_patterns("mutants")
        shutil.copytree(REPOSITORY / "tests", root / "tests", ignore=unwanted)
        shutil.copytree(REPOSITORY / "rowsieve", root / "rowsieve")
        shutil.copy(REPOSITORY / "pyproject.toml", root)
        conftest = root / "tests" / "conftest.py"
        text = conftest.read_text().replace("import settings", "import Phase, settings")
        conftest.write_text(text + _PROFILE)

    def survives(self, mutant: Mutant) -> bool:
        """Whether all tests of the module pass though it is broken."""
        source = mutant.applied((self._root / "rowsieve" / mutant.module).read_text())
        return self.survives_as(mutant.module, source, mutant.tests or self._suites[mutant.module])

    def survives_as(self, module: str, source: str, tests: tuple[str, ...]) -> bool:
        """Whether these tests pass with another source of a module."""
        with self._broken(module, source):
            return self.passes(tests)

    def passes(self, tests: tuple[str, ...]) -> bool:
        """Whether these tests pass as the copy is now."""
        command = [sys.executable, "-c", _RUN, str(self._root), *tests]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "ROWSIEVE_TESTS": "small"}
        environment["ROWSIEVE_SHARE"] = "1"
        environment["PYTHONPATH"] = str(self._root)
        with TemporaryFile("w+") as output:
            running = psutil.Popen(
                command, cwd=self._root, env=environment, stdout=output, stderr=output
            )
            if ends_never(running):
                running.kill()
                running.wait()
                return False
            output.seek(0)
            text = output.read()
        assert running.returncode in (PASSED, FAILED), text
        assert "ERROR collecting" not in text, text
        return bool(running.returncode == PASSED)

    @contextmanager
    def _broken(self, module: str, source: str) -> Iterator[None]:
        file = self._root / "rowsieve" / module
        whole = file.read_text()
        file.write_text(source)
        try:
            yield
        finally:
            file.write_text(whole)
