"""The law of `test_event_order_machine`, read by Spark after every 20th step."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant

from tests.profiles import IS_DEEP, judged
from tests.tables.test_event_order_machine import SCHEMA, EventOrderMachine, bag

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not IS_DEEP, reason="the machine without Spark runs each time"),
]

EVERY = 20


@pytest.fixture(autouse=True)
def session(spark: Any) -> None:
    SparkMachine.spark = spark


class SparkMachine(EventOrderMachine):
    """The same table, which Spark reads as well."""

    spark: ClassVar[Any]
    steps = 0

    @invariant()
    def spark_has_the_fold(self) -> None:
        self.steps += 1
        if self.steps % EVERY == 0:
            self.compare_in_spark()

    def compare_in_spark(self) -> None:
        for condition in (None, "major <= 1"):
            frame = self.table.to_spark(self.spark, where=condition)
            kept = [row for row in self.expected() if condition is None or row[1] <= 1]
            assert bag(frame.toArrow().select(SCHEMA.names)) == kept

    def teardown(self) -> None:
        self.compare_in_spark()
        super().teardown()


TestEventOrderInSpark = SparkMachine.TestCase
TestEventOrderInSpark.settings = settings(
    cast("settings", judged(1)), max_examples=4, stateful_step_count=41
)
