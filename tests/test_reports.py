"""A process of xdist passes on the reports of a test that somebody reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import reports


@pytest.mark.parametrize(
    ("outcomes", "sent"),
    [
        ({"setup": "passed", "call": "passed", "teardown": "passed"}, ["call"]),
        ({"setup": "passed", "call": "failed", "teardown": "failed"}, ["call", "teardown"]),
        ({"setup": "passed", "call": "skipped", "teardown": "passed"}, ["call"]),
        ({"setup": "failed", "teardown": "passed"}, ["setup"]),
        ({"setup": "skipped", "teardown": "failed"}, ["setup", "teardown"]),
    ],
)
def test_a_set_up_or_teardown_that_passed_is_not_reported(
    outcomes: dict[str, Any], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, log: bool, nextitem: Any) -> list[pytest.TestReport]:
        assert not log
        return [
            pytest.TestReport("a::b", ("a", 1, "b"), {}, outcome, None, when)  # type: ignore[arg-type]
            for when, outcome in outcomes.items()
        ]

    seen: list[str] = []
    hook = SimpleNamespace(
        pytest_runtest_logstart=lambda nodeid, location: seen.append("start"),
        pytest_runtest_logreport=lambda report: seen.append(report.when),
        pytest_runtest_logfinish=lambda nodeid, location: seen.append("finish"),
    )
    item: Any = SimpleNamespace(ihook=hook, nodeid="a::b", location=("a", 1, "b"))
    monkeypatch.setattr(reports, "runtestprotocol", run)
    assert reports.FewReports().pytest_runtest_protocol(item, None)
    assert seen == ["start", *sent, "finish"]
