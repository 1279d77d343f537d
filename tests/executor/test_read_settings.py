"""Pruning, audit and reporter of a read: by argument, then table property, then `Config`."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput
from rowsieve.executor.read_settings import ReadSettings, ReadSwitches
from rowsieve.metrics.reports import Report
from rowsieve.storage.snapshot import TableInfo


class Kept:
    def __init__(self) -> None:
        self.reports: list[Report] = []

    def report(self, report: Report) -> None:
        self.reports.append(report)


def read_settings(properties: dict[str, str], **switches: Any) -> ReadSettings:
    return ReadSwitches(**switches).settings(TableInfo("1f", ("id",), "upsert", properties))


pytestmark = pytest.mark.usefixtures("former_config")


@pytest.mark.parametrize("argument", [None, "on", "soft", "off"])
@pytest.mark.parametrize("kept", [None, "on", "soft", "off"])
@pytest.mark.parametrize("config", ["on", "soft", "off"])
def test_argument_then_property_then_config(argument: Any, kept: Any, config: Any) -> None:
    rs.configure(rs.Config(pruning=config))
    properties = {} if kept is None else {"pruning": kept}
    assert read_settings(properties, pruning=argument).pruning == (argument or kept or config)


def test_each_switch_is_resolved_by_itself() -> None:
    rs.configure(rs.Config(audit_percent=1, audit_on_violation="report"))
    assert read_settings({"pruning": "on", "audit_percent": "2.5"}) == ReadSettings(
        "on", 2.5, "report"
    )
    assert read_settings({"audit_percent": "2"}, audit=0, on_violation="raise") == ReadSettings(
        "on", 0.0, "raise"
    )
    assert read_settings({}, pruning="off", audit=50).audited_percent == 0
    assert read_settings({}, pruning="soft").audited_percent == 100


def test_a_scan_follows_property_and_config() -> None:
    data = pa.table({"id": [1]})
    table = rs.create_table("memory://settings-a", data, key=["id"], properties={"pruning": "off"})
    table.upsert(pa.table({"id": [2]}))
    assert table.scan("id = 1").plan().pruning is False
    assert table.scan("id = 1", pruning="on").plan().pruning
    plain = rs.create_table("memory://settings-b", data, key=["id"])
    assert plain.scan("id = 1").plan().pruning
    rs.configure(rs.Config(pruning="soft"))
    assert plain.scan("id = 1").plan().pruning is False
    assert plain.scan("id = 1").to_arrow().num_rows == 1


def test_a_table_without_reporter_uses_that_of_the_config() -> None:
    mine, own = Kept(), Kept()
    rs.configure(rs.Config(reporter=mine))
    table = rs.create_table("memory://settings-c", pa.table({"id": [1]}), key=["id"])
    table.upsert(pa.table({"id": [2]}))
    table.scan().count()
    assert len(mine.reports) == 3  # of the creation, the upsert and the scan
    table.report_to(own)
    table.scan().count()
    assert (len(mine.reports), len(own.reports)) == (3, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pruning": "maybe"},
        {"pruning": pl.DataFrame()},
        {"pruning": ["on"]},
        {"audit_percent": 101},
        {"audit_percent": True},
        {"audit_on_violation": "ignore"},
        {"audit_on_violation": pl.col("a") > 1},
        {"memory_bytes": 0},
        {"split_bytes": 1.5},
        {"reporter": 7},
    ],
)
def test_a_config_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong)).removeprefix("audit_")[:5]):
        rs.Config(**wrong)
    with pytest.raises(InvalidInput, match="config is a dict, not a Config"):
        rs.configure(wrong)  # type: ignore[arg-type] # what is tested
