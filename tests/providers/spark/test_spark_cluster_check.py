"""`check` says before a job what its tasks would lack."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import rowsieve as rs
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.objects import LocalStore
from rowsieve.providers.spark import check
from rowsieve.providers.spark.cluster import checks
from rowsieve.providers.spark.cluster.probe import probed
from tests.faults.stores import EveryStore
from tests.faults.vocabulary import Fault

pytestmark = pytest.mark.spark
PICKLES: Any = cloudpickle  # has no types


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(str(tmp_path / "t"), pa.table({"id": [1]}), key=["id"])


class Tasks:
    """Stands for a session whose tasks report other facts than the driver."""

    _jsparkSession = None  # noqa: N815
    defaultParallelism = 1  # noqa: N815

    def __init__(self, **facts: str) -> None:
        self._facts = facts

    @property
    def sparkContext(self) -> Tasks:  # noqa: N802
        return self

    def parallelize(self, _items: Any, _count: int) -> Tasks:
        return self

    def mapPartitions(self, run: Any) -> Tasks:  # noqa: N802
        self._rows = [row | self._facts for row in run(iter(()))]
        return self

    def collect(self) -> list[dict[str, str]]:
        if "raises" in self._facts:
            raise RuntimeError(self._facts["raises"])
        return self._rows


def test_a_sound_session_is_reported(spark: Any, table: rs.Table, tmp_path: Path) -> None:
    report = check(spark, table.uri, writes=True)
    driver, executors = report.driver, report.executors
    assert {each.rowsieve for each in executors} == {driver.rowsieve}
    assert {each.python for each in executors} == {driver.python}
    assert str(report).startswith(f"driver    {driver.host}: Python {driver.python}, rowsieve ")
    assert [path.name for path in (tmp_path / "t" / "data").iterdir() if "probe" in path.name] == []


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"python": "3.9.1"}, "has Python 3.9, and the driver has 3."),
        ({"pyarrow": "1.0.0"}, "has pyarrow 1.0.0, and the driver has "),
        ({"rowsieve": ""}, "has rowsieve not at all, and the driver has "),
        ({"problem": "cannot import rowsieve: No module"}, "on far .*: cannot import rowsieve"),
    ],
)
def test_what_an_executor_lacks_is_named(facts: dict[str, str], told: str) -> None:
    with pytest.raises(UnsupportedOperation, match=told):
        check(Tasks(host="far", **facts))


def test_a_python_that_does_not_start_is_an_error_of_ours() -> None:
    text = "Job aborted\n[PYTHON_VERSION_MISMATCH] Python in worker has 3.9"
    with pytest.raises(UnsupportedOperation, match=r"PYSPARK_PYTHON.*\[PYTHON_VERSION_MISMATCH\]"):
        check(Tasks(raises=text))


def test_a_process_without_a_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    assert probed(None, {}, 1, writes=False)["problem"].startswith("cannot import obstore")


def test_tasks_are_sent_the_probe_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without the package loads it, runs it, and says what it lacks."""
    sent = []

    def kept(self: Tasks, run: Any) -> Tasks:
        sent.append(PICKLES.dumps(run))
        self._rows = []
        return self

    monkeypatch.setattr(Tasks, "mapPartitions", kept)
    check(Tasks())
    for name in ("rowsieve", "rowsieve.providers.spark.cluster.probe"):
        monkeypatch.setitem(sys.modules, name, None)
    (facts,) = PICKLES.loads(sent[0])(iter(()))
    assert facts["problem"].startswith("cannot import rowsieve: ")
    assert facts["rowsieve"] == ""


def test_a_table_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    facts = probed(str(tmp_path / "none"), {}, 20, writes=False)
    assert facts["problem"].startswith("TableNotFound: ")


def test_a_folder_that_cannot_be_written_is_named(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    EveryStore(monkeypatch, LocalStore).meet_where(Fault.DENIED, "put_new")
    problem = probed(table.uri, {}, 20, writes=True)["problem"]
    assert problem == f"StoreError: {Fault.DENIED.value}"


def test_a_store_that_does_not_answer_is_an_error_in_time(
    monkeypatch: pytest.MonkeyPatch, held: Any
) -> None:
    monkeypatch.setattr(rs, "open_table", lambda *_, **__: held.wait())
    assert probed("x", {}, 0.05, writes=False)["problem"] == "x did not answer within 0 s"


@pytest.fixture
def held() -> Iterator[Any]:
    import threading

    event = threading.Event()
    yield event
    event.set()


def test_secrets_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "probed", lambda *_, **__: _facts("denied for hunter2"))
    with pytest.raises(UnsupportedOperation, match="denied for …") as caught:
        check(Tasks(), "s3://b/t", storage_options={"secret_access_key": "hunter2"})
    assert "hunter2" not in str(caught.value)


def _facts(problem: str) -> dict[str, str]:
    names = ("host", "executable", "python", "rowsieve", "pyarrow", "obstore")
    return {**dict.fromkeys(names, "1.2"), "problem": problem}


def test_what_is_no_session_of_a_driver_is_refused(spark: Any) -> None:
    with pytest.raises(UnsupportedOperation, match="not a session with a driver of its own"):
        check(object())
    with pytest.raises(InvalidInput, match="give its uri"):
        check(spark, writes=True)
