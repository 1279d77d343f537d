"""Writes on a cluster that loses executors, and runs tasks twice: one commit, each row once.

The deep profile alone runs them, as often as ROWSIEVE_ROUNDS says, or three times.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.vocabulary import Fault
from tests.procedures.test_spark_cluster import CLUSTER, two_hosts
from tests.profiles import IS_DEEP

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not IS_DEEP, reason="JVMs of its own: in the deep run"),
]
ROUNDS = int(os.environ.get("ROWSIEVE_ROUNDS", "3"))


def check_rounds(master: str, folder: Path, fault: Fault) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.providers.spark.cluster_writes",
            master,
            folder,
            f"{ROUNDS}",
            fault.name,
        ],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    wanted = [f"{number} {fault.name} {how}" for number in range(ROUNDS) for how in (True, False)]
    assert done.stdout.splitlines() == wanted


def test_a_write_survives_a_lost_executor(tmp_path: Path) -> None:
    check_rounds(CLUSTER, tmp_path, Fault.EXECUTOR_KILLED)


def test_two_attempts_of_a_task_that_both_write_count_once(tmp_path: Path) -> None:  # trap T29
    with two_hosts(tmp_path) as master:
        check_rounds(master, tmp_path, Fault.SPECULATED)
