"""Answers: pages are only read, by requests that name the server, and never run anything."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest

from rowsieve import Table
from rowsieve.catalog import Catalog
from rowsieve.errors import InvalidInput
from rowsieve.pages.served_tables import catalog_pages, table_pages
from rowsieve.pages.server import make_server
from rowsieve.pages.site import POLICY_OF_PAGES, Query, Site, checked_address, own_hosts
from tests.pictures.parsed import HOSTILE
from tests.small_tables import KV, fresh_uri, keyed, kv

HOST = "127.0.0.1:8642"


def greeting(query: Query) -> str:
    return f"hello {query.get('name', '')}"


SITE = Site({"/": greeting}, own_hosts("127.0.0.1", 8642))


@pytest.mark.parametrize("host", [HOST, "localhost:8642", "LOCALHOST:8642", "[::1]:8642"])
def test_own_names_are_answered(host: str) -> None:
    assert SITE.answer("GET", "/?name=a", host).body == "hello a"


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example:8642", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:8642"],
)
def test_foreign_names_are_refused(host: str | None) -> None:
    answer = SITE.answer("GET", "/", host)
    assert answer.status == 421
    assert "hello" not in answer.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"])
def test_other_methods_are_refused(method: str) -> None:
    answer = SITE.answer(method, "/", HOST)
    assert (answer.status, answer.headers) == (405, {"Allow": "GET, HEAD"})


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 200),
        ("/etc/passwd", 404),
        ("/../x", 404),
        ("//", 404),
        ("//evil.example/", 404),
        ("http://evil.example/", 404),
        ("*", 404),
        ("", 404),
        ("/?" + "a=1&" * 30, 400),
        ("/?" + "a" * 9_000, 414),
        ("http://[", 400),
        ("/<script>", 404),
    ],
)
def test_other_targets_are_refused(target: str, status: int) -> None:
    assert SITE.answer("GET", target, HOST).status == status


def test_a_failing_page_is_an_answer() -> None:
    def fail(_: Query) -> str:
        raise ZeroDivisionError("<script>")

    answer = Site({"/": fail}, None).answer("GET", "/", None)
    assert answer.status == 500
    assert "ZeroDivisionError: &lt;script&gt;" in answer.body


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "::ffff:8.8.8.8"])
def test_addresses_beyond_loopback_must_be_allowed(address: str) -> None:
    with pytest.raises(InvalidInput, match="--remote"):
        checked_address(address, remote=False)
    assert checked_address(address, remote=True) == address


def test_names_are_no_addresses() -> None:
    assert checked_address("localhost", remote=False) == "127.0.0.1"
    with pytest.raises(InvalidInput, match="not an IP address"):
        checked_address("localhost.evil.example", remote=True)


@pytest.fixture(scope="module")
def table() -> Table:
    table = keyed({"k": [1, 2], "v": [1, 2]})
    table.upsert(kv((2, 5), (3, 3)))
    return table


def shown(body: str) -> ET.Element:
    return ET.fromstring(body.partition("\n")[2])


@pytest.mark.parametrize("where", ["k > 1", "v = 5 AND k < 3", "nope = 1", "k >", *HOSTILE])
def test_a_page_shows_a_condition_or_its_error(table: Table, where: str) -> None:
    page = table_pages(lambda: table)["/"]
    root = shown(page({"where": where, "column": where, "refresh": where}))
    assert [each.get("method") for each in root.iter("form")] == ["get"]
    assert {each.tag for each in root.iter()}.isdisjoint({"script", "img", "iframe"})
    titles = "".join("".join(each.itertext()) for each in root.iter("h2"))
    assert "Health of" in titles
    assert ("What a read of" in titles) == where.startswith(("k > 1", "v = 5"))


def test_each_load_shows_the_newest_version() -> None:
    table = keyed({"k": [1], "v": [1]})
    page = table_pages(lambda: Table(table.handle))["/"]
    before = page({})
    table.upsert(kv((7, 7)))
    assert "at version 1<" in before
    assert "at version 2<" in page({})


def test_a_page_reloads_itself_where_asked(table: Table) -> None:
    page = table_pages(lambda: table)["/"]
    assert 'http-equiv="refresh" content="30"' in page({"refresh": "30"})
    assert 'content="2"' in page({"refresh": "-5"})
    assert 'refresh" content' not in page({})


def test_a_catalog_shows_its_own_tables_alone() -> None:
    catalog = Catalog(fresh_uri())
    catalog.create_table("db.t", KV, key=["k"])
    site = Site(catalog_pages(catalog.uri, catalog.tables, catalog.open_table), None)
    assert "/table?name=db.t" in site.answer("GET", "/", None).body
    assert site.answer("GET", "/table?name=db.t", None).status == 200
    for name in ("db.u", "../x", "file:///etc", ""):
        assert site.answer("GET", f"/table?name={name}", None).status == 400


@pytest.fixture
def server() -> Iterator[int]:
    made = make_server({"/": greeting})
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield int(made.server_address[1])
    made.shutdown()
    made.server_close()
    thread.join()


def test_a_server_sends_its_policy_and_answers_only_reads(server: int) -> None:
    def ask(method: str, headers: dict[str, str] | None = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", server, timeout=120)
        connection.request(method, "/", headers=headers or {})
        response = connection.getresponse()
        response.body = response.read()  # type: ignore[attr-defined]
        connection.close()
        return response

    got = ask("GET")
    assert (got.status, got.body) == (200, b"hello ")  # type: ignore[attr-defined]
    assert got.headers["Content-Security-Policy"] == POLICY_OF_PAGES
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.headers["X-Frame-Options"] == "DENY"
    assert (ask("HEAD").status, ask("HEAD").body) == (200, b"")  # type: ignore[attr-defined]
    assert [ask(method).status for method in ("POST", "PUT", "DELETE")] == [405] * 3
    assert ask("GET", {"Host": "evil.example"}).status == 421


def test_a_port_in_use_is_refused_by_name(server: int) -> None:
    with pytest.raises(InvalidInput, match=f"port {server}.*--port"):
        make_server({"/": greeting}, port=server)


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        pytest.param(
            "GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n", 421, id="hosts"
        ),
        pytest.param("GET / HTTP/1.1\r\n\r\n", 421, id="no host"),
        pytest.param("<b> / HTTP/1.1\r\nHost: {host}\r\n\r\n", 501, id="an unknown method"),
        pytest.param("GET / HTTP/x\r\nHost: {host}\r\n\r\n", 400, id="an unknown version"),
        pytest.param("GET /" + "a" * 70_000 + " HTTP/1.1\r\n\r\n", 414, id="a long line"),
        pytest.param("GET / HTTP/1.1\r\n" + "A: b\r\n" * 200 + "\r\n", 431, id="many headers"),
    ],
)
def test_each_refusal_has_the_policy_of_all_pages(
    server: int, request_text: str, status: int
) -> None:
    text = request_text.replace("{host}", f"127.0.0.1:{server}")
    with socket.create_connection(("127.0.0.1", server), timeout=120) as client:
        client.sendall(text.encode())
        answer = http.client.HTTPResponse(client)
        answer.begin()
        assert answer.status == status
        assert answer.headers["Content-Security-Policy"] == POLICY_OF_PAGES
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert b"hello" not in answer.read()
