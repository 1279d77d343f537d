"""Checks that the executors of a session can read and write tables, before a job fails on them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from rowsieve import engines
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.objects import Location
from rowsieve.objects.storage_options import flat_options, secrets_of
from rowsieve.providers.spark.cluster import probe
from rowsieve.providers.spark.cluster.probe import probed

_LONGEST_S: Final = 20.0  # for the store to answer a process
_TASKS_PER_CORE: Final = 2
_MAX_TASKS: Final = 1_000
_LONGEST_TEXT: Final = 500
_LOCK: Final = threading.Lock()  # the list of modules that are sent by value is the process's


@dataclass(frozen=True, slots=True)
class SparkProcess:
    """A Python of the session: where it runs, and its versions; empty if a package is missing."""

    host: str
    executable: str
    python: str
    rowsieve: str
    pyarrow: str
    obstore: str
    problem: str = field(default="", repr=False)

    def __str__(self) -> str:
        return (
            f"{self.host}: Python {self.python}, rowsieve {self.rowsieve or '-'}, pyarrow "
            f"{self.pyarrow or '-'} ({self.executable})"
        )


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What `check` saw; `str()` sums it up. Processes that are alike count once."""

    driver: SparkProcess
    executors: tuple[SparkProcess, ...]

    def __str__(self) -> str:
        return "\n".join([f"driver    {self.driver}", *(f"executor  {e}" for e in self.executors)])


def check(
    spark: Any, uri: str | None = None, *, storage_options: Any = None, writes: bool = False
) -> ClusterReport:
    """Check that driver and executors have the same versions, and reach a table if one is given.

    `writes` also puts a small object into the table's folder of data and deletes it, on each of
    them. UnsupportedOperation names everything that is wrong. Options of the store reach tasks
    with their code: no plan and no log has them.
    """
    engines.spark()  # MissingExtra without PySpark
    if not hasattr(spark, "sparkContext") or not hasattr(spark, "_jsparkSession"):
        raise UnsupportedOperation(
            f"check: {type(spark).__name__} is not a session with a driver of its own, which "
            "a client of Spark Connect lacks; call check on the driver"
        )
    if uri is None and (writes or storage_options):
        raise InvalidInput("check: storage_options= and writes= are of a table; give its uri")
    if uri is not None:
        uri = Location.parse(uri).uri  # a relative path is another one on an executor
    options = flat_options(storage_options or {})
    driver = _process(probed(uri, options, _LONGEST_S, writes=writes))
    problems = [f"the driver: {driver.problem}"] if driver.problem else []
    executors = _executors(spark, uri, options, writes=writes)
    for each in executors:
        where = f"an executor on {each.host} ({each.executable})"
        if each.problem:
            problems.append(f"{where}: {each.problem}")
        problems += [
            f"{where} has {name} {there or 'not at all'}, and the driver has {here}"
            for name, here, there in _versions(driver, each)
            if here != there
        ]
    if problems:
        text = "\n".join(f"- {each}" for each in dict.fromkeys(problems))
        for secret in secrets_of(options):
            text = text.replace(secret, "…")
        raise UnsupportedOperation(f"check: this session cannot run tasks of Rowsieve:\n{text}")
    return ClusterReport(driver, executors)


def _versions(driver: SparkProcess, executor: SparkProcess) -> Iterator[tuple[str, str, str]]:
    minor = [each.python.rpartition(".")[0] for each in (driver, executor)]
    yield "Python", minor[0], minor[1]
    yield "rowsieve", driver.rowsieve, executor.rowsieve
    yield "pyarrow", driver.pyarrow, executor.pyarrow


def _executors(
    spark: Any, uri: str | None, options: Mapping[str, str], *, writes: bool
) -> tuple[SparkProcess, ...]:
    """The different processes that run tasks; UnsupportedOperation if no task of Python runs."""
    context = spark.sparkContext
    tasks = min(_MAX_TASKS, max(2, _TASKS_PER_CORE * int(context.defaultParallelism)))
    longest_s = _LONGEST_S

    def run(_: Any) -> Iterator[dict[str, str]]:
        yield probed(uri, options, longest_s, writes=writes)

    try:
        with _LOCK, _sent_by_value():
            facts = context.parallelize(range(tasks), tasks).mapPartitions(run).collect()
    except Exception as error:
        raise UnsupportedOperation(
            "check: no task of Python runs on the executors. They need the Python of the driver "
            f"(PYSPARK_PYTHON or spark.pyspark.python); Spark says: {_reason(error)}"
        ) from error
    return tuple(dict.fromkeys(map(_process, facts)))


@contextmanager
def _sent_by_value() -> Iterator[None]:
    """Send the functions of the probe with a task instead of their names."""
    from pyspark import cloudpickle  # noqa: PLC0415 - PySpark is optional

    pickles: Any = cloudpickle  # has no types
    pickles.register_pickle_by_value(probe)
    try:
        yield
    finally:
        pickles.unregister_pickle_by_value(probe)


def _process(facts: Mapping[str, str]) -> SparkProcess:
    names = ("host", "executable", "python", "rowsieve", "pyarrow", "obstore", "problem")
    return SparkProcess(*(facts[name] for name in names))


def _reason(error: Exception) -> str:
    """The line of Spark's error that says most: the last one of a worker's traceback."""
    lines = [line.strip() for line in str(error).splitlines()]
    facts = [line for line in lines if line and not line.startswith(("at ", "File ", "^"))]
    errors = [line for line in facts if "Error" in line.partition(" ")[0] or line.startswith("[")]
    return (errors or facts or [type(error).__name__])[-1][:_LONGEST_TEXT]
