"""Gauges of tables, and the alert rules and dashboard that stand on our metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli import app as cli
from rowsieve.errors import InvalidInput
from rowsieve.metrics import IngestReport, PrometheusReporter, gauges_text
from rowsieve.metrics.table_gauges import TABLE_GAUGES
from tests.small_tables import fresh_uri, kv

OPS = Path(__file__).parents[2] / "ops"
NAME = re.compile(r"rowsieve_\w+")


@pytest.fixture
def table() -> rs.Table:
    table = rs.create_table(fresh_uri(), kv((1, 1), (2, 2)), key=["k"])
    table.upsert(kv((2, 20), (3, 3)))
    return table


def test_gauges_are_those_of_the_newest_version(table: rs.Table) -> None:
    gauges = table.gauges(disk=True)
    assert set(gauges) == set(TABLE_GAUGES)
    assert set(table.gauges()) == {name for name in TABLE_GAUGES if not name.startswith("disk_")}
    advice = table.maintenance_advice()
    assert (gauges["version"], gauges["parts"], gauges["rows"]) == (1, 2, 4)
    assert gauges["recommendations"] == len(advice.recommendations) > 0
    assert gauges["last_commit_timestamp_seconds"] == table.history(1)[0].timestamp.timestamp()
    assert gauges["disk_bytes"] > 0
    rs.open_table(table.uri).maintain(retain_last=1)
    assert table.gauges()["recommendations"] == 0


def test_each_gauge_has_one_head_and_a_line_for_each_table() -> None:
    text = gauges_text({"a": {"version": 1, "rows": 2}, 'b"\n': {"version": 3}})
    assert [line for line in text.splitlines() if not line.startswith("# HELP")] == [
        "# TYPE rowsieve_table_version gauge",
        'rowsieve_table_version{table="a"} 1',
        'rowsieve_table_version{table="b\\"\\n"} 3',
        "# TYPE rowsieve_table_rows gauge",
        'rowsieve_table_rows{table="a"} 2',
    ]


def test_the_command_prints_the_tables_of_a_catalog(tmp_path: Path) -> None:
    catalog = rs.Catalog(str(tmp_path))
    for name in ("db.a", "db.b"):
        catalog.create_table(name, pa.table({"x": [1]}))
    text = CliRunner().invoke(cli.app, ["--catalog", str(tmp_path), "metrics"]).stdout
    assert 'rowsieve_table_rows{table="db.a"} 1' in text
    assert 'rowsieve_table_rows{table="db.b"} 1' in text
    assert "disk" not in text


@pytest.fixture
def names(table: rs.Table, tmp_path: Path) -> set[str]:
    """The names of all samples of a process that reads, writes, fails and ingests."""
    reporter = PrometheusReporter()
    table.report_to(reporter)
    table.scan("k = 1").to_arrow()
    table.upsert(kv((4, 4)))
    with pytest.raises(rs.errors.EvaluationError):
        table.scan("1 / (v - v) > 0").to_arrow()
    with pytest.raises(rs.errors.RowsieveError):
        table.update({"v": "1 / (v - v)"})
    with table.writer(wal_dir=tmp_path / "wal") as writer:
        writer.upsert({"k": 5, "v": 5}).result()
    reporter.report(IngestReport(table.uri, 1, writer.metrics))
    text = reporter.text() + gauges_text({table.uri: table.gauges(disk=True)})
    return {name[0] for line in text.splitlines() if (name := NAME.match(line))}


def expressions() -> dict[str, str]:
    """Every expression of the files, by what it is for."""
    (group,) = yaml.safe_load((OPS / "prometheus-alerts.yml").read_text())["groups"]
    by_purpose = {rule["alert"]: rule["expr"] for rule in group["rules"]}
    dashboard: dict[str, Any] = json.loads((OPS / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        by_purpose |= {f"{panel['title']} {t['refId']}": t["expr"] for t in panel["targets"]}
    return by_purpose


def test_alerts_and_panels_name_metrics_that_exist(names: set[str]) -> None:
    for purpose, expression in expressions().items():
        used = set(NAME.findall(expression))
        assert used, purpose
        assert used <= names, purpose


def test_a_table_is_not_its_gauges(table: rs.Table) -> None:
    with pytest.raises(InvalidInput, match=r"\{t.uri: t.gauges\(\)\}, not Table"):
        gauges_text(table)  # type: ignore[arg-type]


def test_each_alert_says_what_to_do() -> None:
    (group,) = yaml.safe_load((OPS / "prometheus-alerts.yml").read_text())["groups"]
    for rule in group["rules"]:
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
