"""What is answered to a request: a status, headers and a body; knows no sockets.

Soundness: only GET and HEAD are answered. A request must name the host that it was sent to: a
foreign name that resolves to loopback (DNS rebinding) is refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from rowsieve.errors import InvalidInput, RowsieveError
from rowsieve.pictures.markup import element, text
from rowsieve.pictures.page import POLICY, page

POLICY_OF_PAGES: Final = f"{POLICY}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": POLICY_OF_PAGES,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_METHODS: Final = ("GET", "HEAD")
_HTTP_PORT: Final = 80
_MAX_TARGET: Final = 8_192  # characters of a request's target

Query = Mapping[str, str]
Page = Callable[[Query], str]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; `headers` are those beside `HEADERS`."""

    status: int
    body: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Site:
    """The pages by path, and the names under which a request may ask for them.

    `hosts` are names with ports; None: any name, for a server that others may reach.
    """

    pages: Mapping[str, Page]
    hosts: frozenset[str] | None

    def answer(self, method: str, target: str, host: str | None) -> Answer:
        """Answer a request by its method, target and Host header; never raises."""
        if self.hosts is not None and (host or "").lower() not in self.hosts:
            return refused(421, "This server answers only requests to its own address.")
        if method not in _METHODS:
            allowed = {"Allow": ", ".join(_METHODS)}
            return refused(405, "Pages are only read here.", allowed)
        if len(target) > _MAX_TARGET:
            return refused(414, "The address is too long.")
        try:
            parts = urlsplit(target)
            query = parse_qs(parts.query, keep_blank_values=False, max_num_fields=20)
        except ValueError:
            return refused(400, "The address cannot be read.")
        show = self.pages.get(parts.path)
        if show is None or parts.netloc or parts.scheme:
            return refused(404, "There is no such page.")
        try:
            return Answer(200, show({name: values[-1] for name, values in query.items()}), {})
        except RowsieveError as error:
            return refused(400, f"{type(error).__name__}: {error}")
        except Exception as error:  # a page is shown to people: an error is one, too
            return refused(500, f"{type(error).__name__}: {error}")


def own_hosts(address: str, port: int) -> frozenset[str]:
    """The Host headers of requests to a server on loopback."""
    shown = f"[{address}]" if ":" in address else address
    names = (shown, "localhost", "127.0.0.1", "[::1]")
    plain = names if port == _HTTP_PORT else ()  # a browser leaves this port out
    return frozenset((*plain, *(f"{name}:{port}" for name in names)))


def checked_address(address: str, *, remote: bool) -> str:
    """Return the address to listen on; InvalidInput unless it is loopback, or `remote` is given."""
    if address == "localhost":
        return "127.0.0.1"
    try:
        is_loopback = ipaddress.ip_address(address).is_loopback
    except ValueError as error:
        raise InvalidInput(
            f"ui: {address!r} is not an IP address; give one, such as 127.0.0.1"
        ) from error
    if not is_loopback and not remote:
        raise InvalidInput(
            f"ui: {address} can be reached from other machines, and whoever reaches it may read "
            "the table; give --remote to allow that, or listen on 127.0.0.1"
        )
    return address


def refused(status: int, words: str, headers: Mapping[str, str] | None = None) -> Answer:
    """A page that says why there is no other one."""
    shown = element(
        "section",
        element("p", text(words, 2_000)),
        class_="rowsieve-picture",
    )
    return Answer(status, page(f"Rowsieve: {status}", [shown]), headers or {})
