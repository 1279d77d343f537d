"""Programs of changes and reads while a server fails in every way: nothing lost, doubled or short.

Two handles change and read a table through a proxy that has storms: bursts of SlowDown, resets,
answers that break off or are cut, puts that are applied and never answered, and times in which
puts, listings or deletes are denied, sessions are over or clocks differ. A dictionary has what was
acknowledged; a change that raised is made again with its token. `make test` runs one program
against moto, the deep profile more against each server that can be started here.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import RowsieveError
from rowsieve.objects import store_opening
from tests import profiles
from tests.faults.vocabulary import Fault
from tests.small_tables import KV, kv
from tests.stores import providers
from tests.stores.azure_server import Azure, azure_server
from tests.stores.proxy import Proxy, Request, proxy_to
from tests.stores.s3_server import S3
from tests.stores.wheel_servers import google_server, second_s3

KEYS = 30
KEY_SCHEMA = pa.schema([KV.field("k")])
STEPS = 30 if profiles.IS_DEEP else 12
SEEDS = range(4 if profiles.IS_DEEP else 1)
SERVERS = ("moto", "localbucket", "fake-gcs", "azurite") if profiles.IS_DEEP else ("moto",)
FEW_RETRIES = {
    "max_retries": 2,
    "retry_timeout": timedelta(seconds=20),
    "backoff": {
        "init_backoff": timedelta(milliseconds=1),
        "max_backoff": timedelta(milliseconds=2),
        "base": 2,
    },
}

OF_ANY = (Fault.UNAVAILABLE, Fault.RESET, Fault.RESET_AFTER, Fault.LOST_ANSWER)
OF_READS = (Fault.BROKEN_BODY, Fault.TRUNCATED)
OF_PUTS = (Fault.TIMEOUT_AFTER, Fault.LOST_ANSWER)
STORMS: dict[str, tuple[Fault, Callable[[Request], bool]]] = {
    "slow down": (Fault.THROTTLED, lambda request: True),
    "no puts": (Fault.DENIED, lambda request: request.method in ("PUT", "POST")),
    "no reads": (Fault.DENIED, lambda request: request.method == "GET"),
    "no listings": (Fault.DENIED, lambda request: "prefix=" in request.path),
    "no deletes": (Fault.DENIED, lambda request: request.method in ("DELETE", "POST")),
    "skewed clock": (Fault.SKEWED_CLOCK, lambda request: True),
}


class Weather:
    """Chooses a fault for each request: storms of some length, and single faults between them."""

    def __init__(self, seed: int) -> None:
        self._draws = random.Random(seed)
        self._lock = threading.Lock()
        self._left = 0
        self._storm = "slow down"
        self._ended: set[str] = set()
        self._newest = ""

    def __call__(self, request: Request) -> Fault | None:
        with self._lock:
            if request.token and request.token not in self._ended:
                self._newest = request.token
            if request.token in self._ended:
                return Fault.EXPIRED_TOKEN
            if self._left:
                self._left -= 1
                fault, concerns = STORMS[self._storm]
                return fault if concerns(request) else None
            draw = self._draws.random()
            if draw < 0.02:
                self._storm = self._draws.choice(sorted(STORMS))
                self._left = self._draws.randint(2, 12)
            elif draw < 0.04 and self._newest:
                self._ended.add(self._newest)
            elif draw < 0.12:
                kinds: tuple[Fault, ...] = OF_ANY
                if request.method in ("GET", "PUT"):
                    kinds += OF_READS if request.method == "GET" else OF_PUTS
                return self._draws.choice(kinds)
            return None


@contextmanager
def server_of(name: str, s3: S3, folder: Path) -> Iterator[Any]:
    """One of the servers; skips where it cannot be started."""
    if name == "moto":
        yield s3
        return
    made = {"localbucket": second_s3, "fake-gcs": google_server, "azurite": azure_server}
    with made[name](folder) as server:
        yield server


def options_of(server: Any, proxy: Proxy) -> dict[str, Any]:
    """Options through the proxy; sessions of S3 end, so they come from a provider."""
    if isinstance(server, S3):
        settings = server.at(proxy.endpoint).options
        kept = {name: settings[name] for name in ("endpoint", "region", "allow_http")}
        return {**kept, "credential_provider": providers.issued, "timeout": "1s"}
    return {**type(server)(proxy.endpoint).options, "timeout": "1s"}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: Any, s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with server_of(request.param, s3, tmp_path_factory.mktemp("server")) as running:
        yield running


class Program:
    """A table, two handles of it, and what it must hold."""

    def __init__(self, server: Any, proxy: Proxy, seed: int) -> None:
        self.proxy = proxy
        self._draws = random.Random(seed)
        self._weather = Weather(seed)
        uri = server.fresh_uri()
        self._server = server
        rs.create_table(uri, KV, key=["k"], storage_options=server.options)
        options = options_of(server, proxy)
        self.handles = [rs.open_table(uri, storage_options=options) for _ in range(2)]
        self.rows: dict[int, int] = {}
        self.changes = self.upserts = 0
        self.raised = 0

    def step(self) -> None:
        """Change or read, in a storm."""
        self.proxy.rule = self._weather
        table = self._draws.choice(self.handles)
        kind = self._draws.choice(("upsert", "upsert", "delete", "delete_where", "read", "upkeep"))
        if kind == "read":
            self._attempt(lambda: self._read(table))
        elif kind == "upkeep":
            self._attempt(lambda: table.maintain(retain_last=5, grace_s=3600))
        else:
            self._change(table, kind)

    def _change(self, table: rs.Table, kind: str) -> None:
        self.changes += 1
        token = ("storm", self.changes)
        first = self._draws.randrange(KEYS)
        keys = range(first, min(KEYS, first + 8))
        change: Callable[[], object]
        if kind == "upsert":
            self.upserts += 1
            rows = kv(*((k, self.changes) for k in keys))
            change = partial(table.upsert, rows, token=token)
        elif kind == "delete":
            change = partial(table.delete, keys=pa.table({"k": keys}, KEY_SCHEMA), token=token)
        else:
            where = f"k >= {keys.start} AND k < {keys.stop}"
            change = partial(table.delete, where, token=token)
        self.rows = {k: v for k, v in self.rows.items() if k not in keys}
        if kind == "upsert":
            self.rows |= dict.fromkeys(keys, self.changes)
        while not self._attempt(change):
            if self._draws.random() < 0.5:
                self.proxy.rule = lambda request: None

    def _attempt(self, act: Callable[[], object]) -> bool:
        try:
            act()
        except RowsieveError:
            self.raised += 1
            return False
        return True

    def _read(self, table: rs.Table) -> None:
        rows = [(row["k"], row["v"]) for row in table.scan().to_arrow().to_pylist()]
        assert sorted(rows) == sorted(self.rows.items())
        assert table.scan("v > 0").count() == len(self.rows)

    def check(self) -> None:
        """The server holds what was acknowledged, each change once."""
        self.proxy.rule = lambda request: None
        table = rs.open_table(self.handles[0].uri, storage_options=self._server.options)
        for handle in (table, *self.handles):
            handle.refresh()
            self._read(handle)
        assert not table.verify().damaged
        commits = table.history(500)
        upserts = sum(commit.operation == "upsert" for commit in commits)
        is_complete = commits[-1].version == 0  # no version has expired
        assert upserts == self.upserts if is_complete else upserts <= self.upserts


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_doubled_or_short_in_storms(
    seed: int, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_opening, "_RETRIES", FEW_RETRIES)
    with proxy_to(server) as proxy:
        program = Program(server, proxy, seed)
        for _ in range(STEPS):
            program.step()
        program.check()
        assert program.changes > STEPS / 4
        assert len(proxy.faults) > STEPS / 4
        if isinstance(server, (S3, Azure)):
            assert {fault for _, fault in proxy.faults} - {Fault.THROTTLED}
