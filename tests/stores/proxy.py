"""A proxy on loopback before a server of objects: it counts requests and makes them fail.

A fault is chosen per request by a rule. Nothing sleeps: a request that is to time out is held until
its client has gone. `tests/stores/trips.py` counts round trips by it.
"""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from tests.faults.vocabulary import Fault


class Server(Protocol):
    """A server of some protocol."""

    @property
    def endpoint(self) -> str:
        """Its scheme, host and port."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the client sent it."""

    number: int
    method: str
    path: str
    conditional: bool
    token: str = ""  # of the session, which expires

    @property
    def is_entry(self) -> bool:
        """Whether it is about an entry of a log."""
        return "/_rowsieve/log/" in self.path and self.path.endswith(".json")


WIRE_FAULTS = (
    Fault.UNAVAILABLE,
    Fault.THROTTLED,
    Fault.REFUSED,
    Fault.DENIED,
    Fault.EXPIRED_TOKEN,
    Fault.RESET,
    Fault.RESET_AFTER,
    Fault.LOST_ANSWER,
    Fault.TIMEOUT_AFTER,
    Fault.BROKEN_BODY,
    Fault.SLOW_BODY,
    Fault.TRUNCATED,
    Fault.EXISTS_AFTER,
    Fault.EXISTS_BEFORE,
    Fault.ELSEWHERE,
    Fault.SKEWED_CLOCK,
    Fault.STALE_LIST,
)
"""The faults that the proxy can inject."""

_STALL_S = 60  # without a further request, after which some wait for each other

Rule = Callable[[Request], Fault | None]
Answer = tuple[int, list[tuple[str, str]], bytes]
Sent = tuple[str, str, dict[str, str], bytes]
Translation = Callable[[str, str, dict[str, str], bytes], Sent]
"""From a request of the client (method, path, headers, body) to that of the server."""


class Lockstep:
    """Answers the requests of a round trip together, once as many have arrived as it has.

    A client that sends them one after another, each after an answer, stalls; `stalled` says where.
    """

    def __init__(self, requests: Sequence[int]) -> None:
        self._changed = threading.Condition()
        self._requests = requests
        self._trip = 0
        self._held = 0
        self.stalled: str | None = None

    @property
    def is_held(self) -> bool:
        """Whether requests wait for others of their round trip."""
        return self._held > 0

    def hold(self) -> None:
        """Return once all requests of this round trip are there."""
        with self._changed:
            if self._trip >= len(self._requests) or self.stalled:
                return
            mine, expected = self._trip, self._requests[self._trip]
            self._held += 1
            if self._held == expected:
                self._held = 0
                self._trip += 1
                self._changed.notify_all()
            elif not self._changed.wait_for(lambda: self._trip > mine or self.stalled, _STALL_S):
                self.stalled = f"{self._held} of {expected} requests arrived in trip {mine + 1}"
                self._changed.notify_all()


class Proxy:
    """What it was asked, and where it is."""

    def __init__(self, upstream: str) -> None:
        self.steps: Lockstep | None = None
        self._upstream = urlsplit(upstream)
        self._lock = threading.Lock()
        self.endpoint = ""
        self.below = ""  # a path of the endpoint, which the server does not see
        self.rule: Rule = lambda _: None
        self.etag: Callable[[str], str | None] = lambda told: told
        self.translate: Translation = lambda *request: request
        self.translate_back: Callable[[str, Answer], Answer] = lambda _, answer: answer
        self.expired: Answer | None = None  # as another server than S3 says it
        self.first_answers: dict[str, Answer] = {}
        self.requests: list[Request] = []
        self.faults: list[tuple[Request, Fault]] = []

    @contextmanager
    def in_lockstep(self, requests: Sequence[int]) -> Iterator[Lockstep]:
        """Answer the requests of a block round trip by round trip, each of so many requests."""
        self.steps = Lockstep(requests)
        try:
            yield self.steps
        finally:
            self.steps = None

    def next(self, method: str, path: str, *, conditional: bool, token: str) -> Request:
        """Note a request that has arrived."""
        with self._lock:
            request = Request(len(self.requests), method, path, conditional, token)
            self.requests.append(request)
            return request

    def fault_of(self, request: Request) -> Fault | None:
        """What the rule says, noted."""
        fault = self.rule(request)
        if fault is not None:
            self.faults.append((request, fault))
        return fault

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """The server's answer."""
        asked = method
        method, path, headers, body = self.translate(method, path, headers, body)
        assert self._upstream.hostname is not None
        connection = http.client.HTTPConnection(
            self._upstream.hostname, self._upstream.port, timeout=60
        )
        try:
            connection.request(method, path.removeprefix(self.below), body, headers)
            answer = connection.getresponse()
            received = answer.status, answer.getheaders(), answer.read()
            return self.translate_back(asked, received)
        finally:
            connection.close()


@contextmanager
def proxy_to(target: Server) -> Iterator[Proxy]:
    """A proxy in front of the server; it ends with the block."""
    proxy = Proxy(target.endpoint)
    server = _Server(("127.0.0.1", 0), _handler(proxy))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    proxy.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # a client may open as many connections at once


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing is printed."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True  # the client has gone

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            conditional = "If-None-Match" in self.headers
            token = _session_of(self.headers, self.path)
            request = proxy.next(self.command, self.path, conditional=conditional, token=token)
            if (steps := proxy.steps) is not None:
                steps.hold()
            fault = proxy.fault_of(request)
            if fault is None or fault in _AFTER:
                answer = proxy.forward(self.command, self.path, dict(self.headers.items()), body)
            if fault is None:
                proxy.first_answers.setdefault(self.path, answer)
                self._answer(*answer)
            elif fault is Fault.STALE_LIST:
                self._answer(*proxy.first_answers.get(self.path, answer))
            elif fault is Fault.TRUNCATED:
                status, headers, body = answer
                kept = body[: len(body) // 2]
                length = [("Content-Length", str(len(kept)))]
                self._answer(status, [h for h in headers if not _is_length(h)] + length, kept)
            elif fault in (Fault.BROKEN_BODY, Fault.SLOW_BODY):
                self._answer(*answer, whole=False)
                if fault is Fault.SLOW_BODY:
                    self._wait_for_the_client_to_go()
                self.close_connection = True
            elif fault is Fault.TIMEOUT_AFTER:
                self._wait_for_the_client_to_go()
                self.close_connection = True
            elif fault in (Fault.RESET, Fault.RESET_AFTER):
                linger = struct.pack("ii", 1, 0)  # closing sends a reset
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                self.close_connection = True
            elif fault is Fault.EXPIRED_TOKEN and proxy.expired is not None:
                self._answer(*proxy.expired)
            else:
                self._answer(*_ERRORS[fault])

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _serve  # noqa: N815 - http.server's names

        def _answer(
            self, status: int, headers: list[tuple[str, str]], body: bytes, *, whole: bool = True
        ) -> None:
            self.send_response_only(status)
            length = str(len(body))
            for name, value in headers:
                if name.lower() == "content-length":
                    length = value  # of HEAD, too
                elif name.lower() == "etag":
                    if (etag := proxy.etag(value)) is not None:
                        self.send_header(name, etag)
                elif name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body if whole else body[: len(body) // 2])
            self.wfile.flush()

        def _wait_for_the_client_to_go(self) -> None:
            while self.connection.recv(4096):
                pass

    return Handler


def _session_of(headers: Message, path: str) -> str:
    """What tells a session from the next one: S3's token, Google's, or the signature of Azure."""
    authorization = headers.get("Authorization") or ""
    if authorization.startswith("Bearer "):
        return authorization.removeprefix("Bearer ")
    signatures = parse_qs(urlsplit(path).query).get("sig", [""])
    return headers.get("X-Amz-Security-Token") or signatures[0]


_AFTER = (
    Fault.RESET_AFTER,
    Fault.LOST_ANSWER,
    Fault.TIMEOUT_AFTER,
    Fault.BROKEN_BODY,
    Fault.SLOW_BODY,
    Fault.TRUNCATED,
    Fault.EXISTS_AFTER,
    Fault.STALE_LIST,
)


def _is_length(header: tuple[str, str]) -> bool:
    return header[0].lower() == "content-length"


def _error(status: int, code: str, *more: tuple[str, str]) -> Answer:
    """An error as S3 tells it; it repeats what was signed, as S3 does, in one line."""
    text = (
        f"<Error><Code>{code}</Code><Message>{code} of the proxy</Message>"
        "<AWSAccessKeyId>AKIAECHOEDKEY</AWSAccessKeyId>"
        "<SignatureProvided>0123456789abcdefECHOED</SignatureProvided></Error>"
    )
    return status, [("Content-Type", "application/xml"), *more], text.encode()


_ERRORS = {
    Fault.UNAVAILABLE: _error(500, "InternalError"),
    Fault.LOST_ANSWER: _error(500, "InternalError"),
    Fault.THROTTLED: _error(503, "SlowDown", ("Retry-After", "1")),
    Fault.REFUSED: _error(501, "NotImplemented"),
    Fault.DENIED: _error(403, "AccessDenied"),
    Fault.EXPIRED_TOKEN: _error(400, "ExpiredToken"),
    Fault.EXISTS_AFTER: _error(412, "PreconditionFailed"),
    Fault.EXISTS_BEFORE: _error(409, "ConditionalRequestConflict"),
    Fault.ELSEWHERE: _error(301, "PermanentRedirect"),
    Fault.SKEWED_CLOCK: _error(403, "RequestTimeTooSkewed"),
}
