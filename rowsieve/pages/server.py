"""An HTTP server of a `Site` on one address, with a thread for each request."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from rowsieve.errors import InvalidInput
from rowsieve.pages.site import (
    HEADERS,
    Answer,
    Page,
    Site,
    checked_address,
    own_hosts,
    refused,
)

_IDLE_S: Final = 10.0  # that a client may keep a thread waiting


def make_server(
    pages: dict[str, Page], address: str = "127.0.0.1", port: int = 0, *, remote: bool = False
) -> ThreadingHTTPServer:
    """Listen on an address; `port` 0 takes a free one. InvalidInput for one beyond loopback.

    `remote` allows any address; requests may then name any host.
    """
    listening = checked_address(address, remote=remote)
    is_v6 = ipaddress.ip_address(listening).version == 6

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if is_v6 else socket.AF_INET

    try:
        server = Server((listening, port), _handler(lambda: site))
    except OSError as error:
        raise InvalidInput(
            f"ui: cannot listen on {listening}, port {port}: {error}; give another --port, or 0 "
            "for a free one"
        ) from error
    bound = int(server.server_address[1])
    is_loopback = ipaddress.ip_address(listening).is_loopback
    site = Site(pages, own_hosts(listening, bound) if is_loopback else None)
    return server


def _handler(site: Callable[[], Site]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _IDLE_S
        server_version = "rowsieve"
        sys_version = ""
        default_request_version = "HTTP/1.0"  # so that each answer has headers

        def _answer(self) -> None:
            hosts = self.headers.get_all("Host") or []
            host = hosts[0] if len(hosts) == 1 else None  # of several, a proxy may mean another
            self._send(site().answer(self.command, self.path, host))

        def send_error(
            self, code: int, message: str | None = None, explain: str | None = None
        ) -> None:
            """Refuse what is no request that `answer` can judge, with the headers of all pages."""
            del message, explain
            self._send(refused(int(code), "This is not a request that can be answered."))

        def _send(self, answer: Answer) -> None:
            body = answer.body.encode("utf-8", "backslashreplace")
            self.send_response(answer.status)
            for name, value in {**HEADERS, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _answer  # noqa: N815
        do_TRACE = do_CONNECT = _answer  # noqa: N815 - names of the library

        def log_message(self, *_: object) -> None:
            """Log nothing: conditions may be confidential."""

    return Handler
