"""A cluster that loses executors while it works on a store: nothing is lost, nothing is doubled.

The deep profile alone runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.procedures.test_spark_cluster import CLUSTER
from tests.profiles import IS_DEEP
from tests.providers.spark.store_cluster import STEPS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not IS_DEEP, reason="a cluster of its own: in the deep run"),
]


def test_reads_writes_and_calls_on_a_store_survive_a_lost_executor(tmp_path: Path) -> None:
    module = "tests.providers.spark.store_cluster"
    done = subprocess.run(
        [sys.executable, "-m", module, CLUSTER, tmp_path, *STEPS],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines() == list(STEPS)
