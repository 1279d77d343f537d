"""Calls on local and clustered Spark whose tasks, executors and drivers are lost: one commit.

The drivers are processes of their own. The deep profile alone runs them: 20 rounds of each fault,
or as many as ROWSIEVE_ROUNDS says.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import rowsieve as rs
from rowsieve.providers.spark.jvm.java import java_home
from tests.procedures.cluster_driver import check_orphans
from tests.procedures.cluster_subjects import SUBJECTS, described, expected, with_small_tasks
from tests.profiles import IS_DEEP

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not IS_DEEP, reason="JVMs of its own: in the deep run"),
]

ROUNDS = int(os.environ.get("ROWSIEVE_ROUNDS", "20"))
LOCAL, CLUSTER = "local[2,4]", "local-cluster[2,1,1024]"


def drive(master: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.procedures.cluster_driver", master, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(
        [*command, *arguments], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("master", "faults"),
    [
        (LOCAL, ["TASK_FAILED", "TASK_KILLED", "CANCELLED"]),
        (CLUSTER, ["TASK_FAILED", "TASK_KILLED", "EXECUTOR_KILLED", "ZOMBIE", "CANCELLED"]),
    ],
)
def test_calls_survive_lost_tasks_and_executors(
    tmp_path: Path, master: str, faults: list[str]
) -> None:  # trap T29
    check_rounds(master, tmp_path, *faults)


def test_two_attempts_of_a_task_that_both_report_count_once(tmp_path: Path) -> None:  # trap T29
    with two_hosts(tmp_path) as master:
        check_rounds(master, tmp_path, "SPECULATED")


@pytest.mark.parametrize(
    ("master", "faults"),
    [(LOCAL, ["TASK_FAILED"]), (CLUSTER, ["TASK_FAILED", "EXECUTOR_KILLED", "ZOMBIE"])],
)
@pytest.mark.parametrize("subject", sorted(SUBJECTS.keys() - {"rewrite"}))
def test_other_calls_survive_lost_tasks_and_executors(
    tmp_path: Path, subject: str, master: str, faults: list[str]
) -> None:  # trap T29
    names = [f"{subject}:{fault}" for fault in faults]
    check_rounds(master, tmp_path, *names, rounds=max(1, ROUNDS // 5))


def check_rounds(master: str, folder: Path, *faults: str, rounds: int = ROUNDS) -> None:
    done = drive(master, folder, str(rounds), *faults)
    assert done.returncode == 0, done.stderr[-4000:]
    wanted = [f"{number} {name}" for number in range(rounds) for name in faults]
    assert done.stdout.splitlines() == wanted


@contextmanager
def two_hosts(folder: Path) -> Iterator[str]:
    """A cluster of two hosts: Spark runs no second attempt on the host of the first one."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    commands = {
        "127.0.0.1": ["master.Master", "--port", str(port)],
        "127.0.0.2": ["worker.Worker", "--cores", "1", "--memory", "1024m", master],
        "127.0.0.3": ["worker.Worker", "--cores", "1", "--memory", "1024m", master],
    }
    with ExitStack() as stack:
        for host, (name, *options) in commands.items():
            environment = {
                **os.environ,
                "JAVA_HOME": str(java_home()),
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "SPARK_HOME": str(home),
                "SPARK_LOCAL_IP": host,
                "SPARK_WORKER_DIR": str(folder / host),
            }
            command = [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{name}"]
            log = stack.enter_context((folder / f"{host}.log").open("wb"))
            process = stack.enter_context(
                subprocess.Popen(
                    [*command, "--host", host, "--webui-port", "0", *options],
                    env=environment,
                    stdout=log,
                    stderr=log,
                )
            )
            stack.callback(process.terminate)
        yield master


@pytest.mark.parametrize("subject", sorted(SUBJECTS))
@pytest.mark.parametrize("round_", range(max(2, ROUNDS // 5)))
def test_killed_driver_has_committed_once_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subject: str, round_: int
) -> None:
    called, moment = SUBJECTS[subject], ("before", "after")[round_ % 2]
    master = (LOCAL, CLUSTER)[(round_ // 2 + len(subject)) % 2]
    for name in ("untouched", "twin"):
        (tmp_path / name).mkdir()
    with_small_tasks(monkeypatch)
    before = described(called.lake(tmp_path / "untouched"))
    wanted = expected(called, tmp_path / "twin")
    done = drive(master, tmp_path, "dies", subject, moment)
    assert done.returncode == -9, done.stderr[-4000:]
    catalog = rs.Catalog(tmp_path / "lake")
    assert described(catalog) == (wanted if moment == "after" else before)
    table = catalog.open_table("db.t")
    if moment == "before":
        check_orphans(table, tmp_path, at_least=int(called.writes_files))
    catalog.call(called.call.format(folder=tmp_path))
    after = described(catalog)
    for name in ("rows", "distinct", "vectors"):
        assert after[name] == wanted[name]
