"""Sessions of Google and Azure that end in a read and in a commit are renewed, in the deep profile.

The servers are emulators. Azurite refuses the first signature itself, because its end has passed;
the proxy refuses the others, as these services say it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.errors import StoreError
from tests import profiles
from tests.faults.vocabulary import Fault
from tests.small_tables import KV, kv
from tests.stores import providers
from tests.stores.azure_server import Azure, azure_server
from tests.stores.proxy import Answer, Proxy, Request, Rule, proxy_to
from tests.stores.wheel_servers import google_server

pytestmark = pytest.mark.skipif(
    not profiles.IS_DEEP, reason="the servers are installed by pip and npm, in make test-deep only"
)
PARTS, READS_PER_SESSION = 12, 6
EXPECTED = [(k, min(k, PARTS - 1)) for k in range(40)]
SERVERS = {"fake-gcs": google_server, "azurite": azure_server}
_UNAUTHENTICATED: Answer = (
    401,
    [("Content-Type", "application/json")],
    b'{"error": {"code": 401, "message": "Invalid Credentials", "status": "UNAUTHENTICATED"}}',
)
_OVER: Answer = (
    403,
    [("Content-Type", "application/xml"), ("x-ms-error-code", "AuthenticationFailed")],
    b"<Error><Code>AuthenticationFailed</Code><Message>Signature not valid</Message></Error>",
)


@pytest.fixture(scope="module", params=sorted(SERVERS))
def server(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with SERVERS[request.param](tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def proxy(server: Any) -> Iterator[Proxy]:
    with proxy_to(server) as running:
        running.expired = _OVER if isinstance(server, Azure) else _UNAUTHENTICATED
        yield running


def options_of(server: Any, proxy: Proxy, provider: Any = None) -> dict[str, Any]:
    """The options of the server through the proxy, with credentials of a provider alone."""
    settings = dict(type(server)(proxy.endpoint).options)
    settings.pop("account_key", None)
    own = providers.azure_session if isinstance(server, Azure) else providers.google_session
    return {**settings, "credential_provider": provider or own}


def ending(limit: int, method: str) -> Rule:
    """Each session is over after so many requests of a method."""
    used: Counter[str] = Counter()
    lock = threading.Lock()

    def rule(request: Request) -> Fault | None:
        with lock:
            if used[request.token] > limit:
                return Fault.EXPIRED_TOKEN
            used[request.token] += request.method == method
            return Fault.EXPIRED_TOKEN if used[request.token] > limit else None

    return rule


def rows(table: rs.Table) -> list[tuple[int, int]]:
    return sorted((row["k"], row["v"]) for row in table.scan().to_arrow().to_pylist())


def test_sessions_that_end_in_a_read_and_in_a_commit_are_renewed(server: Any, proxy: Proxy) -> None:
    files = {"inline_bytes": 0}
    writer = rs.create_table(
        server.fresh_uri(), KV, key=["k"], properties=files, storage_options=server.options
    )
    for number in range(PARTS):
        writer.upsert(kv(*((k, number) for k in range(number, 40))))
    providers.calls.clear()
    table = rs.open_table(writer.uri, storage_options=options_of(server, proxy))
    before = len(proxy.faults)
    proxy.rule = ending(READS_PER_SESSION, "GET")
    assert rows(table) == EXPECTED
    assert len(proxy.faults) > before  # in the scan
    before = len(proxy.faults)
    proxy.rule = ending(1, "PUT")  # the file is put, and then the entry is refused
    version = table.version
    table.upsert(kv((100, 1)))
    assert len(proxy.faults) > before
    assert table.version == version + 1
    proxy.rule = lambda _: None
    table.delete("k = 100")
    assert rows(rs.open_table(writer.uri, storage_options=server.options)) == EXPECTED
    assert 4 <= len(providers.calls) < len(proxy.requests)


def test_a_session_that_cannot_be_renewed_is_told_without_its_secret(
    server: Any, proxy: Proxy
) -> None:
    table = rs.create_table(
        server.fresh_uri(), kv((1, 1)), key=["k"], storage_options=server.options
    )
    providers.calls.clear()
    own = options_of(server, proxy)["credential_provider"]
    own()
    same = own()  # of Azure, the second one holds
    opened = rs.open_table(table.uri, storage_options=options_of(server, proxy, lambda: same))
    assert rows(opened) == [(1, 1)]
    proxy.rule = lambda _: Fault.EXPIRED_TOKEN
    with pytest.raises(StoreError, match="credentials") as raised:
        opened.upsert(kv((2, 2)))
    assert providers.calls[-1] not in str(raised.value)
