"""Runs a system as a child process in its own environment, or in this process for tests."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from benchmarks.measure import Sample
from benchmarks.peers.environments import python_of
from benchmarks.peers.registry import System
from benchmarks.suite.child import Service

ROOT = Path(__file__).parents[2]


class PeerFailed(Exception):
    """A system raised an error or its process died; has the system's message."""


class Runner(Protocol):
    """Sends requests to one system, whose table is in one folder."""

    def ask(self, do: str, **request: Any) -> tuple[Any, Sample]:
        """The answer and its cost."""

    def close(self) -> None:
        """Stop the system."""


Start = Callable[[str, System, Path], Runner]
"""(kind, system, folder) -> a runner that has done nothing yet."""


class Child:
    """A process that serves one system."""

    def __init__(self, kind: str, system: System, folder: Path) -> None:
        self._system = system
        self._log = folder / "errors.txt"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each run would compile our files again
        command = [str(python_of(system, make=False)), "-m", "benchmarks.suite.child"]
        with self._log.open("a") as errors:
            self._process = subprocess.Popen(
                [*command, kind, system.name, str(folder)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        try:
            self._answer()
        except PeerFailed:
            self.close()
            raise

    def ask(self, do: str, **request: Any) -> tuple[Any, Sample]:
        """Send a request and wait for its answer."""
        assert self._process.stdin is not None
        try:
            print(json.dumps({"do": do, **request}), file=self._process.stdin, flush=True)
        except OSError as error:
            raise PeerFailed(f"its process is gone: {error}") from error
        answer = self._answer()
        return answer["answer"], Sample(**answer["sample"])

    def close(self) -> None:
        """End the process by ending its input."""
        try:
            self._process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
            raise PeerFailed(f"exit code {self._process.returncode}: {' '.join(last)[:200]}")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise PeerFailed(answer["failed"])
        return answer


class InProcess:
    """The same service without a process."""

    def __init__(self, kind: str, system: System, folder: Path) -> None:
        del kind
        self._service = Service(system.new(folder))

    def ask(self, do: str, **request: Any) -> tuple[Any, Sample]:
        """Do it here; requests and answers go through JSON all the same."""
        found = self._service.do(json.loads(json.dumps({"do": do, **request})))
        return json.loads(json.dumps(found["answer"])), Sample(**found["sample"])

    def close(self) -> None:
        """Nothing to end."""


@contextmanager
def running(start: Start, kind: str, system: System, folder: Path) -> Iterator[Runner]:
    """A runner that is closed at the end."""
    runner = start(kind, system, folder)
    try:
        yield runner
    finally:
        runner.close()
