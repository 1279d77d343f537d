"""Each fault of Spark is still there, or its workaround may go."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine_faults.fault import Fault
from tests.engine_faults.register import FAULTS
from tests.engine_faults.test_engine_faults import check


@pytest.mark.spark
@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault.needs_spark], ids=lambda fault: fault.name
)
def test_the_installed_spark_has_the_fault(spark: Any, fault: Fault) -> None:
    check(fault, has_fault=fault.probe(spark))
