"""What every test shares: the small profile repeats its examples, the deep one finds new ones.

A failure of `make test` is then a failure of the code at hand; `make test-deep` goes looking.
"""

from __future__ import annotations

import gc
import os
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.vendor.pretty import for_type_by_name
from typer.main import get_command

import rowsieve
from rowsieve.config import current
from rowsieve.predicate.functions import registered, registry
from tests import profiles, random_tables
from tests.stores.s3_server import S3, s3_server

SPARK_WORKERS = Path(__file__).with_name("spark_workers")

pytest_plugins = [
    "tests.cpu_times",
    "tests.daily",
    "tests.reports",
    "tests.shards",
    "tests.spread",
    "tests.tables_of_files",
    "tests.turns",
]

settings.register_profile("small", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("deep", deadline=None, print_blob=True)
settings.load_profile("deep" if os.environ.get("ROWSIEVE_TESTS") == "deep" else "small")
# Hypothesis prints the class variables of a dataclass, too: those of Semantics are Semantics, each
# with all others inside, so that a failing example would never be printed.
for_type_by_name(
    "rowsieve.predicate.semantics", "Semantics", lambda shown, to, _: to.text(repr(shown))
)


def _unsynced(descriptor: int) -> None:
    """Stand for `fsync`: tests look at the calls, and no test cuts the power of its machine."""
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        _FSYNC(descriptor)  # raises


_FSYNC = os.fsync
if not profiles.IS_DEEP:
    os.fsync = _unsynced  # type: ignore[assignment] # takes objects with a descriptor, too

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background shell's, and its children's
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # pytest keeps all of the half million objects that it creates for the tests


def pytest_collection_finish() -> None:
    """No garbage collection walks what collecting the tests has made."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def no_old_garbage() -> None:
    """A test that collects garbage often need not walk what the tests before it left."""
    gc.freeze()


@pytest.fixture(scope="module")
def tiny_row_groups() -> Iterator[None]:
    """Row groups and pages of a few rows, so that small tables have several of them."""
    yield from random_tables.tiny_row_groups()


@pytest.fixture(scope="module")
def row_groups_of_three() -> Iterator[None]:
    """Row groups of three rows, and pages of one."""
    yield from random_tables.tiny_row_groups(3)


@pytest.fixture
def former_config() -> Iterator[None]:
    """The configuration of the process comes back as it was."""
    former = current()
    yield
    rowsieve.configure(former)


@pytest.fixture
def own_registry() -> Iterator[None]:
    """What a test registers as a function of SQL is forgotten after it."""
    with functions_of_its_own():
        yield


@pytest.fixture(scope="module")
def own_registry_of_the_file() -> Iterator[None]:
    """What a file's tests register as functions of SQL is forgotten after them."""
    with functions_of_its_own():
        yield


@contextmanager
def functions_of_its_own() -> Iterator[None]:
    rows = dict(registry._ROWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_ROWS", rows)
        for module in (registry, registered):
            patch.setattr(module, "FUNCTIONS", MappingProxyType(rows))
        yield


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Typer's runner builds all commands from their annotations for each one that it invokes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """One S3 server on loopback for the whole run."""
    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark session for each test process: starting one takes some ten seconds."""
    sql = pytest.importorskip("pyspark.sql")
    from rowsieve.providers.spark.jvm.java import spark_session

    if (other := sql.SparkSession.getActiveSession()) is not None:
        other.stop()  # it may be a local one that never runs a failed task again
    settings = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.driver.extraJavaOptions": (
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
            "-XX:ReservedCodeCacheSize=240m "  # 48 MB else: code is swept and compiled again
            "-XX:MetaspaceSize=300m"  # until there, each step collects the whole heap
        ),
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "3",
        "spark.connect.grpc.binding.address": "localhost",
        "spark.connect.grpc.binding.port": "0",  # any that is free
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(SPARK_WORKERS), prepend=os.pathsep)
        session = spark_session("rowsieve tests", settings, master="local[2,4]")
    with java_classes_found_once():
        yield session
    session.stop()


@contextmanager
def java_classes_found_once() -> Iterator[None]:
    """Keep each class and each package that is asked for, as `functions` is with each call of one.

    The JVM looks for a class of such a name in each of 280 archives, as one of the packages that
    are imported, one after the other. A package is looked for in vain: each step to the class that
    tells the kind of an error, `py4j.reflection.TypeUtil`, takes as long as a small query.
    """
    from py4j.java_gateway import JavaClass, JavaPackage, JVMView

    with pytest.MonkeyPatch.context() as patch:
        for kind in (JVMView, JavaPackage):
            patch.setattr(kind, "__getattr__", _keeping(kind.__getattr__, JavaClass, JavaPackage))
        yield


def _keeping(find: Callable[[Any, str], Any], class_: type, package: type) -> Callable[..., Any]:
    def find_once(view: Any, name: str) -> Any:
        found = find(view, name)
        # A dotted name without a class is a missing class: the next call searches again.
        if isinstance(found, class_) or (isinstance(found, package) and "." not in name):
            vars(view)[name] = found
        return found

    return find_once


@pytest.fixture(autouse=True)
def shared_session_is_active(request: pytest.FixtureRequest) -> None:
    """Make the shared session the active one again: a test may have used another one."""
    if "spark" in request.fixturenames:
        spark = request.getfixturevalue("spark")
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
        type(spark)._activeSession = spark


@pytest.fixture
def zoned_session(spark: Any) -> Iterator[Any]:
    """The shared session; its time zone and its ANSI mode come back as they were."""
    names = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
    before = {name: spark.conf.get(name) for name in names}
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def judging_spark(spark: Any) -> Iterator[None]:
    """The shared session as a judge of texts, in UTC and ANSI mode."""
    from tests.bridges.against_engines.judges import judging

    with judging(spark):
        yield


@pytest.fixture(scope="session")
def client(spark: Any) -> Iterator[Any]:
    """A client of Spark Connect, served by the JVM of the shared session: a session beside it.

    It is no process's default: columns of both kinds live side by side, as they do for users who
    import `pyspark.sql.connect` by name.
    """
    from pyspark.sql.connect.session import SparkSession

    served = spark._jvm.org.apache.spark.sql.connect.service
    served.SparkConnectService.start(spark._jsc.sc())
    port = getattr(getattr(served, "SparkConnectService$"), "MODULE$").localPort()
    session = SparkSession(f"sc://localhost:{port}", userId="tests")
    yield session
    session.stop()
    nothing = spark._jvm.scala.Option.empty()
    served.SparkConnectService.stop(nothing, nothing)
