"""A driver of Spark in a process of its own, which calls procedures whose tasks go wrong.

    python -m tests.procedures.cluster_driver MASTER FOLDER ROUNDS FAULT…
    python -m tests.procedures.cluster_driver MASTER FOLDER dies SUBJECT before|after

A fault is a `Fault` of `tests.faults.tasks`, such as TASK_FAILED, or CANCELLED; it is one of the
rewrite or, as in `migrate:TASK_FAILED`, of another call.
Each round makes a table, calls the rewrite with each fault, and checks the table; the first line
that does not hold ends the process with an error. The last form does not return.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import CallCancelled
from rowsieve.providers.spark.jvm.java import spark_session
from rowsieve.providers.spark.procedure_engine import SparkEngine
from rowsieve.retention.removed_files import RemovedFiles
from tests.faults.tasks import SURVIVED, DyingDriver, Endless, Faulty
from tests.faults.vocabulary import Fault
from tests.procedures.cluster_subjects import (
    SUBJECTS,
    Subject,
    described,
    expected,
    with_small_tasks,
)

CALL = """
    CALL system.rewrite_data_files(
        table => 'db.t', options => map('rewrite-all', 'true', 'max-file-group-size-bytes', '1'))
"""
CONF = {
    "spark.log.level": "OFF",
    "spark.executor.memory": "1024m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.efficiency.enabled": "false",
}


def main(master: str, folder: Path, arguments: list[str]) -> None:
    """Run the rounds, or die in the middle of one."""
    spark = spark_session("rowsieve procedures", CONF, master=master)
    if arguments[0] == "dies":
        dies(spark, folder, SUBJECTS[arguments[1]], after=arguments[2] == "after")
    for number in range(int(arguments[0])):
        for name in arguments[1:]:
            place = folder / f"{number}-{name}"
            if ":" in name:
                survived_by(spark, place, *name.split(":"))
            else:
                (cancelled if name == "CANCELLED" else survived)(spark, place, name)
            sys.stdout.write(f"{number} {name}\n")
            sys.stdout.flush()
    spark.stop()


def dies(spark: Any, folder: Path, subject: Subject, *, after: bool) -> None:
    """Kill this process in the middle of a call."""
    with pytest.MonkeyPatch.context() as patch:
        with_small_tasks(patch)
        catalog = subject.lake(folder)
        replace(catalog, DyingDriver(subject.procedure(), after=after))
        catalog.call(subject.call.format(folder=folder), engine=SparkEngine(spark))
    raise AssertionError("the driver still lives")


def new_catalog(folder: Path) -> rs.Catalog:
    """A catalog with a table of four overlap groups, two parts each."""
    catalog = rs.Catalog(folder / "lake")
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table = catalog.create_table("db.t", schema, ["id"])
    for start in range(0, 80, 20):
        table.upsert(pa.table({"id": range(start, start + 15), "v": [1] * 15}))
        table.upsert(pa.table({"id": range(start + 10, start + 18), "v": [2] * 8}))
    table.delete("id % 20 = 3")
    return catalog


def survived(spark: Any, folder: Path, name: str) -> None:
    """A call with the fault commits once; the files of lost attempts go after the grace."""
    catalog, marks = new_catalog(folder), folder / "marks"
    marks.mkdir()
    procedure = SURVIVED[Fault[name]](marks)
    replace(catalog, procedure)
    table = catalog.open_table("db.t")
    before, version = rows(table), table.version
    (row,) = catalog.call(CALL, engine=SparkEngine(spark)).to_pylist()
    assert table.refresh() == version + 1 == row["version"]
    assert table.files().num_rows == row["added_data_files_count"]
    assert rows(table) == before
    assert any(marks.iterdir()), "nothing went wrong"
    check_orphans(table, folder, at_least=1)
    if name == Fault.ZOMBIE.name:
        check_zombie(table, procedure, folder)
    assert rows(table) == before
    version = table.refresh()
    catalog.call(CALL.replace("'rewrite-all', 'true'", "'min-input-files', '1000'"))
    assert table.refresh() == version


def survived_by(spark: Any, folder: Path, subject_name: str, name: str) -> None:
    """A call of another procedure with the fault has the result of one without, and commits once.

    The files of lost attempts go after the grace.
    """
    subject, marks, twin = SUBJECTS[subject_name], folder / "marks", folder / "twin"
    marks.mkdir(parents=True)
    twin.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        with_small_tasks(patch)
        wanted = expected(subject, twin)
        catalog = subject.lake(folder)
        procedure = SURVIVED[Fault[name]](marks, subject.procedure())
        replace(catalog, procedure)
        catalog.call(subject.call.format(folder=folder), engine=SparkEngine(spark))
    assert described(catalog) == wanted, subject_name
    assert any(marks.iterdir()), "nothing went wrong"
    table = catalog.open_table("db.t")
    check_orphans(table, folder, at_least=int(subject.writes_files))
    if name == Fault.ZOMBIE.name:
        procedure.first("cleaned")
        assert procedure.wait_for("risen"), "the zombie did not write"
        table.refresh()
        assert written_in(table.remove_orphans()) >= int(subject.writes_files)
        check_complete(table, folder)
    assert described(catalog)["rows"] == wanted["rows"]


def check_zombie(table: rs.Table, procedure: Faulty, folder: Path) -> None:
    """The attempt that outlives its executor writes files that belong to nothing."""
    files = table.files().column("path").to_pylist()
    procedure.first("cleaned")
    assert procedure.wait_for("risen"), "the zombie did not write"
    table.refresh()
    assert table.files().column("path").to_pylist() == files
    # A floor is committed since: what is based on a version below it needs no grace.
    assert table.remove_orphans().files["data"] >= 1
    check_complete(table, folder)


def cancelled(spark: Any, folder: Path, name: str) -> None:
    """A call whose jobs are cancelled commits nothing, and the next one ends the work."""
    catalog, marks = new_catalog(folder), folder / "marks"
    marks.mkdir()
    procedure = Endless(marks)
    replace(catalog, procedure)
    table = catalog.open_table("db.t")
    before, version = rows(table), table.version

    def cancel() -> None:
        assert procedure.wait_for("waiting"), name
        spark.sparkContext.cancelAllJobs()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(CallCancelled, match="nothing was committed"):
        catalog.call(CALL, engine=SparkEngine(spark))
    thread.join()
    assert table.refresh() == version
    assert rows(table) == before
    catalog = rs.Catalog(catalog.uri)
    catalog.call(CALL, engine=SparkEngine(spark))
    assert table.refresh() == version + 1
    assert rows(table) == before


def check_orphans(table: rs.Table, folder: Path, *, at_least: int) -> None:
    """Orphans stay for their grace, and then all of them go, and nothing else."""
    data = folder / "lake/db/t/data"
    before = {path.name for path in data.iterdir()}
    assert not written_in(table.remove_orphans())
    assert {path.name for path in data.iterdir()} == before
    removed = table.remove_orphans(grace_s=0)
    assert written_in(removed) >= at_least
    left = {path.name for path in data.iterdir()}
    assert left == before - {path.rpartition("/")[2] for path in removed.sizes}
    check_complete(table, folder)


def written_in(removed: RemovedFiles) -> int:
    """How many of these files a task has written."""
    return removed.files.get("data", 0) + removed.files.get("vector", 0)


def check_complete(table: rs.Table, folder: Path) -> None:
    """No file that a version needs is gone."""
    table.refresh()
    left = {path.name for path in (folder / "lake/db/t/data").iterdir()}
    paths = [path for path in table.files().column("path").to_pylist() if "://" not in path]
    assert left >= {path.rpartition("/")[2] for path in paths}
    for version in range(1, table.version + 1):
        table.scan(version=version).to_arrow()  # every version still has its files


def replace(catalog: rs.Catalog, procedure: Any) -> None:
    """Let the procedure take the place of the one with its name."""
    catalog.procedures.remove(procedure.name)
    catalog.procedures.add(procedure)


def rows(table: rs.Table) -> list[dict[str, Any]]:
    """The rows of the table, in the order of its key."""
    found: list[dict[str, Any]] = table.scan(order_by_key=True).to_arrow().to_pylist()
    return found


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
