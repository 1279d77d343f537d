"""The random changes of `test_evolution_state_machine`, read by Spark at every 20th step.

Spark's workers are processes of their own, so the row groups have their usual size here. A failure
is not shrunk: each try would run Spark jobs.
"""

from __future__ import annotations

import tempfile
from typing import Any, ClassVar, cast

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant

import rowsieve
from tests.oracle_table import bag
from tests.profiles import IS_DEEP, judged
from tests.tables.test_evolution_state_machine import EvolutionMachine

pytestmark = pytest.mark.spark

EVERY = 20


@pytest.fixture(autouse=True)
def session(spark: Any) -> None:
    SparkMachine.spark = spark


class SparkMachine(EvolutionMachine):
    """The same table on a disk, which Spark opens."""

    spark: ClassVar[Any]

    def place(self) -> str:
        self.steps = 0
        self.folder = tempfile.TemporaryDirectory(prefix="rowsieve-evolution-")
        return f"{self.folder.name}/table"

    @invariant()
    def spark_reads_the_model(self) -> None:
        if not hasattr(self, "versions"):
            return
        self.steps += 1
        if self.steps % EVERY == 0:
            self.compare_in_spark(None)
            self.compare_in_spark(len(self.versions) // 2)

    def compare_in_spark(self, version: int | None) -> None:
        state = self.head if version is None else self.versions[version]
        table = rowsieve.open_table(self.uri, version=version)
        assert self.rows_in(table.to_spark(self.spark)) == state.shown(list(state.rows.values()))
        column = state.columns[-1]
        kept = [row for row in state.rows.values() if row[column.number] is not None]
        frame = table.to_spark(self.spark, where=f"{column.name} IS NOT NULL")
        assert self.rows_in(frame) == state.shown(kept)

    def rows_in(self, frame: Any) -> Any:
        return bag(row.asDict() for row in frame.collect())

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "versions"):
            self.compare_in_spark(None)
            self.folder.cleanup()


TestEvolutionInSpark = SparkMachine.TestCase
TestEvolutionInSpark.settings = settings(
    cast("settings", judged(1)),
    max_examples=20 if IS_DEEP else 1,
    stateful_step_count=45 if IS_DEEP else 21,
)
