"""Credentials of a provider: renewed when a server refuses them, sent to processes by name."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, StoreError
from rowsieve.objects.credentials import _CALLING, Credentials
from rowsieve.objects.storage_options import flat_options, options_elsewhere, static_options
from rowsieve.procedures.engine import LocalEngine
from rowsieve.threads import Threads
from tests import profiles
from tests.faults.vocabulary import Fault
from tests.small_tables import KV, kv
from tests.stores import providers
from tests.stores.providers import Issuing, issued
from tests.stores.proxy import Proxy, Request, Rule, proxy_to
from tests.stores.s3_server import S3, SECRET

PARTS, REQUESTS_PER_SESSION = 12, 10
NAME = "tests.stores.providers:issued"
_SETTINGS = ("endpoint", "region", "allow_http")


@pytest.fixture
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


@pytest.fixture(scope="module")
def uri(s3: S3) -> str:
    """A table of overlapping parts, which no test changes for good."""
    table = rs.create_table(s3.fresh_uri(), KV, key=["k"], storage_options=s3.options)
    for number in range(PARTS):
        table.upsert(kv(*((k, number) for k in range(number, 40))))
    return table.uri


def options(proxy: Proxy, provider: Any) -> dict[str, Any]:
    settings = S3(proxy.endpoint).options
    return {**{name: settings[name] for name in _SETTINGS}, "credential_provider": provider}


EXPECTED = [(k, min(k, PARTS - 1)) for k in range(40)]


def rows(table: rs.Table) -> list[tuple[int, int]]:
    return sorted((row["k"], row["v"]) for row in table.scan().to_arrow().to_pylist())


def expiring(after: int) -> Rule:
    """Each session is over after so many requests."""
    used: Counter[str] = Counter()
    lock = threading.Lock()

    def rule(request: Request) -> Fault | None:
        with lock:
            used[request.token] += 1
            return Fault.EXPIRED_TOKEN if used[request.token] > after else None

    return rule


@pytest.mark.parametrize(
    "provider", profiles.some([NAME, issued, Issuing(), "tests.stores.providers:Issuing"], 2)
)
def test_sessions_that_end_between_requests_are_renewed_in_reads_and_commits(
    provider: Any, uri: str, s3: S3, proxy: Proxy
) -> None:
    providers.calls.clear()
    proxy.rule = expiring(REQUESTS_PER_SESSION)
    table = rs.open_table(uri, storage_options=options(proxy, provider))
    assert rows(table) == EXPECTED
    table.upsert(kv((100, 1)))
    table.delete("k = 100")
    assert rows(table) == EXPECTED
    refused = [request for request, _ in proxy.faults]
    assert len(refused) >= 4
    assert 4 <= len(providers.calls) < len(proxy.requests) / 4  # once for all that are refused
    assert rs.open_table(uri, storage_options=s3.options).version == table.version


def test_a_session_is_renewed_shortly_before_its_end_and_not_for_each_request() -> None:
    calls = []

    def lasting(seconds: float) -> Any:
        def provider() -> dict[str, Any]:
            calls.append(seconds)
            ends = datetime.now(UTC) + timedelta(seconds=seconds)
            return {**issued(), "expires_at": ends}

        return provider

    for seconds, expected in ((3600.0, 1), (200.0, 1), (10.0, 5), (-5.0, 5)):
        calls.clear()
        credentials = Credentials(lasting(seconds), "s3")
        for _ in range(5):
            credentials.prepare()
        assert len(calls) == expected


def test_a_provider_that_fails_near_the_end_leaves_the_session_that_still_holds() -> None:
    answers: list[Any] = [{**issued(), "expires_at": datetime.now(UTC) + timedelta(seconds=20)}]

    def provider() -> Any:
        return answers.pop()

    credentials = Credentials(provider, "s3")
    assert credentials.prepare()["token"] == credentials.prepare()["token"]


def test_a_provider_is_called_once_for_many_threads_and_without_a_lock() -> None:  # invariant 21
    begun, go_on = threading.Event(), threading.Event()
    calls: list[Any] = []

    def slow() -> dict[str, Any]:
        calls.append(issued())
        begun.set()
        assert go_on.wait(120)
        return dict(calls[-1])

    credentials = Credentials(slow, "s3")
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(credentials.prepare) for _ in range(4)]
        assert begun.wait(120)
        assert credentials.secrets == ()  # the lock is free
        assert set(credentials()) == {"expires_at"}
        go_on.set()
        assert {each.result()["token"] for each in waiting} == {calls[0]["token"]}
        refused = credentials.prepare()
        again = [pool.submit(credentials.renewed, refused) for _ in range(4)]
        assert all(each.result() for each in again)
    assert len(calls) == 2


@pytest.mark.parametrize("pool", [Threads, ThreadPoolExecutor])
def test_a_provider_that_reads_its_own_store_in_another_thread_does_not_wait_for_ever(
    pool: type[ThreadPoolExecutor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our threads know for whom they work; a thread of the provider's own waits for a while."""
    is_ours = pool is Threads
    monkeypatch.setattr("rowsieve.objects.credentials._LONGEST_CALL_S", 3600.0 if is_ours else 0.05)

    def circular() -> Any:
        with pool(1) as threads:
            return threads.submit(credentials.prepare).result()

    credentials = Credentials(circular, "s3")
    words = "circular reads the store" if is_ours else "circular did not return within"
    with pytest.raises(StoreError, match=words):
        credentials.prepare()
    assert _CALLING.get() == ()


def test_a_provider_that_reads_its_own_store_is_refused_and_called_again() -> None:
    asks = [True]

    def circular() -> Any:
        return (credentials.prepare if asks.pop() else issued)()

    credentials = Credentials(circular, "s3")
    with pytest.raises(StoreError, match="circular reads the store whose credential"):
        credentials.prepare()
    asks.append(False)
    assert credentials.prepare()["token"]


def test_the_same_credentials_again_are_not_tried_again(uri: str, proxy: Proxy) -> None:
    calls = []

    def same() -> dict[str, Any]:
        calls.append(1)
        return {"access_key_id": "AKIASAMEEXAMPLE", "secret_access_key": SECRET}

    proxy.rule = lambda request: Fault.EXPIRED_TOKEN
    with pytest.raises(StoreError, match="credentials have expired") as raised:
        rs.open_table(uri, storage_options=options(proxy, same))
    assert raised.value.cause == "expired"
    assert len(calls) <= 1 + len(proxy.requests)
    assert "AKIASAME" not in str(raised.value)


def _raising() -> Any:
    raise ValueError(SECRET)


async def _asynchronous() -> Any:
    return issued()


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (_raising, "_raising raised ValueError in 3 calls"),
        (_asynchronous, r"no mapping \(it is asynchronous\)"),
        (lambda: {"token": SECRET}, r"fields \['token'\]; .* access_key_id and secret_access_key"),
        (lambda: {**issued(), "expires_at": datetime(2030, 1, 1)}, "datetime with a zone"),
        ("environment", "none of AWS_ACCESS_KEY_ID is set"),
    ],
)
def test_a_provider_without_a_credential_is_named(
    provider: Any, message: str, uri: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    with pytest.raises(StoreError, match=message) as raised:
        rs.open_table(uri, storage_options=options(proxy, provider))
    assert raised.value.operation == "renew credentials"
    assert SECRET not in str(raised.value)
    assert not proxy.requests


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        ("nope", "is neither 'package.module:function'"),
        ("os:no_such", "cannot be imported: AttributeError"),
        ("no_such_module:f", "cannot be imported: ModuleNotFoundError"),
        ("os:sep", "is not a function"),
        ("__import__('os'):x", "is neither"),
        (5, "is a function or its name, not a value of type int"),
        ("profile:no-such", "there is no such profile"),
    ],
)
def test_a_name_without_a_provider_is_refused(provider: Any, message: str, proxy: Proxy) -> None:
    with pytest.raises(InvalidInput, match=message):
        rs.objects.open_store("s3://bucket/t", options(proxy, provider))


def test_a_provider_beside_credentials_is_refused(s3: S3) -> None:
    both: dict[str, Any] = {**s3.options, "credential_provider": issued}
    with pytest.raises(InvalidInput, match="access_key_id, secret_access_key; pass either"):
        rs.open_table(s3.fresh_uri(), storage_options=both)


def test_the_environment_is_read_again_at_each_renewal(
    uri: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = issued()
    for variable, field in (
        ("AWS_ACCESS_KEY_ID", "access_key_id"),
        ("AWS_SECRET_ACCESS_KEY", "secret_access_key"),
        ("AWS_SESSION_TOKEN", "token"),
    ):
        monkeypatch.setenv(variable, values[field])
    table = rs.open_table(uri, storage_options=options(proxy, "environment"))
    monkeypatch.setenv("AWS_SESSION_TOKEN", "renewed")
    proxy.rule = lambda request: None if request.token == "renewed" else Fault.EXPIRED_TOKEN
    assert rows(table) == EXPECTED
    assert proxy.faults


def test_a_profile_is_read_again_at_each_renewal(
    uri: str, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"

    def write(token: str) -> None:
        file.write_text(
            f"[reader]\naws_access_key_id = A\naws_secret_access_key = {SECRET}\n"
            f"aws_session_token = {token}\n"
        )

    write("old")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    table = rs.open_table(uri, storage_options=options(proxy, "profile:reader"))
    write("renewed")
    proxy.rule = lambda request: None if request.token == "renewed" else Fault.EXPIRED_TOKEN
    assert rows(table) == EXPECTED


def test_a_name_goes_to_other_processes_and_never_a_secret(s3: S3) -> None:
    given = {"region": "us-east-1", "credential_provider": issued}
    assert flat_options(given) == {"region": "us-east-1", "credential_provider": NAME}
    assert options_elsewhere({**given, "credential_provider": NAME})["credential_provider"] == NAME
    for local in (Issuing(), Issuing().__call__):
        with pytest.raises(InvalidInput, match="no name that another process could import"):
            options_elsewhere({**given, "credential_provider": local})
    for_delta = static_options(given, "s3")
    assert for_delta["access_key_id"] == "AKIAISSUEDEXAMPLE"
    assert for_delta["session_token"] == providers.calls[-1]
    assert "credential_provider" not in for_delta


def test_what_a_provider_says_beside_its_credential_is_no_option() -> None:
    given = {"access_key_id": "AKIA", "secret_access_key": SECRET}
    beside = {"token": "", "region": "us-east-1", "expires_at": None}
    options = {"credential_provider": lambda: {**given, **beside}}
    assert static_options(options, "s3") == given


def test_options_of_a_reader_without_providers_are_flat() -> None:
    given = {
        "allow_http": True,
        "client_options": {"timeout": "5s"},
        "client_options.user_agent": "a",
    }
    flat = {"allow_http": "true", "timeout": "5s", "user_agent": "a"}
    assert static_options(given, "s3") == flat_options(given) == flat


def test_an_empty_field_of_a_credential_is_no_secret() -> None:
    given = {"access_key_id": "AKIA", "secret_access_key": SECRET, "token": ""}
    credentials = Credentials(lambda: given, "s3")
    credentials.prepare()
    assert credentials.secrets == (SECRET, "AKIA")


@pytest.mark.skipif(not profiles.IS_DEEP, reason="starts two processes")
def test_processes_of_a_call_find_the_provider_by_its_name(uri: str, proxy: Proxy) -> None:
    table = rs.open_table(uri, storage_options=options(proxy, issued))
    call = "CALL system.rewrite_data_files(table => 't')"
    catalog = rs.Catalog(f"{uri}-catalog", storage_options=options(proxy, issued))
    catalog.create_table("db.t", kv((1, 1)), key=["k"]).upsert(kv((2, 2)))
    catalog.call(call.replace("'t'", "'db.t'"), engine=LocalEngine(processes=2))
    assert rows(catalog.open_table("db.t")) == [(1, 1), (2, 2)]
    assert rows(table) == EXPECTED


@pytest.mark.spark
def test_tasks_of_spark_find_the_provider_by_its_name(spark: Any, uri: str, proxy: Proxy) -> None:
    table = rs.open_table(uri, storage_options=options(proxy, issued))
    frame = table.to_spark(spark, where="k < 3")
    assert sorted(row["v"] for row in frame.collect()) == [0, 1, 2]
    assert "AKIAISSUED" not in frame._jdf.queryExecution().toString()
    local = rs.open_table(uri, storage_options=options(proxy, Issuing()))
    with pytest.raises(InvalidInput, match="no name that another process could import"):
        local.to_spark(spark).collect()
