"""Errors of the client by cause: a real client meets each, or its text is here."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

import rowsieve as rs
from rowsieve.errors import StoreError
from rowsieve.objects.request_failures import Cause, describe, failure_of
from tests.faults.vocabulary import Fault
from tests.small_tables import KV
from tests.stores.proxy import Proxy, proxy_to
from tests.stores.s3_server import S3, SECRET

STATUS = """Generic S3 error: Error performing GET http://127.0.0.1:1/b/k in 1ms - Server returned \
non-2xx status code: {status} X: <Error><Code>{code}</Code><Key>ConnectionRefused {secret}</Key>

Debug source:
Generic {{ source: RetryErrorImpl {{
            retries: 0,
            inner: Status {{
                status: {status},
                body: Some("kind: ConnectionRefused InvalidCertificate"),
            }} }} }}
"""
TRANSPORT = """Generic S3 error: Error performing GET {url} in 1ms - HTTP error: error sending

Debug source:
Generic {{
            retries: 8,
            inner: Http(HttpError {{ kind: Connect, source: {structure} }}) }}
"""


@pytest.fixture
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.OTHER])
def test_each_cause_is_told_with_host_and_remedy(cause: Cause) -> None:
    row = cause.value
    errors = [
        STATUS.format(status=next(iter(row.statuses), 400), code=code, secret=SECRET)
        for code in row.codes
    ]
    errors += [
        STATUS.format(status=status, code="SomeCode", secret=SECRET) for status in row.statuses
    ]
    errors += [
        TRANSPORT.format(url="https://x.example.com/k", structure=word) for word in row.structure
    ]
    if cause is Cause.NO_CREDENTIALS:
        metadata = "http://169.254.169.254/latest/api/token"
        errors = [TRANSPORT.format(url=metadata, structure="kind: Timeout")]
    assert errors
    for text in errors:
        assert failure_of(Exception(text)).cause is cause
        message = describe(Exception(text), (), "")
        assert row.what in message
        assert row.remedy in message
        assert "from http" in message
        assert SECRET not in message


def test_a_server_cannot_choose_the_cause_by_its_text() -> None:
    """Only the code counts of an answer; what it repeats may contain words of other causes."""
    text = STATUS.format(status=418, code="Teapot", secret="BadScheme")
    assert failure_of(Exception(text)).cause is Cause.OTHER


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"endpoint": "http://127.0.0.1:9"}, "connection_refused"),
        ({"endpoint": "http://no-such-host.invalid:9000"}, "unknown_host"),
        ({"allow_http": "false"}, "plain_http"),
        ({"endpoint": "https"}, "not_tls"),
        ({"timeout": "50ms", "endpoint": "silent"}, "timeout"),
    ],
)
def test_a_client_that_reaches_no_server_is_told_why(
    change: dict[str, str], cause: str, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {**rs.objects.store_opening._RETRIES, "max_retries": 1}
    monkeypatch.setattr(rs.objects.store_opening, "_RETRIES", few)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        places = {
            "https": s3.endpoint.replace("http:", "https:"),
            "silent": f"http://127.0.0.1:{silent.getsockname()[1]}",
        }
        endpoint = change.get("endpoint", s3.endpoint)
        options = {**s3.options, **change, "endpoint": places.get(endpoint, endpoint)}
        with pytest.raises(StoreError) as raised:
            rs.open_table(s3.fresh_uri(), storage_options=options)
    assert raised.value.cause == cause
    assert raised.value.operation == "list"
    row = Cause[cause.upper()].value
    assert row.what in str(raised.value)
    assert options["endpoint"].rpartition("/")[2] in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Fault.DENIED, "denied"),
        (Fault.EXPIRED_TOKEN, "expired"),
        (Fault.SKEWED_CLOCK, "skewed_clock"),
        (Fault.ELSEWHERE, "region"),
    ],
)
def test_what_a_server_refuses_for_good_is_asked_once_and_told(
    fault: Fault, cause: str, s3: S3, proxy: Proxy
) -> None:
    store = rs.objects.open_store(s3.fresh_uri(), s3.at(proxy.endpoint).options)
    proxy.rule = lambda request: fault
    acts: dict[str, Callable[[], object]] = {
        "read": lambda: store.get("data/x"),
        "create": lambda: store.put_new("data/x", b"1"),
        "list": lambda: store.list("data"),
    }
    for number, (operation, act) in enumerate(acts.items()):
        with pytest.raises(StoreError) as raised:
            act()
        assert (raised.value.operation, raised.value.cause) == (operation, cause)
        assert operation in str(raised.value)
        assert "data" in str(raised.value)
        assert len(proxy.requests) == number + 1


def test_a_bucket_that_does_not_exist_is_not_an_absent_table(s3: S3) -> None:
    uri, options = "s3://no-such-bucket/t", s3.options
    acts: tuple[Callable[[], object], ...] = (
        lambda: rs.open_table(uri, storage_options=options),
        lambda: rs.create_table(uri, KV, storage_options=options),
    )
    for act in acts:
        with pytest.raises(StoreError, match="the bucket or container does not exist") as raised:
            act()
        assert raised.value.cause == "no_bucket"


def test_no_host_is_named_where_none_is_known() -> None:
    error = OSError("Generic S3 error: none\n\nDebug source:\nkind: ConnectionRefused")
    assert describe(error, (), "").startswith("connection refused; check the endpoint")
    assert describe(error, (), "http://h").startswith("connection refused, from http://h; check")
