"""Tables on Azure's protocol, in the deep profile: the stories that S3 is told, against azurite."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli.app import app
from rowsieve.errors import StoreError
from rowsieve.objects import open_store
from rowsieve.storage.log.commit_log import CommitLog
from tests import profiles, small_tables
from tests.faults.vocabulary import Fault
from tests.processes import start
from tests.storage.log_fixtures import commit_many, create
from tests.stores.azure_server import KEY, Azure, azure_server
from tests.stores.proxy import Proxy, Request, proxy_to
from tests.tables.test_concurrency import (
    test_a_race_with_a_key,
    test_a_race_without_a_key,
    test_a_token_counts_once_whoever_was_first,
    test_readers_of_old_versions_are_not_disturbed,
)

__all__ = [
    "test_a_race_with_a_key",
    "test_a_race_without_a_key",
    "test_a_token_counts_once_whoever_was_first",
    "test_readers_of_old_versions_are_not_disturbed",
]

pytestmark = pytest.mark.skipif(
    not profiles.IS_DEEP, reason="azurite is installed by npm, in make test-deep only"
)
WRITERS, COMMITS = 4, 10
ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    with azure_server(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture
def proxy(azure: Azure) -> Iterator[Proxy]:
    with proxy_to(azure) as running:
        yield running


@pytest.fixture(autouse=True)
def tables_on_azure(azure: Azure, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fresh tables of these tests are on the server, whose settings are in the environment."""
    made: list[str] = []

    def fresh_uri() -> str:
        made.append(azure.fresh_uri())
        return made[-1]

    for name, value in azure.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(small_tables, "fresh_uri", fresh_uri)
    return made


@pytest.fixture
def uri(azure: Azure) -> str:
    """A table of three rows."""
    found = azure.fresh_uri()
    rs.create_table(found, ROWS, key=["id"], storage_options=azure.options)
    return found


def test_four_processes_commit_and_lose_nothing(azure: Azure) -> None:
    uri = azure.fresh_uri()
    create(open_store(uri))
    writers = [start(commit_many, uri, i, COMMITS) for i in range(WRITERS)]
    for process in writers:
        process.join()
    assert [process.exitcode for process in writers] == [0] * WRITERS
    head = CommitLog(open_store(uri)).latest()
    assert head.version == WRITERS * COMMITS
    keys = head.parts.table.column("key.1.lower").to_pylist()
    assert sorted(keys) == [w * 1000 + i for w in range(WRITERS) for i in range(COMMITS)]


def test_a_table_is_read_and_changed_by_its_options(azure: Azure, uri: str) -> None:
    table = rs.open_table(uri, storage_options=azure.options)
    table.upsert(pa.table({"id": [3, 4], "v": ["C", "d"]}))
    table.delete("id = 1")
    table.compact()
    found = rs.open_table(uri, storage_options=azure.options)
    assert found.head().to_pydict() == {"id": [2, 3, 4], "v": ["b", "C", "d"]}
    (split,) = found.scan("id > 2").plan().splits_to_bytes()
    assert rs.read_split(split, storage_options=azure.options).read_all().num_rows == 2


def test_datafusion_and_the_command_line_read_it(azure: Azure, uri: str) -> None:
    context = SessionContext()
    context.register_table("t", rs.open_table(uri, storage_options=azure.options))
    assert context.sql("SELECT v FROM t WHERE id = 2").to_pydict() == {"v": ["b"]}
    options = [f"--storage-option={name}={value}" for name, value in azure.options.items()]
    result = CliRunner().invoke(app, ["inspect", uri, "--json", *options])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["version"] == 0


@pytest.mark.spark
def test_spark_reads_and_writes_it(spark: Any, azure: Azure, uri: str) -> None:
    table = rs.open_table(uri, storage_options=azure.options)
    frame = table.to_spark(spark, where="id > 1")
    assert sorted(row["v"] for row in frame.collect()) == ["b", "c"]
    options = {f"storage.{name}": value for name, value in azure.options.items()}
    frame.select("id").write.format("rowsieve").options(**options, mode="delete").mode(
        "append"
    ).save(uri)
    read = spark.read.format("rowsieve").options(**options).load(uri)
    assert [row["id"] for row in read.collect()] == [1]


def test_a_creation_asks_for_conditional_puts_before_it_writes(proxy: Proxy, azure: Azure) -> None:
    through = Azure(proxy.endpoint)
    made = azure.fresh_uri()
    rs.create_table(made, ROWS, key=["id"], storage_options=through.options)
    puts = [request for request in proxy.requests if request.method == "PUT"]
    assert [request.path.endswith("/create-only") for request in puts[:3]] == [True, True, False]
    assert all(request.conditional for request in puts)

    uri = azure.fresh_uri()
    proxy.rule = lambda request: Fault.REFUSED if request.conditional else None
    with pytest.raises(StoreError, match=r"whether .* honours create-only puts"):
        rs.create_table(uri, ROWS, key=["id"], storage_options=through.options)
    assert open_store(uri, azure.options).list("") == []


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize(
    "fault",
    [Fault.UNAVAILABLE, Fault.THROTTLED, Fault.RESET, Fault.RESET_AFTER, Fault.LOST_ANSWER,
     Fault.BROKEN_BODY],
    ids=lambda fault: fault.name,
)  # fmt: skip
def test_reads_and_commits_come_through_a_fault_at_each_object(
    fault: Fault, method: str, azure: Azure, uri: str, proxy: Proxy
) -> None:
    met: set[str] = set()

    def rule(request: Request) -> Fault | None:
        if request.method != method or request.path in met:
            return None
        met.add(request.path)
        return fault

    proxy.rule = rule
    table = rs.open_table(uri, storage_options=Azure(proxy.endpoint).options)
    table.upsert(pa.table({"id": [3, 4], "v": ["C", "d"]}))
    assert table.scan(order_by_key=True).to_arrow()["v"].to_pylist() == ["a", "b", "C", "d"]
    assert len(proxy.faults) > 2
    found = rs.open_table(uri, storage_options=azure.options)
    assert [commit.operation for commit in found.history()] == ["upsert", "create"]
    assert found.scan(order_by_key=True).to_arrow()["v"].to_pylist() == ["a", "b", "C", "d"]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"account_key": "bm90IHRoZSByaWdodCBrZXkgYXQgYWxs"}, "x"),
        ({}, "no-such-container"),
    ],
)
def test_wrong_settings_are_told_with_the_host_and_without_a_secret(
    change: dict[str, str], name: str, azure: Azure
) -> None:
    uri = f"az://{name}/x" if name != "x" else azure.fresh_uri()
    options = {**azure.options, **change}
    acts: tuple[Callable[[], object], ...] = (
        lambda: rs.open_table(uri, storage_options=options),
        lambda: rs.create_table(uri, ROWS, storage_options=options),
    )
    for act in acts:
        with pytest.raises(StoreError) as raised:
            act()
        told = str(raised.value)
        assert azure.endpoint.removeprefix("http://") in told
        for secret in (KEY, options["account_key"]):
            assert secret not in told
