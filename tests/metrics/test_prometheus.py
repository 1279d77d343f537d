"""A Prometheus on loopback scrapes real metrics, and evaluates the alerts and panels of `ops`."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

import rowsieve as rs
from rowsieve.metrics import IngestReport, PrometheusReporter, gauges_text
from tests.metrics.test_table_gauges import OPS, expressions
from tests.small_tables import fresh_uri, kv

LONGEST_WAIT_S = 120
CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: rowsieve
    static_configs: [targets: ["127.0.0.1:{port}"]]
"""
CERTAIN = {
    "RowsieveMaintenanceIsDue",
    "RowsieveKeepsOldVersions",
    "RowsieveCommitsFail",
    "RowsieveReadsFail",
}
"""Alerts that the metrics raise; others depend on the machine, or on what cannot happen here."""


class Metrics:
    """The metrics of a table, as text: of its reads and changes, with and without success."""

    def __init__(self, wal_dir: Path) -> None:
        self.reporter = PrometheusReporter()
        self.table = rs.create_table(fresh_uri(), kv((1, 1), (2, 2)), key=["k"])
        self.table.report_to(self.reporter)
        with self.table.writer(wal_dir=wal_dir) as writer:
            writer.upsert({"k": 5, "v": 5}).result()
        self.writer = writer
        self.text = ""
        self.work()

    def work(self) -> None:
        """Read and change the table, also with errors, and write the text again."""
        self.table.upsert(kv((2, 20), (3, 3)))
        self.table.scan("k = 1").to_arrow()
        for _ in range(5):
            with contextlib.suppress(rs.errors.EvaluationError):
                self.table.scan("1 / (v - v) > 0").to_arrow()
            with contextlib.suppress(rs.errors.RowsieveError):
                self.table.update({"v": "1 / (v - v)"})
        uri = self.table.uri
        self.reporter.report(IngestReport(uri, 1, self.writer.metrics))
        self.text = self.reporter.text() + gauges_text({uri: self.table.gauges(disk=True)})


@contextlib.contextmanager
def served(metrics: Metrics) -> Iterator[int]:
    """The port of a server that has the metrics."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.end_headers()
            self.wfile.write(metrics.text.encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def metrics(tmp_path: Path) -> Metrics:
    return Metrics(tmp_path / "wal")


@pytest.fixture
def ask(metrics: Metrics, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Asks the interface of a Prometheus that has the rules and reads the metrics."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no prometheus on this machine")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with served(metrics) as port:
        rules = json.dumps(str(OPS / "prometheus-alerts.yml"))
        (tmp_path / "p.yml").write_text(CONFIGURATION.format(rules=rules, port=port))
        command = [program, f"--config.file={tmp_path / 'p.yml'}"]
        command += [f"--storage.tsdb.path={tmp_path / 'd'}", f"--web.listen-address={address}"]
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield lambda path: json.load(urlopen(f"http://{address}/api/v1/{path}"))["data"]
        finally:
            process.terminate()
            process.wait()


def wait(condition: Callable[[], object]) -> None:
    end = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if condition():
                return
        time.sleep(0.2)
    pytest.fail("Prometheus has not scraped and evaluated in time")


def test_prometheus_evaluates_alerts_and_panels(
    metrics: Metrics, ask: Callable[[str], Any]
) -> None:
    failed = "query?query=max(rowsieve_scan_errors_total)"
    wait(lambda: ask(failed)["result"])
    metrics.work()
    wait(lambda: float(ask(failed)["result"][0]["value"][1]) == 10)
    (group,) = ask("rules")["groups"]
    alerts = {rule["name"] for rule in group["rules"]}
    assert alerts > CERTAIN
    wait(lambda: {a["labels"]["alertname"] for a in ask("alerts")["alerts"]} >= CERTAIN)
    assert {rule["health"] for rule in ask("rules")["groups"][0]["rules"]} == {"ok"}
    for alert in ask("alerts")["alerts"]:
        assert alert["labels"]["table"] in alert["annotations"]["summary"]
    for purpose, expression in expressions().items():
        result = ask(f"query?query={quote(expression)}")["result"]
        assert result or purpose in alerts, purpose
