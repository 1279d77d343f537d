"""A task that cannot reach a store, or lacks the package, fails soon and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

import rowsieve as rs
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.errors import StoreError, UnsupportedOperation
from rowsieve.objects import open_probe
from rowsieve.objects.request_failures import Cause
from rowsieve.procedures.engine import Job
from rowsieve.providers.spark.cluster import task_stores
from rowsieve.providers.spark.job_errors import own_error
from rowsieve.providers.spark.procedure_engine import _runner
from rowsieve.providers.spark.source import RowsieveSource
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.store_options import passed_on
from rowsieve.providers.spark.writes.write_tasks import RowsieveWriter
from tests.faults.stores import CAUSES, FaultyStore
from tests.faults.vocabulary import Fault
from tests.procedures.test_task_reports import Halves
from tests.storage.log_fixtures import memory_store
from tests.stores.folder_server import FolderServer, folder_server

pytestmark = pytest.mark.spark
COLUMNS = pa.schema([("id", pa.int64())])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FolderServer]:
    folder = tmp_path_factory.mktemp("buckets")
    (folder / "b").mkdir()
    with folder_server(folder) as started:
        yield started


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_stores, "_REACHED", set())


def table_in(server: FolderServer, name: str) -> rs.Table:
    rows = pa.table({"id": [1, 2]}, schema=COLUMNS)
    uri, options = f"s3://b/{name}", server.s3.options
    return rs.create_table(uri, rows, key=["id"], storage_options=options)


def read_task(table: rs.Table, options: dict[str, str], **more: str) -> Callable[[], Any]:
    source = RowsieveSource({"path": table.uri, **options, **more})
    reader = source.reader(source.schema())
    partition = reader.partitions()[0]
    return lambda: list(reader.read(partition))


def write_task(table: rs.Table, options: dict[str, str]) -> Callable[[], Any]:
    given = WriteOptions.parse({"path": table.uri, "mode": "upsert", **options})
    writer = RowsieveWriter.begin(given, spark_schema(table.handle.pinned.schema))
    return lambda: writer.write(iter([pa.record_batch({"id": [7]}, schema=COLUMNS)]))


def procedure_task(table: rs.Table, _: dict[str, str]) -> Callable[[], Any]:
    run = _runner(Job(Halves(), [b"ab"], table.handle.storage_options, "", None, table.uri))
    return lambda: run(0, b"ab")


TASKS: dict[str, Callable[[rs.Table, dict[str, str]], Callable[[], Any]]] = {
    "read": read_task,
    "feed": lambda table, options: read_task(
        table, options, readchangefeed="true", startingversion="0"
    ),
    "write": write_task,
    "procedure": procedure_task,
}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_that_cannot_reach_the_store_names_machine_and_cause(
    name: str, server: FolderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver reaches the store, and this process, as an executor, does not."""
    table = table_in(server, f"out-{name}")
    task = TASKS[name](table, passed_on(server.s3.options))
    opened = open_probe

    def elsewhere(uri: str, storage: Any) -> Any:
        return opened(uri, {**storage, "endpoint": "http://127.0.0.1:9"})

    monkeypatch.setattr(task_stores, "open_probe", elsewhere)
    with pytest.raises(
        StoreError, match=r"a task on .* cannot reach the store.*check\(spark"
    ) as raised:
        task()
    assert raised.value.cause == "connection_refused"
    assert server.s3.options["secret_access_key"] not in str(raised.value)


@pytest.mark.parametrize("name", TASKS)
def test_a_process_asks_a_store_once(name: str, server: FolderServer) -> None:
    table = table_in(server, f"once-{name}")
    server.requests.clear()
    for _ in range(3):
        TASKS[name](table, passed_on(server.s3.options))()
    asked = [key for _, key in server.requests if key.endswith("/_rowsieve/reached")]
    assert asked == [f"b/once-{name}/_rowsieve/reached"]


def probed(monkeypatch: pytest.MonkeyPatch, fault: Fault | None) -> None:
    """Let the store that tasks ask answer in one way; None: it has no such object."""
    store = FaultyStore(memory_store())
    if fault is not None:
        store.meet_where(fault, "get")
    monkeypatch.setattr(task_stores, "open_probe", lambda *_: store)


@pytest.mark.parametrize(
    "fault",
    [
        None,
        Fault.DENIED,
        Fault.THROTTLED,
        Fault.SERVER_ERROR,
        Fault.RESET,
        Fault.REFUSED,
    ],
)
def test_an_answer_that_says_nothing_of_the_next_request_is_no_error(
    fault: Fault | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    probed(monkeypatch, fault)
    task_stores.check_reached("s3://b/t", {})


@pytest.mark.parametrize(
    "fault",
    [Fault.NO_CREDENTIALS, Fault.EXPIRED_TOKEN, Fault.UNKNOWN_HOST, Fault.BAD_CERTIFICATE],
)
def test_a_failure_is_asked_for_again(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    probed(monkeypatch, fault)
    for _ in range(2):
        with pytest.raises(StoreError, match="a task on") as raised:
            task_stores.check_reached("s3://b/t", {})
        assert raised.value.cause == CAUSES[fault]


def test_a_folder_is_not_probed(tmp_path: Path) -> None:
    task_stores.check_reached(str(tmp_path), {})
    assert list(tmp_path.iterdir()) == []


def test_only_causes_that_say_nothing_of_the_next_request_may_be_passed_over() -> None:
    passed_over = {each.name for each in Cause if not each.concerns_machine}
    assert passed_over == {"DENIED", "OTHER", "RESET", "SERVER", "THROTTLED", "UNSUPPORTED"}


@pytest.mark.parametrize("package", ["rowsieve", "rowsieve.providers", "pyarrow"])
def test_an_executor_without_a_package_is_an_error_of_ours(package: str) -> None:
    error = RuntimeError(f"Job aborted\nModuleNotFoundError: No module named '{package}'\n at x")
    own = own_error(error, "write_spark into t")
    assert isinstance(own, UnsupportedOperation)
    assert f"an executor has no package {package.partition('.')[0]}" in str(own)
    assert own_error(RuntimeError("No module named 'mine'"), "write_spark into t") is None
