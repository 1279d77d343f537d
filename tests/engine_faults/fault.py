"""A fault of an engine: what it does, where the package works around it, and a probe."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, TypeAlias

Probe: TypeAlias = Callable[..., bool]

UPSTREAM: Final = "https://github.com/{}/issues/{}"


@dataclass(frozen=True, slots=True)
class Fault:
    """`probe` returns whether the installed engine has the fault; Spark's take a session.

    `engine` is the name of the distribution. `does` is a sentence for users, in Markdown. `here`
    has the places of the workaround, as `module:name`. `upstream` is an issue, as `owner/name#1`,
    or empty if none is known. `is_slow`: the probe takes seconds, so `make test` leaves it out.
    """

    engine: str
    does: str
    here: tuple[str, ...]
    probe: Probe
    upstream: str = ""
    is_slow: bool = False

    @property
    def name(self) -> str:
        """The name of the probe, which identifies the fault."""
        return self.probe.__name__

    @property
    def installed(self) -> str:
        """The engine and its installed version."""
        return f"{self.engine} {version(self.engine)}"

    @property
    def needs_spark(self) -> bool:
        """Whether the probe takes a Spark session."""
        return self.engine == "pyspark"

    @property
    def upstream_url(self) -> str:
        """The address of the issue, which also leads to a pull request; empty if none is known."""
        return UPSTREAM.format(*self.upstream.split("#")) if self.upstream else ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended that ran a probe's code; a negative code is a signal."""

    code: int
    output: str


def run_apart(code: str) -> Ended:
    """Run Python code in a process of its own, because it may end its process."""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    return Ended(ended.returncode, ended.stdout)


def raises(part: str, call: Callable[[], Any]) -> bool:
    """Return whether a call fails with this in its message; panics count as failures."""
    try:
        call()
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return part in str(error)
    return False
